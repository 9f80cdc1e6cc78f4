"""What a conversation consists of: messages, the sessions they were said in, the segments a Writer gets, and questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `speaker` is the canonical member name, `index` the place in the session, `ts` as in the file.

    Example:
        Message("Alice", "I moved to Leeds.", "2025-10-06T12:08:00", "n1_s01_t000", "n1_s01", 0)
    """

    speaker: str
    content: str
    ts: str
    turn_id: str
    session_id: str
    index: int
    speaker_id: str = ""
    reply_to: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)


@dataclass(frozen=True)
class Session:
    """Consecutive turns on one occasion."""

    session_id: str
    session_index: int
    topic: str
    ts: str
    turns: tuple[Message, ...]
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)


@dataclass(frozen=True)
class Question:
    """A question about the whole conversation. `options` maps letters to texts (multiple choice), else it is empty."""

    id: str
    category: str
    question: str
    answer: str
    difficulty: str = ""
    answer_format: str = ""
    options: Mapping[str, str] | list[str] = field(default_factory=list, hash=False)
    correct_option: str = ""
    evidence_anchors: tuple[Mapping[str, Any], ...] = field(default=(), hash=False, repr=False)
    temporal_anchors: tuple[Mapping[str, Any], ...] = field(default=(), hash=False, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)


@dataclass(frozen=True)
class Segment:
    """X_t, the messages of one writing position."""

    position: int
    session_id: str
    ts: str
    messages: tuple[Message, ...]

    def __hash__(self) -> int:  # cheap: segments are cache keys on the hot path, equality stays exact
        return hash((self.position, self.session_id, self.ts, len(self.messages)))
