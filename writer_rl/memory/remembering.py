"""New segments of a chat, written: the Writer reads one after another, and each goes into the file with what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memory_env.conversation import Segment
from memory_env.provenance import Provenance
from memory_env.state import MemoryState
from memory_env.step import step
from memory_env.store.drafts import NOBODY, note_unwritten
from memory_env.store.rows import Arrived, WrittenSegment
from memory_env.store.store import MemoryStore
from memory_env.store.timeline import settled
from memory_env.store.tombstones import allowed_output
from writer_rl.memory import rewriting

if TYPE_CHECKING:
    from writer_rl.evaluation.writers import Writer

COMMIT_MESSAGES = 1000
"""Without a Writer, so many messages share one commit."""


@dataclass
class Remembered:
    """What `Memory.remember` did.

    Example:
        Remembered(new=812, known=4031, segments=35, records=120, updates=9, invalid=2)
    """

    new: int = 0
    known: int = 0
    segments: int = 0
    records: int = 0
    updates: int = 0
    invalid: int = 0
    verbatim_only: int = 0
    held_back: int = 0
    put_back: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def write_segments(
    store: MemoryStore,
    writer: Writer,
    provenance: Provenance | None,
    arrived: list[Arrived],
    result: Remembered,
    on_segment: Callable[[int, int], None] | None = None,
) -> None:
    """Let the Writer write new segments, one after another; each is in the file before the next is asked for.

    Empties `arrived`, and counts in `result`. A segment that is too long for the Writer is halved.
    """
    state, position = store.state(), store.next_position()
    counts = store.counts()
    sizes = [counts["messages"], counts["records"], counts["edges"]]
    waiting: list[WrittenSegment] = []
    noted = 0
    # Segments are let go once they are written: `arrived` may be a long export.
    todo, done = arrived[::-1], 0
    arrived.clear()
    while todo:
        part = todo.pop()
        part = replace(part, segment=replace(part.segment, position=position))
        written = _one(store, writer, provenance, state, part, sizes, todo, result)
        if written is None:
            continue
        waiting.append(written[0])
        state, position = written[1], position + 1
        done += len(part.sources)
        if writer.identity != "none" or sum(len(one.messages) for one in waiting) >= COMMIT_MESSAGES:
            store.append(waiting)
            waiting = []
            note_unwritten(store, result.refused[noted:])
            noted = len(result.refused)
        if on_segment is not None:
            on_segment(done, result.new)
    if waiting:
        store.append(waiting)

def _one(
    store: MemoryStore,
    writer: Writer,
    provenance: Provenance | None,
    state: MemoryState,
    part: Arrived,
    sizes: list[int],
    todo: list[Arrived],
    result: Remembered,
) -> tuple[WrittenSegment, MemoryState] | None:
    """A segment written, and the state after it; None if it was too long and its halves went back to `todo`."""
    made, refused = rewriting.written_or_refused(writer, state, part.segment)
    if refused.startswith(rewriting.TOO_LONG):
        if len(part.sources) > 1:
            todo += reversed(_halves(part))
            return None
        result.verbatim_only += 1
    elif refused:
        result.refused.append((part.segment.position, refused))
    name = NOBODY if refused else writer.identity
    output = allowed_output(store.connection, state, made.text)
    after, report = step(state, part.segment, output, hit_length_limit=made.hit_length_limit, provenance=provenance)
    records, edges = after.derived(sizes[1]), after.edges(sizes[2])
    written = WrittenSegment(part, name, output, report, after.verbatim(sizes[0]), records, edges)
    after, put_back = settled(after, report.created_ids)
    sizes[:] = [sizes[0] + len(part.sources), sizes[1] + len(records), sizes[2] + len(edges)]
    result.segments += 1
    result.records += len(records)
    result.updates += len(edges)
    result.put_back += put_back
    result.invalid += bool(report.errors)
    result.errors += report.errors
    return written, after


def _halves(part: Arrived) -> tuple[Arrived, Arrived]:
    middle = len(part.sources) // 2
    messages = part.segment.messages

    def piece(first: int, last: int) -> Arrived:
        chosen = messages[first:last]
        segment = Segment(part.segment.position, part.segment.session_id, chosen[0].ts, chosen)
        return Arrived(segment, part.sources[first:last], part.keys[first:last])

    return piece(0, middle), piece(middle, len(messages))
