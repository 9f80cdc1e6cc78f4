"""The transition of the memory environment (paper B.2): a pure function of state, segment and Writer output."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memory_env.actions import AcceptedAction, ParsedOutput, ValidatedOutput, max_actions, parse_completion, validate
from memory_env.conversation import Segment
from memory_env.provenance import Provenance, lexical_provenance
from memory_env.records import (
    ADD_CONFIDENCE,
    UPDATE_CONFIDENCE_GAIN,
    VERBATIM_CONFIDENCE,
    VERBATIM_LAYER,
    VERBATIM_UTYPE,
    Record,
)
from memory_env.state import MemoryState


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one Writer output.

    `errors` has one line per invalid action (or one for an output that is no action list); attempted = applied + noop
    + rejected + beyond the budget. `updated_from` are the ids that UPDATEs superseded, in order.
    """

    json_valid: bool
    attempted: int = 0
    applied: int = 0
    noop: int = 0
    errors: tuple[str, ...] = ()
    created_ids: tuple[str, ...] = ()
    updated_from: tuple[str, ...] = ()
    schema_valid_actions: int = 0
    too_many_actions: bool = False
    hit_length_limit: bool = False

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "json_valid": self.json_valid,
            "attempted": self.attempted,
            "applied": self.applied,
            "noop": self.noop,
            "errors": list(self.errors),
            "created_ids": list(self.created_ids),
            "updated_from": list(self.updated_from),
            "schema_valid_actions": self.schema_valid_actions,
            "too_many_actions": self.too_many_actions,
            "hit_length_limit": self.hit_length_limit,
        }


@dataclass(frozen=True, slots=True)
class PreparedSegment:
    """What every fork of a position shares: the segment's System 1 records and its speakers."""

    records: tuple[Record, ...]
    speakers: frozenset[str]


def entry_id(*parts: str, attempt: int = 0) -> str:
    """8 hex digits of a hash over `parts`; `attempt` counts the collisions with ids already in the state."""
    joined = "\x1f".join(parts if attempt == 0 else (*parts, str(attempt)))
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


@lru_cache(maxsize=1024)
def prepare(segment: Segment) -> PreparedSegment:
    """The verbatim records of a segment: content, speaker, session, turn and time exactly as in the message."""
    records = tuple(
        Record(
            entry_id=entry_id("message", message.session_id, str(message.index), message.speaker, message.content),
            content=message.content,
            owner=message.speaker,
            source=message.speaker,
            layer=VERBATIM_LAYER,
            utype=VERBATIM_UTYPE,
            session=message.session_id,
            turn=message.index,
            turn_created=segment.position,
            ts=message.ts,
            confidence=VERBATIM_CONFIDENCE,
        )
        for message in segment.messages
    )
    return PreparedSegment(records, frozenset(message.speaker for message in segment.messages))


def step(
    state: MemoryState,
    segment: Segment,
    completion: str | ParsedOutput | Sequence[object],
    *,
    hit_length_limit: bool = False,
    strict: bool = False,
    provenance: Provenance | None = None,
) -> tuple[MemoryState, Report]:
    """Append the segment to System 1, then apply the valid actions of the Writer's output to System 2.

    `completion` is the raw text, what `parse_completion` made of it, or a list of actions. `strict` rejects all actions
    if any is invalid (as the published training code does). Never raises for anything a model can write; the same input
    gives the same output on every machine.
    """
    output = _parsed(completion)
    prepared = prepare(segment)
    taken: set[str] = set()
    messages = [_unique_message(record, state, taken) for record in prepared.records]

    budget = max_actions(len(segment.messages))
    validation = _judge(output, state, prepared, budget)
    accepted = () if strict and validation.errors else validation.accepted_actions
    support = (provenance or lexical_provenance)([action.content for action in accepted], segment) if accepted else []
    created = [
        (_record(action, segment, tuple(messages[index].entry_id for index in indices), state, taken), action.old)
        for action, indices in zip(accepted, support, strict=True)
    ]
    report = Report(
        json_valid=output.valid,
        attempted=len(output.actions),
        applied=len(created),
        noop=0 if strict and validation.errors else validation.noop,
        errors=validation.errors,
        created_ids=tuple(new.entry_id for new, _ in created),
        updated_from=tuple(old.entry_id for _, old in created if old is not None),
        schema_valid_actions=validation.schema_valid,
        too_many_actions=len(output.actions) > budget,
        hit_length_limit=hit_length_limit,
    )
    return state.extended(messages, prepared.speakers, created), report


def _parsed(completion: str | ParsedOutput | Sequence[object]) -> ParsedOutput:
    if isinstance(completion, str):
        return parse_completion(completion)
    return completion if isinstance(completion, ParsedOutput) else ParsedOutput(True, completion)


def _judge(output: ParsedOutput, state: MemoryState, prepared: PreparedSegment, budget: int) -> ValidatedOutput:
    if not output.valid:
        return ValidatedOutput((), (output.error,), 0, 0)
    if not output.actions:
        return ValidatedOutput((), ("the action list is empty",), 0, 0)
    return validate(output.actions, state, prepared.speakers.union(state.roster), budget)


def _free_id(parts: tuple[str, ...], state: MemoryState, taken: set[str], attempt: int = 0) -> str:
    identity = entry_id(*parts, attempt=attempt)
    while identity in taken or state.get(identity) is not None:
        attempt += 1
        identity = entry_id(*parts, attempt=attempt)
    taken.add(identity)
    return identity


def _unique_message(record: Record, state: MemoryState, taken: set[str]) -> Record:
    identity = record.entry_id
    if identity not in taken and state.get(identity) is None:
        taken.add(identity)
        return record
    fields = record.to_dict()
    parts = ("message", record.session, str(record.turn), record.owner, record.content)
    fields["entry_id"] = _free_id(parts, state, taken, attempt=1)
    return Record.from_dict(fields)


def _record(action: AcceptedAction, segment: Segment, from_ids: tuple[str, ...], state: MemoryState, taken: set[str]) -> Record:
    old = action.old
    parts = (action.owner, action.source, action.layer, action.utype, action.content, str(segment.position), str(action.place))
    return Record(
        entry_id=_free_id(parts, state, taken),
        content=action.content,
        owner=action.owner,
        source=action.source,
        layer=action.layer,
        utype=action.utype,
        session=segment.session_id,
        turn=0,
        turn_created=segment.position,
        ts=segment.ts,
        from_ids=from_ids,
        links=() if old is None else (old.entry_id,),
        confidence=ADD_CONFIDENCE if old is None else min(1.0, old.confidence + UPDATE_CONFIDENCE_GAIN),
    )
