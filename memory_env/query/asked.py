"""What form of answer a question asks for: persons or facts, and at which time of an update chain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from memory_env.query.retrieve.terms import terms

T = TypeVar("T")

_WHO = re.compile(
    r"^\W*(?:and\s+|so\s+|but\s+)?(?:(?:for|to|of|by|with|from|about)\s+)?(?:who|whose|whom|which\s+(?:\w+\s+){0,2}?(?:members?|persons?|people|participants?|speakers?|friends?))\b"
    r"|^\W*(?:name|list)\s+(?:\w+\s+){0,3}?(?:members?|persons?|people|participants?)\s+(?:who|that)\b"
    r"|\b(?:who|which\s+(?:member|person|participant|speaker))\b(?=[^,.;]*\?\s*$)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\b(?:two|three|both|several)\s+(?:members|persons|people|participants|of\s+them)\b", re.IGNORECASE)
_SINGULAR = re.compile(r"\bwhich\s+(?:\w+\s+){0,2}?(?:member|person|participant|speaker|friend)\b", re.IGNORECASE)
_SAYING = re.compile(
    r"\b(?:who|which\s+(?:\w+\s+){0,2}?(?:members?|persons?|people|participants?|speakers?|friends?))\s+(?:has\s+|had\s+|did\s+|\w+ly\s+|first\s+|also\s+)?"
    r"(?:sa(?:id|ys?)|t(?:old|ells?)|report(?:s|ed)?|mention(?:s|ed)?|notice[sd]?|observe[sd]?|th(?:inks?|ought)|believe[sd]?|claim(?:s|ed)?|pointed\s+out"
    r"|announce[sd]?|suggest(?:s|ed)?|propose[sd]?|passe[sd]\s+on|shared|describe[sd]?|remarked|commented|state[sd]|relayed|heard|kn[eo]ws?|spread"
    r"|brought\s+up|wrote|let\s+\w+\s+know)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:originally|initially|original|initial|at\s+first|in\s+the\s+beginning|at\s+the\s+start|first)\b", re.IGNORECASE
)
_HISTORY = re.compile(
    r"\bchang(?:e[sd]?|ing)\b|\bover\s+time\b|\bacross\s+(?:the\s+)?sessions\b|\bevol\w+|\bhistor\w+|\btimeline\b|\bshift\w*|\bprogress\w*|\bturning\s+point\b",
    re.IGNORECASE,
)
# "Ben left the group: where did he work?" sets a scene, then asks; the question is what follows.
_PREAMBLE = re.compile(r"^[^?]{3,120}?:\s+(?P<asked>.+\?)\s*$", re.DOTALL)
_BEFORE = re.compile(r"\bbefore\s+(?P<rest>[^?.,;]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """`persons`: the answer is a person. `sayers`: the one who said it rather than the one it is about. `single`, `several`:
    how many. `time`: "current", "previous", "first" or "history". `before`: terms of what the asked version came before.
    """

    persons: bool
    sayers: bool
    single: bool
    several: bool
    time: str
    before: frozenset[str] = frozenset()

    @classmethod
    def of(cls, question: str, mode: str) -> Asked:
        """Example: Asked.of("What did Ana drink before she liked tea?", "full").time == "previous"."""
        question = asked_clause(question)
        before = _BEFORE.search(question)
        if mode != "full":
            time = "current"
        elif _FIRST.search(question):
            time = "first"
        elif before or not _HISTORY.search(question):
            time = "previous"
        else:
            time = "history"
        return cls(
            persons=bool(_WHO.search(question)),
            sayers=bool(_SAYING.search(question)),
            single=bool(_SINGULAR.search(question)),
            several=bool(_SEVERAL.search(question)),
            time=time,
            before=frozenset(terms(before["rest"])) if before and time == "previous" else frozenset(),
        )

    def versions(self, chain: Sequence[T], text=str) -> list[T]:
        """The versions asked for, of a chain oldest first. "previous" of an unchanged record is nothing."""
        chain = list(chain)
        if self.time == "current":
            return chain[-1:]
        if self.time == "first":
            return chain[:1]
        if self.time == "history":
            return chain
        for place in range(len(chain) - 1, 0, -1):
            if self.before & set(terms(text(chain[place]))) - set(terms(text(chain[place - 1]))):
                return [chain[place - 1]]
        return chain[-2:-1]


def asked_clause(question: str) -> str:
    """The part of a question that asks, without the scene it sets before a colon.

    Example: asked_clause("About Ben, who left: what did he play?") == "what did he play?".
    """
    scene = _PREAMBLE.match(question)
    return scene["asked"] if scene else question
