"""The figures of a GRPO round, by what they describe: rewards, rollouts, engine, policy, questions, skips, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np

from rollout.mismatch import MismatchSums
from rollout.sampling_bias import BiasSums
from rollout.sync import SyncReport
from writer_rl.grpo.advantages import MIN_SIGMA
from writer_rl.grpo.consistency import contradicted, neighbour_correlation
from writer_rl.grpo.groups import Group, ScoredStep
from writer_rl.grpo.update import SKIP_REASONS, UpdateReport
from writer_rl.run.clock import PhaseClock
from writer_rl.run.metrics import Metrics

COMPONENTS = ("json", "schema", "dup", "stop", "valid", "phi_macro", "phi_worst", "phi", "chain", "mem", "penalty")
PHASES = ("rollout", "reward", "qa", "update", "sync", "evaluation", "checkpoint", "round")
MISMATCH = ("mean", "max", "k3", "ratio_mean", "ratio_min", "ratio_max", "tokens", "dropped")


def reward_metrics(groups: Sequence[Group], positions: int) -> Metrics:
    """``reward/*``: mean and standard deviation of each component and of the return over all steps, and how many
    completions say nothing (sigma < 0.02), in all and per position 0..positions-1; how local the credit is (consistency.py)."""
    rewards = [scored.reward for scored in _steps(groups)]
    found: Metrics = {}
    for name in COMPONENTS:
        found |= _spread(f"reward/{name}", [getattr(reward, name) for reward in rewards])
    for name in rewards[0].terms if rewards else ():
        found |= _spread(f"reward/term/{name}", [reward.terms[name] for reward in rewards])
    found |= _spread("reward/return", [float(value) for group in groups for value in group.returns.ravel()])
    silent = [(t, bool(sigma < MIN_SIGMA)) for group in groups for row in group.deviations for t, sigma in enumerate(row)]
    found["reward/zero_variance"] = _mean([zero for _, zero in silent])
    for position in range(positions):
        found[f"reward/zero_variance/position_{position}"] = _mean([zero for t, zero in silent if t == position])
    found["reward/advantage_abs_mean"] = _mean([float(a) for group in groups for a in np.abs(group.advantages).ravel()])
    found["reward/advantage_neighbours"] = neighbour_correlation(group.advantages for group in groups)
    found["reward/advantage_contradicted"] = contradicted((group.texts, group.advantages) for group in groups)
    return found


@dataclass(frozen=True)
class RankFigures:
    """What one rank adds to a round's record; small, whatever was sampled."""

    mismatch: MismatchSums
    """Of the update's sampled tokens, under the engine and under pi_old."""
    bias: BiasSums
    """Of the same tokens: temperature and nucleus against the raw policy."""
    engine: Mapping[str, float]
    """``Engine.metrics()`` since the last round."""
    peak_gib: Mapping[str, float]
    """GPU memory by phase (`writer_rl.run.clock.PhaseClock`)."""


def rank_figures(update: UpdateReport, engine: Mapping[str, float], clock: PhaseClock) -> RankFigures:
    """This rank's."""
    return RankFigures(MismatchSums.of(update.sampler_logprobs, update.trainer_logprobs), update.bias, engine, clock.peak_gib)


def rollout_metrics(groups: Sequence[Group]) -> Metrics:
    """``rollout/*``: lengths, truncation, and what became of the actions."""
    steps = [scored.step for scored in _steps(groups)]
    completions = [len(made.completion_ids) for made in steps]
    prompts = [len(made.prompt_ids) for made in steps]
    reports = [made.report for made in steps]
    return {
        "rollout/completion_length/mean": _mean(completions),
        "rollout/completion_length/min": min(completions),
        "rollout/completion_length/max": max(completions),
        "rollout/prompt_length/mean": _mean(prompts),
        "rollout/prompt_length/max": max(prompts),
        "rollout/truncation": _mean([made.finish_reason == "length" for made in steps]),
        "rollout/actions_attempted": _mean([report.attempted for report in reports]),
        "rollout/actions_applied": _mean([report.applied for report in reports]),
        "rollout/actions_invalid": _mean([len(report.errors) for report in reports]),
        "rollout/updates_applied": _mean([len(report.updated_from) for report in reports]),
        "rollout/omitted_heads": _mean([made.omitted_heads for made in steps]),
        "rollout/completions": len(steps),
        "rollout/distinct": len({made.completion_ids for made in steps}) / len(steps),
    }


def mismatch_metrics(ranks: Sequence[RankFigures]) -> Metrics:
    """``rollout/mismatch_*``: how far the sampler is from the trainer, and the bias of its temperature and nucleus
    (``rollout/nucleus_mass``, ``rollout/sequence_log_ratio/*``); None each where nothing was updated."""
    sums = sum((rank.mismatch for rank in ranks), MismatchSums())
    bias = sum((rank.bias for rank in ranks), BiasSums()).to_metrics()
    if not sums.tokens + sums.dropped:
        return {f"rollout/mismatch_{name}": None for name in MISMATCH} | bias
    return {**sums.result().to_metrics(), **bias}


def engine_metrics(synced: SyncReport, ranks: Sequence[RankFigures]) -> Metrics:
    """How near engine and trainer were at the last sync's probe, and the share of prompt tokens that came from a cache.

    The share depends on the engine's scheduling.
    """
    prompts = sum(rank.engine["prompt_tokens"] for rank in ranks)
    cached = sum(rank.engine.get("cached_prompt_tokens", 0.0) for rank in ranks)
    return {
        "rollout/sync_max_difference": synced.max_difference,
        "rollout/sync_mean_difference": synced.mean_difference,
        "rollout/sync_equal_tensors": synced.tensors,
        "time/sync_checksums": synced.checksum_seconds,
        "perf/prefix_cache_hit_rate": cached / prompts if prompts else 0.0,
    }


def policy_metrics(update: UpdateReport, epochs: int, lr: float, version: int, steps: int) -> Metrics:
    """``policy/*``: the update's figures; ``kl`` and ``clip_fraction`` of the last pass, and of each."""
    last = update.epochs[-1] if update.epochs else None
    found: Metrics = {
        "policy/samples": update.samples,
        "policy/tokens": update.tokens * len(update.epochs),
        "policy/loss": last.loss if last else None,
        "policy/kl": last.kl if last else None,
        "policy/clip_fraction": last.clip_fraction if last else None,
        "policy/entropy": update.entropy,
        "policy/grad_norm": last.grad_norm if last else None,
        "policy/lr": lr,
        "policy/version": version,
        "policy/steps_taken": update.steps,
        "policy/steps_total": steps,
    }
    for index in range(epochs):
        epoch = update.epochs[index] if index < len(update.epochs) else None
        for name in ("loss", "kl", "clip_fraction", "grad_norm"):
            found[f"policy/{name}/epoch_{index + 1}"] = getattr(epoch, name) if epoch else None
    return found


def qa_metrics(groups: Sequence[Group]) -> Metrics:
    """``qa/*``: the terminal gain over trajectories, and what asking cost."""
    asked = [group.qa for group in groups if group.qa is not None]
    found = _spread("qa/gain", [value for qa in asked for value in qa.gains])
    found["qa/both"] = _mean([value for qa in asked for value in qa.both])
    found["qa/s1"] = _mean([value for qa in asked for value in qa.s1])
    for name in ("questions", "failed", "calls", "naive_calls"):
        found[f"qa/{name}"] = sum(getattr(qa, name) for qa in asked)
    found["qa/networks_without_gain"] = sum(qa.judged == 0 for qa in asked)
    return found


def skip_metrics(counts: Mapping[str, int], consecutive: int) -> Metrics:
    """``skips/*``: skipped updates by reason since the run began, and rounds in a row without an optimizer step."""
    found: Metrics = {f"skips/{reason}": counts.get(reason, 0) for reason in SKIP_REASONS}
    return found | {"skips/total": sum(counts.values()), "skips/consecutive": consecutive}


def time_metrics(
    seconds: Mapping[str, float], groups: Sequence[Group], update: UpdateReport, ranks: Sequence[RankFigures]
) -> Metrics:
    """``time/*`` seconds of each phase and ``perf/*``: tokens a second, and the most GPU memory that any rank needed.

    Rollouts count sampled tokens; updates count prompt and completion tokens, once for every forward-backward pass over them.
    """
    generated = sum(len(scored.step.completion_ids) for scored in _steps(groups))
    trained = update.tokens * len(update.epochs)
    found: Metrics = {f"time/{phase}": seconds.get(phase, 0.0) for phase in PHASES}
    found["perf/rollout_tokens_per_s"] = _rate(generated, seconds.get("rollout"))
    found["perf/update_tokens_per_s"] = _rate(trained, seconds.get("update"))
    for key, phase in (("", "round"), ("/rollout", "rollout"), ("/update", "update")):
        peaks = [rank.peak_gib[phase] for rank in ranks if phase in rank.peak_gib]
        found[f"perf/peak_memory_gib{key}"] = max(peaks, default=None)
    return found


def _steps(groups: Sequence[Group]) -> list[ScoredStep]:
    return [scored for group in groups for trajectory in group.trajectories for scored in trajectory.steps]


def _spread(key: str, values: Sequence[float]) -> Metrics:
    return {f"{key}/mean": _mean(values), f"{key}/std": pstdev(values) if values else None}


def _mean(values: Sequence[float]) -> float | None:
    return float(fmean(values)) if values else None


def _rate(count: int, seconds: float | None) -> float | None:
    return count / seconds if seconds else None
