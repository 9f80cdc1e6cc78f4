"""Messenger and Instagram, as Meta's "Download your information" writes them in JSON: message_1.json, message_2.json, ...

Two layouts: {participants, messages[{sender_name, timestamp_ms, content, ...}], title, thread_path}, whose texts are UTF-8
read as Latin-1; and, for chats with end-to-end encryption, {participants, threadName, messages[{senderName, text, ...}]}.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions, settle_channels
from memory_env.ingest.json_chats import documents, part, time_of
from memory_env.ingest.sources import ForeignFields

_FILES = ("photos", "videos", "audio_files", "gifs", "files", "media")
_KINDS = {"photos": "photo", "videos": "video", "audio_files": "audio", "gifs": "gif", "files": "file", "media": "media"}
_JOINS, _LEAVES = {"Subscribe"}, {"Unsubscribe"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is one file of a thread."""
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        return False
    first = [row for row in document["messages"][:5] if isinstance(row, dict)]
    return any({"sender_name", "timestamp_ms"} <= row.keys() or {"senderName", "timestamp"} <= row.keys() for row in first)


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read one file of a thread, or every thread of a folder or archive. DataError with file and place."""
    chats: dict[str, Chat] = {}
    for document, where in documents(path):
        if not recognises(document):
            continue
        header = ForeignFields.of(document, where)
        thread = header.text("thread_path", "") or str(Path(where).parent)
        name = _mended(header.text("title", "") or header.text("threadName", "")) or Path(where).stem
        chat = chats.setdefault(thread, Chat(name, channel_id=header.text("thread_path", "")))
        for item in header.objects("messages"):
            message = _message(item, chat)
            if message is not None:
                chat.messages.append(message)
    for chat in chats.values():
        # The files begin with the newest message.
        chat.messages.reverse()
        chat.messages.sort(key=lambda message: message.ts)
    settle_channels(list(chats.values()))
    return list(chats.values())


def _message(item: ForeignFields, chat: Chat) -> ChatMessage | None:
    old = "sender_name" in item.value
    kind = item.text("type", "")
    if kind in _JOINS or kind in _LEAVES:
        chat.tally["joins" if kind in _JOINS else "leaves"] += 1
        return None
    if item.value.get("is_unsent") or item.value.get("isUnsent"):
        chat.tally["deleted"] += 1
        return None
    parts = [_mended(item.text("content", "") or item.text("text", ""))]
    for key in _FILES:
        files = item.get(key, list, [])
        chat.tally["media placeholders"] += len(files)
        parts += [f"[{_KINDS[key]}]"] * len(files)
    if "sticker" in item.value:
        chat.tally["media placeholders"] += 1
        parts.append("[sticker]")
    share = part(item, "share")
    shared = [_mended(share.text("share_text", "")), share.text("link", "")]
    parts += [f"[shared: {' '.join(filter(None, shared))}]"] if any(each and each not in parts[0] for each in shared) else []
    content = " ".join(each for each in parts if each.strip())
    if not content:
        chat.tally["empty messages"] += 1
        return None
    speaker = _mended(item.text("sender_name" if old else "senderName", "")) or "unnamed"
    return ChatMessage(sys.intern(speaker), content, time_of(item, "timestamp_ms" if old else "timestamp", milliseconds=True))


def _mended(text: str) -> str:
    """Text whose UTF-8 bytes were written as one character each."""
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
