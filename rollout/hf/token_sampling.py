"""The next token of many rows at once: inverse-CDF sampling from pre-drawn uniforms.

Each row owns its uniforms, so its draw never depends on which rows share its batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rollout.engine import EngineError

TOP_CANDIDATES = 128
"""A nucleus rarely holds more tokens; rows whose nucleus does are sorted in full."""


def uniforms(seed: int, count: int) -> np.ndarray:
    """``count`` uniform float64 draws in [0, 1) of the stream ``seed``.

    Philox is keyed with all bits of the seed; torch's CPU generator keeps only the low 32, so streams could collide.
    """
    return np.random.Generator(np.random.Philox(key=seed)).random(count)


def sample_tokens(logits: torch.Tensor, temperature: torch.Tensor, top_p: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Draw one token per row from softmax(logits / temperature) restricted to its top-p nucleus.

    Args:
        logits: [B, V], float32.
        temperature, top_p: [B], float32.
        uniform: [B], float64 in [0, 1): the row's random number.

    Returns:
        token ids [B]: the first token, in order of falling probability, at which the cumulative mass exceeds
        ``uniform`` times the mass of the nucleus.

    Raises EngineError for logits that are not finite.
    """
    probabilities = torch.softmax(logits / temperature[:, None], dim=-1)
    top = _falling(probabilities, TOP_CANDIDATES)
    rank, covered = _draw(top, top_p, uniform)
    tokens = _tokens(probabilities, top, rank)
    if not bool(covered.all()):
        rows = (~covered).nonzero().flatten()
        wide = probabilities[rows]
        if bool(wide.isnan().any()):
            raise EngineError(
                "the policy's logits are not finite: its weights have diverged; go on from an older checkpoint, trainer.lr lower"
            )
        if logits.shape[-1] > TOP_CANDIDATES:
            top = _falling(wide, logits.shape[-1])
            tokens[rows] = _tokens(wide, top, _draw(top, top_p[rows], uniform[rows])[0])
    return tokens


def _falling(probabilities: torch.Tensor, count: int) -> torch.Tensor:
    """The `count` largest of each row (all, where there are fewer), falling: [B, K].

    Values alone: on a CPU numpy sorts them several times faster than torch finds the largest with their places.
    """
    beyond = max(0, probabilities.shape[-1] - count)
    if probabilities.device.type != "cpu":
        return probabilities.topk(probabilities.shape[-1] - beyond, dim=-1).values
    values = probabilities.numpy()
    if beyond:
        values = np.partition(values, beyond, axis=-1)[:, beyond:]
    return torch.from_numpy(np.sort(values, axis=-1)[:, ::-1].copy())


def _draw(top: torch.Tensor, top_p: torch.Tensor, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which of the falling candidates ``top`` [B, K] is drawn [B], and whether they hold the whole nucleus of their row [B]."""
    cumulative = top.double().cumsum(-1)
    before = cumulative - top
    size = (before < top_p[:, None].double()).sum(-1, keepdim=True).clamp(min=1)
    mass = cumulative.gather(-1, size - 1)
    index = torch.searchsorted(cumulative, uniform[:, None] * mass, right=True).minimum(size - 1)
    covered = cumulative[:, -1] >= top_p.double()
    return index[:, 0], covered


def _tokens(probabilities: torch.Tensor, top: torch.Tensor, rank: torch.Tensor) -> torch.Tensor:
    """The tokens [B] at these ranks [B] of the falling order, of equal probabilities the lower id first."""
    value = top.gather(-1, rank[:, None])
    ties = rank - (top > value).sum(-1)
    equal = probabilities == value
    tokens = equal.to(torch.uint8).argmax(-1)  # the first
    for row in ties.nonzero().flatten().tolist():
        tokens[row] = equal[row].nonzero()[ties[row], 0]
    return tokens


def sampled_logprobs(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Raw log-probabilities [B] of ``tokens`` [B] under softmax(logits [B, V]): temperature 1, full vocabulary."""
    return logits.gather(-1, tokens[:, None])[:, 0] - logits.logsumexp(-1)


def stop_table(stop_ids: Sequence[int] | frozenset[int], vocabulary: int, device: torch.device) -> torch.Tensor:
    """Booleans [V]: which ids end a completion. Ids beyond the vocabulary can't be sampled and are left out."""
    table = torch.zeros(vocabulary, dtype=torch.bool, device=device)
    table[[i for i in stop_ids if i < vocabulary]] = True
    return table
