"""Compose: both paths' findings become one Evidence that keeps owner, source, time, layer and provenance (B.3, step 4)."""

from __future__ import annotations

from collections.abc import Sequence

from memory_env.query.protocol import Evidence, EvidenceItem, EvidenceRow, Projection
from memory_env.query.retrieve.index import MemoryIndex
from memory_env.query.retrieve.system1 import Candidate
from memory_env.query.retrieve.system2 import Row
from memory_env.records import Record


def compose(projection: Projection, index: MemoryIndex, messages: Sequence[Candidate], rows: Sequence[Row]) -> Evidence:
    """System 1 messages in conversation order; System 2 rows in the projection's order."""
    verbatim, derived = index.verbatim.records, index.derived

    def chain(found: tuple[float, tuple[int, ...]]) -> tuple[EvidenceItem, ...]:
        return tuple(_item(derived.records[place], found[0], place in derived.chains) for place in found[1])

    return Evidence(
        roster=index.roster,
        projection=projection,
        messages=tuple(_item(found.record, found.score) for found in sorted(messages, key=lambda found: found.index)),
        rows=tuple(
            EvidenceRow(
                owner=row.owner,
                chains=tuple(chain(found) for found in row.chains),
                said=tuple(item for found in row.said for item in chain(found)),
                fallback=_item(verbatim[row.fallback[1]], row.fallback[0]) if row.fallback else None,
            )
            for row in rows
        ),
    )


def _item(record: Record, score: float, current: bool = True) -> EvidenceItem:
    return EvidenceItem(
        content=record.content,
        owner=record.owner,
        source=record.source,
        layer=record.layer,
        utype=record.utype,
        session=record.session,
        turn=record.turn,
        ts=record.ts,
        entry_id=record.entry_id,
        messages=tuple(record.from_ids) or ((record.entry_id,) if record.utype == "utterance" else ()),
        current=current,
        score=score,
    )
