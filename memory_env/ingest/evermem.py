"""EverMemBench-Dynamic: `dialogues` and `qars` as JSON, JSONL or parquet.

A dialogue row is {topic_id, date, dialogues{group: [{speaker, time, dialogue, message_index}]}}; the repository's
dataset/TOPIC/dialogue.json holds the same as {dialogues{date: {group: [...]}}}. A question is {topic_id, id, Q, A, options}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.rows import find_table, read_rows
from memory_env.ingest.sources import ForeignFields, read_chat_json
from memory_env.ingest.times import TimeError, instant, parse_time
from memory_env.network import Network


def recognises(names: list[str]) -> bool:
    """Whether a folder's file names are those of EverMemBench."""
    stems = {Path(name).stem.split("-")[0] for name in names}
    return {"dialogues", "qars"} <= stems or "dialogue" in stems


def read(path: str | Path) -> list[Network]:
    """One network per topic, sessions per date and group. DataError with file and place."""
    folder = Path(path)
    days = _days(folder)
    if not days:
        raise DataError(f"{path}: holds no dialogues (dialogues.jsonl, dialogues.parquet or TOPIC/dialogue.json)")
    questions: dict[str, list[ForeignFields]] = {}
    table = find_table(folder, "qars")
    for row in read_rows(table) if table else ():
        questions.setdefault(row.text("topic_id"), []).append(row)
    return [_network(topic, rows, questions.get(topic, [])) for topic, rows in sorted(days.items())]


def _days(folder: Path) -> dict[str, list[tuple[str, ForeignFields]]]:
    """(date, groups) by topic."""
    days: dict[str, list[tuple[str, ForeignFields]]] = {}
    table = find_table(folder, "dialogues")
    if table:
        for row in read_rows(table):
            groups = ForeignFields.of(row.get("dialogues", dict), row.where, row.at("dialogues"))
            days.setdefault(row.text("topic_id"), []).append((str(row.value.get("date", ""))[:10], groups))
        return days
    for file in sorted(folder.rglob("dialogue.json")):
        document = ForeignFields.of(read_chat_json(file), str(file))
        by_date = ForeignFields.of(document.get("dialogues", dict, document.value), str(file), "dialogues")
        for date in sorted(by_date.value):
            groups = ForeignFields.of(by_date.get(date, dict), str(file), f"dialogues.{date}")
            days.setdefault(file.parent.name, []).append((date, groups))
    return days


def _network(topic: str, days: list[tuple[str, ForeignFields]], questions: list[ForeignFields]) -> Network:
    network_id = f"evermem_{topic}"
    sessions: list[dict[str, Any]] = []
    for date, groups in sorted(days, key=lambda day: day[0]):
        for group in sorted(groups.value, key=lambda name: _first_time(groups, name)):
            # A table of rows has every group as a column; days on which one was silent are null.
            if not groups.value[group]:
                continue
            session_id = f"{network_id}_s{len(sessions) + 1:04d}"
            turns = [_turn(row, session_id, index, group) for index, row in enumerate(groups.objects(group))]
            sessions.append(
                {
                    "session_id": session_id,
                    "session_index": len(sessions) + 1,
                    "topic": group,
                    "ts": date,
                    "turns": turns,
                }
            )
    speakers = dict.fromkeys(turn["speaker"] for session in sessions for turn in session["turns"])
    document = {
        "schema": "evermembench-dynamic/1",
        "scenario": f"[evermembench:{topic}]",
        "speakers": list(speakers),
        "sessions": sessions,
        "qa_pairs": [_question(row) for row in questions],
        "meta": {"network_id": network_id, "source": "EverMemBench-Dynamic"},
    }
    return Network.from_dict(document, where=network_id, default_id=network_id)


def _first_time(groups: ForeignFields, name: str) -> tuple[float, str]:
    rows = groups.value[name] or [{}]
    first = rows[0].get("time", "") if isinstance(rows, list) and isinstance(rows[0], dict) else ""
    return instant(str(first)) or 0.0, name


def _turn(row: ForeignFields, session_id: str, index: int, group: str) -> dict[str, Any]:
    try:
        ts = parse_time(row.text("time"))
    except TimeError as error:
        raise row.error("time", f"can't be read ({error})") from None
    return {
        "turn": f"{session_id}_t{index:03d}",
        "speaker": row.text("speaker"),
        "content": row.text("dialogue"),
        "ts": ts,
        "channel": group,
        "message_index": row.value.get("message_index", index),
    }


def _question(row: ForeignFields) -> dict[str, Any]:
    options = row.value.get("options") or []
    if isinstance(options, list) and options:
        options = {chr(ord("A") + place): str(text) for place, text in enumerate(options)}
    options = {key: text for key, text in options.items() if text is not None} if isinstance(options, dict) else options
    answer = row.text("A")
    correct = answer.strip() if isinstance(options, dict) and answer.strip() in options else ""
    return {
        "id": row.text("id"),
        "category": row.text("id").rstrip("0123456789").rstrip("_") or "question",
        "question": row.text("Q"),
        "answer": options[correct] if correct else answer,
        "answer_format": "multiple_choice" if options else "open",
        "options": options,
        "correct_option": correct,
    }
