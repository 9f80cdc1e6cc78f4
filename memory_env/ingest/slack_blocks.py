"""The text inside Slack's blocks, which is where a message's words stand when its `text` is empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memory_env.ingest.text_stream import well_formed

_LINES = {"rich_text_list", "rich_text"}
_TEXTS = ("text", "fields", "title", "elements", "rows", "alt_text")
_MOST_DEPTH = 30


def block_text(blocks: Sequence[Any], name: Callable[[str], str]) -> str:
    """The words of a list of blocks, one line a block; `name` gives a user's name by id.

    Example:
        block_text([{"type": "section", "text": {"type": "plain_text", "text": "hi"}}], name) == "hi"
    """
    lines = (_words(block, name, 0) for block in blocks)
    return well_formed("\n".join(line for line in lines if line.strip()))


def _words(value: Any, name: Callable[[str], str], depth: int) -> str:
    if depth > _MOST_DEPTH:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_words(part, name, depth + 1) for part in value)
    if not isinstance(value, dict):
        return ""
    kind = value.get("type")
    if kind == "user":
        return f"@{name(str(value.get('user_id', '')))}"
    if kind == "channel":
        return f"#{value.get('name') or value.get('channel_id', '')}"
    if kind == "broadcast":
        return f"@{value.get('range', '')}"
    if kind == "emoji":
        return f":{value.get('name', '')}:"
    if kind == "link":
        label, url = str(value.get("text") or ""), str(value.get("url") or "")
        return f"{label} ({url})" if label and label != url else url
    if kind == "date":
        return str(value.get("fallback") or "")
    if kind in ("actions", "divider", "button", "input"):
        return ""
    joint = "\n" if kind in _LINES else "" if str(kind).startswith("rich_text") else " "
    inner = [value.get(key) for key in _TEXTS]
    parts = [_words(part, name, depth + 1) for each in inner for part in (each if isinstance(each, list) else [each])]
    return joint.join(part for part in parts if part)
