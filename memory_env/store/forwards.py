"""Words that a reader marked as a member's own: `[forwarded from NAME] ...` (memory_env.ingest). They go with the member, even
where the memory never held the message that was forwarded."""

from __future__ import annotations

import re
from collections.abc import Callable

from memory_env.store.quotations import CUT

_FORWARDED = re.compile(
    r"(?P<label>\s*\[?\s*(?:forwarded|fwd)(?:\s+message)?\s+from\s+(?P<name>[^\]:\n]+?)\s*[\]:]\s*)(?=\S)", re.IGNORECASE
)


def without_forwarded(text: str, is_forgotten: Callable[[str], bool]) -> str:
    """`text` without the words of a forgotten member that it forwards; who forwarded them, and whose they were, stays.

    Example:
        without_forwarded("[forwarded from Ann] I am ill", {"Ann"}.__contains__) == "[forwarded from Ann] [forgotten]"
    """
    match = _FORWARDED.match(text)
    return f"{match['label']}{CUT}" if match and is_forgotten(match["name"]) else text
