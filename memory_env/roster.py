"""Canonical member names: no member is called GROUP or ALL, like another member, or so that a line can be forged."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from memory_env.text import break_control_tokens, one_line

RESERVED = frozenset({"group", "all"})

Member = tuple[str, str]
"""A member as a file names it: (display name, speaker id or "")."""

# Rendered lines read "name @ time: text" and "owner | source | layer": names may not contain these separators.
_SEPARATOR = re.compile(r"\s+([@|\uff5c])\s+|([:\uff1a])\s+")
_JOINERS = re.compile("[\u200c\u200d]")


def _clean(name: str) -> str:
    visible = "".join(_shown(char) for char in name)
    joined = _SEPARATOR.sub(lambda match: match.group(1) or match.group(2), " ".join(visible.split()))
    return break_control_tokens(one_line(joined)).strip(" :@|") or "unnamed"


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf" and not _JOINERS.match(char):  # joiners shape words and emoji, other format characters hide
        return ""
    return " " if category in ("Cc", "Zl", "Zp") else char


def _identity(name: str) -> str:
    return " ".join(_JOINERS.sub("", unicodedata.normalize("NFKC", name)).split())


def _is_reserved(name: str) -> bool:
    return _identity(name).casefold() in RESERVED


def canonical_names(members: Iterable[Member]) -> dict[Member, str]:
    """Distinct names for `members`, in their order; the first bearer of an ordinary name keeps it.

    Example:
        canonical_names([("Alice", "p1"), ("Alice", "p2"), ("group", "p3")])
        == {("Alice", "p1"): "Alice", ("Alice", "p2"): "Alice (2)", ("group", "p3"): "group (member)"}
    """
    members = list(dict.fromkeys(members))
    names: dict[Member, str] = {}
    taken: set[str] = set()
    # Untouched names first: a member really called "Alice (2)" must not lose it to a second Alice.
    for member in members:
        name = member[0]
        if _clean(name) == name and not _is_reserved(name) and _identity(name) not in taken:
            names[member] = name
            taken.add(_identity(name))
    for member in members:
        if member in names:
            continue
        base = _clean(member[0])
        candidate = base = f"{base} (member)" if _is_reserved(base) else base
        number = 2
        while _identity(candidate) in taken:
            candidate = f"{base} ({number})"
            number += 1
        names[member] = candidate
        taken.add(_identity(candidate))
    return {member: names[member] for member in members}
