"""Reading entries, edges and states, whichever form they come in: dicts or the records of memory_env."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memory_env.records import VERBATIM_LAYER


def value(item: Any, name: str) -> Any:
    """`item[name]` of a dict, `item.name` of anything else; None where it is missing."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def field(item: Any, name: str) -> str:
    """A text field of an entry, an edge or an action; "" where it is missing or None, other values as their `repr`."""
    found = item.get(name) if isinstance(item, dict) else getattr(item, name, None)
    return found if isinstance(found, str) else _as_text(found)


def coordinates(item: Any) -> tuple[str, str, str]:
    """(owner, source, layer) of an entry or an action."""
    if isinstance(item, dict):
        found = item.get("owner"), item.get("source"), item.get("layer")
    else:
        found = getattr(item, "owner", None), getattr(item, "source", None), getattr(item, "layer", None)
    if type(found[0]) is type(found[1]) is type(found[2]) is str:
        return found
    return tuple(each if isinstance(each, str) else _as_text(each) for each in found)


def _as_text(found: Any) -> str:
    if found is None:
        return ""
    try:
        return repr(found)
    except (RecursionError, ValueError):  # nested or long beyond what Python prints
        return type(found).__name__


def derived_entries(state: Any) -> list[Any]:
    """The derived entries of a state, in creation order, or of a plain sequence of entries.

    A state is {"entries": [...]}, an object with `derived()` (memory_env.MemoryState), or one with `entries`.
    """
    if state is None:
        return []
    if isinstance(state, dict):
        entries: Iterable[Any] = state.get("entries") or ()
    elif hasattr(state, "derived"):
        entries = state.derived()
    else:
        entries = getattr(state, "entries", state)
    return [entry for entry in entries if field(entry, "layer") != VERBATIM_LAYER]


def update_edges(state: Any) -> list[tuple[str, str]]:
    """The UPDATE edges of a state as (old id, new id), in creation order."""
    if state is None:
        return []
    if isinstance(state, dict):
        edges: Iterable[Any] = state.get("update_edges") or ()
    elif hasattr(state, "edges"):
        edges = state.edges() if callable(state.edges) else state.edges
    else:
        edges = getattr(state, "update_edges", ())
    return [(field(edge, "old"), field(edge, "new")) for edge in edges]
