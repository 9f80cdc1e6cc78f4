"""What a generated conversation holds: its facts, and the events that put them into the chat."""

from __future__ import annotations

from dataclasses import dataclass

from memory_env.corpus.phrasebook import Phrasebook
from memory_env.records import GROUP


@dataclass(frozen=True)
class Fact:
    """One thing worth remembering, as the teacher first records it.

    Example: `Fact("self.snack", owner="Ana", source="Ana", layer="per_speaker_core", utype="fact",
    content="Ana's favourite snack is olives", subject="snack", values=("olives",), members=("Ana",))`.

    `subject` is what the fact is about inside its kind (attribute, topic, event, rule), `values` what a question can ask for,
    `members` the people the content names.
    """

    kind: str
    owner: str
    source: str
    layer: str
    utype: str
    content: str
    subject: str
    values: tuple[str, ...]
    members: tuple[str, ...]

    @property
    def family(self) -> str:
        """The kind without its attribute, such as "self"."""
        return self.kind.split(".")[0]

    @property
    def is_group(self) -> bool:
        return self.owner == GROUP


@dataclass(frozen=True)
class Event:
    """A message of the chat that makes (`ADD`) or changes (`UPDATE`) a fact.

    `fact` is the index of the fact in the plan; `content` and `values` are what holds from this message on.
    """

    message: int
    operation: str
    fact: int
    content: str
    values: tuple[str, ...]
    speaker: str


@dataclass(frozen=True)
class Utterance:
    """One message before it gets an id and a time; `template` is the wording it was made from."""

    speaker: str
    content: str
    template: str


@dataclass(frozen=True)
class Trap:
    """Values that the chat mentions near a subject without being memory; `member` is the owner whose answer they would spoil."""

    kind: str
    subject: str
    member: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Position:
    """One segment: its messages and, in message order, the events among them (none = NOOP)."""

    messages: tuple[Utterance, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Plan:
    """The whole conversation as it was planned; the reference memory follows from it by replay."""

    network_id: str
    book: Phrasebook
    members: tuple[str, ...]
    facts: tuple[Fact, ...]
    positions: tuple[Position, ...]
    traps: tuple[Trap, ...]

    def history(self, fact: int) -> tuple[Event, ...]:
        """The events of one fact, oldest first: its ADD and its UPDATEs."""
        return tuple(event for position in self.positions for event in position.events if event.fact == fact)

    def place(self, event: Event) -> int:
        """The position of an event."""
        return next(t for t, position in enumerate(self.positions) if event in position.events)
