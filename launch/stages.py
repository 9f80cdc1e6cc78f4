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
from typing import TypedDict

from launch.cli import ROOT, Terminated, UsageError


class Mark(TypedDict):
    """What is kept of a stage: {"seconds": 12.5, "cpu_seconds": 11.0, "done": true, "command": ["launch/sft.py", "--seed", "0"]}.

    A part that ended with SIGKILL left no times: only its output is gone on with.
    """

    seconds: float
    cpu_seconds: float
    done: bool
    command: list[str]


class StageFailed(RuntimeError):
    """A stage ended with an error of its own; its output says which."""


def stage(name: str, output: Path, command: list[str], quiet: bool = False, grows: bool = False) -> float:
    """Run one script to its end, unless it is done; its wall time in seconds, all its tries together.

    quiet: without its stdout (progress and errors are on stderr). grows: another command goes on in the same folder, as an
    evaluation does that gets more rows; else UsageError for one.
    """
    before = read_mark(output, name) or Mark(seconds=0.0, cpu_seconds=0.0, done=False, command=command)
    if before["command"] != command and grows:
        before["done"] = False
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

    cpu = before["cpu_seconds"] + _cpu_seconds() - spent
    mark = Mark(seconds=seconds, cpu_seconds=cpu, done=code == 0, command=command)
    write_text(_file(output, name), json.dumps(mark))
    if code in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if code in (143, -signal.SIGTERM):
        raise Terminated
    if code:
        raise StageFailed(f"{name} ended with exit code {code}; mend what it says above and run the same command again")
    return seconds


def read_mark(output: Path, name: str) -> Mark | None:
    """What is kept of a stage; None where none of its tries has ended."""
    file = _file(output, name)
    if not file.is_file():
        return None
    kept = json.loads(file.read_text())
    return Mark(
        seconds=kept["seconds"], cpu_seconds=kept.get("cpu_seconds", 0.0), done=kept["done"], command=kept["command"]
    )


def _file(output: Path, name: str) -> Path:
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
