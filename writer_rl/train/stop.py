"""Why training ends early: SIGINT and SIGTERM, honoured at the next safe point (save, exit with 130 or 143), or no step taken."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from writer_rl.train.distributed import World


class TrainingStalled(RuntimeError):
    """Too many rounds or steps in a row in which the optimizer did nothing."""


class StopRequested(Exception):
    """Raised at a safe point after a signal; `signum` says which."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """130 after SIGINT, 143 after SIGTERM."""
        return 128 + self.signum


class StopSignals:
    """Remembers the first signal; a second one ends the process at once, without saving.

    Example:
        with StopSignals() as stop:
            ...
            stop.check()      # raises StopRequested after a signal
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.agreed = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def check(self) -> None:
        """Raise StopRequested if a signal has arrived in this process."""
        if self.received is not None:
            raise StopRequested(self.received)

    def check_all(self, world: World) -> None:
        """Raise StopRequested on every rank if a signal has arrived on any. Collective."""
        signum = int(world.max([self.received or 0])[0])
        if signum:
            self.agreed = True
            raise StopRequested(signum)

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        self.received = signum
        # From here on the default action: whoever asks twice does not want to wait for the save.
        for handled in self._before:
            signal.signal(handled, signal.SIG_DFL)
