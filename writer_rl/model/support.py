"""What the sampler could draw at each step: the tokens of its nucleus, and log-probabilities renormalised over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

WIDEST_LOOK = 1024
"""Tokens that are looked at before a whole vocabulary is sorted; a nucleus seldom has more."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How tokens were drawn: logits divided by `temperature`, then the smallest set of probable tokens with mass `top_p`.

    Example: ``Drawing(temperature=0.8, top_p=0.95)``, the paper's.
    """

    temperature: float
    top_p: float


@dataclass(frozen=True, slots=True)
class Support:
    """The nuclei of P states, kept while the policy moves: ids [K] int64 of all of them, bounds [P + 1] where each begins.

    Example: nuclei {7, 2} and {4}: ids [7, 2, 4], bounds [0, 2, 3].
    """

    ids: Tensor
    bounds: Tensor
    temperature: float

    def restrict(self, logits: Tensor, states: slice) -> Tensor:
        """[p, V] logits of these states at the sampler's temperature, minus infinity for what it could not draw."""
        bounds = self.bounds[states.start : states.start + len(logits) + 1]
        rows = torch.repeat_interleave(torch.arange(len(logits), device=logits.device), bounds.diff())
        ids = self.ids[int(bounds[0]) : int(bounds[-1])]
        kept = torch.full_like(logits, float("-inf"))
        kept[rows, ids] = logits[rows, ids] / self.temperature
        return kept


def nucleus(logits: Tensor, top_p: float) -> Tensor:
    """[p, V] bool: the most probable tokens, until their mass reaches `top_p`; the one that crosses it is kept.

    logits: [p, V], already divided by the temperature.

    Example: probabilities 0.5, 0.3, 0.15, 0.04, 0.01 and top_p 0.9 keep the first three: before the third the mass is 0.8.
    """
    scaled = torch.log_softmax(logits.float(), dim=-1)
    ordered, order = scaled.topk(min(WIDEST_LOOK, scaled.shape[-1]), dim=-1)
    mass = ordered.double().exp()
    if bool((mass.sum(-1) < top_p).any()):
        ordered, order = scaled.sort(dim=-1, descending=True, stable=True)
        mass = ordered.double().exp()
    kept = (mass.cumsum(-1) - mass) < top_p
    return torch.zeros(scaled.shape, dtype=torch.bool, device=scaled.device).scatter(-1, order, kept)


@torch.no_grad()
def support_of(hidden: Tensor, weight: Tensor, targets: Tensor, rows: Tensor, drawing: Drawing, chunk: int) -> Support:
    """The nuclei of the states `hidden` [P, H] under the output matrix `weight` [V, H]; `chunk` states at a time.

    targets, rows: [T], the tokens that were drawn and the state of each, nondecreasing. They are in the set whatever rounding
    says: the sampler drew them.
    """
    ids, counts = [], []
    bounds = torch.searchsorted(rows, torch.arange(0, len(hidden) + chunk, chunk, device=rows.device)).tolist()
    for number, start in enumerate(range(0, len(hidden), chunk)):
        logits = hidden[start : start + chunk] @ weight.t()
        kept = nucleus(logits.float() / drawing.temperature, drawing.top_p)
        drawn = slice(bounds[number], bounds[number + 1])
        kept[rows[drawn] - start, targets[drawn]] = True
        ids.append(kept.nonzero()[:, 1])
        counts.append(kept.sum(-1))
    none = torch.zeros(1, dtype=torch.long, device=hidden.device)
    return Support(torch.cat([none[:0], *ids]), torch.cat([none, *counts]).cumsum(0), drawing.temperature)
