"""One language of the corpus: who lives in it, which values its facts take, and how they are said in the chat.

What a record says is the same in every language (`SELF_CONTENT` and its like); names, values and the wordings of messages are a
phrasebook's own. A wording may offer choices, `I [munch|nibble] {v}[ again|]`: one is drawn for each message, and what was drawn
is the message's template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from memory_env.corpus.dice import Dice

Wordings = tuple[str, ...]
ByKind = Mapping[str, Wordings]

CLAUSES_TURNED, WORDS_LOST, WORDS_PUT_IN = 0.25, 0.06, (0.3, 0.3, 0.25, 0.15)
"""Chances that a message with several clauses is turned round, that a word is lost, and that 0, 1, 2 or 3 words get in."""
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, eq=False)
class Phrasebook:
    """Names, values and wordings of one language.

    Example: `HOME.names[0]` is "Ana", `HOME.values["snack"][0]` is "olives", and one of `HOME.self_add["snack"]` is
    "I could eat {v} all day long". `relations` maps a key to what stands after "Ana and Ben". `noise` are words that get between
    those of a message, `withheld` templates that no message may have.
    """

    name: str
    names: Wordings
    days: Wordings
    spots: Wordings
    topics: Wordings
    events: Wordings
    rules: Wordings
    occasions: Wordings
    values: ByKind
    relations: Mapping[str, str]
    self_add: ByKind
    self_change: ByKind
    stance_add: ByKind
    stance_change: ByKind
    observation_add: ByKind
    report_add: ByKind
    event_add: Wordings
    event_change: Wordings
    dish_add: Wordings
    dish_change: Wordings
    relation_add: ByKind
    norm_add: Wordings
    exception_add: Wordings
    join_add: Wordings
    leave_self: Wordings
    leave_reported: Wordings
    chat: Wordings
    chat_to: Wordings
    self_trap: ByKind
    other_trap: ByKind
    stance_trap: Wordings
    event_trap: Wordings
    dish_trap: Wordings
    norm_trap: Wordings
    relation_trap: Wordings
    noise: Wordings = ()
    withheld: frozenset[str] = frozenset()

    def drawn(self, wording: str, dice: Dice) -> str:
        """A template of this wording: choices drawn, disturbed where there is `noise`; none that is `withheld`."""
        while True:
            template = drawn(wording, dice)
            if self.noise:
                template = disturbed(template, dice, self.noise)
            if template not in self.withheld:
                return template

    def wordings(self) -> list[str]:
        """All wordings of messages, choices unexpanded, each once, in the order of the fields."""
        names = [field for field in self.__dataclass_fields__ if _is_wording(field)]
        return list(dict.fromkeys(text for name in names for text in texts(getattr(self, name))))

    def words(self) -> set[str]:
        """All names and values, as they are written."""
        plain = (self.names, self.days, self.spots, self.topics, self.events, self.rules, self.occasions)
        return {text for part in (*plain, self.values, self.relations) for text in texts(part)}


def drawn(wording: str, dice: Dice) -> str:
    """The wording with one of each of its choices; without choices nothing is drawn.

    >>> drawn("I eat {v}", Dice(0))
    'I eat {v}'
    """
    return _CHOICE.sub(lambda match: dice.pick(match.group(1).split("|")), wording) if "[" in wording else wording


def disturbed(template: str, dice: Dice, noise: Wordings) -> str:
    """The template with up to three words of `noise` put in, some of its own left out, and at times its clauses turned round.

    Slots stay, each once.
    """
    clauses = template.split(", ")
    if len(clauses) > 1 and dice.chance(CLAUSES_TURNED):
        clauses = [*clauses[1:], clauses[0]]
    kept = [word for word in ", ".join(clauses).split(" ") if "{" in word or not dice.chance(WORDS_LOST)]
    for _ in range(dice.weighted(range(len(WORDS_PUT_IN)), WORDS_PUT_IN)):
        kept.insert(dice.below(len(kept) + 1), dice.pick(noise))
    return " ".join(kept)


def expansions(wording: str) -> Iterator[str]:
    """Every template that a wording can become.

    >>> sorted(expansions("[a|b] {v}[!|]"))
    ['a {v}', 'a {v}!', 'b {v}', 'b {v}!']
    """
    parts = _CHOICE.split(wording)
    for chosen in product(*(part.split("|") if place % 2 else (part,) for place, part in enumerate(parts))):
        yield "".join(chosen)


def pattern(wording: str) -> re.Pattern[str]:
    """Matches exactly the expansions of a wording, without listing them."""
    parts = _CHOICE.split(wording)
    return re.compile(
        "".join(
            "(?:" + "|".join(map(re.escape, part.split("|"))) + ")" if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        )
    )


def words(text: str) -> Wordings:
    """The words of a text, for tables of names and values."""
    return tuple(text.split())


def _is_wording(field: str) -> bool:
    return field.endswith(("_add", "_change", "_trap")) or field.startswith(("chat", "leave"))


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, tuple):
        for part in value:
            yield from texts(part)
