"""A save that takes longer than a launcher waits: under torchrun and accelerate a rank trains in a process of its own.

A launcher that is told to stop passes the signal on, waits (30 seconds; TORCH_ELASTIC_SHUTDOWN_TIMEOUT) and kills what it
started. What it started is the keeper: it starts the training in a session of its own, passes signals on and returns its exit
code. A training that was asked to stop goes on to its safe point and its save when the keeper is killed; any other ends with
its keeper.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol

KEPT = "WRITER_RL_KEEPER"
"""Set for the training's own process: the end of a pipe that is closed when the keeper is gone."""
AGREE_S = 600.0
"""So long may the ranks take to agree on a stop once their launcher has gone; another rank may be dead, and they never will."""
_POLL_S = 0.5


class Stoppable(Protocol):
    """What a signal is remembered in (writer_rl.train.stop.StopSignals)."""

    received: int | None
    agreed: bool
    """Whether every rank knows: from here on only the save is left."""


def in_own_process() -> int | None:
    """Under a launcher: train in a process of its own, and return its exit code when it has ended. None: train here.

    Called first, by the script that trains; this process loads nothing.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or KEPT in os.environ:
        return None
    early: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(signum: int, _frame: FrameType | None) -> None:
        if child is None:
            early.append(signum)
        else:
            child.send_signal(signum)

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, pass_on)
    theirs, _ours = os.pipe()
    command = [sys.executable, *sys.orig_argv[1:]]
    child = subprocess.Popen(command, env={**os.environ, KEPT: str(theirs)}, pass_fds=(theirs,), start_new_session=True)
    os.close(theirs)
    for each in early:
        child.send_signal(each)
    code = child.wait()
    return code if code >= 0 else 128 - code


def watch(stop: Stoppable) -> None:
    """Look after the process that started this one, in a thread, where a launcher did."""
    if KEPT in os.environ:
        pipe = int(os.environ[KEPT])
        _in_thread(lambda: _until_unkept(pipe, stop))
    elif "ACCELERATE_USE_CPU" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
        parent = os.getppid()
        _in_thread(lambda: _until_orphaned(parent, stop))


def _until_unkept(pipe: int, stop: Stoppable) -> None:
    """When the launcher has killed the keeper: end, unless this training is on its way to a save."""
    os.read(pipe, 1)  # returns when the other end is closed
    end = time.monotonic() + AGREE_S
    while not stop.agreed:
        if stop.received is None or time.monotonic() > end:
            os._exit(128 + signal.SIGKILL)
        time.sleep(_POLL_S)


def _until_orphaned(parent: int, stop: Stoppable) -> None:
    """accelerate with one process is ended by a signal and passes none on: its end is the signal."""
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    if stop.received is None:
        stop.received = signal.SIGTERM


def _in_thread(work: Callable[[], object]) -> None:
    threading.Thread(target=work, name="keeper", daemon=True).start()
