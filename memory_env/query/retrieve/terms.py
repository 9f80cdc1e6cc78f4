"""Search terms of a text: what BM25 and the lexical similarity see.

Lower-cased words of every script (each CJK character by itself), without English function words, reduced to a light stem.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

_WORD = re.compile(r"[\u3400-\u9fff]|(?:(?![\u3400-\u9fff])[^\W_])+", re.UNICODE)

# Words that say how a question is asked rather than what about.
_FUNCTION_WORDS = """
    a about after again all also am an and any anybody anyone are as at be been being both but by can could did do does
    doing done each either else every everybody everyone ever for from had has have having he her hers him his how i if in
    into is it its itself just may me might mine more most much must my myself no nor not now of off on once one ones only or
    other others our ours out over own per please she should so some somebody someone such than that the their theirs them
    themselves then there these they this those through to too under until up upon us very was we were what when where
    whether which while who whom whose why will with would yet you your yours yourself s t d ll m re ve don didn doesn isn
    wasn aren couldn wouldn won
"""
STOPWORDS = frozenset(_FUNCTION_WORDS.split())


def words(text: str) -> list[str]:
    """Lower-cased words in order, nothing left out. Example: words("Zoë's café!") -> ["zoë", "s", "café"]."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """A light English stem that brings together likes/liked/liking and party/parties; other scripts pass unchanged."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for suffix, keep in (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(suffix) and not word.endswith(("ss", "us", "is")):
            root = word[: -len(suffix)] + keep
            if len(root) >= 3 and re.search("[aeiouy]", root):
                word = root
                break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=200_000)
def terms(text: str) -> tuple[str, ...]:
    """Stemmed content words in order, repetitions kept.

    Example: terms("What did Bob decide about parties?") -> ("bob", "decid", "party").
    """
    return tuple(stem(word) for word in words(text) if word not in STOPWORDS)


# A long question has more words about asking than about its issue; beyond this many, further terms cost a match nothing.
ISSUE_TERMS = 4


def term_match(issue: Collection[str], text: Collection[str]) -> float:
    """How well a text fits an issue, in [0, 1], over sets of terms: shared / sqrt(min(|issue|, 4) |text|), at most 1.

    For issues of up to four terms the cosine of the two sets. 0 if either is empty.
    """
    issue, text = set(issue), set(text)
    if not issue or not text:
        return 0.0
    return min(1.0, len(issue & text) / math.sqrt(min(len(issue), ISSUE_TERMS) * len(text)))
