"""Words that mean the same in a question and in a chat. English, and only what chats speak of daily."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from memory_env.query.retrieve.terms import stem, terms, words

# The first word of a line stands for all of them.
_SAME = """
    live move home address flat apartment reside based house moving
    job work profession occupation career employ employer workplace working
    mum mother mom mummy mama
    dad father daddy papa
    birthday born birth birthdate
    wedding marry marriage married marrying
    partner fiance fiancé fiancée boyfriend girlfriend husband wife engaged
    child children kid kids baby
    like love enjoy fond prefer favourite favorite adore liking favourites
    hate dislike detest loathe stand
    start begin began begun
    buy bought purchase
    go went gone going
    sell sold
    get got gotten
    eat ate eaten
    take took taken
    bring brought
    leave left
    meet met
    speak spoke spoken
    teach taught
    drive drove driven
    break broke broken
    lose lost
    find found
    win won
    pay paid cost price costs
    choose chose chosen
    allergic allergy allergies
    vegetarian veggie vegan
    phone mobile
    car vehicle van
    bike bicycle
    film movie
    holiday vacation
    quit resign resigned
    plan plans planning
"""


@lru_cache(maxsize=1)
def _canon() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in _SAME.strip().splitlines():
        first, *others = line.split()
        for word in (first, *others):
            table[word] = table[stem(word)] = stem(first)
    return table


def canonical(word: str) -> str:
    """A word's stem, or the stem of the word that stands for its like: canonical("moved") == canonical("lives")."""
    table = _canon()
    return table.get(word) or table.get(stem(word)) or stem(word)


def canonical_terms(text: str) -> frozenset[str]:
    """The canonical content terms of a text."""
    kept = set(terms(text))
    return frozenset(canonical(word) for word in words(text) if stem(word) in kept or word in _canon())


@lru_cache(maxsize=200_000)
def search_terms(text: str) -> tuple[str, ...]:
    """The canonical content terms of a text, in order, repetitions kept: what a memory's word index holds.

    Example: search_terms("Where does Bob work?") == search_terms("Bob's job").
    """
    return tuple(canonical(term) for term in terms(text))


def holds(wanted: Iterable[str], said: frozenset[str]) -> int:
    """How many of the wanted terms a text's terms hold; "celebration" holds "celebrate", by its beginning."""
    return sum(term in said or any(_alike(term, other) for other in said) for term in wanted)


def _alike(a: str, b: str) -> bool:
    if len(a) < 5 or len(b) < 5 or not (a.isascii() and b.isascii()):
        return False
    shared = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return shared >= 5 and shared >= 0.7 * max(len(a), len(b))
