"""What is decided before a run begins: which networks each round takes, and the learning rate of each step."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from writer_rl.config import ConfigError, TrainerSection


class NetworkOrder:
    """The networks of every round: passes over all of them, each pass in its own order, no network twice in one round.

    The order is a pure function of the names and the seed, so a resumed run needs to know only the number of its round.

    Example: with 15 networks and 1 a round, rounds 0-14 take each once, and rounds 15-29 again in another order.
    """

    def __init__(self, names: Sequence[str], per_round: int, seed: int) -> None:
        if per_round > len(names):
            raise ConfigError(f"rollout.networks_per_round: {per_round} is more than the {len(names)} training networks")
        self._names = tuple(names)
        self._per_round = per_round
        self._seed = seed
        self._rounds: list[tuple[str, ...]] = []
        self._rest: list[str] = []
        self._passes = 0

    def networks(self, round_index: int) -> tuple[str, ...]:
        """The names of the networks of a round, counted from 0."""
        while len(self._rounds) <= round_index:
            self._rounds.append(self._next_round())
        return self._rounds[round_index]

    def _next_round(self) -> tuple[str, ...]:
        chosen, self._rest = self._rest[: self._per_round], self._rest[self._per_round :]
        if len(chosen) < self._per_round:
            fresh = list(self._names)
            random.Random(f"{self._seed}/{self._passes}").shuffle(fresh)
            self._passes += 1
            more = [name for name in fresh if name not in chosen][: self._per_round - len(chosen)]
            self._rest = [name for name in fresh if name not in more]
            chosen = chosen + more
        return tuple(chosen)


def lr_factor(settings: TrainerSection, step: int, steps: int) -> float:
    """The learning rate of step `step` (from 0) of `steps`, as a fraction of `settings.lr`.

    It rises linearly over `warmup_steps`, then stays or falls to `lr_final` at the last step, as `lr_schedule` says.
    """
    if step < settings.warmup_steps:
        return (step + 1) / (settings.warmup_steps + 1)
    final = settings.lr_final / settings.lr
    done = min(1.0, (step - settings.warmup_steps) / max(1, steps - 1 - settings.warmup_steps))
    if settings.lr_schedule == "linear":
        return 1 + (final - 1) * done
    if settings.lr_schedule == "cosine":
        return final + (1 - final) * (1 + math.cos(math.pi * done)) / 2
    return 1.0


def kept_schedule(settings: TrainerSection, begun: int, steps: int) -> str | None:
    """What to say where a run whose schedule was begun over `begun` steps now has `steps`; None where nothing changes."""
    if begun == steps or settings.lr_schedule == "constant":
        return None
    rest = f"; every round after it has lr {settings.lr_final:g}" if steps > begun else ""
    return f"trainer.steps is {steps} now; the {settings.lr_schedule} schedule begun over {begun} rounds is kept{rest}"
