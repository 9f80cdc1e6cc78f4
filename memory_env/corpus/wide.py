"""The language of the base stage: invented names and values, and loose sentences in thousands of variants.

A Writer learns from it what kinds of facts there are and how to copy; the wordings and values of the other languages it has to
learn from their own conversations. Names and values of `UNSEEN` and of `HOME` are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from memory_env.corpus import wide_group as group
from memory_env.corpus import wide_person as person
from memory_env.corpus.dice import Dice
from memory_env.corpus.home import HOME
from memory_env.corpus.invented import invented
from memory_env.corpus.phrasebook import Phrasebook, texts
from memory_env.corpus.unseen import UNSEEN

NAMES, WORDS, EACH, PLAIN = 320, 1_600, 240, 30
"""Invented capitalised words, small words, how many of the latter each kind of value draws from, and how many words of sentences
each takes beside them: a value may be a word that says something else elsewhere."""
_CAPITALISED = ("city", "move", "day_off", "late_day", "exam", "language")


def _wordings() -> list[str]:
    return [text for module in (person, group) for name, value in vars(module).items() if name.isupper() for text in texts(value)]


def _words(sentences: Iterable[str]) -> set[str]:
    """All words of the texts in small letters, slots apart."""
    return {word for text in sentences for word in re.findall("[a-z]+", re.sub(r"\{.\}", " ", text).lower())}


def _book() -> Phrasebook:
    dice = Dice(7)
    sentences = [
        *_wordings(),
        *group.relation_add(["x"])["x"],
        *HOME.wordings(),
        *UNSEEN.wordings(),
        *HOME.words(),
        *UNSEEN.words(),
    ]
    pool = invented(NAMES + WORDS, dice, _words(sentences))
    plain = sorted(
        word for word in _words([*_wordings(), *HOME.wordings()]) - _words([*HOME.words(), *UNSEEN.words()]) if len(word) > 3
    )
    names = tuple(word.capitalize() for word in pool[: NAMES // 2])
    places = tuple(word.capitalize() for word in pool[NAMES // 2 : NAMES])
    small = pool[NAMES:]

    def some(count: int = EACH) -> tuple[str, ...]:
        return tuple(dice.shuffled([*dice.sample(small, count), *dice.sample(plain, PLAIN)]))

    cities, days = places[:90], places[90:]
    values = {kind: some() for kind in HOME.values if kind not in _CAPITALISED}
    values |= {"city": cities, "move": cities, "day_off": days, "late_day": days, "exam": days, "language": cities}
    heads = (
        "no {}",
        "no {}",
        "no {}",
        "never {}",
        "always {}",
        "bring {}",
        "share {}",
        "keep {}",
        "use {}",
        "make {}",
        "wear {}",
    )
    rules = tuple(dice.pick(heads).format(word) for word in some())
    times = ("during {}", "at {}", "on {}", "in {}", "before {}", "after {}")
    occasions = tuple(dice.pick(times).format(word) for word in some())
    ties = (
        "are {}",
        "share a {}",
        "own a {}",
        "met at {}",
        "run a {} together",
        "study {}",
        "love {}",
        "were {} once",
        "write {}",
    )
    phrases = tuple(dict.fromkeys(dice.pick(ties).format(word) for word in some()))
    return Phrasebook(
        name="wide",
        names=names,
        days=days,
        spots=some(),
        topics=some(),
        events=some(),
        rules=rules,
        occasions=occasions,
        values={kind: values[kind] for kind in HOME.values},
        relations={phrase: phrase for phrase in phrases},
        self_add=person.SELF_ADD,
        self_change=person.SELF_CHANGE,
        stance_add=person.STANCE_ADD,
        stance_change=person.STANCE_CHANGE,
        observation_add=person.OBSERVATION_ADD,
        report_add=person.REPORT_ADD,
        event_add=group.EVENT_ADD,
        event_change=group.EVENT_CHANGE,
        dish_add=group.DISH_ADD,
        dish_change=group.DISH_CHANGE,
        relation_add=group.relation_add(phrases),
        norm_add=group.NORM_ADD,
        exception_add=group.EXCEPTION_ADD,
        join_add=person.JOIN_ADD,
        leave_self=person.LEAVE_SELF,
        leave_reported=person.LEAVE_REPORTED,
        chat=group.CHAT,
        chat_to=group.CHAT_TO,
        self_trap=group.SELF_TRAP,
        other_trap=group.OTHER_TRAP,
        stance_trap=group.STANCE_TRAP,
        event_trap=group.EVENT_TRAP,
        dish_trap=group.DISH_TRAP,
        norm_trap=group.NORM_TRAP,
        relation_trap=group.RELATION_TRAP,
    )


WIDE = _book()
NOISY = replace(
    WIDE,
    name="noisy",
    noise=tuple(
        sorted({word for text in (*HOME.wordings(), *_wordings()) for word in re.findall(r"(?<!\{)\b[a-z]+\b(?!\})", text)})
    ),
    withheld=frozenset((*UNSEEN.wordings(), *HOME.wordings())),
)
"""The same with words lost, put in and turned round, so that a Writer hears the word that matters among words that do not."""
