"""How long each phase of a round takes, and how much GPU memory it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class PhaseClock:
    """Seconds and peak memory by phase; phases may lie inside one another.

    seconds: wall time of each phase so far. peak_gib: the most that torch had allocated on this rank's GPU during each phase,
    GiB; empty without a GPU.

    Example:
        clock = PhaseClock()
        with clock("round"), clock("update"):
            ...
        clock.seconds["update"], clock.peak_gib.get("update")
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_gib: dict[str, float] = {}
        self._open: list[str] = []

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Measure the block as (a further part of) `phase`."""
        self._note_peak()
        self._open.append(phase)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - started
            self._note_peak()
            self._open.pop()

    def _note_peak(self) -> None:
        """Credit the peak since the last note to every phase that is on, and begin a new one."""
        if not torch.cuda.is_available():
            return
        peak = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
        for phase in self._open:
            self.peak_gib[phase] = max(peak, self.peak_gib.get(phase, 0.0))
