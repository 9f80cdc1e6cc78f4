"""LongMemEval: one question over the sessions of a user and an assistant, in the files longmemeval_{s,m,oracle}*.json.

A list of {question_id, question_type, question, answer, question_date, haystack_dates[], haystack_session_ids[],
haystack_sessions[[{role, content, has_answer}]], answer_session_ids[]}. Ids that end in `_abs` ask for what was never said.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.sources import ForeignFields, read_chat_json
from memory_env.ingest.times import TimeError, parse_time
from memory_env.network import Network

_WEEKDAY = re.compile(r"\s*\([A-Za-z]+\)")


def recognises(document: Any) -> bool:
    """Whether a JSON document is LongMemEval's."""
    return isinstance(document, list) and bool(document) and isinstance(document[0], dict) and "haystack_sessions" in document[0]


def read(path: str | Path) -> list[Network]:
    """Read a file, a network per question. DataError with file and place."""
    document = read_chat_json(path)
    if not recognises(document):
        raise DataError(f"{path}: is no list of questions with haystack_sessions")
    return [_network(ForeignFields.of(row, str(path), f"[{index}]")) for index, row in enumerate(document)]


def _network(row: ForeignFields) -> Network:
    name = row.text("question_id")
    network_id = f"longmemeval_{name}"
    dates, ids = row.get("haystack_dates", list, []), row.get("haystack_session_ids", list, [])
    sessions = []
    for index, turns in enumerate(row.get("haystack_sessions", list)):
        if not isinstance(turns, list):
            raise row.error(f"haystack_sessions[{index}]", "must be a list of turns")
        ts = _time(row, str(dates[index])) if index < len(dates) else ""
        session_id = str(ids[index]) if index < len(ids) else f"{network_id}_s{index + 1:03d}"
        sessions.append((ts, index, session_id, turns))
    # The oracle file does not sort them.
    sessions.sort(key=lambda each: each[:2])
    placed, anchors = [], []
    for number, (ts, index, session_id, turns) in enumerate(sessions, 1):
        told = [
            ForeignFields.of(turn, row.where, f"{row.at('haystack_sessions')}[{index}][{place}]")
            for place, turn in enumerate(turns)
        ]
        placed.append(
            {
                "session_id": f"{network_id}_s{number:03d}",
                "session_index": number,
                "topic": session_id,
                "ts": ts,
                "turns": [
                    {
                        "turn": f"{network_id}_s{number:03d}_t{place:03d}",
                        "speaker": turn.text("role"),
                        "content": turn.text("content", ""),
                        "ts": ts,
                    }
                    for place, turn in enumerate(told)
                ],
            }
        )
        anchors += [
            {"turn": f"{network_id}_s{number:03d}_t{place:03d}"}
            for place, turn in enumerate(told)
            if turn.value.get("has_answer")
        ]
    question = {
        "id": name,
        "category": "abstention" if name.endswith("_abs") else row.text("question_type", ""),
        "question": row.text("question"),
        "answer": row.text("answer", ""),
        "evidence_anchors": anchors,
        "question_date": row.text("question_date", ""),
    }
    document = {
        "schema": "longmemeval/1",
        "scenario": f"[longmemeval:{name}] a user and an assistant",
        "speakers": ["user", "assistant"],
        "sessions": placed,
        "qa_pairs": [question],
        "meta": {"network_id": network_id, "source": "LongMemEval"},
    }
    return Network.from_dict(document, where=row.where, default_id=network_id)


def _time(row: ForeignFields, text: str) -> str:
    """ "2023/05/20 (Sat) 02:21" as ISO 8601."""
    try:
        return parse_time(_WEEKDAY.sub("", text).replace("/", "-"))
    except TimeError as error:
        raise row.error("haystack_dates", f"can't be read ({error})") from None
