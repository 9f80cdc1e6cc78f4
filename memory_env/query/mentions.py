"""Which roster members a text names."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

# Given names that are everyday English words too: a name only where written with a capital, not by itself at the start of a
# sentence.
_AMBIGUOUS_WORDS = """
    will may mark art hope rose grace faith bill june april august joy sky summer autumn dawn eve chip dean chase hunter miles
    page penny ruby pearl olive violet daisy heather star angel rich van sunny storm brook cliff dale glen lane rusty sandy tiger
    king prince earl duke bishop major guy drew young long short brown green white black gray grey see he all any one so no an
    in do me us it
"""
AMBIGUOUS = frozenset(_AMBIGUOUS_WORDS.split())
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_START = re.compile(r"(?:^|[.!?]\s)\W*$")
# After these, an ambiguous first word is the verb: "Will the group ...", "May I ...".
_VERB_COMPLEMENT = re.compile(
    r"\s+(?:the|a|an|any|every|each|everyone|it|he|she|they|we|you|i|there|this|that|all|both|someone)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A member named at text[start:end]."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=4096)
def _patterns(roster: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str], bool], ...]:
    """(member, pattern, ambiguous) for full names and for given names only one member has; longer names first."""
    given = Counter(name.split()[0].lower() for name in roster if name.split())
    full = {name.lower() for name in roster}
    spellings = [(name, name) for name in roster if name.strip()]
    for name in roster:
        parts = name.split()
        if len(parts) > 1 and given[parts[0].lower()] == 1 and parts[0].lower() not in full and len(parts[0]) > 1:
            spellings.append((name, parts[0]))
    compiled = []
    for name, spelling in sorted(spellings, key=lambda pair: (-len(pair[1]), pair[1])):
        ambiguous = spelling.lower() in AMBIGUOUS
        body = r"\s+".join(re.escape(part) for part in spelling.split())
        if not _CJK.search(spelling):
            body = rf"(?<![\w-]){body}(?![\w]|-\w)"
        compiled.append((name, re.compile(body, 0 if ambiguous else re.IGNORECASE), ambiguous))
    return tuple(compiled)


def find_mentions(text: str, roster: tuple[str, ...]) -> tuple[Mention, ...]:
    """Members named in `text` as whole words, in order of place, without overlaps (the longest name wins).

    Case is ignored, except for names that are English words: "What will Will say?" names Will once.
    """
    taken: list[Mention] = []
    for name, pattern, ambiguous in _patterns(roster):
        for match in pattern.finditer(text):
            if any(match.start() < other.end and other.start < match.end() for other in taken):
                continue
            if ambiguous and _is_verb(text, match.start(), match.end(), roster):
                continue
            taken.append(Mention(name, match.start(), match.end()))
    return tuple(sorted(taken, key=lambda mention: mention.start))


def _is_verb(text: str, start: int, end: int, roster: tuple[str, ...]) -> bool:
    """Whether an ambiguous capitalised word opens a sentence as a verb or adverb: "Will Bob come?", "May I ask?"."""
    if not _SENTENCE_START.search(text[:start]):
        return False
    rest = text[end:]
    if _VERB_COMPLEMENT.match(rest):
        return True
    return any(re.match(rf"\s+{re.escape(name)}\b", rest, re.IGNORECASE) for name in roster)
