"""Signal: rows of the desktop program's table of messages as JSON, and the program's own export (main.jsonl).

A row is {conversationId, type, body, sent_at, source, sourceName}. A line of main.jsonl holds a recipient, a chat, or a
chatItem, as in Signal's backup format.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_chats import documents, part, time_of
from memory_env.ingest.sources import ForeignFields

ME = "me"
_SPOKEN = {"incoming", "outgoing"}


def recognises(document: Any) -> bool:
    """Whether a JSON document (a list, or the lines of a JSONL file) is of Signal."""
    return isinstance(document, list) and any(_is_row(row) or _is_frame(row) for row in document[:20])


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and {"conversationId", "type"} <= row.keys() and ("sent_at" in row or "timestamp" in row)


def _is_frame(row: Any) -> bool:
    return isinstance(row, dict) and ("chatItem" in row or "recipient" in row or "backupTimeMs" in row)


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read an export, one chat per conversation. DataError with file and place."""
    chats: list[Chat] = []
    for document, where in documents(path):
        if recognises(document):
            items = sorted((ForeignFields.of(row, where, f"[{index}]") for index, row in enumerate(document)), key=_sent)
            chats += _frames(items) if any(_is_frame(item.value) for item in items[:20]) else _rows(items, Path(where).stem)
    settle_channels(chats)
    return chats


def _sent(item: ForeignFields) -> float:
    """When a row or chatItem was sent, in milliseconds; what has no time comes first, in its order."""
    frame = item.value.get("chatItem")
    values = (frame.get("dateSent") if isinstance(frame, dict) else None, item.value.get("sent_at"), item.value.get("timestamp"))
    sent = next((value for value in values if value), 0)
    try:
        return float(sent)
    except (TypeError, ValueError):
        return 0.0


def _rows(items: Iterable[ForeignFields], stem: str) -> list[Chat]:
    chats: dict[str, Chat] = {}
    names: dict[str, NamesById] = {}
    for item in items:
        conversation = item.text("conversationId", "")
        chat = chats.setdefault(conversation, Chat(item.text("conversationName", "") or stem, channel_id=conversation))
        kind = item.text("type", "")
        identity = next(filter(None, (item.text(key, "") for key in ("sourceServiceId", "sourceUuid", "source"))), "")
        if kind not in _SPOKEN:
            chat.tally["system messages"] += 1
            continue
        if kind == "outgoing":
            identity = identity or ME
        sent = "sent_at" if item.value.get("sent_at") else "timestamp"
        if item.value.get("isErased") or item.value.get("deletedForEveryone"):
            chat.tally["deleted"] += 1
            chat.withdrawn.add(item.text("id", ""))
            continue
        files = [f"[{each.text('fileName', '') or 'media'}]" for each in item.objects("attachments", [])]
        chat.tally["media placeholders"] += len(files)
        content = " ".join(filter(str.strip, (*files, item.text("body", ""))))
        if not content:
            chat.tally["empty messages"] += 1
            continue
        speaker = item.text("sourceName", "") or identity
        known = names.setdefault(conversation, NamesById())
        known.saw(identity, speaker)
        edited = item.value.get("editMessageTimestamp") is not None
        chat.messages.append(
            ChatMessage(
                sys.intern(speaker), content, time_of(item, sent, milliseconds=True), sys.intern(identity), item.text("id", ""),
                edited=edited, edited_at=item.text("editMessageTimestamp", ""),
            )
        )  # fmt: skip
    for conversation, chat in chats.items():
        settle_names(chat, names.get(conversation, NamesById()))
    return list(chats.values())


def _frames(items: Iterable[ForeignFields]) -> list[Chat]:
    recipients: dict[str, str] = {}
    chats: dict[str, Chat] = {}
    for item in items:
        if "recipient" in item.value:
            recipient = part(item, "recipient")
            recipients[recipient.text("id")] = _recipient(recipient)
        elif "chat" in item.value:
            frame = part(item, "chat")
            named = recipients.get(frame.text("recipientId", ""), "Signal chat")
            chats[frame.text("id")] = Chat(named, channel_id=frame.text("id"))
        elif "chatItem" in item.value:
            frame = part(item, "chatItem")
            chat = chats.setdefault(frame.text("chatId"), Chat("Signal chat", channel_id=frame.text("chatId")))
            message = _frame_message(frame, chat, recipients)
            if message is not None:
                chat.messages.append(message)
    return [chat for chat in chats.values() if chat.messages or chat.withdrawn]


def _recipient(item: ForeignFields) -> str:
    """What a contact, group or the exporter is called."""
    if "self" in item.value:
        return ME
    contact, title = part(item, "contact"), part(part(part(item, "group"), "snapshot"), "title").text("title", "")
    pairs = (("nickname", ""), ("systemGivenName", "systemFamilyName"), ("profileGivenName", "profileFamilyName"))
    named = [f"{_string(contact, given)} {_string(contact, family)}".strip() for given, family in pairs]
    return title or next(filter(None, named), "") or _string(contact, "e164") or f"Signal user {item.text('id', '')}"


def _string(item: ForeignFields, key: str) -> str:
    value = item.value.get(key) if key else ""
    return str(value) if isinstance(value, (str, int)) else ""


def _frame_message(item: ForeignFields, chat: Chat, recipients: dict[str, str]) -> ChatMessage | None:
    author, sent = item.text("authorId", ""), item.text("dateSent")
    identity = f"{author}:{sent}"
    if "remoteDeletedMessage" in item.value:
        chat.tally["deleted"] += 1
        chat.withdrawn.add(identity)
        return None
    standard = part(item, "standardMessage")
    parts = [part(standard, "text").text("body", "")]
    files = [part(each, "pointer").text("fileName", "") for each in standard.objects("attachments", [])]
    if "stickerMessage" in item.value or "viewOnceMessage" in item.value:
        files.append("sticker" if "stickerMessage" in item.value else "view once")
    chat.tally["media placeholders"] += len(files)
    content = " ".join(filter(str.strip, (*(f"[{name or 'media'}]" for name in files), *parts)))
    if not content:
        chat.tally["system messages" if "updateMessage" in item.value else "empty messages"] += 1
        return None
    edited = bool(item.value.get("revisions"))
    chat.tally["edited"] += edited
    speaker = recipients.get(author, f"Signal user {author}")
    return ChatMessage(
        sys.intern(speaker), content, time_of(item, "dateSent", milliseconds=True), sys.intern(author), identity, edited=edited,
        edited_at=sent if edited else "",
    )  # fmt: skip
