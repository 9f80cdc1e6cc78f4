"""The ranks of a run: who am I, and the few collectives the trainers decide with.

One process is a world of size 1 with a real process group, so that one rank and many take the same path. Decisions travel as
float64 on the CPU (gloo); gradients are DeepSpeed's affair.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")

TIMEOUT = timedelta(hours=2)
"""A rank may wait this long for another's rollouts or judge before the run fails."""


@dataclass(frozen=True)
class World:
    """This process among the processes of the run.

    Every method is collective: all ranks call it, in the same order, and all get the same answer.

    Example: ``world = connect(); if world.any(norm_is_bad): skip`` takes the same branch on every rank.
    """

    rank: int
    size: int
    local_rank: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this rank writes the files and the console."""
        return self.rank == 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Element-wise sums over the ranks, float64."""
        return self._reduce(values, dist.ReduceOp.SUM)

    def max(self, values: Sequence[float]) -> list[float]:
        """Element-wise maxima over the ranks, float64."""
        return self._reduce(values, dist.ReduceOp.MAX)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return self.max([float(flag)])[0] > 0

    def gather(self, value: T) -> list[T]:
        """Every rank's value (any picklable object), by rank, on every rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def gather_all(self, values: Sequence[T]) -> list[T]:
        """Every rank's values in one list, by rank, on every rank."""
        return [value for part in self.gather(values) for value in part]

    def broadcast(self, value: T) -> T:
        """Rank 0's value on every rank."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def decided_by_main(self, call: Callable[[], T]) -> T:
        """What `call` gives on rank 0, on every rank; a ValueError that it raises there is raised on every rank."""
        outcome: Any = None
        if self.is_main:
            try:
                outcome = call()
            except ValueError as error:
                outcome = error
        outcome = self.broadcast(outcome)
        if isinstance(outcome, ValueError):
            raise outcome
        return outcome

    def barrier(self) -> None:
        """Wait for every rank."""
        self.max([0.0])

    def _reduce(self, values: Sequence[float], operation: Any) -> list[float]:
        if self.size == 1:
            return [float(value) for value in values]
        tensor = torch.tensor(list(values), dtype=torch.float64)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


def prepare_environment() -> None:
    """Tell DeepSpeed what to run on. Called before anything imports it (transformers does), or it warns that it found nothing."""
    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")


def connect(threads: int | None = None) -> World:
    """Join the run that torchrun or accelerate launch started, or start a run of one process.

    threads: CPU threads of torch in this process. A second call in the same process joins the same group.
    """
    prepare_environment()
    if threads is not None:
        torch.set_num_threads(threads)
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    on_gpu = os.environ.get("DS_ACCELERATOR") != "cpu"
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        if size == 1:
            # A store in memory: no port that another run on this machine may hold.
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
            os.environ.setdefault("LOCAL_RANK", "0")  # DeepSpeed asks for it
        else:
            dist.init_process_group(backend, timeout=TIMEOUT)
    return World(rank, size, local_rank, device)


def disconnect() -> None:
    """Leave the process group, so that the interpreter ends without a warning and another run can begin in this process."""
    if dist.is_initialized():
        dist.destroy_process_group()
    groups = sys.modules.get("deepspeed.utils.groups")
    if groups is not None:
        # DeepSpeed keeps its own clone of the world; the next run's engine would ask the dead one.
        vars(groups)["_WORLD_GROUP"] = None
