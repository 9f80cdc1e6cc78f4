"""Cutting a chat into sessions: the occasions between longer silences. The result is an ordinary `Network`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage
from memory_env.ingest.times import instant
from memory_env.network import Network

GAP_HOURS = 6.0
MOST_MESSAGES = 50


def cut(messages: Sequence[ChatMessage], gap_hours: float = GAP_HOURS, most: int = MOST_MESSAGES) -> list[list[ChatMessage]]:
    """`messages` as sessions: a silence of `gap_hours` ends one, and so do `most` messages."""
    sessions: list[list[ChatMessage]] = []
    before: float | None = None
    for message in messages:
        now = instant(message.ts)
        silent = before is not None and now is not None and abs(now - before) > gap_hours * 3600
        if not sessions or silent or len(sessions[-1]) >= most:
            sessions.append([])
        sessions[-1].append(message)
        before = before if now is None else now
    return sessions


def without_repeats(chat: Chat) -> list[ChatMessage]:
    """The messages, without those that an export holds twice; of two texts under one id the later loses the id."""
    seen: dict[str, str] = {}
    kept = []
    for message in chat.messages:
        if message.message_id in seen:
            if seen[message.message_id] == message.content:
                chat.tally["repeated messages"] += 1
                continue
            chat.tally["ids used twice"] += 1
            message = replace(message, message_id="")
        elif message.message_id:
            seen[message.message_id] = message.content
        kept.append(message)
    return kept


def slug(name: str) -> str:
    """A name as an id: letters, digits and `_`, short enough for a file's name in any script."""
    return re.sub(r"\W+", "_", name).strip("_").lower()[:60] or "chat"


def to_network(chat: Chat, gap_hours: float = GAP_HOURS, most: int = MOST_MESSAGES, network_id: str = "") -> Network:
    """A chat as a network without questions, called `network_id`, else after the chat. DataError without messages.

    What the reader counted and assumed is in `meta.ingest`; a former name of a member in `meta.former_names`.
    """
    network_id = network_id or slug(chat.name)
    sessions = []
    for number, messages in enumerate(cut(without_repeats(chat), gap_hours, most), 1):
        session_id = f"{network_id}_s{number:04d}"
        sessions.append(
            {
                "session_id": session_id,
                "session_index": number,
                "topic": "",
                "ts": messages[0].ts[:10],
                "turns": [_turn(message, f"{session_id}_t{index:03d}") for index, message in enumerate(messages)],
            }
        )
    return Network.from_dict(
        {
            "schema": "writer-rl-chat/1",
            "scenario": chat.name,
            "speakers": list(dict.fromkeys(message.speaker for message in chat.messages)),
            "sessions": sessions,
            "qa_pairs": [],
            "meta": {
                "network_id": network_id,
                "ingest": {
                    "counts": {key: count for key, count in sorted(chat.tally.items()) if count},
                    "notes": chat.notes,
                },
                **({"former_names": chat.former_names} if chat.former_names else {}),
            },
        },
        where=chat.name,
        default_id=network_id,
    )


def _turn(message: ChatMessage, turn_id: str) -> dict[str, Any]:
    turn: dict[str, Any] = {
        "turn": message.message_id or turn_id,
        "speaker": message.speaker,
        "speaker_id": message.speaker_id,
        "content": message.content,
        "ts": message.ts,
        "reply_to": message.reply_to,
    }
    if message.channel:
        turn["channel"] = message.channel
    if message.edited:
        turn["edited"] = True
    return turn
