"""Words of forgotten messages inside what others wrote: found word for word, and cut out.

What counts as a quotation, ignoring case, punctuation and spacing:

- a run of at least `RUN_WORDS` words (and `RUN_LETTERS` letters) of a forgotten message,
- a whole forgotten message of at least `WHOLE_WORDS` words (and `WHOLE_LETTERS` letters),
- between quotation marks or behind ">", everything, if a forgotten message says it, or `MARKED_WORDS` words of one in a row.

A run that somebody else wrote before the forgotten message did is theirs and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

RUN_WORDS, RUN_LETTERS = 6, 20
WHOLE_WORDS, WHOLE_LETTERS = 3, 10
MARKED_WORDS = 4
CUT = "[forgotten]"

# Every Chinese character, kana and hangul syllable is a word: those scripts put no space between words.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_QUOTED = re.compile(r"[\"“„«»‚‘「『](?P<marked>[^\"“”„«»‘’‚「」『』]+)[\"”“»«’‘」』]|^[ \t]*>(?P<line>.*)$", re.MULTILINE)
_MARK = re.compile(r"[\"“„«»‚‘「『>]")

Words = tuple[str, ...]


def folded_words(text: str) -> Words:
    """The words of a text, case folded.

    Example:
        folded_words("I moved to Oslo!") == ("i", "moved", "to", "oslo")
    """
    return tuple(_WORD.findall(text.casefold()))


def letters_in(words: Iterable[str]) -> int:
    """How much a run says: its letters, a character of a dense script counting as three."""
    return sum(3 if _DENSE.match(word) else len(word) for word in words)


class Quotations:
    """Finds and cuts the words of forgotten messages.

    Example:
        said = Quotations([(0.0, "I moved to Oslo last spring with my cat")])
        said.cut("Ann wrote that she moved to Oslo last spring with my cat, no joke", 5.0)
        == "Ann wrote that she [forgotten], no joke"
    """

    def __init__(self, texts: Iterable[tuple[float, str]]):
        """`texts`: when each forgotten message was said (any scale that grows with time), and what it says."""
        self._since: dict[Words, float] = {}
        self._theirs: set[Words] = set()
        said: list[str] = []
        for when, text in texts:
            words = folded_words(text)
            runs = [words[i : i + RUN_WORDS] for i in range(len(words) - RUN_WORDS + 1)]
            runs = [run for run in runs if letters_in(run) >= RUN_LETTERS]
            if WHOLE_WORDS <= len(words) < RUN_WORDS or not runs:
                runs += [words] if len(words) >= WHOLE_WORDS and letters_in(words) >= WHOLE_LETTERS else []
            for run in runs:
                self._since[run] = min(when, self._since.get(run, when))
            said.append(" ".join(words))
        self._said = f" {' | '.join(said)} " if any(said) else ""
        self._starts: dict[Words, list[int]] = {}
        for run in self._since:
            lengths = self._starts.setdefault(run[:WHOLE_WORDS], [])
            if len(run) not in lengths:
                lengths.append(len(run))

    def __bool__(self) -> bool:
        return bool(self._said)

    def cut(self, text: str, when: float) -> str:
        """`text`, said at `when`, with every quotation replaced by `CUT`.

        Give the texts in the order of time: a run that another wrote before the forgotten message did stays everywhere.
        """
        return _without(text, self._spans(text, when))

    def runs(self) -> set[Words]:
        """The runs that are cut: those of the forgotten messages that nobody else was found to have written before."""
        return self._since.keys() - self._theirs

    def in_text(self, text: str, when: float) -> bool:
        """Whether `text` quotes a forgotten message."""
        return bool(self._spans(text, when))

    def _runs(self, words: Words) -> Iterable[tuple[int, Words]]:
        # Most texts share no three words in a row with what is forgotten.
        if self._starts.keys().isdisjoint(zip(words, words[1:], words[2:], strict=False)):
            return
        for place in range(len(words) - WHOLE_WORDS + 1):
            for length in self._starts.get(words[place : place + WHOLE_WORDS], ()):
                run = words[place : place + length]
                if run in self._since:
                    yield place, run

    def _spans(self, text: str, when: float) -> list[tuple[int, int]]:
        words = folded_words(text)
        runs = list(self._runs(words))
        self._theirs.update(run for _, run in runs if when < self._since[run])
        hits = [(place, len(run)) for place, run in runs if run not in self._theirs]
        marked = list(_QUOTED.finditer(text)) if _MARK.search(text) else []
        if not hits and not marked:
            return []
        # Positions in the text itself: folding the case of the whole may change its length.
        places = [match.span() for match in _WORD.finditer(text)]
        grown = [self._grown(words, place, place + length) for place, length in hits]
        spans = [(places[first][0], places[last - 1][1]) for first, last in grown]
        for match in marked:
            spans += self._in_marks(match)
        return spans

    def _in_marks(self, match: re.Match[str]) -> list[tuple[int, int]]:
        start = match.start("marked") if match["marked"] is not None else match.start("line")
        inner = match["marked"] if match["marked"] is not None else match["line"]
        found = [(word.group().casefold(), word.start() + start, word.end() + start) for word in _WORD.finditer(inner)]
        words = [word for word, _, _ in found]
        if words and (len(words) > 1 or letters_in(words) >= WHOLE_LETTERS) and self._says(words):
            return [(found[0][1], found[-1][2])]
        runs = range(len(words) - MARKED_WORDS + 1)
        hits = [place for place in runs if self._says(words[place : place + MARKED_WORDS])]
        return [(found[place][1], found[place + MARKED_WORDS - 1][2]) for place in hits]

    def _grown(self, words: Words, first: int, last: int) -> tuple[int, int]:
        """The run `words[first:last]` with the words beside it that the forgotten message has too."""
        while first > 0 and self._says(words[first - 1 : last]):
            first -= 1
        while last < len(words) and self._says(words[first : last + 1]):
            last += 1
        return first, last

    def _says(self, words: Sequence[str]) -> bool:
        return f" {' '.join(words)} " in self._said


def cut_words(text: str, runs: Iterable[tuple[int, int]]) -> str:
    """`text` with `CUT` for each run of its words, given as (first word, word after the last).

    Example:
        cut_words("Oh, I moved to Oslo!", [(1, 5)]) == "Oh, [forgotten]!"
    """
    runs = list(runs)
    places = [match.span() for match in _WORD.finditer(text)] if runs else []
    return _without(text, [(places[first][0], places[last - 1][1]) for first, last in runs])


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for first, last in reversed(_joined(spans)):
        text = text[:first] + CUT + text[last:]
    return text


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans as one, in order."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
