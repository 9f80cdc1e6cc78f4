"""Reading entries, edges and states, whichever form they come in: dicts or the records of memory_env."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, itemgetter
from typing import Any

from memory_env.records import VERBATIM_LAYER


def value(item: Any, name: str) -> Any:
    """`item[name]` of a dict, `item.name` of anything else; None where it is missing."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def field(item: Any, name: str) -> str:
    """A text field of an entry, an edge or an action; "" where it is missing or None, other values as their `repr`."""
    found = item.get(name) if isinstance(item, dict) else getattr(item, name, None)
    return found if isinstance(found, str) else _as_text(found)


_ITEMS = itemgetter("owner", "source", "layer", "content")
_ATTRIBUTES = attrgetter("owner", "source", "layer", "content")


def placed_content(item: Any) -> tuple[str, str, str, str]:
    """(owner, source, layer, content) of an entry or an action, each as `field` gives it."""
    try:
        found = _ITEMS(item) if type(item) is dict else _ATTRIBUTES(item)
        if type(found[0]) is type(found[1]) is type(found[2]) is type(found[3]) is str:
            return found
    except (KeyError, AttributeError):
        pass
    return field(item, "owner"), field(item, "source"), field(item, "layer"), field(item, "content")


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
    return [
        entry
        for entry in _entries(state)
        if (entry.get("layer") if type(entry) is dict else getattr(entry, "layer", None)) != VERBATIM_LAYER
    ]


def placed_contents(state: Any) -> list[tuple[str, str, str, str]]:
    """`placed_content` of each of `derived_entries(state)`."""
    return [placed for placed in map(placed_content, _entries(state)) if placed[2] != VERBATIM_LAYER]


def _entries(state: Any) -> Iterable[Any]:
    if state is None:
        return ()
    if isinstance(state, dict):
        return state.get("entries") or ()
    return state.derived() if hasattr(state, "derived") else getattr(state, "entries", state)


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
