"""The dual-track memory at one moment: immutable to its holders, forked by sharing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from immutables import Map

from memory_env.records import GROUP, VERBATIM_LAYER, Edge, Record

_EMPTY: Map = Map()


@dataclass(frozen=True, slots=True, repr=False)
class MemoryState:
    """Both tracks in persistent hash tries: a fork is the same object, an append costs O(log n) and shares the rest.

    Example:
        state, report = step(MemoryState.empty(), segment, completion)
        state.heads("Alice"), state.edges(), state.to_dict()
    """

    roster: tuple[str, ...] = ()
    """Members seen so far, sorted."""
    _records: Map = _EMPTY  # entry id -> Record, both tracks
    _verbatim: Map = _EMPTY  # creation index -> entry id
    _derived: Map = _EMPTY  # creation index -> entry id
    _edges: Map = _EMPTY  # creation index -> Edge
    _heads: Map = _EMPTY  # owner -> Map(entry id -> creation index)

    @classmethod
    def empty(cls) -> MemoryState:
        """The memory before the first message."""
        return _NOTHING

    @classmethod
    def from_records(cls, records: Iterable[Record], roster: Iterable[str] = ()) -> MemoryState:
        """A state that holds `records` in the given order (verbatim and derived may be mixed).

        Heads are the derived records without `superseded_by`; a record with `superseded_by` gives the edge to it, if
        the new record is present. Every owner and source is a member. Raises ValueError for two records with one id.
        """
        records = list(records)
        by_id = {record.entry_id: record for record in records}
        if len(by_id) != len(records):
            raise ValueError("two records share an entry id")
        derived = [record for record in records if record.layer != VERBATIM_LAYER]
        place = {record.entry_id: index for index, record in enumerate(derived)}
        heads: dict[str, dict[str, int]] = {}
        for record in derived:
            if record.is_head:
                heads.setdefault(record.owner, {})[record.entry_id] = place[record.entry_id]
        edges = [
            Edge(record.entry_id, record.superseded_by) for record in derived if record.superseded_by in place
        ]
        edges.sort(key=lambda edge: (place[edge.new], place[edge.old]))
        verbatim = (record.entry_id for record in records if record.layer == VERBATIM_LAYER)
        members = {name for record in records for name in (record.owner, record.source)}
        return cls(
            roster=tuple(sorted(members.union(roster) - {GROUP, ""})),
            _records=Map(by_id),
            _verbatim=Map(enumerate(verbatim)),
            _derived=Map(enumerate(place)),
            _edges=Map(enumerate(edges)),
            _heads=Map({owner: Map(ids) for owner, ids in heads.items()}),
        )

    def extended(
        self, messages: Sequence[Record], speakers: Iterable[str], created: Sequence[tuple[Record, Record | None]]
    ) -> MemoryState:
        """This state with `messages` and `speakers` added, then each `(new, old)` of `created`; `old` is superseded.

        Ids must be new to the state and `old`, where given, one of its heads: `step` guarantees both.
        """
        unseen = {speaker for speaker in speakers if speaker not in self.roster}
        roster = tuple(sorted(unseen.union(self.roster))) if unseen else self.roster
        records, verbatim = self._records.mutate(), self._verbatim.mutate()
        for index, record in enumerate(messages, len(verbatim)):
            records[record.entry_id] = record
            verbatim[index] = record.entry_id
        if not created:
            return MemoryState(roster, records.finish(), verbatim.finish(), self._derived, self._edges, self._heads)
        derived, edges, heads = self._derived.mutate(), self._edges.mutate(), self._heads.mutate()
        for index, (new, old) in enumerate(created, len(derived)):
            records[new.entry_id] = new
            derived[index] = new.entry_id
            own_heads = heads.get(new.owner, _EMPTY)
            if old is not None:
                records[old.entry_id] = old.superseded(new.entry_id)
                edges[len(edges)] = Edge(old.entry_id, new.entry_id)
                own_heads = own_heads.delete(old.entry_id)
            heads[new.owner] = own_heads.set(new.entry_id, index)
        return MemoryState(
            roster, records.finish(), verbatim.finish(), derived.finish(), edges.finish(), heads.finish()
        )

    def get(self, entry_id: str) -> Record | None:
        """The record of either track with this id."""
        return self._records.get(entry_id)

    def derived(self, since: int = 0) -> tuple[Record, ...]:
        """System 2, superseded records included, in creation order; `since` skips that many."""
        return tuple(self._records[self._derived[index]] for index in range(since, len(self._derived)))

    def verbatim(self, since: int = 0) -> tuple[Record, ...]:
        """System 1, in creation order; `since` skips that many."""
        return tuple(self._records[self._verbatim[index]] for index in range(since, len(self._verbatim)))

    def edges(self, since: int = 0) -> tuple[Edge, ...]:
        """UPDATE edges, in creation order of `new`; `since` skips that many."""
        return tuple(self._edges[index] for index in range(since, len(self._edges)))

    def heads(self, owner: str | None = None) -> tuple[Record, ...]:
        """Current derived records of one owner (or of all), in creation order; costs what it returns."""
        owners = self._heads.values() if owner is None else (self._heads.get(owner, _EMPTY),)
        placed = sorted((index, entry_id) for ids in owners for entry_id, index in ids.items())
        return tuple(self._records[entry_id] for _, entry_id in placed)

    def chain(self, entry_id: str) -> tuple[Record, ...]:
        """All versions of a derived record, oldest first ("full"). Raises KeyError for an unknown id."""
        record = self._records[entry_id]
        older: list[Record] = []
        seen = {entry_id}
        previous = self._previous(record)
        while previous is not None and previous.entry_id not in seen:
            seen.add(previous.entry_id)
            older.append(previous)
            previous = self._previous(previous)
        versions = [*reversed(older), record]
        following = self._records.get(record.superseded_by)
        while following is not None and following.entry_id not in seen:
            seen.add(following.entry_id)
            versions.append(following)
            following = self._records.get(following.superseded_by)
        return tuple(versions)

    def head(self, entry_id: str) -> Record:
        """The current version of a derived record ("head"). Raises KeyError for an unknown id."""
        return self.chain(entry_id)[-1]

    def _previous(self, record: Record) -> Record | None:
        for link in record.links:
            linked = self._records.get(link)
            if linked is not None and linked.superseded_by == record.entry_id:
                return linked
        return None

    def to_dict(self) -> dict[str, Any]:
        """Derived track as `{"entries", "update_edges", "roster"}`, entries in creation order."""
        return {
            "entries": [record.to_dict() for record in self.derived()],
            "update_edges": [edge.to_dict() for edge in self.edges()],
            "roster": list(self.roster),
        }

    def __copy__(self) -> MemoryState:
        return self

    def __deepcopy__(self, memo: dict) -> MemoryState:
        return self

    def __repr__(self) -> str:
        return (
            f"MemoryState({len(self.roster)} members, {len(self._verbatim)} messages, "
            f"{len(self._derived)} derived records, {len(self._edges)} updates)"
        )


_NOTHING = MemoryState()
