"""An option: decisions of the group that pass over a member who stands against them.

    reward:
      modules: [rewards.cross_layer]
      terms: {cross_layer: 0.1}

Lexical and English: two statements are of one thing if their words overlap, and oppose each other if one of them is negated.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_env.records import Record
from rewards.coverage import Memory
from rewards.terms import reward_term
from rewards.tokens import paper_tokens as tokens

NEGATIONS = frozenset(
    ["not", "no", "never", "against", "without", "t", "dont", "doesnt", "wont", "cant", "isnt"]
    + ["refuses", "opposes", "rejects", "dislikes"]
)
SAME_THING = 0.5
"""Share of the shorter statement's words that the other has too, negations and names left out."""


def opposed(decision: str, stance: str, names: frozenset[str] = frozenset()) -> bool:
    """Whether two statements are of one thing, and exactly one of them is negated.

    names: lower-case words that say who, not what.

    Example: "the trip goes to Rome", "Bob does not want the trip to Rome" with names {"bob"}: True; without "not": False.
    """
    first, second = set(tokens(decision)), set(tokens(stance))
    a, b = first - NEGATIONS - names, second - NEGATIONS - names
    if not a or not b or len(a & b) < SAME_THING * min(len(a), len(b)):
        return False
    return bool(first & NEGATIONS) != bool(second & NEGATIONS)


def dissent_kept(decisions: Sequence[str], stances: Sequence[tuple[str, str]]) -> float:
    """The share of decisions that name every member whose stance (owner, content) opposes them; 1 without decisions.

    Example: decisions "they meet on Monday" and "no dogs at the camp", Bob's stance "meet on Monday, never": the first is
    opposed and doesn't name Bob, the second isn't: 0.5. "They meet on Monday, Bob stays away" would keep his dissent: 1.
    """
    if not decisions:
        return 1.0
    names = frozenset(word for owner, _ in stances for word in tokens(owner))
    kept = 0
    for decision in decisions:
        words = set(tokens(decision))
        kept += all(set(tokens(owner)) <= words for owner, stance in stances if opposed(decision, stance, names))
    return kept / len(decisions)


@reward_term("cross_layer")
def cross_layer_term(actions: object, report: object, pre_state: Memory, post_state: Memory, reference: object) -> float:
    """`dissent_kept` between the current GROUP decisions and the members' current stances."""
    heads: Sequence[Record] = post_state.heads()
    decisions = [record.content for record in heads if record.owner == "GROUP" and record.utype == "decision"]
    stances = [(record.owner, record.content) for record in heads if record.owner != "GROUP" and record.utype == "stance"]
    return dissent_kept(decisions, stances)
