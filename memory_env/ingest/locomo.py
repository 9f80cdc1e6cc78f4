"""LoCoMo: two-person conversations with questions, in both public layouts.

locomo10.json is a list of {sample_id, conversation{speaker_a, session_1, session_1_date_time, ...}, qa}; the other
layout is one file per conversation with the session keys at the top level beside `qa`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.sources import ForeignFields, read_chat_json
from memory_env.ingest.times import TimeError, parse_time
from memory_env.network import Network

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_SESSION = re.compile(r"session_(\d+)")


def recognises(document: Any) -> bool:
    """Whether a JSON document is LoCoMo in either layout."""
    sample = document[0] if isinstance(document, list) and document else document
    return isinstance(sample, dict) and ("speaker_a" in sample or isinstance(sample.get("conversation"), dict))


def read(path: str | Path) -> list[Network]:
    """Read a file. DataError with file and place."""
    document = read_chat_json(path)
    samples = document if isinstance(document, list) else [document]
    networks = []
    for index, sample in enumerate(samples):
        fields = ForeignFields.of(sample, str(path), f"[{index}]" if isinstance(document, list) else "")
        name = fields.text("sample_id", "") or (Path(path).stem if len(samples) == 1 else f"{Path(path).stem}-{index}")
        networks.append(_network(fields, name))
    if not networks:
        raise DataError(f"{path}: holds no conversation")
    return networks


def _network(fields: ForeignFields, name: str) -> Network:
    conversation = fields
    if "conversation" in fields.value:
        conversation = ForeignFields.of(fields.get("conversation", dict), fields.where, fields.at("conversation"))
    numbers = sorted(int(match[1]) for key in conversation.value if (match := _SESSION.fullmatch(key)))
    network_id = f"locomo_{name}"
    sessions = [_session(conversation, number, network_id) for number in numbers if conversation.get(f"session_{number}", list)]
    speakers = [conversation.text("speaker_a"), conversation.text("speaker_b")]
    return Network.from_dict(
        {
            "schema": "locomo/1",
            "scenario": f"[locomo:{name}] {speakers[0]} and {speakers[1]}",
            "speakers": list(dict.fromkeys(speakers)),
            "sessions": sessions,
            "qa_pairs": [_question(item, index) for index, item in enumerate(fields.objects("qa", []))],
            "meta": {"network_id": network_id, "source": "LoCoMo"},
        },
        where=fields.where,
        default_id=network_id,
    )


def _session(conversation: ForeignFields, number: int, network_id: str) -> dict[str, Any]:
    key = f"session_{number}_date_time"
    try:
        ts = parse_time(conversation.text(key))
    except TimeError as error:
        raise conversation.error(key, f"can't be read ({error})") from None
    turns = []
    for turn in conversation.objects(f"session_{number}"):
        content = turn.text("text", "")
        if turn.text("blip_caption", ""):
            content = f"{content} [shares {turn.text('blip_caption')}]".strip()
        turns.append({"turn": turn.text("dia_id"), "speaker": turn.text("speaker"), "content": content, "ts": ts})
    session_id = f"{network_id}_s{number:02d}"
    return {"session_id": session_id, "session_index": number, "topic": "", "ts": ts, "turns": turns}


def _question(item: ForeignFields, index: int) -> dict[str, Any]:
    category = item.get("category", int, 0)
    # Category 5 asks for what was never said; `adversarial_answer` is the trap.
    answer = str(item.value.get("answer") or ("not mentioned" if category == 5 else ""))
    return {
        "id": f"q{index:03d}",
        "category": CATEGORIES.get(category, str(category)),
        "question": item.text("question"),
        "answer": answer,
        "evidence_anchors": [{"turn": turn} for turn in item.get("evidence", list, []) if isinstance(turn, str)],
        **({"adversarial_answer": item.text("adversarial_answer")} if "adversarial_answer" in item.value else {}),
    }
