"""Weight sync as one operation: transfer, cache reset, new policy version, and two proofs.

Engines have served stale or corrupt weights in silence in many ways (a prefix cache of the old policy, a packed copy
of a tied head, weights reloaded from disk after a wake-up). So nothing but ``sync_and_probe`` gives an engine weights.
First every tensor is compared bit for bit, by checksums (`rollout.checksum`): at a learning rate of 1e-6 a policy that
never arrived changes no log-probability that bfloat16 could show. Then a probe compares log-probabilities: it sees what
lies behind the weights, kernels and caches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from rollout.checksum import Checksums, differing
from rollout.engine import Engine, GenerationRequest, SamplingParams

BOUNDS = {torch.float32: 1e-4, torch.bfloat16: 0.3}
"""Largest difference of a log-probability (nats) between an engine and a trainer that compute in this type.

A bfloat16 logit between 16 and 32 is rounded to multiples of 0.125, and each side rounds its own.
"""

Sequences = Sequence[tuple[Sequence[int], Sequence[int]]]
TrainerLogprobs = Callable[[Sequences], Sequence[Sequence[float]]]
"""(prompt ids, completion ids) pairs -> the trainer's raw log-probabilities of each completion's tokens."""


class SyncError(RuntimeError):
    """The engine does not serve the trainer's weights; both log-probabilities are of the worst probe token.

    They are not numbers where the weights themselves differ: then nothing was sampled.
    """

    def __init__(self, message: str, engine_logprob: float = math.nan, trainer_logprob: float = math.nan) -> None:
        super().__init__(message)
        self.engine_logprob = engine_logprob
        self.trainer_logprob = trainer_logprob


@dataclass(frozen=True, slots=True)
class SyncProbe:
    """Fixed requests whose log-probabilities engine and trainer must agree on.

    Their prompts go through the engine's prefix cache at every sync, so a cache that outlived its weights shows too.

    Example: ``Probe.of([prompt.token_ids])`` with the first prompt of the training data.
    """

    requests: tuple[GenerationRequest, ...]

    @classmethod
    def of(
        cls, prompts: Iterable[Sequence[int]], *, new_tokens: int = 16, max_prompt_tokens: int = 256, seed: int = 0
    ) -> SyncProbe:
        """A probe of the first ``max_prompt_tokens`` tokens of each prompt; samples at temperature 1."""
        sampling = SamplingParams(temperature=1.0, top_p=1.0, max_new_tokens=new_tokens)
        requests = tuple(
            GenerationRequest(tuple(prompt[:max_prompt_tokens]), seed + index, sampling) for index, prompt in enumerate(prompts)
        )
        if not requests:
            raise ValueError("a probe needs at least one prompt")
        return cls(requests)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did: largest and mean difference in nats over ``tokens`` probe tokens, and its ``seconds``.

    ``engine_logprob`` and ``trainer_logprob`` belong to the token of the largest difference.

    Example: ``SyncReport(version=3, max_difference=2e-6, mean_difference=4e-7, engine_logprob=-1.31, ...)``
    """

    version: int
    max_difference: float
    mean_difference: float
    engine_logprob: float
    trainer_logprob: float
    tokens: int
    seconds: float
    tensors: int = 0
    """How many tensors were compared bit for bit."""
    checksum_seconds: float = 0.0


def sync_and_probe(
    engine: Engine,
    named_tensors: Iterable[tuple[str, torch.Tensor]],
    version: int,
    probe: SyncProbe,
    trainer_logprobs: TrainerLogprobs,
    *,
    bound: float = BOUNDS[torch.float32],
    reduce_max: Callable[[float], float] = lambda value: value,
    trainer_checksums: Callable[[], Checksums] | None = None,
) -> SyncReport:
    """Give ``engine`` the weights as policy ``version`` and prove that it serves them, or raise `SyncError`.

    Also to be called before the first rollout of a run, resumed ones included: nothing else says what an engine loaded.

    Args:
        named_tensors: see `rollout.engine.Engine.update_weights`; usually ``named_weights(model)``.
        trainer_logprobs: usually ``module_logprobs(model)``.
        bound: largest difference in nats; ``BOUNDS`` has one per floating-point type. What the probe can't see is
            smaller than this bound at its tokens.
        reduce_max: maximum of a number over all ranks, so that every rank raises or none does.
        trainer_checksums: of the trainer's weights in the engine's type, read anew and not from what was sent; collective.
            None: the probe alone.
    """
    started = time.perf_counter()
    engine.update_weights(named_tensors, version)
    compared = time.perf_counter()
    tensors = 0 if trainer_checksums is None else _compare(engine, trainer_checksums(), version, reduce_max)
    checksum_seconds = time.perf_counter() - compared
    report = measure(engine, probe, trainer_logprobs, started)
    worst = reduce_max(_number(report.max_difference))
    if worst > bound:
        raise SyncError(
            f"policy {version}: the engine gives a probe token log-probability {report.engine_logprob:.6f}, the "
            f"trainer {report.trainer_logprob:.6f}; largest difference {worst:.2e}, bound {bound:.0e}: the engine "
            "serves stale or corrupt weights (or computes in another precision: raise rollout.sync_bound then)",
            report.engine_logprob,
            report.trainer_logprob,
        )
    return replace(report, tensors=tensors, checksum_seconds=checksum_seconds)


def _compare(engine: Engine, ours: Checksums, version: int, reduce_max: Callable[[float], float]) -> int:
    """How many tensors are equal bit for bit; SyncError on every rank if any of any rank is not."""
    wrong = differing(ours, engine.weight_checksums())
    most = int(reduce_max(float(len(wrong))))
    if most:
        named = f", {wrong[0]} first" if wrong else " (on another rank)"
        raise SyncError(
            f"policy {version}: {most} of {len(ours)} weight tensors of the engine are not the trainer's bit for bit{named}: "
            "the transfer left stale or corrupt weights; restart the engine, or stop and report it with the versions"
        )
    return len(ours)


def measure(engine: Engine, probe: SyncProbe, trainer_logprobs: TrainerLogprobs, started: float | None = None) -> SyncReport:
    """Compare engine and trainer on the probe without any transfer."""
    started = time.perf_counter() if started is None else started
    requests = probe.requests * getattr(engine, "samplers", 1)  # every server of several gets the whole probe
    generations = engine.generate(requests)
    pairs = [(r.prompt_ids, g.token_ids) for r, g in zip(requests, generations, strict=True)]
    theirs = [value for generation in generations for value in generation.logprobs]
    ours = [float(value) for row in trainer_logprobs(pairs) for value in row]
    if len(theirs) != len(ours):
        raise ValueError(f"the trainer gave {len(ours)} log-probabilities for {len(theirs)} probe tokens")
    differences = [_number(abs(a - b)) for a, b in zip(theirs, ours, strict=True)]
    worst = max(range(len(differences)), key=differences.__getitem__)
    return SyncReport(
        version=engine.policy_version,
        max_difference=differences[worst],
        mean_difference=sum(differences) / len(differences),
        engine_logprob=theirs[worst],
        trainer_logprob=ours[worst],
        tokens=len(differences),
        seconds=time.perf_counter() - started,
    )


def module_logprobs(module: Any) -> TrainerLogprobs:
    """The trainer's side of a probe: one forward of ``module`` for all pairs, so ranks with shards stay in step."""

    def compute(pairs: Sequences) -> list[list[float]]:
        device = next(module.parameters()).device
        width = max(len(prompt) + len(completion) for prompt, completion in pairs)
        ids = torch.zeros(len(pairs), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, (prompt, completion) in enumerate(pairs):
            length = len(prompt) + len(completion)
            ids[row, :length] = torch.tensor([*prompt, *completion])
            mask[row, :length] = 1
        training = [m for m in module.modules() if m.training]
        module.eval()
        try:
            with torch.no_grad():
                logits = module(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).logits
        finally:
            for m in training:
                m.training = True
        rows = []
        for row, (prompt, completion) in enumerate(pairs):
            predicting = logits[row, len(prompt) - 1 : len(prompt) - 1 + len(completion)].float().cpu()
            targets = torch.tensor(list(completion))[:, None]
            rows.append(torch.log_softmax(predicting, -1).gather(-1, targets)[:, 0].tolist())
        return rows

    return compute


def _number(value: float) -> float:
    """The value, or infinity where it is not a number: a corrupt sync must not compare as equal."""
    return math.inf if math.isnan(value) else value
