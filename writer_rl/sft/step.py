"""One optimizer step of SFT: a batch of demonstrations, loss on their completion tokens only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from writer_rl.model.batching import length
from writer_rl.sft.demonstrations import Demonstration
from writer_rl.train.backend import Backend, StepOutcome
from writer_rl.train.packing import Packing, TreePacking

NO_WORK = Demonstration((0,), (0,))
"""What a rank computes when it has no micro-batch left and others have; its loss counts nothing."""


@dataclass(frozen=True)
class StepFigures:
    """One optimizer step over all ranks: mean loss (nats per completion token), token accuracy, tokens, gradient norm.

    A token counts as right when it gets more than half of the probability.
    """

    loss: float
    accuracy: float
    completion_tokens: int
    tokens: int
    grad_norm: float
    taken: bool


def sft_step(
    backend: Backend,
    samples: Sequence[Demonstration],
    micro_batch_tokens: int,
    factor: float,
    packing: Packing | None = None,
    safe_point: Callable[[], None] = lambda: None,
) -> StepFigures:
    """One optimizer step on `samples`, which every rank has whole and takes its part of. Collective.

    The loss is the mean over all completion tokens of the batch, however it is split over ranks and micro-batches and laid out
    (packing: as prefix trees by default).

    safe_point: called by every rank before each micro-batch; what it raises ends the step, which then changes nothing.
    """
    world, packing = backend.world, packing or TreePacking()
    share = [samples[i] for i in packing.shares(samples, world.size)[world.rank]]
    groups = [[share[i] for i in group] for group in packing.micro_batches(share, micro_batch_tokens)]
    passes = int(world.max([len(groups)])[0])
    count = sum(len(s.completion_ids) for s in samples)
    sums = torch.zeros(2, dtype=torch.float64, device=backend.device)
    for index in range(passes):
        safe_point()
        real = index < len(groups)
        batch = packing.collate(groups[index] if real else [NO_WORK]).to(backend.device)
        logprobs = batch.per_sample(backend.logprobs(batch)[0])
        loss = -logprobs.sum() / count if real else 0.0 * logprobs.sum()
        backend.backward(loss, last=index == passes - 1)
        if real:
            right = (logprobs.detach() > math.log(0.5)) & batch.mask
            sums += torch.stack([-logprobs.detach().sum(), right.sum()]).double()
    total, right = world.sum(sums.tolist())
    if math.isfinite(total):
        outcome = backend.step(factor)
    else:
        backend.discard()
        outcome = StepOutcome(False, math.nan)
    return StepFigures(total / count, right / count, count, sum(map(length, samples)), outcome.grad_norm, outcome.taken)
