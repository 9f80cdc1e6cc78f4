"""An option: a budget that follows how much is worth remembering, where Eq. 20's follows how much was said.

    reward:
      modules: [rewards.worth]
      terms: {worth: 0.1}
"""

from __future__ import annotations

from collections import Counter

from rewards.coverage import Memory
from rewards.entries import derived_entries, field
from rewards.terms import reward_term


def worth(written: Counter[str], wanted: Counter[str]) -> float:
    """How near the number of records of each owner is to the reference's: sum of minima / sum of maxima; 1 if both are empty.

    Example: Ann 4 and Bob 1, wanted Ann 2 and Bob 2: (2 + 1) / (4 + 2) = 0.5.
    """
    owners = written.keys() | wanted.keys()
    most = sum(max(written[owner], wanted[owner]) for owner in owners)
    return sum(min(written[owner], wanted[owner]) for owner in owners) / most if most else 1.0


@reward_term("worth")
def worth_term(actions: object, report: object, pre_state: Memory, post_state: Memory, reference: object) -> float:
    """`worth` of all derived records so far, by owner: writing more than the reference costs as much as writing less."""
    return worth(_counts(post_state), _counts(reference))


def _counts(state: object) -> Counter[str]:
    return Counter(field(entry, "owner") for entry in derived_entries(state))
