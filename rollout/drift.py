"""Whether the sampler has drifted from the trainer: the mismatch of a round against that of the run's first."""

from __future__ import annotations

from dataclasses import dataclass

GROWTH = 5.0
"""A round's mean mismatch over the first round's, beyond which a run stops."""

FLOORS = {"float32": 1e-4, "bfloat16": 0.02}
"""Nats a token, by the precision of engine and trainer: rounding alone stays below, however small it was in the first round."""


class SamplerDrifted(RuntimeError):
    """The sampler's log-probabilities have left the trainer's: what it samples comes from other weights."""


@dataclass(frozen=True, slots=True)
class DriftLimit:
    """How far ``rollout/mismatch_mean`` may grow over its first value before a run stops.

    Kernels differ by about the same in every round, so the first round measures them; weights that go stale differ by more
    with every update. The factor leaves room for a policy that sharpens, the floor for rounding noise.

    growth: the largest ratio to the first value. floor: nats a token below which no growth counts.

    Example: ``DriftLimit(5.0, 1e-4)`` lets a run that began at 1e-6 go on at 9e-5, and one that began at 1e-3 at 4e-3.
    """

    growth: float
    floor: float

    def limit(self, first: float) -> float:
        """The largest mean mismatch, in nats a token, for a run that began with `first`."""
        return max(self.growth * first, self.floor)

    def require(self, now: float, first: float, place: str) -> None:
        """SamplerDrifted, with both numbers, where `now` is above the limit (or no number)."""
        limit = self.limit(first)
        if not now <= limit:
            raise SamplerDrifted(
                f"{place}: sampler and trainer differ by {now:.2e} nats a token (rollout/mismatch_mean), at first it was "
                f"{first:.2e}; more than {limit:.2e} stops the run: the sampler serves stale or corrupt weights. The round is "
                "not kept: restart the sampler and run the same command (rollout.mismatch_growth sets the limit, null: none)"
            )
