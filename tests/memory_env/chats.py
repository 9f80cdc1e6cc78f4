"""Small conversations and actions that the memory environment's tests are written in."""

from __future__ import annotations

import json
from typing import Any

from memory_env.conversation import Message, Segment

PEOPLE = ("Alice", "Bob", "Carol")


def segment(position: int = 0, *texts: str, speakers: tuple[str, ...] = PEOPLE) -> Segment:
    """Messages `texts` (default: one greeting each), spoken in turn by `speakers`."""
    texts = texts or tuple(f"hello from {speaker}" for speaker in speakers)
    session = f"s{position}"
    messages = tuple(
        Message(
            speaker=speakers[index % len(speakers)],
            content=text,
            ts=f"2026-01-0{position % 9 + 1}T10:{index % 60:02d}:00",
            turn_id=f"{session}_t{index:03d}",
            session_id=session,
            index=index,
        )
        for index, text in enumerate(texts)
    )
    return Segment(position, session, f"2026-01-0{position % 9 + 1}", messages)


def add(content: str, owner: str = "Alice", source: str = "Alice", layer: str = "per_speaker_core", utype: str = "fact"):
    return {"action": "ADD", "owner": owner, "source": source, "layer": layer, "utype": utype, "content": content}


def update(entry_id: str, content: str, **extra: Any) -> dict[str, Any]:
    return {"action": "UPDATE", "entry_id": entry_id, "content": content, **extra}


NOOP = {"action": "NOOP"}


def output(*actions: Any) -> str:
    return json.dumps({"actions": list(actions)})


def document(**changes: Any) -> dict[str, Any]:
    """A native network file of two sessions, with unknown keys at every level."""
    turns = [
        {
            "turn": f"n1_s{session:02d}_t{index:03d}",
            "speaker": speaker,
            "speaker_id": f"p_{speaker.lower()}",
            "content": f"message {index} of session {session}",
            "ts": f"2026-01-0{session}T10:0{index}:00",
            "reply_to": "" if index == 0 else f"n1_s{session:02d}_t{index - 1:03d}",
            "reactions": ["+1"],
        }
        for session in (1, 2)
        for index, speaker in enumerate(PEOPLE)
    ]
    return {
        "schema": "test/1",
        "scenario": "three friends",
        "speakers": list(PEOPLE),
        "sessions": [
            {
                "session_id": f"n1_s{session:02d}",
                "session_index": session,
                "topic": "plans",
                "ts": f"2026-01-0{session}",
                "turns": turns[3 * (session - 1) : 3 * session],
                "place": "kitchen",
            }
            for session in (1, 2)
        ],
        "qa_pairs": [
            {
                "id": "q1",
                "category": "Q1",
                "difficulty": "easy",
                "question": "Who?",
                "answer": "Bob",
                "answer_format": "multiple_choice",
                "options": {"A": "Alice", "B": "Bob"},
                "correct_option": "B",
                "evidence_anchors": [{"turn_id": "n1_s01_t001"}],
                "temporal_anchors": [],
                "author": "me",
            }
        ],
        "meta": {"network_id": "n1", "source": "test"},
        "licence": {"name": "none"},
        **changes,
    }
