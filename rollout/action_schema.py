"""The JSON schema of a Writer output, for engines that can constrain decoding to one.

Off by default, because it biases training: the sampler then draws from the policy renormalised over the tokens that the grammar
allows, while the trainer's ratio and KL use the unconstrained policy. Invalid JSON never occurs, so the JSON and schema
parts of R_valid (Eq. 19) and the JSON penalty (Eq. 21) teach nothing, and a Writer used without the constraint later was
never trained to do without it. It suits evaluation, and Writers that are always served with it.
"""

from __future__ import annotations

from typing import Any

from memory_env.records import DERIVED_LAYERS, DERIVED_UTYPES

_TEXT = {"type": "string", "minLength": 1}


def _action(kind: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"action": {"const": kind}, **properties},
        "required": ["action", *properties],
        "additionalProperties": False,
    }


def action_schema() -> dict[str, Any]:
    """The schema of ``{"actions": [ADD | UPDATE | NOOP, ...]}`` with at least one action.

    It knows shapes and enumerations, not the roster, the ids or the budget: those stay the environment's to judge.
    """
    add = _action(
        "ADD",
        owner=_TEXT,
        source=_TEXT,
        layer={"enum": list(DERIVED_LAYERS)},
        utype={"enum": list(DERIVED_UTYPES)},
        content=_TEXT,
    )
    # Grammars fix the order of keys, and Writers are taught either one.
    updates = [_action("UPDATE", entry_id=_TEXT, content=_TEXT), _action("UPDATE", content=_TEXT, entry_id=_TEXT)]
    return {
        "type": "object",
        "properties": {"actions": {"type": "array", "minItems": 1, "items": {"anyOf": [add, *updates, _action("NOOP")]}}},
        "required": ["actions"],
        "additionalProperties": False,
    }
