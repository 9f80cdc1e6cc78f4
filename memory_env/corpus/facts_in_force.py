"""The facts of a plan as they stand at its end, and what would be false to say about them."""

from __future__ import annotations

import re
from dataclasses import replace

from memory_env.corpus.plan import Plan


def says(content: str, text: str) -> bool:
    """Whether a sentence contains the text as whole words, in any case.

    >>> says("Ana's pet is a turtle", "turtle"), says("No phones during dinner", "no phones"), says("Annabel sings", "Anna")
    (True, True, False)
    """
    return re.search(rf"(?<![a-z0-9]){re.escape(text.lower())}(?![a-z0-9])", content.lower()) is not None


class InForce:
    """A plan with its facts brought up to date."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        last = [plan.history(i)[-1] for i in range(len(plan.facts))]
        self.facts = tuple(replace(f, content=e.content, values=e.values) for f, e in zip(plan.facts, last, strict=True))

    def outdated(self, index: int) -> list[str]:
        """Values the fact had and has no more, newest first."""
        current = self.facts[index].values
        past = [v for event in reversed(self.plan.history(index)[:-1]) for v in event.values]
        return [v for v in dict.fromkeys(past) if v not in current]

    def trapped(self, kind: str, member: str) -> list[str]:
        """Values of traps set for this kind of fact of this member."""
        return [v for t in self.plan.traps if t.kind == kind and t.member == member for v in t.values]

    def left(self, member: str) -> bool:
        return any(f.kind == "leave" and f.owner == member for f in self.facts)

    def holds(self, who: str, text: str, apart_from: tuple[int, ...] = ()) -> bool:
        """Whether a record of this owner, as it stands at the end, contains the text, some facts apart."""
        return any(f.owner == who and says(f.content, text) for i, f in enumerate(self.facts) if i not in apart_from)
