"""SpeakerLevenshtein: how well a predicted memory agrees with the reference, owner by owner (Eq. 7, 14, 16).

The name is the paper's; the score uses no edit distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.entries import placed_contents
from rewards.matching import Row, soft_f1
from rewards.scorer import Scorer
from rewards.similarity import Text

Member = tuple[str, str, str, Text]  # source, layer, normal form of the content and its Text, in the owner's bucket


@dataclass(frozen=True, slots=True)
class SpeakerMatch:
    """Phi of Eq. 7 and what it is made of; all in [0, 1].

    Example: owners={"Alice": 1.0, "GROUP": 0.5} has macro=0.75, worst=0.5, score=0.80 * 0.75 + 0.20 * 0.5 == 0.7.
    """

    score: float
    macro: float
    worst: float
    owners: dict[str, float]


def speaker_levenshtein(pred_entries: Any, ref_entries: Any, scorer: Scorer | None = None) -> SpeakerMatch:
    """Phi (Eq. 7) of predicted against reference records.

    Either side is a sequence of entries (dicts or Records; superseded ones count) or a whole state. A missing field
    is "". Each owner of either side is a bucket, GROUP one of them. Both sides empty: 1, without owners.
    The value does not depend on the order of the entries: a bucket is sorted by source, layer and normalised content
    before it is matched, and sums are correctly rounded (`math.fsum`).
    """
    scorer = scorer or Scorer()
    predicted = _buckets(placed_contents(pred_entries), scorer)
    reference = _buckets(placed_contents(ref_entries), scorer)
    owners = {
        owner: _bucket_f1(predicted.get(owner, ()), reference.get(owner, ()), scorer)
        for owner in sorted(predicted.keys() | reference.keys())
    }
    if not owners:
        return SpeakerMatch(1.0, 1.0, 1.0, {})
    macro, worst = math.fsum(owners.values()) / len(owners), min(owners.values())
    return SpeakerMatch(scorer.weights.macro * macro + scorer.weights.worst * worst, macro, worst, owners)


def _buckets(entries: Iterable[tuple[str, str, str, str]], scorer: Scorer) -> dict[str, tuple[Member, ...]]:
    buckets: dict[str, list[Member]] = {}
    text = scorer.similarity.text
    for owner, source, layer, content in entries:
        known = text(content)
        buckets.setdefault(owner, []).append((source, layer, known.joined, known))
    # Members of one normal form are of one Text, so that the order never compares two of those.
    return {owner: tuple(sorted(members)) for owner, members in buckets.items()}


def _bucket_f1(predicted: Sequence[Member], reference: Sequence[Member], scorer: Scorer) -> float:
    if not predicted or not reference:
        return 0.0
    return scorer.once(
        ("bucket", predicted, reference), lambda: soft_f1(kappa_rows(predicted, reference, scorer), len(reference))
    )


def kappa_rows(predicted: Sequence[Member], reference: Sequence[Member], scorer: Scorer) -> list[Row]:
    """kappa of Eq. 14 between the records of one owner, zeros left out; only equal coordinates are compared."""
    places: dict[tuple[str, str], list[tuple[int, Text]]] = {}
    for place, (source, layer, _, text) in enumerate(reference):
        places.setdefault((source, layer), []).append((place, text))
    kappa = scorer.similarity.kappa
    return [
        {place: weight for place, other in places.get((source, layer), ()) if (weight := kappa(text, other)) > 0.0}
        for source, layer, _, text in predicted
    ]
