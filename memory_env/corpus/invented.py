"""Invented words for the wide language, and the letter groups they are built of.

The tiny Writer's tokenizer has a token for each of these letter groups, so a Writer that has learnt to copy invented words knows
how to copy any word at all. Words of the other languages are left out.
"""

from __future__ import annotations

from collections.abc import Collection

from memory_env.corpus.dice import Dice
from memory_env.corpus.phrasebook import words

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_VOWELS = "aeiou"
_CONSONANTS = "bcdfghjklmnprstvwxyz"
_CLUSTERS = words(
    "bl br ch ck cl cr ct dr ff fl fr gh gl gr ll mm mp nd ng nk nn nt pl pp pr qu rd rk rm rn rr rs rt sc sh sk sl sm sn sp ss"
    " st th tr tt ea ee ia ie oa oo ou ai au io"
)
_LONGER = words("ing ter ers ent ver ful ine ard ell est ish ack ock ant ian ess all ead oon ett ill")

LETTER_GROUPS: tuple[str, ...] = (
    *(c + v for c in _CONSONANTS for v in _VOWELS),
    *(v + c for v in _VOWELS for c in _CONSONANTS),
    *_CLUSTERS,
    *_LONGER,
)
"""Two or three letters each, in a fixed order."""


def invented(count: int, dice: Dice, forbidden: Collection[str]) -> list[str]:
    """`count` different words of 3 to 9 letters, none in `forbidden`: one to three letter groups, half with a letter more.

    >>> all(3 <= len(word) <= 9 for word in invented(20, Dice(0), ()))
    True
    """
    found: dict[str, None] = {}
    while len(found) < count:
        word = "".join(dice.pick(LETTER_GROUPS) for _ in range(dice.weighted((1, 2, 3), (0.1, 0.55, 0.35))))
        word += dice.pick(_ALPHABET) if dice.chance(0.5) else ""
        if 3 <= len(word) <= 9 and word not in forbidden:
            found[word] = None
    return list(found)
