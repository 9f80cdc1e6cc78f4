"""The shape of an itemised answer: one line "Name: statement" per statement, as the offline answerer writes and the judge
reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NOTHING = "nothing recorded"
_LINE = re.compile(r"^\s*(?:[-*•]\s*)?(?P<who>[^:\n]{1,60}?)\s*:\s+(?P<text>\S.*)$")
# An initial ("J.R. likes tea") ends no sentence.
_SENTENCE = re.compile(r"(?<=[.!?;])(?<!^[A-Z]\.)(?<!\W[A-Z]\.)\s+|\n+")
_ABSENT = re.compile(
    r"\bnothing (?:is )?(?:recorded|known|mentioned|said)\b|\bno (?:recorded|known) \w+"
    r"|\bnot (?:recorded|mentioned|known|stated|specified|answerable)\b"
    r"|\bno information\b|\bunanswerable\b|\bunknown\b|^\s*nothing\W*$"
    r"|\bdid(?:n't| not) (?:say|mention|state|express)\b|\bnever (?:said|mentioned)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` said of `who` ("" where the answer names nobody). Example: Statement("Ana", "lives in Oslo")."""

    who: str
    text: str

    @property
    def absent(self) -> bool:
        """Whether it only says that nothing is known."""
        return is_absent(self.text)


def render(statements: list[Statement]) -> str:
    """One line per statement; without a name the text alone."""
    return "\n".join(f"{each.who}: {each.text}" if each.who else each.text for each in statements)


def parse(answer: str) -> list[Statement]:
    """Statements of an answer: its "Name: ..." lines; other text sentence by sentence, under nobody's name."""
    found: list[Statement] = []
    for line in answer.splitlines():
        match = _LINE.match(line)
        if match:
            found.append(Statement(match["who"], match["text"].strip()))
        else:
            found.extend(Statement("", part) for part in sentences(line))
    return found


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed. Example: sentences("J.R. came. Then?") == ["J.R. came.", "Then?"]."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def is_absent(text: str) -> bool:
    """Whether a text says that the information is missing."""
    return bool(_ABSENT.search(text))
