"""MemoryAgentBench: a long context and questions about it, in tables of four splits (parquet or JSONL).

A row is {context, questions[], answers[[accepted texts]], metadata{source, qa_pair_ids, question_types, ...}}. The context is
no conversation; it is read as messages of one speaker, a line or paragraph each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.json_chats import part
from memory_env.ingest.rows import find_table, read_rows
from memory_env.ingest.sources import ForeignFields
from memory_env.network import Network

SPLITS = ("Accurate_Retrieval", "Test_Time_Learning", "Long_Range_Understanding", "Conflict_Resolution")
SPEAKER = "document"
MOST_CHARACTERS = 2000
"""A longer paragraph becomes several messages."""
MOST_MESSAGES = 50


def recognises(names: list[str]) -> bool:
    """Whether a folder's file names are those of its tables."""
    return any(Path(name).name.startswith(SPLITS) for name in names)


def recognises_row(row: Any) -> bool:
    """Whether an object is a row of its tables."""
    return isinstance(row, dict) and {"context", "questions", "answers"} <= row.keys()


def read(path: str | Path) -> list[Network]:
    """Read a table, or a folder of them, a network per row. DataError with file and row."""
    path = Path(path)
    tables = [(split, find_table(path, split)) for split in SPLITS] if path.is_dir() else [(path.stem, [path])]
    networks: list[Network] = []
    for split, files in tables:
        networks += [_network(row, split, number) for number, row in enumerate(read_rows(files), 1)]
    if not networks:
        raise DataError(f"{path}: holds no table of {', '.join(SPLITS)}")
    return networks


def _network(row: ForeignFields, split: str, number: int) -> Network:
    metadata = part(row, "metadata")
    source = metadata.text("source", "") or split
    network_id = f"memoryagentbench_{split}_{number:03d}".lower()
    pieces = list(_pieces(row.text("context")))
    sessions: list[dict[str, Any]] = []
    for begin in range(0, len(pieces), MOST_MESSAGES):
        session_id = f"{network_id}_s{begin // MOST_MESSAGES + 1:04d}"
        turns = [
            {"turn": f"{session_id}_t{place:03d}", "speaker": SPEAKER, "content": piece, "ts": ""}
            for place, piece in enumerate(pieces[begin : begin + MOST_MESSAGES])
        ]
        sessions.append({"session_id": session_id, "session_index": len(sessions) + 1, "topic": source, "ts": "", "turns": turns})
    asked, answers = row.get("questions", list), row.get("answers", list)
    if len(asked) != len(answers):
        raise row.error("answers", f"has {len(answers)} entries for {len(asked)} questions")
    ids, kinds = metadata.get("qa_pair_ids", list, []), metadata.get("question_types", list, [])
    questions = []
    for index, (question, accepted) in enumerate(zip(asked, answers, strict=True)):
        texts = [str(text) for text in (accepted if isinstance(accepted, list) else [accepted])]
        questions.append(
            {
                "id": str(ids[index]) if index < len(ids) else f"q{index:03d}",
                "category": str(kinds[index]) if index < len(kinds) else source,
                "question": str(question),
                "answer": texts[0] if texts else "",
                "accepted_answers": texts,
            }
        )
    document = {
        "schema": "memoryagentbench/1",
        "scenario": f"[memoryagentbench:{source}] a long context",
        "speakers": [SPEAKER],
        "sessions": sessions,
        "qa_pairs": questions,
        "meta": {"network_id": network_id, "source": "MemoryAgentBench", "split": split, "sub_dataset": source},
    }
    return Network.from_dict(document, where=row.where, default_id=network_id)


def _pieces(context: str) -> Iterator[str]:
    """The lines of a context, long ones cut between words."""
    for line in context.split("\n"):
        rest = line.strip()
        while len(rest) > MOST_CHARACTERS:
            cut = rest.rfind(" ", 0, MOST_CHARACTERS)
            cut = cut if cut > 0 else MOST_CHARACTERS
            yield rest[:cut].strip()
            rest = rest[cut:].strip()
        if rest:
            yield rest
