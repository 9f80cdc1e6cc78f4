"""Writing what is in a memory already: what no Writer has written yet (`retry`), or the whole derived track anew (`write_anew`).

Outputs are kept as they come. Only when all are there does the memory change, in one transaction: until then it answers from the
old track, and a call that was stopped goes on where it was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memory_env.conversation import Segment
from memory_env.provenance import Provenance
from memory_env.query.protocol import WriteError
from memory_env.replay import Completion
from memory_env.state import MemoryState
from memory_env.step import step
from memory_env.store.drafts import (
    NOBODY,
    Rewritten,
    WriterOutput,
    draft,
    keep_draft,
    message_ids,
    put_in_place,
    segment_at,
    segments_in_time,
    unwritten,
)
from memory_env.store.store import MemoryStore
from memory_env.store.timeline import settled
from memory_env.store.tombstones import allowed_output

if TYPE_CHECKING:
    from writer_rl.evaluation.writers import Writer

TOO_LONG = "too long for the Writer"
Progress = Callable[[int, int], None]


@dataclass
class WritingSummary:
    """What writing brought: segments asked about, records, UPDATEs, (position, reason) of those refused, and why actions were
    rejected.

    Example: WritingSummary(segments=4, records=11, updates=2, refused=[(3, "the model refused: content filter")])
    """

    segments: int = 0
    records: int = 0
    updates: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def write_anew(
    store: MemoryStore, writer: Writer, provenance: Provenance | None, progress: Progress | None = None
) -> WritingSummary:
    """Write every segment with `writer`, in the order in which things were said; then the new track takes the old one's place."""
    start = MemoryState.empty()
    return _write(store, writer, segments_in_time(store), start, provenance, True, progress)


def retry(store: MemoryStore, writer: Writer, provenance: Provenance | None, progress: Progress | None = None) -> WritingSummary:
    """Write the segments that are kept word for word only, beside what the memory holds."""
    missing = {position for position, _ in unwritten(store)}
    todo = [position for position in segments_in_time(store) if position in missing]
    state = store.state()
    kept = [record for record in state.verbatim() if record.turn_created not in missing]
    start = MemoryState.from_records([*kept, *state.derived()], state.roster)
    return _write(store, writer, todo, start, provenance, False, progress)


def _write(
    store: MemoryStore,
    writer: Writer,
    positions: Sequence[int],
    state: MemoryState,
    provenance: Provenance | None,
    anew: bool,
    progress: Progress | None,
) -> WritingSummary:
    result, made = WritingSummary(), []
    for done, position in enumerate(positions):
        segment = segment_at(store, position)
        output = draft(store, writer.identity, position) or _asked(writer, state, segment)
        output = replace(output, completion=allowed_output(store.connection, state, output.completion))
        keep_draft(store, writer.identity, position, output)
        messages, records, edges = len(state.verbatim()), len(state.derived()), len(state.edges())
        state, report = step(state, segment, output.completion, hit_length_limit=output.hit_length_limit, provenance=provenance)
        name = NOBODY if output.refused else writer.identity
        kept = dict(zip((record.entry_id for record in state.verbatim(messages)), message_ids(store, position), strict=True))
        derived = [replace(each, from_ids=tuple(kept.get(id, id) for id in each.from_ids)) for each in state.derived(records)]
        made.append(Rewritten(position, name, output, report, tuple(derived), state.edges(edges)))
        state, _ = settled(state, report.created_ids)
        result.segments += 1
        result.records += len(made[-1].records)
        result.updates += len(made[-1].edges)
        result.errors += report.errors
        if output.refused:
            result.refused.append((position, output.refused))
        if progress is not None:
            progress(done + 1, len(positions))
    put_in_place(store, made, writer.identity, anew)
    return result


def _asked(writer: Writer, state: MemoryState, segment: Segment) -> WriterOutput:
    made, reason = written_or_refused(writer, state, segment)
    return WriterOutput(made.text, made.hit_length_limit, reason)


def written_or_refused(writer: Writer, state: MemoryState, segment: Segment) -> tuple[Completion, str]:
    """(the Writer's output, "") or (a NOOP, why there is none). Raises WriteError for an outage, which another try may mend."""
    from rollout.writer_prompt import PromptDoesNotFit
    from writer_rl.evaluation.writers import NOOP_OUTPUT

    try:
        made = writer.write(state, segment)
        # An own Writer may give a plain pair.
        return (Completion(*made) if isinstance(made, tuple) else made), ""
    except PromptDoesNotFit as error:
        return Completion(NOOP_OUTPUT), f"{TOO_LONG}: {error}"
    except WriteError as error:
        if not error.refused:
            raise
        return Completion(NOOP_OUTPUT), error.reason


def written_otherwise(store: MemoryStore, writer: str, before: int) -> list[str]:
    """What to tell of the segments before position `before` that this Writer has not written: it would be ignored silently."""
    query = (
        "SELECT max(writer), count(*) FROM segments WHERE position < ? AND writer != ? AND substr(writer, 1, length(?)) != ?"
        " GROUP BY writer = ?"
    )
    notes = []
    for name, count in store.connection.execute(query, (before, writer, f"{writer}:", f"{writer}:", NOBODY)):
        if name == NOBODY:
            notes.append(f"{count} segments remembered before have no records; --retry lets this Writer write them")
        else:
            notes.append(f"{count} segments remembered before were written by another Writer; --rewrite writes all anew")
    return notes


def reasons(errors: Sequence[str], most: int = 3) -> list[str]:
    """The commonest reasons why actions were rejected, each with how often; what is particular to one action is left out.

    Example: reasons(['action 0: unknown owner "Zoe"', 'action 2: unknown owner "Al"']) == ['2 x unknown owner "..."']
    """
    plain = [re.sub(r"[\"'][^\"']*[\"']", '"..."', re.sub(r"^action\W*\d+\W*", "", error)) for error in errors]
    counted = Counter(re.sub(r"\d+", "N", each)[:100] for each in plain)
    return [f"{count} x {reason}" for reason, count in counted.most_common(most)]
