"""What is now and what was then follow the time of messages, whatever the order in which chats were imported.

`step` lets an UPDATE supersede the record that it cites, which is right while a conversation is read forwards. A memory
may read an older export later. Its UPDATE still says which chain the new record belongs to; its time says where in it.
So a chain of a memory is ordered by time: an UPDATE that is older than what it cites becomes an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_env.ingest.times import instant
from memory_env.records import Record
from memory_env.state import MemoryState

Pair = tuple[str, str]
"""The entry ids of an UPDATE's edge: (old, new)."""


def in_time(records: Sequence[Record], updates: Iterable[Pair]) -> list[Record]:
    """`records` (derived, in creation order), each superseded by the next of its chain in time.

    A chain is what `updates` connect, records that are not there included. Of equal times the one created later is later;
    a record without a time comes where it was created.

    Example:
        in_time([york_2024, leeds_2023], [(york_2024.entry_id, leeds_2023.entry_id)])
        # york_2024 stays current, leeds_2023 is superseded by it
    """
    chain_of = _chains(updates)
    chains: dict[str, list[Record]] = {}
    for record in records:
        if record.entry_id in chain_of:
            chains.setdefault(chain_of[record.entry_id], []).append(record)
    placed: dict[str, Record] = {}
    for chain in chains.values():
        members = {record.entry_id for record in chain}
        ordered = _by_time(chain)
        for place, record in enumerate(ordered):
            newer = ordered[place + 1].entry_id if place + 1 < len(ordered) else ""
            older = (ordered[place - 1].entry_id,) if place else ()
            # Links out of the chain stay; those into it follow the order.
            outside = tuple(link for link in record.links if link not in members)
            placed[record.entry_id] = replace(record, superseded_by=newer, links=(*older, *outside))
    return [placed.get(record.entry_id, record) for record in records]


def settled(state: MemoryState, created: Iterable[str]) -> tuple[MemoryState, int]:
    """The state with its chains in time, after a step that made the records `created`; how many of them were put back.

    Costs nothing unless one of them is older than what it superseded.
    """
    back = 0
    for entry_id in created:
        record = state.get(entry_id)
        cited = [] if record is None else [state.get(link) for link in record.links]
        back += any(old is not None and record is not None and _is_later(old, record) for old in cited)
    if not back:
        return state, 0
    derived = in_time(state.derived(), [(edge.old, edge.new) for edge in state.edges()])
    return MemoryState.from_records([*state.verbatim(), *derived], state.roster), back


def _is_later(one: Record, other: Record) -> bool:
    mine, theirs = instant(one.ts), instant(other.ts)
    return mine is not None and theirs is not None and mine > theirs


def _by_time(chain: Sequence[Record]) -> list[Record]:
    times: list[float] = []
    for record in chain:
        at = instant(record.ts)
        times.append((times[-1] if times else float("-inf")) if at is None else at)
    return [record for _, record in sorted(zip(times, chain, strict=True), key=lambda pair: pair[0])]


def _chains(updates: Iterable[Pair]) -> dict[str, str]:
    """Entry id -> one id that stands for its chain, for all that are connected."""
    parent: dict[str, str] = {}

    def root(entry_id: str) -> str:
        path = []
        while parent.setdefault(entry_id, entry_id) != entry_id:
            path.append(entry_id)
            entry_id = parent[entry_id]
        for each in path:
            parent[each] = entry_id
        return entry_id

    for old, new in updates:
        parent[root(new)] = root(old)
    return {entry_id: root(entry_id) for entry_id in list(parent)}
