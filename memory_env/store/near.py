"""Which messages of an export a memory holds already, though the two exports write them differently.

Phones export one chat in many ways: with files or without, with seconds or without, before an edit or after it. Two
messages are one if the same speaker said the same words in the same minute; placeholders of files count as "a file".
Every held message answers for at most one told message, so a second "ok" within a minute stays a second "ok".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_env.ingest.placeholders import split_media, without_votes
from memory_env.text import normalised_content, words

MINUTE = 60


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """A message for comparing: who, when (seconds since 1970, None if unknown), what; `edited` where it was.

    Example:
        ComparedMessage("Ann", 1714557600.0, "hello")
    """

    speaker: str
    at: float | None
    content: str
    edited: str = ""


def words_key(content: str) -> tuple[str, bool]:
    """What of a text is the same in every export: its words, and whether a file hangs on it.

    Example:
        words_key("[IMG-1.jpg]\\nThe view!") == words_key("[image]\\nthe view") == ("the view", True)
    """
    text, files = split_media(without_votes(content))
    return normalised_content(text), files > 0


def minute_of(at: float | None) -> float:
    """The minute of a time; one number for all that have none."""
    return -1.0 if at is None else at // MINUTE


def matched(held: Sequence[ComparedMessage], told: Sequence[ComparedMessage]) -> list[int | None]:
    """For every told message the place of the held one that it is, or None for a new one.

    First equal texts at equal times, then equal words in one minute (one of the two may have seconds), then, of what is
    left of a speaker in a minute, an edited text beside its other version: the one that shares most words with it.
    """
    found: list[int | None] = [None] * len(told)
    free = [True] * len(held)
    exact = _by_key((index, (said.speaker, said.at, said.content)) for index, said in enumerate(held))
    for place, said in enumerate(told):
        waiting = exact.get((said.speaker, said.at, said.content))
        if waiting:
            found[place] = index = waiting.popleft()
            free[index] = False
    left = [place for place, index in enumerate(found) if index is None]
    if not left:
        return found
    # Only minutes in which something is still to be placed are worth the words of.
    minutes = {(told[place].speaker, minute_of(told[place].at)) for place in left}
    rest = [i for i, said in enumerate(held) if free[i] and (said.speaker, minute_of(said.at)) in minutes]
    near = _by_key((i, (held[i].speaker, minute_of(held[i].at), words_key(held[i].content))) for i in rest)
    for place in left:
        said = told[place]
        waiting = near.get((said.speaker, minute_of(said.at), words_key(said.content)), deque())
        same = next((i for i in waiting if _one_time(held[i].at, said.at)), None)
        if same is not None:
            waiting.remove(same)
            found[place], free[same] = same, False
    _match_edits(held, told, found, [i for i in rest if free[i]])
    return found


def _match_edits(
    held: Sequence[ComparedMessage], told: Sequence[ComparedMessage], found: list[int | None], rest: list[int]
) -> None:
    by_minute: dict[tuple[str, float], list[int]] = {}
    for index in rest:
        by_minute.setdefault((held[index].speaker, minute_of(held[index].at)), []).append(index)
    for place, said in enumerate(told):
        if found[place] is not None or said.at is None:
            continue
        candidates = by_minute.get((said.speaker, minute_of(said.at)), [])
        versions = [i for i in candidates if (said.edited or held[i].edited) and _one_time(held[i].at, said.at)]
        if versions:
            best = max(versions, key=lambda i: _shared(held[i].content, said.content))
            # A minute's only text may be written anew from the first word to the last; of several, words must tell.
            if len(versions) == 1 or _shared(held[best].content, said.content) > 0:
                found[place] = best
                candidates.remove(best)


def _by_key(pairs: Iterable[tuple[int, tuple]]) -> dict[tuple, deque[int]]:
    found: dict[tuple, deque[int]] = {}
    for index, key in pairs:
        found.setdefault(key, deque()).append(index)
    return found


def _one_time(one: float | None, other: float | None) -> bool:
    """Whether two times of one minute can be one moment: equal, or one of them without seconds."""
    if one is None or other is None:
        return one is other
    return one == other or one % MINUTE == 0 or other % MINUTE == 0


def _shared(one: str, other: str) -> float:
    """The share of their words that two texts have in common (Jaccard)."""
    mine, theirs = set(words(one)), set(words(other))
    return len(mine & theirs) / len(mine | theirs) if mine and theirs else 0.0
