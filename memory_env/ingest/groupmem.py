"""GroupMemBench: data/final/DOMAIN/synthetic_domain_channels_rolevariants_DOMAIN.json and questions/DOMAIN/TYPE.jsonl.

The conversation file is {channel: [{msg_node, content, author, timestamp, reply_to, role, phase_name, topic, ...}]}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.chat import ChatMessage
from memory_env.ingest.sessions import cut, slug
from memory_env.ingest.sources import ForeignFields, read_chat_json, read_jsonl
from memory_env.ingest.times import TimeError, instant, parse_time
from memory_env.network import Network

_FILE = "synthetic_domain_channels_rolevariants_"


def recognises(names: list[str]) -> bool:
    """Whether a folder's file names are those of GroupMemBench."""
    return any(Path(name).name.startswith(_FILE) for name in names)


def read(path: str | Path) -> list[Network]:
    """One network per domain; a session is one channel's messages between silences. DataError with file and place."""
    root = Path(path)
    files = sorted(root.rglob(f"{_FILE}*.json"))
    if not files:
        raise DataError(f"{path}: holds no {_FILE}DOMAIN.json")
    return [_network(file, file.stem.removeprefix(_FILE), _questions(root, file)) for file in files]


def _questions(root: Path, conversation: Path) -> list[dict[str, Any]]:
    domain = conversation.stem.removeprefix(_FILE)
    folders = [folder for folder in root.rglob("questions") if (folder / domain).is_dir()]
    folders = [folder / domain for folder in folders] or [
        folder for folder in (conversation.parent / "questions",) if folder.is_dir()
    ]
    found = []
    for file in sorted(file for folder in folders for file in folder.glob("*.jsonl")):
        for line, row in read_jsonl(file):
            item = ForeignFields(row, f"{file}: line {line}")
            found.append(
                {
                    "id": f"{file.stem}:{item.text('id')}",
                    "category": file.stem,
                    "question": item.text("question"),
                    "answer": item.text("answer", ""),
                    "asking_user_id": item.text("asking_user_id", ""),
                }
            )
    return found


def _network(file: Path, domain: str, questions: list[dict[str, Any]]) -> Network:
    channels = ForeignFields.of(read_chat_json(file), str(file))
    network_id = f"groupmem_{slug(domain)}"
    extras: dict[tuple[str, str], dict[str, Any]] = {}
    sessions: list[tuple[float, str, list[ChatMessage]]] = []
    for channel in channels.value:
        messages = []
        for item in channels.objects(channel):
            message = _message(item, channel)
            extras[channel, message.message_id] = item.rest(("msg_node", "content", "author", "timestamp", "reply_to"))
            messages.append(message)
        messages.sort(key=lambda message: instant(message.ts) or 0.0)
        for session in cut(messages):
            sessions.append((instant(session[0].ts) or 0.0, channel, session))
    sessions.sort(key=lambda session: session[:2])
    document = {
        "schema": "groupmembench/1",
        "scenario": f"[groupmembench:{domain}]",
        "speakers": list(dict.fromkeys(message.speaker for _, _, session in sessions for message in session)),
        "sessions": [
            _session(number, channel, session, network_id, extras) for number, (_, channel, session) in enumerate(sessions, 1)
        ],
        "qa_pairs": questions,
        "meta": {"network_id": network_id, "source": "GroupMemBench", "domain": domain},
    }
    return Network.from_dict(document, where=str(file), default_id=network_id)


def _message(item: ForeignFields, channel: str) -> ChatMessage:
    try:
        ts = parse_time(item.text("timestamp"))
    except TimeError as error:
        raise item.error("timestamp", f"can't be read ({error})") from None
    return ChatMessage(
        item.text("author"), item.text("content"), ts, message_id=item.text("msg_node"), channel=channel,
        reply_to=item.text("reply_to", ""),
    )  # fmt: skip


def _session(
    number: int,
    channel: str,
    messages: list[ChatMessage],
    network_id: str,
    extras: dict[tuple[str, str], dict[str, Any]],
) -> dict[str, Any]:
    return {
        "session_id": f"{network_id}_s{number:05d}",
        "session_index": number,
        "topic": channel,
        "ts": messages[0].ts[:10],
        "turns": [
            {
                "turn": f"{channel}:{message.message_id}",
                "speaker": message.speaker,
                "content": message.content,
                "ts": message.ts,
                "reply_to": f"{channel}:{message.reply_to}" if message.reply_to else "",
                "channel": channel,
                **extras[channel, message.message_id],
            }
            for message in messages
        ],
    }
