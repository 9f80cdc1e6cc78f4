"""Whether the right records were updated into the right ones: soft F1 over UPDATE edges (Eq. 17)."""

from __future__ import annotations

from typing import Any

from rewards.entries import derived_entries, field, update_edges
from rewards.matching import Row, soft_f1
from rewards.scorer import Scorer
from rewards.similarity import Text

Change = tuple[str, str, Text, Text]  # owner, layer, old content, new content


def chain_reward(pred_state: Any, ref_state: Any, scorer: Scorer | None = None) -> float:
    """R_chain of two states ({"entries", "update_edges"}, or MemoryStates), in [0, 1].

    Edges match one to one, with weight 0.50 kbar(old) + 0.50 kbar(new) where owner and layer are equal and the weight
    is at least the threshold (0.50). No reference edge: 1 without predicted edges, else 0. An edge takes owner and
    layer from its old record (an UPDATE reuses them), or from the new one where the old is missing; a missing record
    has no content.
    """
    scorer = scorer or Scorer()
    predicted, reference = (tuple(sorted(changes(state, scorer), key=change_order)) for state in (pred_state, ref_state))
    if not predicted or not reference:
        return 1.0 if not predicted and not reference else 0.0
    return scorer.once(
        ("chain", predicted, reference), lambda: soft_f1(edge_weights(predicted, reference, scorer), len(reference))
    )


def changes(state: Any, scorer: Scorer) -> tuple[Change, ...]:
    """What each UPDATE edge of a state changed, in the order of its edges."""
    edges = update_edges(state)
    if not edges:
        return ()
    cited = {entry_id for edge in edges for entry_id in edge}
    entries = {identity: entry for entry in derived_entries(state) if (identity := field(entry, "entry_id")) in cited}
    text = scorer.similarity.text
    found = []
    for old_id, new_id in edges:
        old, new = entries.get(old_id, {}), entries.get(new_id, {})
        owner, layer = field(old or new, "owner"), field(old or new, "layer")
        found.append((owner, layer, text(field(old, "content")), text(field(new, "content"))))
    return tuple(found)


def change_order(change: Change) -> tuple[str, str, str, str]:
    """The order in which edges are matched."""
    return change[0], change[1], change[2].joined, change[3].joined


def edge_weights(predicted: tuple[Change, ...], reference: tuple[Change, ...], scorer: Scorer) -> list[Row]:
    """The weight of every pair of edges that may match."""
    rows: list[Row] = []
    for change in predicted:
        row: Row = {}
        for place, other in enumerate(reference):
            if change[:2] == other[:2]:
                weight = _weight(change, other, scorer)
                if weight > 0.0:
                    row[place] = weight
        rows.append(row)
    return rows


def _weight(predicted: Change, reference: Change, scorer: Scorer) -> float:
    weights, similarity = scorer.weights, scorer.similarity
    old, new = (predicted[2], reference[2]), (predicted[3], reference[3])
    old_bound = similarity.bound(*old)
    if weights.chain_old * old_bound + weights.chain_new * similarity.bound(*new) < weights.threshold:
        return 0.0
    new_score = similarity.score(*new)
    if weights.chain_old * old_bound + weights.chain_new * new_score < weights.threshold:
        return 0.0
    weight = weights.chain_old * similarity.score(*old) + weights.chain_new * new_score
    return weight if weight >= weights.threshold else 0.0
