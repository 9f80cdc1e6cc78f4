"""One policy update: the samples of a round, a few epochs, one optimizer step each, and every reason not to take it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rollout.mismatch import truncated_importance
from rollout.sampling_bias import BiasSums
from writer_rl.config import GRPOTrainer
from writer_rl.grpo.objective import grpo_sums
from writer_rl.grpo.samples import ZERO_WORK, Sample
from writer_rl.model.batching import ScoredBatch, length
from writer_rl.model.support import Drawing, Support
from writer_rl.train.backend import Backend
from writer_rl.train.packing import Packing, micro_batch_tokens, packing

Reference = Callable[[ScoredBatch], tuple[Tensor, Tensor | None]]
"""The frozen policy of the KL term; called like a `Policy`."""

SKIP_REASONS = ("kl", "nonfinite", "empty")
"""KL over the limit; a loss or gradient that is not finite; no sample with a nonzero advantage."""


@dataclass(frozen=True)
class Epoch:
    """The figures of one pass over the update's samples (all ranks), taken before its optimizer step."""

    loss: float
    kl: float
    clip_fraction: float
    grad_norm: float | None = None
    """Before clipping; None where the pass ended without a look at the gradient."""
    taken: bool = False


@dataclass(frozen=True)
class UpdateReport:
    """What one policy update did.

    Example: ``UpdateReport(samples=31, epochs=(Epoch(...), Epoch(...)), skipped=None, ...)``: two optimizer steps;
    ``skipped="kl"`` with one taken epoch: the second pass exceeded the limit, the first step stays.
    """

    samples: int
    tokens: int
    """Prompt and completion tokens of one pass over the samples."""
    epochs: tuple[Epoch, ...]
    skipped: str | None
    """One of SKIP_REASONS: why the remaining epochs were left out; None: all were taken."""
    entropy: float | None = None
    """Mean over completion tokens, nats, before the first step."""
    seconds: float = 0.0
    sampler_logprobs: list[float] = field(default_factory=list, repr=False)
    trainer_logprobs: list[float] = field(default_factory=list, repr=False)
    """This rank's completion tokens, under the engine and under pi_old: how far apart are they?"""
    bias: BiasSums = field(default_factory=BiasSums, repr=False)
    """Of this rank's completions: pi_old against what its temperature and nucleus make of it."""

    @property
    def steps(self) -> int:
        """Optimizer steps taken."""
        return sum(epoch.taken for epoch in self.epochs)


@dataclass
class _MicroBatch:
    """One micro-batch and what stays fixed over the epochs; log-probabilities are [B, C], None until known."""

    batch: ScoredBatch
    advantages: Tensor
    sampler: Tensor
    ref: Tensor | None = None
    old: Tensor | None = None
    old_drawn: Tensor | None = None
    """pi_old renormalised over what the sampler could draw."""
    support: Support | None = None
    """Those sets: fixed for all epochs, as what the sampler could draw does not follow the policy."""


def update_policy(
    backend: Backend,
    reference: Reference,
    samples: Sequence[Sample],
    settings: GRPOTrainer,
    lr_factor: float = 1.0,
    safe_point: Callable[[], None] = lambda: None,
    drawing: Drawing | None = None,
) -> UpdateReport:
    """Train on this rank's share of an update's samples, all of nonzero advantage. Collective.

    The gradient is that of one big batch of all ranks' samples, however they are split. pi_old is the policy as it is at the
    start: its log-probabilities are those of the first epoch, whose ratio is exactly 1. Before each optimizer step the mean k3 KL
    over the whole update is compared with `kl_limit`; over it, or with anything that is not finite on any rank, this and the
    remaining epochs are skipped on all ranks and leave no trace.

    safe_point: called by every rank before each micro-batch, until the first optimizer step; what it raises ends the update, and
    the policy and its optimizer are as they were.

    drawing: how the samples were drawn; None: their bias is not measured. `ratio: sampler` needs it (ValueError).
    """
    if settings.ratio == "sampler" and drawing is None:
        raise ValueError("trainer.ratio sampler: needs the sampler's temperature and top_p")
    started = time.perf_counter()
    world = backend.world
    count, tokens = (int(n) for n in world.sum([len(samples), sum(map(length, samples))]))
    if not count:
        return UpdateReport(0, 0, (), "empty", seconds=time.perf_counter() - started)
    layout = packing(settings.packing)
    budget = micro_batch_tokens(settings, backend.device)
    groups = [[samples[i] for i in group] for group in layout.micro_batches(samples, budget)]
    # A rank with fewer micro-batches fills up with zero work: all ranks run equally many passes.
    groups += [[ZERO_WORK]] * (int(world.max([len(groups)])[0]) - len(groups))
    batches = [_prepare(group, layout, backend.device) for group in groups]
    with torch.no_grad():
        for micro in batches:
            safe_point()
            micro.ref = micro.batch.per_sample(reference(micro.batch)[0])
    epochs: list[Epoch] = []
    skipped, entropy = None, None
    for index in range(settings.epochs):
        first = index == 0
        epoch, entropies = _accumulate(backend, batches, settings, count, first, safe_point if first else lambda: None, drawing)
        entropy = entropies if first else entropy
        skipped = _reason_to_skip(epoch, settings.kl_limit)
        if skipped is None:
            outcome = backend.step(lr_factor)
            epoch = Epoch(epoch.loss, epoch.kl, epoch.clip_fraction, outcome.grad_norm, outcome.taken)
            skipped = None if outcome.taken else "nonfinite"
        else:
            backend.discard()
        epochs.append(epoch)
        if skipped is not None:
            break
    sampler, trainer = _sampled_logprobs(batches)
    seconds = time.perf_counter() - started
    return UpdateReport(count, tokens, tuple(epochs), skipped, entropy, seconds, sampler, trainer, _bias(batches))


def _prepare(group: Sequence[Sample], layout: Packing, device: torch.device) -> _MicroBatch:
    batch = layout.collate(group)
    given = torch.tensor([value for sample in group for value in sample.sampler_logprobs])
    sampler = given.new_zeros(batch.mask.shape).masked_scatter(batch.mask, given)
    advantages = torch.tensor([sample.advantage for sample in group])
    return _MicroBatch(batch.to(device), advantages.to(device), sampler.to(device))


def _accumulate(
    backend: Backend,
    batches: Sequence[_MicroBatch],
    settings: GRPOTrainer,
    count: int,
    want_entropy: bool,
    safe_point: Callable[[], None],
    drawing: Drawing | None,
) -> tuple[Epoch, float | None]:
    """Forward and backward over all micro-batches, and the update-wide figures on which every rank decides alike."""
    sums = torch.zeros(5, dtype=torch.float64, device=backend.device)
    for index, micro in enumerate(batches):
        safe_point()
        logp, entropies, drawn = _scores(backend, micro, settings, drawing, want_entropy)
        if micro.old is None:
            micro.old, micro.old_drawn = logp.detach(), None if drawn is None else drawn.detach()
        ratio_of = None
        if settings.ratio == "sampler":
            assert drawn is not None and micro.old_drawn is not None, "update_policy asks for the sampler's settings"
            ratio_of = drawn, micro.old_drawn
        weights = None
        if settings.importance_cap is not None:
            weights = truncated_importance(micro.sampler, micro.old, settings.importance_cap)
        assert micro.ref is not None, "known before the first epoch"
        mask, advantages = micro.batch.mask, micro.advantages
        part = grpo_sums(logp, micro.old, micro.ref, advantages, mask, settings.clip, settings.kl_coef, weights, ratio_of)
        backend.backward(part.loss / count, last=index == len(batches) - 1)
        figures = [part.loss.detach(), part.kl, part.clipped, part.tokens]
        figures.append(part.kl * 0 if entropies is None else micro.batch.per_sample(entropies)[micro.advantages != 0].sum())
        sums += torch.stack(figures).double()
    loss, kl, clipped, tokens, entropy = backend.world.sum(sums.tolist())
    epoch = Epoch(loss / count, kl / count, clipped / max(tokens, 1))
    return epoch, entropy / max(tokens, 1) if want_entropy else None


def _scores(
    backend: Backend, micro: _MicroBatch, settings: GRPOTrainer, drawing: Drawing | None, entropy: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """[B, C] raw log-probabilities, [T] entropies, and [B, C] log-probabilities as drawn where they are wanted.

    For the ratio they are wanted in every epoch, to see the sampler's bias in the first alone.
    """
    drawn = micro.support if micro.support is not None else drawing
    if drawn is None or (micro.old is not None and settings.ratio == "policy"):
        logprobs, entropies = backend.logprobs(micro.batch, entropy=entropy)
        return micro.batch.per_sample(logprobs), entropies, None
    logprobs, entropies, processed, support = backend.logprobs_as_drawn(micro.batch, drawn, entropy=entropy)
    if settings.ratio == "sampler":
        micro.support = support
    return micro.batch.per_sample(logprobs), entropies, micro.batch.per_sample(processed)


def _reason_to_skip(epoch: Epoch, kl_limit: float | None) -> str | None:
    if not math.isfinite(epoch.loss):
        return "nonfinite"
    if not math.isfinite(epoch.kl) or (kl_limit is not None and epoch.kl > kl_limit):
        return "kl"
    return None


def _sampled_logprobs(batches: Sequence[_MicroBatch]) -> tuple[list[float], list[float]]:
    sampler: list[float] = []
    trainer: list[float] = []
    for micro in batches:
        assert micro.old is not None, "known since the first epoch"
        tokens = micro.batch.mask & (micro.advantages != 0)[:, None]
        sampler += micro.sampler[tokens].tolist()
        trainer += micro.old[tokens].tolist()
    return sampler, trainer


def _bias(batches: Sequence[_MicroBatch]) -> BiasSums:
    raw: list[list[float]] = []
    processed: list[list[float]] = []
    for micro in batches:
        if micro.old is None or micro.old_drawn is None:
            continue
        for row in (micro.advantages != 0).nonzero()[:, 0].tolist():
            tokens = micro.batch.mask[row]
            raw.append(micro.old[row][tokens].tolist())
            processed.append(micro.old_drawn[row][tokens].tolist())
    return BiasSums.of(raw, processed)
