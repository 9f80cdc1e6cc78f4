"""The reward of one writing position: all local terms, and the return with the terminal one (Eq. 9, 18)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from rewards.chain import chain_reward
from rewards.penalty import penalty
from rewards.scorer import Scorer
from rewards.speaker import speaker_levenshtein
from rewards.validity import validity
from rewards.weights import PAPER, RewardWeights


class ReturnError(ValueError):
    """A terminal gain or a position that no trajectory can have."""


@dataclass(frozen=True, slots=True)
class StepReward:
    """All local terms of one position: json to mem in [0, 1], penalty <= 0; owners maps each owner to its F (Eq. 16).

    Example: valid=1.0, mem=0.8, penalty=0.0 and a QA gain of 0.5 at the last position:
    total(0.5, 4, 5) == 0.20 * 1.0 + 0.45 * 0.8 + 0.35 * 0.5 == 0.735.
    """

    json: float
    schema: float
    dup: float
    stop: float
    valid: float
    owners: dict[str, float]
    phi_macro: float
    phi_worst: float
    phi: float
    chain: float
    mem: float
    penalty: float
    terms: dict[str, float] = field(default_factory=dict)
    """What the terms beside the paper's add, weighted (rewards/terms.py)."""

    def qa_term(self, qa_gain: float | None, position: int, length: int | None, weights: RewardWeights = PAPER) -> float:
        """0.35 * 0.95^(T-1-t) * R_QA for t = `position` of T = `length`; 0 without a gain or a length."""
        if qa_gain is None or length is None:
            return 0.0
        if isinstance(qa_gain, bool) or not isinstance(qa_gain, (int, float)) or not math.isfinite(qa_gain):
            raise ReturnError(f"qa_gain: {qa_gain!r} is not a finite number")
        if not 0 <= position < length:
            raise ReturnError(f"position: {position} is not one of the {length} positions, counted from 0")
        return weights.qa * weights.gamma ** (length - 1 - position) * qa_gain

    def total(
        self,
        qa_gain: float | None = None,
        position: int = 0,
        length: int | None = None,
        weights: RewardWeights = PAPER,
    ) -> float:
        """r_t of Eq. 9: 0.20 R_valid + 0.45 R_mem + P + qa_term, added from left to right."""
        local = weights.valid * self.valid + weights.mem * self.mem + self.penalty
        return local + sum(self.terms.values()) + self.qa_term(qa_gain, position, length, weights)


def score_step(
    actions: Any, report: Any, pre_state: Any, post_state: Any, reference: Any, scorer: Scorer | None = None
) -> StepReward:
    """All local reward terms of one writing position (Eq. 9 without its last term).

    actions: the parsed list; report: of the step (dict or Report); states: before, after, and the reference's (dicts
    with entries and update_edges, or MemoryStates). Nothing is recomputed or checked: what the report says is scored.
    Give the same `scorer` to all steps of an update, so that what trajectories share is scored once.
    """
    scorer = scorer or Scorer()
    weights = scorer.weights
    form = validity(actions, report, pre_state, weights)
    match = speaker_levenshtein(post_state, reference, scorer)
    chain = chain_reward(post_state, reference, scorer)
    return StepReward(
        json=form.json,
        schema=form.schema,
        dup=form.dup,
        stop=form.stop,
        valid=form.valid,
        owners=match.owners,
        phi_macro=match.macro,
        phi_worst=match.worst,
        phi=match.score,
        chain=chain,
        mem=weights.state * match.score + weights.chain * chain,
        penalty=penalty(report, weights),
        terms={
            term.name: term.weight * term.function(actions, report, pre_state, post_state, reference) for term in scorer.terms
        },
    )
