"""How well-formed the Writer's output is, apart from what it says (Eq. 19)."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from memory_env.text import normalised_content
from rewards.entries import derived_entries, field, placed_content, placed_contents, value
from rewards.weights import PAPER, RewardWeights


@dataclass(frozen=True, slots=True)
class Validity:
    """R_valid and its four parts, each in [0, 1].

    Example: Validity(json=1.0, schema=0.5, dup=1.0, stop=0.0, valid=0.675) is two attempts, of which one was
    schema-valid and the last was not novel.
    """

    json: float
    schema: float
    dup: float
    stop: float
    valid: float


NOTHING_ATTEMPTED = Validity(0.0, 0.0, 0.0, 0.0, 0.0)


def validity(actions: Any, report: Any, pre_state: Any, weights: RewardWeights = PAPER) -> Validity:
    """Eq. 19 of one output.

    actions: the parsed list verbatim (entries that are no objects included); anything but a list counts as empty.
    report: dict or Report. Attempted is its count, else the list's length; nothing attempted: all five are 0.
    A missing `schema_valid_actions` is attempted minus the errors, and 0 for invalid JSON.
    pre_state: the state before the output, superseded records included.
    """
    actions = list(actions) if isinstance(actions, (list, tuple)) else []
    attempted = _count(value(report, "attempted"))
    if attempted is None:
        attempted = len(actions)
    if attempted <= 0:
        return NOTHING_ATTEMPTED
    json_part = float(is_json_valid(report))
    schema_valid = _count(value(report, "schema_valid_actions"))
    if schema_valid is None:
        schema_valid = attempted - error_count(report) if json_part else 0
    schema = _clip(schema_valid / attempted)
    dup = _clip(len(set(map(attempt_key, actions))) / attempted)
    stop = float(stops_after_novel(actions, pre_state))
    valid = weights.json * json_part + weights.schema * schema + weights.dup * dup + weights.stop * stop
    return Validity(json_part, schema, dup, stop, valid)


def is_json_valid(report: Any) -> bool:
    """Whether the report says that the output parsed to an action list; a report that does not say so says no."""
    return bool(value(report, "json_valid"))


def error_count(report: Any) -> int:
    """How many errors the report lists; 0 if it has no list."""
    errors = value(report, "errors")
    return len(errors) if isinstance(errors, (list, tuple)) else 0


def attempt_key(action: Any) -> Hashable:
    """What makes two actions of one output the same.

    ADD: action, owner, source, layer, normalised content. UPDATE: action, entry id, normalised content. NOOP: its type.
    Anything else (no object, unknown action): itself.
    """
    kind = field(action, "action") if isinstance(action, dict) else ""
    if kind == "ADD":
        owner, source, layer, content = placed_content(action)
        return kind, owner, source, layer, normalised_content(content)
    if kind == "UPDATE":
        return kind, field(action, "entry_id"), normalised_content(field(action, "content"))
    if kind == "NOOP":
        return kind
    try:
        return "other", json.dumps(action, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return "other", id(action)


def stops_after_novel(actions: Sequence[Any], pre_state: Any) -> bool:
    """Whether the output ends right after its last novel action, that is: whether its last action is novel.

    A NOOP is novel if it is the only action. An ADD is novel if its key is neither earlier in the output nor that of a
    record of the pre-state. An UPDATE is novel if it cites an active record of the pre-state and its normalised content
    differs from that record's; earlier actions of the output do not matter to it.
    """
    if not actions or not isinstance(actions[-1], dict):
        return False
    last = actions[-1]
    kind = field(last, "action")
    if kind == "NOOP":
        return len(actions) == 1
    if kind == "ADD":
        key = attempt_key(last)
        return all(attempt_key(earlier) != key for earlier in actions[:-1]) and not _recorded(last, pre_state)
    if kind == "UPDATE":
        cited = next((e for e in derived_entries(pre_state) if field(e, "entry_id") == field(last, "entry_id")), None)
        if cited is None or field(cited, "superseded_by"):
            return False
        return normalised_content(field(cited, "content")) != normalised_content(field(last, "content"))
    return False


def _recorded(action: dict, pre_state: Any) -> bool:
    owner, source, layer, content = placed_content(action)
    wanted = normalised_content(content)
    return any(
        entry[0] == owner and entry[1] == source and entry[2] == layer and normalised_content(entry[3]) == wanted
        for entry in placed_contents(pre_state)
    )


def _count(number: Any) -> float | None:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        return None
    return number


def _clip(fraction: float) -> float:
    return min(1.0, max(0.0, fraction))
