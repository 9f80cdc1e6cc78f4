"""SocialMemBench: its tables `conversations`, `qa`, `networks`, `personas`, and the paper's split of it.

Local (parquet, JSONL or JSON in one folder) or from the Hugging Face Hub by name (anon4data/socialmembench).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.rows import find_table, hub_rows, read_rows
from memory_env.ingest.sources import ForeignFields
from memory_env.ingest.times import TimeError, instant, parse_time
from memory_env.network import Network

TRAIN = [
    "grp_0d1e2f3a",
    "grp_5e6f7a8b",
    "grp_6f7a8b9c",
    "grp_7a8b9c0d",
    "grp_8b9c0d1e",
    "grp_9c0d1e2f",
    "grp_4d5e6f7a",
    "grp_3c4d5e6f",
    "grp_2b3c4d5e",
    "grp_1a2b3c4d",
]
"""The paper's training networks: 10, with 77 questions."""
HELDOUT = {
    "grp_c1d2e3f7": 48, "grp_b8c9dae0": 40, "grp_e3f4a5b6": 30, "grp_a1b2c3d4": 28, "grp_b0c1d2e3": 28,
    "grp_e8f9a0b1": 28, "grp_c2d3e4f5": 27, "grp_dba9214c": 27, "grp_c1d2e3f4": 25, "grp_d2e3f4a5": 24,
}  # fmt: skip
"""The paper's held-out networks and their questions: 305."""
TRAIN_QUESTIONS = 77


def recognises(names: list[str]) -> bool:
    """Whether a folder's file names are those of SocialMemBench."""
    parts = {part for name in names for part in (Path(name).stem.split("-")[0], Path(name).parent.name)}
    return {"conversations", "qa"} <= parts


def read(source: str | Path) -> list[Network]:
    """All networks of a local folder, or of a dataset on the Hub. DataError with file and row."""
    scenarios = {row.text("network_id"): _scenario(row) for row in _table(source, "networks", required=False)}
    turns: dict[str, list[ForeignFields]] = {}
    for row in _table(source, "conversations"):
        turns.setdefault(row.text("network_id"), []).append(row)
    questions: dict[str, list[ForeignFields]] = {}
    for row in _table(source, "qa"):
        questions.setdefault(row.text("network_id"), []).append(row)
    stray = sorted(questions.keys() - turns.keys())
    if stray:
        raise DataError(f"{source}: qa asks about {stray[0]}, which conversations does not have")
    return [
        _network(network_id, rows, questions.get(network_id, []), scenarios.get(network_id, ""))
        for network_id, rows in turns.items()
    ]


def split(networks: list[Network]) -> tuple[list[Network], list[Network]]:
    """(train, held-out) as in the paper; DataError unless they are 10 networks with 77 and 10 with 305 questions."""
    by_id = {network.network_id: network for network in networks}
    missing = [network_id for network_id in (*TRAIN, *HELDOUT) if network_id not in by_id]
    if missing:
        raise DataError(f"SocialMemBench: {missing[0]} of the paper's split is not among the {len(by_id)} networks read")
    train, heldout = [by_id[network_id] for network_id in TRAIN], [by_id[network_id] for network_id in HELDOUT]
    found = sum(len(network.questions) for network in train)
    if found != TRAIN_QUESTIONS:
        raise DataError(f"SocialMemBench: the training networks have {found} questions, the paper's {TRAIN_QUESTIONS}")
    for network in heldout:
        wanted = HELDOUT[network.network_id]
        if len(network.questions) != wanted:
            raise DataError(f"SocialMemBench: {network.network_id} has {len(network.questions)} questions, the paper's {wanted}")
    return train, heldout


def _table(source: str | Path, name: str, required: bool = True) -> Iterator[ForeignFields]:
    folder = Path(source)
    if not folder.exists() and str(source).count("/") == 1:
        yield from hub_rows(str(source), name)
        return
    files = find_table(folder, name)
    if not files and required:
        raise DataError(f"{source}: holds no table {name} ({name}.jsonl or {name}.parquet)")
    yield from read_rows(files)


def _scenario(row: ForeignFields) -> str:
    for key in ("scenario", "description", "network_name", "name", "group_type"):
        if isinstance(row.value.get(key), str) and row.value[key]:
            return row.value[key]
    return ""


def _network(network_id: str, rows: list[ForeignFields], questions: list[ForeignFields], scenario: str) -> Network:
    sessions: dict[str, list[ForeignFields]] = {}
    for row in rows:
        sessions.setdefault(row.text("session_id"), []).append(row)
    document = {
        "schema": "socialmembench/1",
        "scenario": f"[socialmembench:{network_id}] {scenario}".strip(),
        "speakers": list(dict.fromkeys(row.text("speaker_display_name") for row in rows)),
        "sessions": [_session(number, session_id, turns) for number, (session_id, turns) in enumerate(_in_time(sessions), 1)],
        "qa_pairs": [_question(row) for row in questions],
        "meta": {"network_id": network_id, "source": "SocialMemBench"},
    }
    return Network.from_dict(document, where=rows[0].where, default_id=network_id)


def _in_time(sessions: dict[str, list[ForeignFields]]) -> list[tuple[str, list[ForeignFields]]]:
    return sorted(sessions.items(), key=lambda item: (instant(_time(item[1][0])) or 0.0, item[0]))


def _time(row: ForeignFields) -> str:
    value = row.value.get("timestamp")
    if isinstance(value, date):
        return value.isoformat()
    try:
        return parse_time(row.text("timestamp"))
    except TimeError as error:
        raise row.error("timestamp", f"can't be read ({error})") from None


def _session(number: int, session_id: str, turns: list[ForeignFields]) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "session_index": number,
        "topic": turns[0].text("session_topic", ""),
        "ts": _time(turns[0])[:10],
        "turns": [
            {
                "turn": row.text("turn_id"),
                "speaker": row.text("speaker_display_name"),
                "speaker_id": row.text("speaker_id", ""),
                "content": row.text("message"),
                "ts": _time(row),
                "reply_to": row.text("reply_to_turn_id", ""),
            }
            for row in turns
        ],
    }


def _question(row: ForeignFields) -> dict[str, Any]:
    options: Any = row.value.get("options_json") or []
    if isinstance(options, str):
        try:
            options = json.loads(options)
        except (ValueError, RecursionError):
            raise row.error("options_json", "is not JSON") from None
    if isinstance(options, list):
        options = {chr(ord("A") + place): str(text) for place, text in enumerate(options)} if options else []
    correct = row.text("correct_option", "")
    return {
        "id": row.text("qa_id"),
        "category": row.text("query_type"),
        "question": row.text("question"),
        "answer": row.text("answer", ""),
        "answer_format": "multiple_choice" if options else "open",
        "options": options or [],
        "correct_option": correct,
    }
