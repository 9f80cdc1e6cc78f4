"""Writer actions: parsing a completion, the shape of an action, and what may be applied to a state (paper B.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from memory_env.records import DERIVED_LAYERS, DERIVED_UTYPES, GROUP, GROUP_LAYERS, VERBATIM_LAYER, Record
from memory_env.state import MemoryState
from memory_env.text import normalised_content

MAX_DEPTH = 400
"""JSON nested deeper than this is invalid: well under the parser's own limit, which depends on the caller's stack."""


_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """A completion as an action list. `actions` is verbatim (not yet validated), [] if invalid; `error` says why."""

    valid: bool
    actions: Sequence[object]
    error: str = ""


@dataclass(frozen=True, slots=True)
class AcceptedAction:
    """What an accepted action asks to be recorded; `place` is its index in the output, `old` what it supersedes."""

    place: int
    owner: str
    source: str
    layer: str
    utype: str
    content: str
    old: Record | None = None


@dataclass(frozen=True, slots=True)
class ValidatedOutput:
    """What validation decided about one output: actions to apply, one error per invalid action, accepted NOOPs."""

    accepted_actions: tuple[AcceptedAction, ...]
    errors: tuple[str, ...]
    noop: int
    schema_valid: int


def max_actions(n_messages: int) -> int:
    """Eq. 20: the action budget of a segment of `n_messages`."""
    return max(8, 2 * n_messages)


def parse_completion(text: str) -> ParsedOutput:
    """The whole stripped completion as one JSON object with a list `actions`: no fences, no repair, no bare list."""
    try:
        value = _DECODER.decode(text.strip())
    except RecursionError:
        return ParsedOutput(False, [], "invalid JSON: nested too deeply")
    except Exception as error:  # whatever the parser raises makes the output invalid, never the program
        return ParsedOutput(False, [], f"invalid JSON: {str(error).partition(';')[0]}")
    if not isinstance(value, dict):
        return ParsedOutput(False, [], "invalid JSON: the output is not an object")
    actions = value.get("actions")
    if not isinstance(actions, list):
        return ParsedOutput(False, [], 'invalid JSON: the output has no list "actions"')
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth_exceeds(value, MAX_DEPTH):
        return ParsedOutput(False, [], "invalid JSON: nested too deeply")
    return ParsedOutput(True, actions)


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        containers = [item for item in level if isinstance(item, (dict, list))]
        if not containers:
            return False
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return any(isinstance(item, (dict, list)) for item in level)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and not (value.isspace() or not value)


def schema_error(action: object) -> str:
    """What is wrong with the shape or an enumeration of `action`; "" if nothing. Extra keys are tolerated."""
    if not isinstance(action, dict):
        return "is not an object"
    kind = action.get("action")
    if kind == "NOOP":
        return ""
    if kind == "ADD":
        for key in ("owner", "source", "content"):
            if not _is_text(action.get(key)):
                return f"{key} must be a non-empty string"
        if action.get("layer") not in DERIVED_LAYERS:
            return f"layer must be one of {', '.join(DERIVED_LAYERS)}"
        if action.get("utype") not in DERIVED_UTYPES:
            return f"utype must be one of {', '.join(DERIVED_UTYPES)}"
        return ""
    if kind == "UPDATE":
        for key in ("entry_id", "content"):
            if not _is_text(action.get(key)):
                return f"{key} must be a non-empty string"
        return ""
    return "action must be ADD, UPDATE or NOOP"


def action_kind(action: object) -> str:
    """ADD, UPDATE or NOOP as the action says it; "" where it is no action."""
    kind = action.get("action") if isinstance(action, dict) else None
    return kind if isinstance(kind, str) else ""


def action_key(action: dict[str, Any]) -> tuple[str, ...]:
    """The identity of a well-formed action among duplicates (text after Eq. 19)."""
    kind = action["action"]
    if kind == "ADD":
        return kind, action["owner"], action["source"], action["layer"], normalised_content(action["content"])
    if kind == "UPDATE":
        return kind, action["entry_id"], normalised_content(action["content"])
    return (kind,)


def coordinate_error(owner: object, source: object, layer: object, roster: Collection[str]) -> str:
    """Why a record can't stand at these coordinates; "" if it can. GROUP owns the group layers and is never a source."""
    if layer not in DERIVED_LAYERS:
        return f"layer must be one of {', '.join(DERIVED_LAYERS)}"
    if layer in GROUP_LAYERS:
        if owner != GROUP:
            return f"layer {layer} requires owner {GROUP}"
    elif owner == GROUP:
        return f"owner {GROUP} requires a group layer"
    elif owner not in roster:
        return "owner is not in the roster"
    if source not in roster or source == GROUP:
        return "source is not in the roster"
    return ""


def validate(actions: Sequence[object], state: MemoryState, roster: Collection[str], budget: int) -> ValidatedOutput:
    """Judge every action of one output against the state before it; `roster` includes the segment's speakers.

    Actions from index `budget` on are not judged (but count as schema-valid where their shape is). An UPDATE cites
    records of `state` only: one created earlier in the same output does not resolve, its id is unknown to the Writer.
    A duplicate is an action whose key equals that of an accepted one before it.
    """
    return _Validator(state, roster, budget).judge(actions)


class _Validator:
    """The bookkeeping of one `validate` call."""

    def __init__(self, state: MemoryState, roster: Collection[str], budget: int) -> None:
        self.state = state
        self.roster = roster
        self.budget = budget
        self.accepted_actions: list[AcceptedAction] = []
        self.errors: list[str] = []
        self.accepted: set[tuple[str, ...]] = set()
        self.updated: set[str] = set()
        self.noop = 0

    def judge(self, actions: Sequence[object]) -> ValidatedOutput:
        schema_valid = 0
        mixed = any(not (isinstance(action, dict) and action.get("action") == "NOOP") for action in actions)
        for place, action in enumerate(actions):
            problem = schema_error(action)
            schema_valid += not problem
            if place >= self.budget:
                continue
            if not problem and isinstance(action, dict):
                kind = action["action"]
                if kind == "ADD":
                    problem = self._add(place, action)
                elif kind == "UPDATE":
                    problem = self._update(place, action)
                else:
                    problem = self._noop(mixed)
            if problem:
                self.errors.append(f"action {place}: {problem}")
        return ValidatedOutput(tuple(self.accepted_actions), tuple(self.errors), self.noop, schema_valid)

    def _noop(self, mixed: bool) -> str:
        if ("NOOP",) in self.accepted:
            return "duplicate of an earlier action"
        self.accepted.add(("NOOP",))
        if mixed:
            return "NOOP must be the only action"
        self.noop += 1
        return ""

    def _add(self, place: int, action: dict[str, Any]) -> str:
        owner, source, layer, content = action["owner"], action["source"], action["layer"], action["content"]
        problem = coordinate_error(owner, source, layer, self.roster)
        if problem:
            return problem
        key = action_key(action)
        if key in self.accepted:
            return "duplicate of an earlier action"
        self.accepted.add(key)
        self.accepted_actions.append(AcceptedAction(place, owner, source, layer, action["utype"], content))
        return ""

    def _update(self, place: int, action: dict[str, Any]) -> str:
        entry_id, content = action["entry_id"], action["content"]
        key = action_key(action)
        if key in self.accepted:
            return "duplicate of an earlier action"
        old = self.state.get(entry_id)
        if old is None or old.layer == VERBATIM_LAYER:
            return self._unresolved(place, action, key)
        if entry_id in self.updated:
            return "UPDATE of a record that this output already updated"
        if old.superseded_by:
            return "UPDATE of a superseded record"
        if key[2] == normalised_content(old.content):
            return "UPDATE leaves the content unchanged"
        self.accepted.add(key)
        self.updated.add(entry_id)
        self.accepted_actions.append(AcceptedAction(place, old.owner, old.source, old.layer, old.utype, content, old))
        return ""

    def _unresolved(self, place: int, action: dict[str, Any], key: tuple[str, ...]) -> str:
        problem = "UPDATE cites no known entry_id"
        owner, source, layer = action.get("owner"), action.get("source"), action.get("layer")
        if not (_is_text(owner) and _is_text(source) and _is_text(layer)):
            return problem
        if coordinate_error(owner, source, layer, self.roster):
            return problem
        add_key = action_key({**action, "action": "ADD"})
        if add_key in self.accepted:
            return f"{problem} and repeats an earlier action"
        self.accepted.update((key, add_key))
        utype = action.get("utype")
        utype = utype if utype in DERIVED_UTYPES else "fact"
        self.accepted_actions.append(AcceptedAction(place, owner, source, layer, utype, action["content"]))
        return f"{problem}; applied as ADD"
