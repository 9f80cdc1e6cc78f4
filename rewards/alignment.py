"""What was matched with what behind Phi and R_chain: for people who read a reward, not for computing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewards import chain, speaker
from rewards.entries import derived_entries, field, placed_content, update_edges
from rewards.matching import best_pairs
from rewards.scorer import Scorer
from rewards.speaker import Member

Place = tuple[Member, str]


@dataclass(frozen=True, slots=True)
class RecordPair:
    """A predicted and a reference record (entry ids) of the best matching of Eq. 16, with kappa of Eq. 14.

    Example: RecordPair("04a45fa1", "9c0e11d2", 0.83).
    """

    predicted: str
    reference: str
    kappa: float


@dataclass(frozen=True, slots=True)
class EdgePair:
    """A predicted and a reference UPDATE, each (old id, new id), with their weight in Eq. 17.

    Example: EdgePair(("04a45fa1", "77aa0b1c"), ("9c0e11d2", "5d5d0e0f"), 0.91).
    """

    predicted: tuple[str, str]
    reference: tuple[str, str]
    weight: float


def record_pairs(pred_state: Any, ref_state: Any, scorer: Scorer | None = None) -> tuple[RecordPair, ...]:
    """The pairs behind `speaker_levenshtein`: of one owner, 2 sum(kappa) over both sides' records is that owner's F.

    What is in no pair has no counterpart of the same owner, source and layer that reaches the threshold.
    """
    scorer = scorer or Scorer()
    predicted, reference = _buckets(pred_state, scorer), _buckets(ref_state, scorer)
    pairs = []
    for owner in sorted(predicted.keys() & reference.keys()):
        ours, theirs = predicted[owner], reference[owner]
        for index, place, kappa in _matched(ours, theirs, scorer):
            pairs.append(RecordPair(ours[index][1], theirs[place][1], kappa))
    return tuple(pairs)


def edge_pairs(pred_state: Any, ref_state: Any, scorer: Scorer | None = None) -> tuple[EdgePair, ...]:
    """The pairs behind `chain_reward`: 2 sum(weight) over both sides' edges is R_chain, where both have edges."""
    scorer = scorer or Scorer()
    sides = [(update_edges(state), chain.changes(state, scorer)) for state in (pred_state, ref_state)]
    if not all(edges for edges, _ in sides):
        return ()
    # The matching is of sorted changes; sorting places alike keeps the ids beside them.
    (ours, predicted), (theirs, reference) = (_sorted_changes(*side) for side in sides)
    rows = chain.edge_weights(predicted, reference, scorer)
    return tuple(EdgePair(ours[i], theirs[j], rows[i][j]) for i, j in best_pairs(rows, len(reference)))


def _sorted_changes(
    edges: Sequence[tuple[str, str]], changes: Sequence[chain.Change]
) -> tuple[list[tuple[str, str]], tuple[chain.Change, ...]]:
    order = sorted(range(len(changes)), key=lambda place: chain.change_order(changes[place]))
    return [edges[place] for place in order], tuple(changes[place] for place in order)


def _buckets(state: Any, scorer: Scorer) -> dict[str, list[Place]]:
    buckets: dict[str, list[Place]] = {}
    for entry in derived_entries(state):
        owner, source, layer, content = placed_content(entry)
        text = scorer.similarity.text(content)
        member = (source, layer, text.joined, text)
        buckets.setdefault(owner, []).append((member, field(entry, "entry_id")))
    return {owner: sorted(places, key=lambda place: place[0][:3]) for owner, places in buckets.items()}


def _matched(ours: Sequence[Place], theirs: Sequence[Place], scorer: Scorer) -> list[tuple[int, int, float]]:
    predicted, reference = (tuple(member for member, _ in places) for places in (ours, theirs))

    def match() -> list[tuple[int, int, float]]:
        rows = speaker.kappa_rows(predicted, reference, scorer)
        return [(i, j, rows[i][j]) for i, j in best_pairs(rows, len(reference))]

    return scorer.once(("pairs", predicted, reference), match)
