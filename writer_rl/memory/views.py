"""A memory as people look at it: members, their rows, facts with their history and the messages behind them.

The environment stays as the paper has it: a record's time is its segment's, and a fact that is written again is a record of
its own. Here a record bears the time of the first message that it came from, and the same fact said again is one fact with a
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory_env.records import GROUP, Record
from memory_env.state import MemoryState
from memory_env.store.store import MemoryStore
from memory_env.text import normalised_content, words
from rewards import text_similarity

ALIKE = 0.6
"""Two current facts of one row that share so much of their words and are not the same may contradict each other."""


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message behind a record. Example: SourceMessage("1a2b3c4d", "Alice", "2025-03-01T10:00:00", "I moved to Oslo")."""

    entry_id: str
    speaker: str
    ts: str
    content: str


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a fact: when it was said (its first message's time, else its segment's), by whom, from what."""

    entry_id: str
    content: str
    source: str
    ts: str
    confidence: float
    behind: tuple[SourceMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class CurrentFact:
    """A current fact, its earlier versions (oldest first), and how often it was said.

    Example:
        fact.current.content == "lives in Oslo", fact.earlier[0].content == "lives in Bergen", fact.count == 2
    """

    current: Version
    earlier: tuple[Version, ...] = ()
    count: int = 1
    last_seen: str = ""


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """The facts of one layer about one owner."""

    owner: str
    layer: str
    facts: tuple[CurrentFact, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two current facts of one row that may contradict each other."""

    owner: str
    first: Version
    second: Version


@dataclass(frozen=True, slots=True)
class Rejection:
    """What a Writer wrote and the memory did not take: where, when, by which Writer, and why."""

    position: int
    ts: str
    writer: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member (or GROUP): how much they said, from when to when, and what is recorded about them."""

    name: str
    messages: int
    first: str
    last: str
    rows: tuple[OwnerRow, ...]

    @property
    def facts(self) -> int:
        """How many current facts there are."""
        return sum(len(row.facts) for row in self.rows)


def member_view(state: MemoryState, name: str, spoken: Iterable[Record] | None = None) -> MemberView:
    """What the memory holds of one member, or of GROUP.

    `spoken`: the member's messages, where the caller has them at hand.
    """
    if spoken is None:
        spoken = (record for record in state.verbatim() if record.source == name)
    times = [record.ts for record in spoken]
    heads = state.heads(name)
    layers = dict.fromkeys(record.layer for record in heads)
    rows = [OwnerRow(name, layer, _facts(state, [head for head in heads if head.layer == layer])) for layer in layers]
    return MemberView(name, len(times), min(times, default=""), max(times, default=""), tuple(rows))


def all_members(state: MemoryState) -> list[MemberView]:
    """Every member, and GROUP last."""
    spoken: dict[str, list[Record]] = {}
    for record in state.verbatim():
        spoken.setdefault(record.source, []).append(record)
    return [member_view(state, name, spoken.get(name, ())) for name in (*state.roster, GROUP)]


def conflicts(member: MemberView) -> list[Conflict]:
    """Current facts of one row that are alike and not the same: the newer may have been meant to replace the older."""
    found = []
    for row in member.rows:
        said = [(fact.current, set(words(fact.current.content))) for fact in row.facts]
        for place, (version, own) in enumerate(said):
            for other, theirs in said[place + 1 :]:
                # Most pairs share too few words to be worth comparing.
                shares = 2 * len(own & theirs) >= ALIKE * (len(own) + len(theirs)) > 0
                if shares and text_similarity(version.content, other.content) >= ALIKE:
                    found.append(Conflict(member.name, version, other))
    return found


def rejections(store: MemoryStore) -> Iterator[Rejection]:
    """What the Writers wrote that was not taken, in the order of writing."""
    for segment in store.segments():
        reasons = tuple(segment["report"].get("errors", ()))
        if reasons:
            yield Rejection(segment["position"], segment["ts"], segment["writer"], reasons)


def version_of(state: MemoryState, record: Record) -> Version:
    """A derived record with the messages it came from."""
    messages = [message for entry_id in record.from_ids if (message := state.get(entry_id)) is not None]
    messages.sort(key=lambda message: message.ts)
    behind = tuple(SourceMessage(message.entry_id, message.source, message.ts, message.content) for message in messages)
    return Version(
        record.entry_id, record.content, record.source, behind[0].ts if behind else record.ts, record.confidence, behind
    )


def _facts(state: MemoryState, heads: list[Record]) -> tuple[CurrentFact, ...]:
    """The facts of a row; current records from one source that say the same are one fact, told by the latest."""
    same: dict[tuple[str, str], list[Record]] = {}
    for head in heads:
        same.setdefault((head.source, normalised_content(head.content)), []).append(head)
    facts = []
    for records in same.values():
        chains = [state.chain(record.entry_id) for record in records]
        current = version_of(state, records[-1])
        earlier = tuple(version_of(state, version) for chain in chains for version in chain[:-1])
        seen = [version_of(state, record).ts for record in records]
        facts.append(CurrentFact(current, earlier, len(records), max(seen)))
    return tuple(facts)
