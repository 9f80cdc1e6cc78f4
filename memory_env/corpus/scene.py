"""A conversation in the making: what it has used up so far, and the sentences that its members say."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_env.corpus.dice import Dice
from memory_env.corpus.phrasebook import Phrasebook
from memory_env.corpus.plan import Fact, Utterance


@dataclass
class Scene:
    """What one conversation has used up so far, so that no value means two things in it."""

    dice: Dice
    book: Phrasebook
    members: tuple[str, ...]
    topics: tuple[str, ...]
    events: tuple[str, ...]
    facts: list[Fact] = field(default_factory=list)  # as first recorded
    now: list[Fact] = field(default_factory=list)  # as they stand
    taken: set[tuple[str, ...]] = field(default_factory=set)

    def fresh(self, pool: str, values: tuple[str, ...]) -> str | None:
        """A value of the pool that this conversation has not mentioned yet; None if there is none left."""
        free = [value for value in values if (pool, value) not in self.taken]
        if not free:
            return None
        value = self.dice.pick(free)
        self.taken.add((pool, value))
        return value

    def claim(self, *key: str) -> bool:
        """Reserve a coordinate such as ("self.snack", "Ana"); False if it is taken."""
        if key in self.taken:
            return False
        self.taken.add(key)
        return True


def say(scene: Scene, templates: tuple[str, ...], speaker: str, **slots: str) -> Utterance:
    """A message in one of the wordings; never in one that the language withholds."""
    template = scene.book.drawn(scene.dice.pick(templates), scene.dice)
    return Utterance(speaker, template.format(**slots), template)


def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def pool_of(subject: str) -> str:
    """Kinds that draw from the same values share them: a city is not both a home and a destination in one conversation."""
    return "city" if subject in ("city", "move") else subject


def when_and_where(scene: Scene, event: str) -> tuple[str, str] | None:
    """A day for the event and a place, neither mentioned yet; None if there are none left."""
    day = scene.fresh(f"day of {event}", scene.book.days)
    spot = scene.fresh("spot", scene.book.spots)
    return (day, spot) if day and spot else None
