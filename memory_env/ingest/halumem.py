"""HaluMem: a user's sessions with an assistant, each with the questions asked after it, in HaluMem-{Medium,Long}.jsonl.

One user a line: {uuid, persona_info, sessions[{start_time, dialogue[{role, content, timestamp}], memory_points[],
questions[{question, answer, evidence, difficulty, question_type}]}]}. The reference memory points are kept as they are.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.sources import ForeignFields, read_jsonl
from memory_env.ingest.times import TimeError, parse_time
from memory_env.network import Network

_FORM = "%b %d, %Y, %H:%M:%S"


def recognises(rows: Any) -> bool:
    """Whether the first objects of a JSONL file are HaluMem's users."""
    return bool(rows) and isinstance(rows[0], dict) and {"uuid", "persona_info", "sessions"} <= rows[0].keys()


def read(path: str | Path) -> list[Network]:
    """Read a file, a network per user. DataError with file and line."""
    networks = [_network(ForeignFields.of(row, f"{path}: line {line}")) for line, row in read_jsonl(path)]
    if not networks:
        raise DataError(f"{path}: holds no user")
    return networks


def _network(user: ForeignFields) -> Network:
    network_id = f"halumem_{user.text('uuid')}"
    sessions, questions = [], []
    for number, session in enumerate(user.objects("sessions"), 1):
        session_id = f"{network_id}_s{number:03d}"
        began = _time(session, "start_time")
        turns = [
            {
                "turn": f"{session_id}_t{place:03d}",
                "speaker": turn.text("role"),
                "content": turn.text("content", ""),
                "ts": _time(turn, "timestamp") or began,
            }
            for place, turn in enumerate(session.objects("dialogue"))
        ]
        sessions.append(
            {
                "session_id": session_id,
                "session_index": number,
                "topic": "",
                "ts": began,
                "turns": turns,
                "memory_points": session.get("memory_points", list, []),
            }
        )
        questions += [
            {
                "id": f"s{number:03d}_q{index:03d}",
                "category": question.text("question_type", ""),
                "difficulty": question.text("difficulty", ""),
                "question": question.text("question"),
                "answer": question.text("answer", ""),
                "asked_after": session_id,
                "evidence": question.get("evidence", list, []),
            }
            for index, question in enumerate(session.objects("questions", []))
        ]
    document = {
        "schema": "halumem/1",
        "scenario": f"[halumem:{user.text('uuid')}] a user and an assistant",
        "speakers": ["user", "assistant"],
        "sessions": sessions,
        "qa_pairs": questions,
        "meta": {"network_id": network_id, "source": "HaluMem", "persona_info": user.text("persona_info", "")},
    }
    return Network.from_dict(document, where=user.where, default_id=network_id)


def _time(item: ForeignFields, key: str) -> str:
    """ "Dec 15, 2025, 06:11:23" (or ISO 8601) as ISO 8601; "" where there is none."""
    text = item.text(key, "")
    if not text:
        return ""
    try:
        return datetime.strptime(text, _FORM).isoformat()
    except ValueError:
        pass
    try:
        return parse_time(text)
    except TimeError as error:
        raise item.error(key, f"can't be read ({error})") from None
