"""The rules of a step once more, written as plainly as they read (paper B.2): lists, dicts and full scans.

Records are dicts without ids; a citation is an index into the list of records. Slow, and independent of memory_env.
"""

from __future__ import annotations

import unicodedata
from typing import Any

PERSON = ("per_speaker_core", "per_speaker_profile")
GROUPS = ("group_interaction", "group_insight")
UTYPES = ("fact", "stance", "observation", "decision", "relation")


def same(text: str) -> str:
    """Character by character: what is neither a letter nor a digit nor "_" parts words."""
    text = unicodedata.normalize("NFKC", text).lower()
    if not any(char.isalnum() or char == "_" for char in text):
        return " ".join(text.split())
    return " ".join("".join(char if char.isalnum() or char == "_" else " " for char in text).split())


def filled(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def well_formed(action: Any) -> bool:
    if not isinstance(action, dict):
        return False
    if action.get("action") == "NOOP":
        return True
    if action.get("action") == "UPDATE":
        return filled(action.get("entry_id")) and filled(action.get("content"))
    return (
        action.get("action") == "ADD"
        and all(filled(action.get(key)) for key in ("owner", "source", "content"))
        and action.get("layer") in PERSON + GROUPS
        and action.get("utype") in UTYPES
    )


def sound(action: dict, roster: set[str]) -> bool:
    owner, source, layer = action.get("owner"), action.get("source"), action.get("layer")
    if not all(isinstance(value, str) for value in (owner, source, layer)) or source not in roster:
        return False
    return (layer in GROUPS and owner == "GROUP") or (layer in PERSON and owner in roster)


def plain_step(records: list[dict], index_of_id: dict[str, int], roster: set[str], actions: list, n_messages: int):
    """(records after, applied, noop, number of errors, indices updated); `records` is left alone."""
    after = [dict(record) for record in records]
    budget = max(8, 2 * n_messages)
    seen: list[tuple] = []
    applied = noop = errors = 0
    updated: list[int] = []
    if not actions:
        return after, 0, 0, 1, []
    for action in actions[:budget]:
        if not well_formed(action):
            errors += 1
            continue
        kind, content = action["action"], action.get("content", "")
        if kind == "NOOP":
            others = [other for other in actions if not (isinstance(other, dict) and other.get("action") == "NOOP")]
            if ("NOOP",) in seen or others:
                errors += 1
            else:
                noop += 1
            seen.append(("NOOP",))
            continue
        add_key = ("ADD", action.get("owner"), action.get("source"), action.get("layer"), same(content))
        if kind == "ADD":
            if not sound(action, roster) or add_key in seen:
                errors += 1
                continue
            seen.append(add_key)
        else:
            update_key = ("UPDATE", action["entry_id"], same(content))
            old = index_of_id.get(action["entry_id"])
            if old is not None:
                if after[old]["newer"] is not None or same(records[old]["content"]) == same(content):
                    errors += 1
                    continue
                after[old]["newer"] = len(after)
                after.append({**records[old], "content": content, "older": old, "newer": None})
                updated.append(old)
                applied += 1
                seen.append(update_key)
                continue
            errors += 1
            if not sound(action, roster) or add_key in seen or update_key in seen:
                continue
            seen += [add_key, update_key]
        utype = action["utype"] if action.get("utype") in UTYPES else "fact"
        after.append(
            {key: action[key] for key in ("owner", "source", "layer", "content")}
            | {"utype": utype, "older": None, "newer": None}
        )
        applied += 1
    return after, applied, noop, errors, updated
