"""Hand-written teacher actions (YAML or JSON) made into a native trajectory file.

    network: my_chat            # optional; checked against the network
    positions:
      - actions:
          - {action: ADD, owner: Alice, source: Alice, layer: per_speaker_core, utype: fact, content: lives in Leeds, id: home}
      - actions:
          - {action: UPDATE, entry_id: home, content: lives in York}
      - actions: [{action: NOOP}]

`id` is a name of the author's own for an ADD or UPDATE, which later UPDATEs cite in `entry_id`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from memory_env.conversation import Segment
from memory_env.datafile import DataError, Fields, parse_json
from memory_env.ingest.sources import read_chat_text
from memory_env.network import Network
from memory_env.state import MemoryState
from memory_env.step import Report, step
from memory_env.trajectory import TRAJECTORY_SCHEMA


def read_actions(path: str | Path, network: Network) -> list[list[dict[str, Any]]]:
    """The actions per position of a hand-written file. DataError with file and place."""
    text = read_chat_text(path)
    if Path(path).suffix.lower() == ".json":
        document = parse_json(text, str(path))
    else:
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f"line {mark.line + 1}" if mark else "the file"
            raise DataError(f"{path}: {place} is not YAML ({getattr(error, 'problem', error)})") from None
        except RecursionError:
            raise DataError(f"{path}: is nested too deeply") from None
    fields = Fields.of(document, str(path))
    named = fields.text("network", network.network_id)
    if named != network.network_id:
        raise fields.error("network", f"is {named!r}, but the network is {network.network_id!r}")
    return [[dict(action.value) for action in position.objects("actions")] for position in fields.objects("positions")]


def trajectory_document(
    network: Network, actions: list[list[dict[str, Any]]], teacher: dict[str, Any], window: int | None, where: str
) -> dict[str, Any]:
    """A native trajectory file's document. DataError if the environment refuses an action, or positions differ."""
    segments = network.segments(window)
    if len(segments) != len(actions):
        raise DataError(f"{where}: has {len(actions)} positions, network {network.network_id!r} has {len(segments)}")
    state, transitions = MemoryState.empty(), []
    ids: dict[str, str] = {}
    for segment, output in zip(segments, actions, strict=True):
        output = [dict(action) for action in output]
        labels = [action.pop("id", None) for action in output]
        for action in output:
            if isinstance(action.get("entry_id"), str):
                action["entry_id"] = ids.get(action["entry_id"], action["entry_id"])
        state, report = step(state, segment, output)
        if report.errors:
            raise DataError(f"{where}: position {segment.position} (session {segment.session_id}): {report.errors[0]}")
        made = [label for label, action in zip(labels, output, strict=True) if action.get("action") != "NOOP"]
        ids.update({str(label): entry for label, entry in zip(made, report.created_ids, strict=True) if label is not None})
        transitions.append(transition(segment, output, report, state))
    return document_of(network, transitions, teacher, window)


def transition(segment: Segment, actions: list[Any], report: Report, state: MemoryState) -> dict[str, Any]:
    """One transition of a native trajectory file."""
    after = state.to_dict()
    return {
        "turn": segment.position,
        "session_id": segment.session_id,
        "ts": segment.ts,
        "messages": [
            {
                "speaker": message.speaker,
                "content": message.content,
                "session": message.session_id,
                "ts": message.ts,
                "msg_id": message.turn_id,
            }
            for message in segment.messages
        ],
        "actions": actions,
        "report": report.to_dict(),
        "post_state": {"entries": after["entries"], "update_edges": after["update_edges"]},
    }


def document_of(
    network: Network, transitions: list[dict[str, Any]], teacher: dict[str, Any], window: int | None
) -> dict[str, Any]:
    """A native trajectory file's document from its transitions."""
    return {
        "schema": TRAJECTORY_SCHEMA,
        "teacher": teacher,
        "window_size": window,
        "network_id": network.network_id,
        "transitions": transitions,
    }
