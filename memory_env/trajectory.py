"""Teacher trajectories: the teacher's actions and the reference state M*_t at every writing position."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_env.conversation import Segment
from memory_env.datafile import DataError, Fields, read_json, read_text
from memory_env.network import Network
from memory_env.records import Edge, Record
from memory_env.replay import WrittenStep, replay, require_positions, write
from memory_env.state import MemoryState

TRAJECTORY_SCHEMA = "speakermem-v4-trajectories/1"


@dataclass(frozen=True, slots=True)
class ReferenceState:
    """A derived track read from a file: records in creation order and the UPDATE edges among them."""

    entries: tuple[Record, ...]
    update_edges: tuple[Edge, ...]
    roster: tuple[str, ...] = ()

    def derived(self) -> tuple[Record, ...]:
        """All records, superseded ones included."""
        return self.entries

    def edges(self) -> tuple[Edge, ...]:
        """UPDATE edges, in creation order of `new`."""
        return self.update_edges

    def heads(self, owner: str | None = None) -> tuple[Record, ...]:
        """Current records of one owner (or of all)."""
        return tuple(record for record in self.entries if record.is_head and owner in (None, record.owner))

    def to_dict(self) -> dict[str, Any]:
        """As `MemoryState.to_dict`."""
        return {
            "entries": [record.to_dict() for record in self.entries],
            "update_edges": [edge.to_dict() for edge in self.update_edges],
            "roster": list(self.roster),
        }


@dataclass(frozen=True, slots=True)
class TeacherTrajectory:
    """What a teacher wrote: `actions[t]` and the state after them, `states[t]`, for t = 0..T-1.

    The entry ids that actions cite are those of this environment, so that they replay through `step`; `ids` gives them by
    the ids of the file.
    """

    network_id: str
    actions: tuple[Sequence[object], ...]
    states: tuple[MemoryState | ReferenceState, ...]
    ids: Mapping[str, str] = field(default_factory=dict)


def replay_teacher(
    network: Network, actions: Sequence[Sequence[object]], window: int | None = None
) -> tuple[MemoryState, ...]:
    """The states after every position when `actions[t]` are stepped through the network's segments.

    Raises DataError if there is not one action list per segment, or if the environment refuses an action.
    """
    steps = replay(network, actions, window)
    for written in steps:
        _accepted(network.network_id, written)
    return tuple(written.post_state for written in steps)


def is_teacher_file(path: str | Path) -> bool:
    """Whether a file is one JSON document with a teacher's `transitions` or `final_state`."""
    text = read_text(path)
    # One document, not a line per output: JSONL stops being JSON at its second line.
    if not text.lstrip().startswith("{"):
        return False
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and ("transitions" in document or "final_state" in document)


def load_trajectory(path: str | Path, network: Network, window: int | None = None) -> TeacherTrajectory:
    """Read a teacher file about `network`: a trajectory (`transitions`) or a final state (`final_state` alone).

    A trajectory's reference states are those it carries in `post_state.entries`, else the replay of its actions. From
    a final state, the reference after position t is the entries with `turn_created` <= t (an edge counts once its new
    node exists), and the actions are read off the entries. Raises DataError.
    """
    fields = Fields.of(read_json(path), str(path))
    network_id = fields.text("network_id", network.network_id)
    if network_id != network.network_id:
        raise fields.error("network_id", f"is {network_id!r}, but the network is {network.network_id!r}")
    segments = network.segments(window)
    if "transitions" in fields.value:
        return _from_transitions(fields, network, segments)
    return _from_final_state(fields, network, segments)


def _accepted(where: str, written: WrittenStep) -> WrittenStep:
    if written.report.errors:
        place = f"position {written.segment.position} (session {written.segment.session_id})"
        raise DataError(f"{where}: {place}: {written.report.errors[0]}; correct the action")
    return written


def _from_transitions(fields: Fields, network: Network, segments: tuple[Segment, ...]) -> TeacherTrajectory:
    transitions = list(fields.objects("transitions"))
    require_positions(network, len(segments), len(transitions))
    ids: dict[str, str] = {}
    actions, states = [], []

    def translated(state: MemoryState, segment: Segment) -> list[object]:
        return [_translated(action, ids) for action in transitions[segment.position].get("actions", list)]

    for written, transition in zip(write(segments, translated), transitions, strict=True):
        state, report = written.post_state, written.report
        theirs = Fields.of(transition.get("report", dict, {}), fields.where, transition.at("report"))
        if not theirs.get("errors", list, []):
            _accepted(fields.where, written)
        post_state = Fields.of(transition.get("post_state", dict, {}), fields.where, transition.at("post_state"))
        reference = _reference(post_state, network) if "entries" in post_state.value else None
        _pair_ids(ids, theirs.get("created_ids", list, []), report.created_ids)
        if reference is not None:
            _pair_contents(ids, reference, state)
        actions.append(written.actions)
        states.append(reference or state)
    return TeacherTrajectory(network.network_id, tuple(actions), tuple(states), ids)


def _translated(action: object, ids: dict[str, str]) -> object:
    if isinstance(action, dict) and isinstance(action.get("entry_id"), str):
        return {**action, "entry_id": ids.get(action["entry_id"], action["entry_id"])}
    return action


def _pair_ids(ids: dict[str, str], theirs: Sequence[str], ours: Sequence[str]) -> None:
    """Note which of our entry ids stands for which of theirs, if as many were created."""
    if len(theirs) == len(ours):
        ids.update(zip(theirs, ours, strict=True))


def _pair_contents(ids: dict[str, str], reference: ReferenceState, state: MemoryState) -> None:
    """Note it for records that both sides hold with the same coordinates, position and content."""

    def coordinates(record: Record) -> tuple[int, str, str, str, str]:
        return record.turn_created, record.owner, record.source, record.layer, record.content

    ours = {coordinates(record): record.entry_id for record in state.derived()}
    for record in reference.derived():
        if record.entry_id not in ids and coordinates(record) in ours:
            ids[record.entry_id] = ours[coordinates(record)]


def _records(fields: Fields, network: Network) -> list[Record]:
    canonical = {original: name for name, original in network.original_names.items()}
    records = []
    for entry in sorted(fields.objects("entries"), key=lambda entry: entry.get("turn_created", int, 0)):
        owner, source = entry.text("owner"), entry.text("source")
        records.append(
            Record.from_dict(
                {
                    **entry.value,
                    "entry_id": entry.text("entry_id"),
                    "content": entry.text("content"),
                    "layer": entry.text("layer"),
                    "turn_created": entry.get("turn_created", int, 0),
                    "owner": canonical.get(owner, owner),
                    "source": canonical.get(source, source),
                }
            )
        )
    return records


def _edges(fields: Fields, records: Sequence[Record]) -> list[Edge]:
    """The file's edges in creation order of `new`."""
    edges = [Edge(edge.text("old"), edge.text("new")) for edge in fields.objects("update_edges", [])]
    order = {record.entry_id: index for index, record in enumerate(records)}
    return sorted(edges, key=lambda edge: order.get(edge.new, len(order)))


def _reference(fields: Fields, network: Network) -> ReferenceState:
    records = _records(fields, network)
    roster = (name for name in fields.get("roster", list, []) if isinstance(name, str))
    return ReferenceState(tuple(records), tuple(_edges(fields, records)), tuple(sorted(roster)))


def _from_final_state(fields: Fields, network: Network, segments: tuple[Segment, ...]) -> TeacherTrajectory:
    final = Fields.of(fields.get("final_state", dict), fields.where, "final_state")
    records = _records(final, network)
    edges = _edges(final, records)
    if records and records[-1].turn_created >= len(segments):
        raise final.error(
            "entries", f"reach position {records[-1].turn_created}, but the network has {len(segments)} positions"
        )
    states = tuple(_state_after(segment.position, records, edges, segments) for segment in segments)
    return TeacherTrajectory(network.network_id, _actions_of(fields.where, records, edges, segments), states)


def _state_after(
    position: int, records: Sequence[Record], edges: Sequence[Edge], segments: Sequence[Segment]
) -> ReferenceState:
    present = [record for record in records if record.turn_created <= position]
    known = {record.entry_id for record in present}
    seen = tuple(edge for edge in edges if edge.new in known)
    # A version that does not exist yet can't have superseded anything.
    entries = (
        record if not record.superseded_by or record.superseded_by in known else record.superseded("")
        for record in present
    )
    speakers = {message.speaker for segment in segments[: position + 1] for message in segment.messages}
    return ReferenceState(tuple(entries), seen, tuple(sorted(speakers)))


def _actions_of(
    where: str, records: Sequence[Record], edges: Sequence[Edge], segments: Sequence[Segment]
) -> tuple[Sequence[object], ...]:
    """The actions that write `records`, ids translated by replaying them; a position without a record is a NOOP."""
    superseded = {edge.new: edge.old for edge in edges}
    created = [[record for record in records if record.turn_created == segment.position] for segment in segments]
    ids: dict[str, str] = {}

    def output(state: MemoryState, segment: Segment) -> list[dict[str, Any]]:
        written = [_action_of(each, superseded.get(each.entry_id), ids) for each in created[segment.position]]
        return written or [{"action": "NOOP"}]

    actions = []
    for written in write(segments, output):
        _accepted(where, written)
        _pair_ids(ids, [record.entry_id for record in created[written.segment.position]], written.report.created_ids)
        actions.append(written.actions)
    return tuple(actions)


def _action_of(record: Record, old: str | None, ids: dict[str, str]) -> dict[str, Any]:
    if old is not None:
        return {"action": "UPDATE", "entry_id": ids.get(old, old), "content": record.content}
    return {
        "action": "ADD",
        "owner": record.owner,
        "source": record.source,
        "layer": record.layer,
        "utype": record.utype,
        "content": record.content,
    }
