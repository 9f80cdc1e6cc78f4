"""The unit of training: one completion with its advantage. And how samples are shared out among ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from writer_rl.train.packing import Packing


@dataclass(frozen=True, slots=True)
class Sample:
    """One writing step as the objective sees it.

    Example: ``Sample("net_1", trajectory=3, position=0, prompt_ids=(5, 9), completion_ids=(17, 2),
    sampler_logprobs=(-0.1, -0.2), advantage=1.4)``; ids and log-probabilities of the completion come from the engine alone.
    """

    network_id: str
    trajectory: int
    position: int
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    sampler_logprobs: tuple[float, ...]
    advantage: float


ZERO_WORK = Sample("", 0, 0, (0,), (0,), (0.0,), 0.0)
"""What a rank computes when it has no micro-batch left and others have: no advantage, so no loss and no gradient."""


def balanced_shares(samples: Sequence[Sample], ranks: int, packing: Packing) -> list[list[Sample]]:
    """The samples in `ranks` lists with about equally much work (`Packing.shares`), whatever rank they were sampled on.

    A pure function of the samples in canonical order, so every rank computes the same shares from the same samples.

    Example: padded, lengths 5, 4, 3, 3 on two ranks: [5, 3] and [4, 3].
    """
    order = sorted(samples, key=lambda s: (s.network_id, s.position, s.trajectory))
    return [[order[i] for i in share] for share in packing.shares(order, ranks)]
