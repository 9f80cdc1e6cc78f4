"""Whole training runs in processes of their own, several ranks if asked, killed or signalled at a chosen point.

The processes are forked from a server that has imported everything, so a run costs a second and not ten.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import socket
import sys
import time
from pathlib import Path

from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.writer_rl.preload"])


def train(
    config: Path, *overrides: str, ranks: int = 1, event: str = "", output: Path | None = None, script: str = "grpo"
) -> list[int]:
    """Run launch/grpo.py (or sft.py) with these arguments; the exit code of every rank (negative: the signal that killed it).

    event: "SIGKILL rollout 3 1": signal, point, at its third pass, on rank 1. Points: rollout (a position is done), decode (a token of every
    row is written), micro (a
    micro-batch is done), epoch (an optimizer step is done), save (a checkpoint is written but not yet in place), vllm (vLLM is
    asked to generate). Instead of a signal, ERROR is an error at that point.
    """
    arguments = ["--config", str(config), *overrides]
    port = _free_port()
    processes = [
        CONTEXT.Process(target=_rank, args=(arguments, rank, ranks, port, event, output, script)) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        if any(process.exitcode not in (None, 0) for process in processes):
            _give_up_on(processes)  # what torchrun does when a rank has died
        time.sleep(0.05)
    return [process.exitcode for process in processes]


def _give_up_on(processes: list) -> None:
    deadline = time.monotonic() + PATIENCE
    killed = any(process.exitcode == -signal.SIGKILL for process in processes)
    while not killed and any(process.is_alive() for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join()


def _rank(arguments: list[str], rank: int, ranks: int, port: int, event: str, output: Path | None, script: str) -> None:
    if output is not None:
        stream = (output.with_suffix(f".{rank}")).open("w", buffering=1)
        sys.stdout = sys.stderr = stream
    if ranks > 1:
        world = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in world.items()})
    if event:
        name, point, count, *on_rank = event.split()
        if not on_rank or int(on_rank[0]) == rank:
            _arm(name, point, int(count))
    from launch.cli import exit_code

    main = importlib.import_module(f"launch.{script}").main
    code = exit_code(main, arguments)
    sys.stdout.flush()
    os._exit(code)


def _arm(event: str, point: str, count: int) -> None:
    """Send this process the signal (or raise) when it passes the point for the count-th time."""
    owner, name = _place(point)
    before = point in ("rollout", "vllm")
    original = getattr(owner, name)
    passed = 0

    def armed(*arguments, **keywords):
        nonlocal passed
        result = None if before else original(*arguments, **keywords)
        passed += 1
        if passed == count:
            if event == "ERROR":
                raise RuntimeError("it fell over")
            os.kill(os.getpid(), getattr(signal, event))
        return original(*arguments, **keywords) if before else result

    setattr(owner, name, armed)


def _place(point: str) -> tuple:
    from rollout.hf.shared_rows import SharedRows
    from writer_rl.grpo.sampling import GroupSampler
    from writer_rl.train import checkpoint
    from writer_rl.train.backend import Backend

    if point == "vllm":
        from rollout.vllm.library import import_vllm

        return import_vllm().LLM, "enqueue"
    places = {"rollout": (GroupSampler, "_on_position"), "epoch": (Backend, "step"), "micro": (Backend, "backward")}
    if point == "decode":
        return SharedRows, "step"
    return places.get(point, (checkpoint, "publish"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
