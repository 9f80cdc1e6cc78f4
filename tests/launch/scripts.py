"""Running the scripts: in this process, which is quick, or as a process of their own, as people do."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from launch.cli import exit_code
from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ended:
    """How a script ended."""

    returncode: int
    stdout: str
    stderr: str


def launch(script: str, *arguments: object, **environment: str) -> Ended:
    """`launch/SCRIPT.py ARGUMENTS` in this process."""
    main = importlib.import_module(f"launch.{script}").main
    output, errors = io.StringIO(), io.StringIO()
    changed = mock.patch.dict(os.environ, environment)
    with changed, contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = exit_code(main, [str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return Ended(code, output.getvalue(), errors.getvalue())


def spawn(script: str, *arguments: object, timeout: float = PATIENCE, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python launch/SCRIPT.py ARGUMENTS` from the repository's root."""
    command = [sys.executable, f"launch/{script}.py", *map(str, arguments)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, env=variables)


def refused(script: str, *arguments: object, **environment: str) -> str:
    """The error line of a script that must end with exit code 2 and at most three lines on stderr."""
    ended = launch(script, *arguments, **environment)
    assert ended.returncode == 2, (ended.returncode, ended.stderr)
    assert 1 <= ended.stderr.count("\n") <= 3 and "Traceback" not in ended.stderr
    return ended.stderr
