"""Networks: one multi-party conversation with its questions, in the native file format."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_env.conversation import Message, Question, Segment, Session
from memory_env.datafile import DataError, Fields
from memory_env.roster import canonical_names

_NETWORK_KEYS = ("scenario", "speakers", "sessions", "qa_pairs", "meta")
_SESSION_KEYS = ("session_id", "session_index", "topic", "ts", "turns")
_TURN_KEYS = ("turn", "speaker", "speaker_id", "content", "ts", "reply_to")
_QUESTION_KEYS = (
    "id", "category", "difficulty", "question", "answer", "answer_format", "options", "correct_option",
    "evidence_anchors", "temporal_anchors",
)  # fmt: skip


@dataclass(frozen=True)
class Network:
    """One conversation. `speakers` and every `Message.speaker` are canonical names (see `memory_env.roster`).

    `original_names` maps a canonical name to the name in the file where the two differ; `file_speakers` is the file's list.
    """

    network_id: str
    scenario: str
    speakers: tuple[str, ...]
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    original_names: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    file_speakers: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All turns, in order."""
        return tuple(message for session in self.sessions for message in session.turns)

    def segments(self, window: int | None = None) -> tuple[Segment, ...]:
        """Writing positions: one per session, or windows of at most `window` messages within each session.

        A session's segment is dated by the session, a window by its first message.
        """
        if window is None:
            return tuple(
                Segment(position, session.session_id, session.ts or _first_ts(session.turns), session.turns)
                for position, session in enumerate(self.sessions)
            )
        if window < 1:
            raise ValueError(f"window must be at least 1 message, got {window}")
        windows = (
            (session, session.turns[start : start + window])
            for session in self.sessions
            for start in range(0, len(session.turns), window)
        )
        return tuple(
            Segment(position, session.session_id, _first_ts(turns) or session.ts, turns)
            for position, (session, turns) in enumerate(windows)
        )

    def content_digest(self) -> str:
        """SHA-256 over the messages alone (speaker names and texts, in order): equal for a copy under another id."""
        digest = hashlib.sha256()
        for message in self.messages:
            name = self.original_names.get(message.speaker, message.speaker)
            digest.update(json.dumps([name, message.content]).encode())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The native file format, original names and unknown keys included; keys a file left out have their default."""

        def original(name: str) -> str:
            return self.original_names.get(name, name)

        document = {
            **self.extra,
            "scenario": self.scenario,
            "speakers": self._speakers_of_file([original(name) for name in self.speakers]),
            "sessions": [
                {
                    "session_id": session.session_id,
                    "session_index": session.session_index,
                    "topic": session.topic,
                    "ts": session.ts,
                    "turns": [
                        {
                            "turn": turn.turn_id,
                            "speaker": original(turn.speaker),
                            "speaker_id": turn.speaker_id,
                            "content": turn.content,
                            "ts": turn.ts,
                            "reply_to": original(turn.reply_to),
                            **turn.extra,
                        }
                        for turn in session.turns
                    ],
                    **session.extra,
                }
                for session in self.sessions
            ],
            "qa_pairs": [
                {
                    **{key: getattr(question, key) for key in _QUESTION_KEYS},
                    "evidence_anchors": list(question.evidence_anchors),
                    "temporal_anchors": list(question.temporal_anchors),
                    **question.extra,
                }
                for question in self.questions
            ],
            "meta": {**self.meta, "network_id": self.network_id},
        }
        return copy.deepcopy(document)

    def _speakers_of_file(self, names: list[str]) -> list[str]:
        # Two members of one name may be one entry of the file's list or two; only the file knows.
        return list(self.file_speakers if set(self.file_speakers) == set(names) else names)

    @classmethod
    def from_dict(cls, document: object, where: str = "network", default_id: str = "") -> Network:
        """Inverse of `to_dict`. `where` names the document in errors. Raises DataError."""
        fields = Fields.of(document, where)
        meta = fields.get("meta", dict, {})
        network_id = Fields(meta, where, "meta").text("network_id", "") or fields.text("network_id", "") or default_id
        if not network_id:
            raise fields.error("meta.network_id", "is missing; give the network a name of its own")
        members = _members(fields)
        names = canonical_names(members)
        sessions = _sessions(fields, names)
        if not sessions:
            raise fields.error("sessions", "is empty; a network needs at least one session")
        questions = tuple(parse_question(item) for item in fields.objects("qa_pairs", []))
        _refuse_duplicates(fields, "qa_pairs", "question id", [question.id for question in questions])
        return cls(
            network_id=network_id,
            scenario=fields.text("scenario", ""),
            speakers=tuple(dict.fromkeys(names.values())),
            sessions=sessions,
            questions=questions,
            meta=copy.deepcopy({**meta, "network_id": network_id}),
            extra=copy.deepcopy(fields.rest(_NETWORK_KEYS)),
            original_names={name: member[0] for member, name in names.items() if member[0] != name},
            file_speakers=tuple(fields.get("speakers", list)),
        )


def _first_ts(turns: Iterable[Message]) -> str:
    return next((turn.ts for turn in turns if turn.ts), "")


def _refuse_duplicates(fields: Fields, key: str, noun: str, ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for index, identity in enumerate(ids):
        if identity in seen:
            raise fields.error(f"{key}[{index}]", f"repeats the {noun} {identity!r}; ids must be unique")
        seen.add(identity)


def _members(fields: Fields) -> list[tuple[str, str]]:
    """Members as (display name, speaker id), in the order of `speakers`, those of one name by first appearance."""
    speakers = fields.get("speakers", list)
    for index, name in enumerate(speakers):
        if not isinstance(name, str) or not name:
            raise fields.error(f"speakers[{index}]", "is not a name; it must be a non-empty string")
    ids: dict[str, dict[str, None]] = {name: {} for name in speakers}
    for session in fields.objects("sessions"):
        for turn in session.objects("turns"):
            name = turn.text("speaker")
            if name not in ids:
                raise turn.error("speaker", f"is {name!r}, who is not in speakers; add the name there")
            ids[name][turn.text("speaker_id", "")] = None
    return [(name, speaker_id) for name, own in ids.items() for speaker_id in _distinct_ids(own)]


def _distinct_ids(ids: Mapping[str, None]) -> list[str]:
    # A turn without an id belongs to the first member of that name.
    return [speaker_id for speaker_id in ids if speaker_id] or [""]


def _sessions(fields: Fields, names: Mapping[tuple[str, str], str]) -> tuple[Session, ...]:
    first: dict[str, str] = {}
    for (name, _), canonical in names.items():
        first.setdefault(name, canonical)
    turn_ids: set[str] = set()
    session_ids: set[str] = set()
    sessions = []
    for position, session in enumerate(fields.objects("sessions")):
        session_id = session.text("session_id")
        if session_id in session_ids:
            raise session.error("session_id", f"{session_id!r} is used twice; session ids must be unique")
        session_ids.add(session_id)
        turns = []
        for index, turn in enumerate(session.objects("turns")):
            turn_id = _turn_id(turn, "turn", session_id) or f"{session_id}_t{index:03d}"
            if turn_id in turn_ids:
                raise turn.error("turn", f"{turn_id!r} is used twice; turn ids must be unique")
            turn_ids.add(turn_id)
            speaker, speaker_id = turn.text("speaker"), turn.text("speaker_id", "")
            reply_to = _turn_id(turn, "reply_to", session_id)
            turns.append(
                Message(
                    speaker=names.get((speaker, speaker_id), first[speaker]),
                    content=turn.get("content", str),
                    ts=turn.text("ts", ""),
                    turn_id=turn_id,
                    session_id=session_id,
                    index=index,
                    speaker_id=speaker_id,
                    reply_to=first.get(reply_to, reply_to),
                    extra=copy.deepcopy({**turn.rest(_TURN_KEYS), **_numbers(turn)}),
                )
            )
        sessions.append(
            Session(
                session_id=session_id,
                session_index=session.get("session_index", int, position + 1),
                topic=session.text("topic", ""),
                ts=session.text("ts", ""),
                turns=tuple(turns),
                extra=copy.deepcopy(session.rest(_SESSION_KEYS)),
            )
        )
    return tuple(sessions)


def _numbers(turn: Fields) -> dict[str, int]:
    """The turn ids that the file gives as numbers, counted within the session."""
    return {key: number for key in ("turn", "reply_to") if type(number := turn.value.get(key)) is int}


def _turn_id(turn: Fields, key: str, session_id: str) -> str:
    number = _numbers(turn).get(key)
    return turn.text(key, "") if number is None else f"{session_id}_t{number:03d}"


def parse_question(fields: Fields) -> Question:
    """One `qa_pairs` entry. Raises DataError."""
    options = fields.value.get("options") or []
    if not isinstance(options, (dict, list)):
        raise fields.error("options", "must be an object of letters and texts, or an empty list")
    correct = fields.text("correct_option", "")
    if isinstance(options, dict) and correct and correct not in options:
        raise fields.error("correct_option", f"is {correct!r}, which is not among the options {sorted(options)}")
    return Question(
        id=fields.text("id"),
        category=fields.text("category", ""),
        question=fields.text("question"),
        answer=fields.text("answer"),
        difficulty=fields.text("difficulty", ""),
        answer_format=fields.text("answer_format", ""),
        options=copy.deepcopy(options),
        correct_option=correct,
        evidence_anchors=tuple(copy.deepcopy(fields.get("evidence_anchors", list, []))),
        temporal_anchors=tuple(copy.deepcopy(fields.get("temporal_anchors", list, []))),
        extra=copy.deepcopy(fields.rest(_QUESTION_KEYS)),
    )


def check_disjoint(train: Iterable[Network], heldout: Iterable[Network]) -> None:
    """Raises DataError if a network is on both sides, by id or by content (the same messages under another id)."""
    by_id: dict[str, Network] = {}
    by_content: dict[str, Network] = {}
    for network in train:
        by_id[network.network_id] = by_content[network.content_digest()] = network
    for network in heldout:
        if network.network_id in by_id:
            raise DataError(
                f"network {network.network_id!r} is in both the training and the held-out set; remove it from one"
            )
        twin = by_content.get(network.content_digest())
        if twin is not None:
            raise DataError(
                f"held-out network {network.network_id!r} has the same messages as training network "
                f"{twin.network_id!r}; remove one of them"
            )
