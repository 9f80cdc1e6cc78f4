"""How large a generated conversation is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Bounds of one conversation; pairs are (lowest, highest), both included.

    Example: `FULL` has 3-5 members and 4-6 segments of 4-7 messages, of which 1-4 are worth a record.
    `update_rate` is the chance that a record-worthy message changes a fact instead of stating a new one, `noop_rate` that a
    segment (never the first) holds chit-chat only, `trap_rate` that a filler message is a trap, `late_rate` and `leave_rate`
    that a member joins late or leaves. `questions` = 0 asks as many as there are, at most 10; `categories` is the least
    number of question categories.
    """

    name: str
    members: tuple[int, int]
    segments: tuple[int, int]
    messages: tuple[int, int]
    memorable: tuple[int, int]
    update_rate: float = 0.25
    noop_rate: float = 0.10
    trap_rate: float = 0.40
    late_rate: float = 0.0
    leave_rate: float = 0.0
    questions: int = 0
    categories: int = 0


STARTER = Shape("starter", (2, 3), (2, 2), (1, 2), (1, 2), update_rate=0.45, noop_rate=0.1, trap_rate=0.2)
SMALL = Shape("small", (3, 4), (3, 3), (2, 4), (1, 2), update_rate=0.35, trap_rate=0.3, late_rate=0.2, leave_rate=0.2)
FULL = Shape("full", (3, 5), (4, 6), (4, 7), (1, 4), late_rate=0.4, leave_rate=0.4)
LEVELS: tuple[Shape, ...] = (STARTER, SMALL, FULL)


def real(segments: int, questions: int, late: bool, leave: bool) -> Shape:
    """A conversation like the real ones of Table 13: a fixed number of segments, most messages about something."""
    return Shape(
        name="real",
        members=(4, 5),
        segments=(segments, segments),
        messages=(5, 7),
        memorable=(2, 4),
        update_rate=0.28,
        noop_rate=0.12,
        trap_rate=0.7,
        late_rate=float(late),
        leave_rate=float(leave),
        questions=questions,
        categories=8 if questions > 20 else 0,
    )


def update_heavy(segments: int, questions: int) -> Shape:
    """Like the hand-written UPDATE networks of Table 13: few facts that keep changing."""
    return Shape("update", (3, 3), (segments, segments), (4, 5), (1, 2), 0.85, 0.0, 0.3, questions=questions)


def noop(messages: int) -> Shape:
    """Like the hand-written NOOP networks of Table 13: one segment without anything to record."""
    return Shape("noop", (2, 2), (1, 1), (messages, messages), (0, 0), trap_rate=0.0, questions=1)
