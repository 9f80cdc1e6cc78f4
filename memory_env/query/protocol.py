"""What retrieval hands to an answerer, and what an answerer and a judge hand back.

Both are frozen during training: the same evidence and the same judge for every Writer (Eq. 2, 22).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from memory_env.conversation import Question

__all__ = [
    "Answer",
    "Answerer",
    "Evidence",
    "EvidenceItem",
    "EvidenceRow",
    "Judge",
    "JudgeError",
    "Projection",
    "Question",
    "StageError",
    "Verdict",
    "WriteError",
    "blind",
]


class StageError(Exception):
    """A model could not do one thing that it was asked for. `stage` says what, `question_id` for which question or segment (it
    may be empty). `refused`: it is this request that was refused or answered unusably, not the endpoint that is out.
    """

    def __init__(self, reason: str, *, stage: str = "judge", question_id: str = "", refused: bool = False):
        super().__init__(reason)
        self.reason, self.stage, self.question_id, self.refused = reason, stage, question_id, refused

    def __str__(self) -> str:
        place = f" of {self.question_id}" if self.question_id else ""
        return f"{self.stage}{place} failed: {self.reason}"


class JudgeError(StageError):
    """A question could not be answered or judged. Never a score of 0: the caller leaves the question out and counts it.

    `stage` is "project", "select", "sufficiency", "answer" or "judge".
    """


class WriteError(StageError):
    """A segment could not be written by a Writer behind an endpoint; `stage` is "write", `question_id` names the segment."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Project(q, roster) of Eq. 4: which rows to read, for which issue, at which time, under which source-owner constraint.

    Example: "What does Alice think of Bob?" -> Projection("What does think of ?", rows=("Bob",), mode="head", source="Alice",
    owner="Bob", names=("Alice", "Bob")). `issue` is the question without member names and time cues. `rows` holds member names or
    "GROUP", never "ALL" (it is expanded over the roster). `scope`: "names", "ALL" (every member has to be answered for), "GROUP",
    or "ANY" (the question names nobody: whichever row fits). `names` are the members the question names.
    """

    issue: str
    rows: tuple[str, ...]
    mode: str = "head"
    source: str = ""
    owner: str = ""
    scope: str = "names"
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One record as evidence: who it concerns, who said it, when, from where, and the verbatim messages behind it.

    Example: EvidenceItem("prefers tea", owner="Bob", source="Alice", layer="per_speaker_profile", utype="stance", session="s2",
    turn=0, ts="2025-01-02", entry_id="d1", messages=("m7",)). `messages` are entry ids of System 1 records; a message cites
    itself. `current` is False for a record that a later UPDATE superseded. `score` is the retrieval score, for tracing only.
    """

    content: str
    owner: str
    source: str
    layer: str
    utype: str = ""
    session: str = ""
    turn: int = 0
    ts: str = ""
    entry_id: str = ""
    messages: tuple[str, ...] = ()
    current: bool = True
    score: float = field(default=0.0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """System 2's row of one member or of GROUP (Eq. 6).

    `chains`: what is recorded about the owner, best first; each chain oldest first, of length one in head mode.
    `said`: the source supplement, what the owner said about others. `fallback`: the owner's best verbatim message, only when
    `chains` is empty. A row with none of the three is an explicit empty row: nothing is known.
    """

    owner: str
    chains: tuple[tuple[EvidenceItem, ...], ...] = ()
    said: tuple[EvidenceItem, ...] = ()
    fallback: EvidenceItem | None = None

    @property
    def empty(self) -> bool:
        return not self.chains and not self.said and self.fallback is None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that an answerer may read: the roster, the projection, System 1 messages and System 2 rows.

    Two evidences with equal `key` get the same answer, so it is asked once.
    """

    roster: tuple[str, ...]
    projection: Projection
    messages: tuple[EvidenceItem, ...] = ()
    rows: tuple[EvidenceRow, ...] = ()

    def verbatim_only(self) -> Evidence:
        """The same System 1 evidence without System 2: the subtrahend of Eq. 8."""
        return replace(self, rows=())

    @property
    def key(self) -> str:
        """Hexadecimal SHA-256 of everything an answerer can see (scores are not part of it)."""
        return hashlib.sha256(repr((self.roster, self.projection, self.messages, self.rows)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `option` is the chosen letter of a multiple-choice question, else "".

    Example: Answer("Alice: prefers tea\\nBob: nothing recorded").
    """

    text: str
    option: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgment. `correct` is the binary one (Eq. 10, 22), `score` is s_q in [0, 1] (Eq. 12), `reason` one line for people."""

    correct: bool
    score: float
    reason: str = ""


@runtime_checkable
class Answerer(Protocol):
    """Answers from evidence alone. Thread-safe. `fingerprint` names everything that determines its answers (frozen hashes)."""

    @property
    def fingerprint(self) -> Mapping[str, str]: ...

    def answer(self, question: Question, evidence: Evidence) -> Answer:
        """Raises JudgeError when no answer could be had. Implementations see `blind(question)` only."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Judges an answer against the question's gold answer. Thread-safe."""

    @property
    def fingerprint(self) -> Mapping[str, str]: ...

    def judge(self, question: Question, answer: Answer) -> Verdict:
        """Raises JudgeError when no verdict could be had."""
        ...


def blind(question: Question) -> Question:
    """The question as an answerer may see it: no gold answer, no correct option, no anchors, no rubric, no category."""
    return replace(
        question, category="", difficulty="", answer="", correct_option="", evidence_anchors=(), temporal_anchors=(), extra={}
    )
