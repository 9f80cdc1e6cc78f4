"""Stages of a long command: scripts run one after the other, each known by its command line, so that what is done is not run
again. Each leaves `stages/NAME.json` in the output folder: its command, whether it is done, wall and CPU seconds."""

import json
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from launch.cli import ROOT, Terminated, UsageError


class StageFailed(RuntimeError):
    """A stage ended with an error of its own; its output says which."""


def stage(name: str, output: Path, command: list[str], quiet: bool = False, grows: bool = False) -> float:
    """Run one script to its end, unless it is done; its wall time in seconds, all its tries together.

    quiet: without its stdout (progress and errors are on stderr). grows: another command goes on in the same folder, as an
    evaluation does that gets more rows; else UsageError for one.
    """
    marker = marker_file(output, name)
    fresh = {"seconds": 0.0, "cpu_seconds": 0.0, "done": False, "command": command}
    before: dict[str, Any] = json.loads(marker.read_text()) if marker.is_file() else fresh
    if before["command"] != command and grows:
        before = {**before, "done": False}
    elif before["command"] != command:
        raise UsageError(f"{output}: {name} was begun as `{shlex.join(before['command'])}`; name another --output_dir")
    if before["done"]:
        print(f"== {name}: done before, in {clock(before['seconds'])}", flush=True)
        return before["seconds"]
    print(f"== {name}: python {shlex.join(command)}", flush=True)
    began, spent = time.monotonic(), _cpu_seconds()
    stdout = subprocess.DEVNULL if quiet else None
    code = _wait(subprocess.Popen([sys.executable, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stdout))
    seconds = before["seconds"] + time.monotonic() - began
    from memory_env.files import write_text

    cpu = before.get("cpu_seconds", 0.0) + _cpu_seconds() - spent
    write_text(marker, json.dumps({"seconds": seconds, "cpu_seconds": cpu, "done": code == 0, "command": command}))
    if code in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if code in (143, -signal.SIGTERM):
        raise Terminated
    if code:
        raise StageFailed(f"{name} ended with exit code {code}; mend what it says above and run the same command again")
    return seconds


def marker_file(output: Path, name: str) -> Path:
    """Where a stage's command and times are kept."""
    return output / "stages" / f"{name.replace(', ', '-').replace(' ', '')}.json"


def _cpu_seconds() -> float:
    """Of all stages that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _wait(process: subprocess.Popen) -> int:
    """The exit code of `process`; signals that reach us are the child's to act on, and we wait until it has saved."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reaches the whole group: the child saves and stops by itself
        except Terminated:
            process.terminate()


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
