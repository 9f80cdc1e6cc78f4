"""The words of the corpus: all of them, and those that are no name and no value."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from memory_env.corpus import lexicon, wording_ask, wording_chat, wording_group, wording_person
from memory_env.corpus.home import HOME
from memory_env.corpus.phrasebook import texts
from memory_env.corpus.wide import WIDE

WORD = re.compile(r"[A-Za-z]+|[^\sA-Za-z]")
_TABLES = (wording_person, wording_group, wording_chat)


def words_of(text: str) -> list[str]:
    """The text as words and punctuation marks.

    >>> words_of("Ana's pet is a turtle")
    ['Ana', "'", 's', 'pet', 'is', 'a', 'turtle']
    """
    return WORD.findall(text)


def templates(*modules: object) -> list[str]:
    """All wordings of the given modules (default: those of messages and records), in source order."""
    return [
        text
        for module in modules or _TABLES
        for name, value in vars(module).items()
        if name.isupper()
        for text in _strings(value)
    ]


def vocabulary(questions: bool = False) -> tuple[str, ...]:
    """All words and punctuation marks of messages and records, sorted; with `questions` those of questions as well."""
    modules = (*_TABLES, wording_ask) if questions else _TABLES
    found = set(_terms(templates(*modules), slots=True))
    found.update(
        _terms(
            _strings(
                [lexicon.NAMES, lexicon.DAYS, lexicon.VALUES, lexicon.TOPICS, lexicon.EVENTS, lexicon.SPOTS, lexicon.STANCES]
            )
        )
    )
    found.update(_terms(_strings([tuple(lexicon.RELATIONS.values()), lexicon.RULES, lexicon.OCCASIONS])))
    found.update(word.capitalize() for rule in lexicon.RULES for word in words_of(rule)[:1])
    return tuple(sorted(found))


def function_words() -> tuple[str, ...]:
    """The words of messages and records that training shows, apart from names and values (those of `corpus:unseen` are left out).

    A tokenizer holds each as one token and spells the rest.
    """
    contents = [
        text
        for module in (wording_person, wording_group)
        for name, value in vars(module).items()
        if "CONTENT" in name
        for text in texts(value)
    ]
    found = set(_terms([drop_choices(text) for text in (*HOME.wordings(), *WIDE.wordings())], slots=True))
    found.update(_terms(contents, slots=True))
    heads = {rule.split()[0] for rule in (*HOME.rules, *WIDE.rules)}
    found.update(lexicon.STANCES, heads, map(str.capitalize, heads))
    found.update(occasion.split()[0] for occasion in (*HOME.occasions, *WIDE.occasions))
    return tuple(sorted(found))


def drop_choices(wording: str) -> str:
    """The wording with all of its choices side by side.

    >>> drop_choices("I [eat|like] {v}")
    'I  eat like  {v}'
    """
    return re.sub(r"[\[\]|]", " ", wording)


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


def _terms(texts: Iterable[str], slots: bool = False) -> Iterable[str]:
    for text in texts:
        plain = "".join(part or "" for part, *_ in string.Formatter().parse(text)) if slots else text
        yield from words_of(plain)
