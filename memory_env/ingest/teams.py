"""Microsoft Teams (and Skype): chat messages as the Graph API gives them, and the personal export's messages.json."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_chats import documents, html_text, part, time_of
from memory_env.ingest.sources import ForeignFields

_SPOKEN = ("Text", "RichText")


def recognises(document: Any) -> bool:
    """Whether a JSON document holds Graph chat messages, or the personal export's conversations."""
    if isinstance(document, dict) and isinstance(document.get("conversations"), list):
        return any(isinstance(row, dict) and "MessageList" in row for row in document["conversations"][:20])
    rows = document.get("value") or document.get("messages") if isinstance(document, dict) else document
    return isinstance(rows, list) and any(isinstance(row, dict) and {"createdDateTime", "body"} <= row.keys() for row in rows[:5])


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read an export. DataError with file and place."""
    chats: list[Chat] = []
    for document, where in documents(path):
        if not recognises(document):
            continue
        if isinstance(document, dict) and "conversations" in document:
            chats += [
                chat
                for row in ForeignFields.of(document, where).objects("conversations")
                if (chat := _conversation(row)).messages
            ]
        else:
            chats += _graph(document, where, options)
    for chat in chats:
        chat.messages.sort(key=lambda message: message.ts)
    settle_channels(chats)
    return chats


def _graph(document: Any, where: str, options: ReadOptions) -> list[Chat]:
    header = ForeignFields.of(document if isinstance(document, dict) else {"value": document}, where)
    chats: dict[str, Chat] = {}
    names: dict[str, NamesById] = {}
    rows = header.objects("value" if "value" in header.value else "messages")
    for item in rows:
        identity = item.text("chatId", "") or part(item, "channelIdentity").text("channelId", "")
        chat = chats.setdefault(identity, Chat(header.text("topic", "") or Path(where).stem, channel_id=identity))
        user = part(part(item, "from"), "user")
        if item.text("messageType", "message") != "message" or not item.value.get("from"):
            chat.tally["system messages"] += 1
        elif item.value.get("deletedDateTime"):
            chat.tally["deleted"] += 1
            chat.withdrawn.add(item.text("id", ""))
        elif not user.value and not options.keep_bots:
            chat.tally["messages of bots"] += 1
        else:
            sender = user if user.value else part(part(item, "from"), "application")
            message = _graph_message(item, sender, chat)
            if message is not None:
                names.setdefault(identity, NamesById()).saw(message.speaker_id, message.speaker)
                chat.messages.append(message)
    for identity, chat in chats.items():
        settle_names(chat, names.get(identity, NamesById()))
    return list(chats.values())


def _graph_message(item: ForeignFields, sender: ForeignFields, chat: Chat) -> ChatMessage | None:
    body = part(item, "body")
    text = body.text("content", "")
    parts = [item.text("subject", ""), html_text(text) if body.text("contentType", "html") == "html" else text]
    reply = item.text("replyToId", "")
    for attached in item.objects("attachments", []):
        if attached.text("contentType", "") == "messageReference":
            reply = reply or attached.text("id", "")
        else:
            chat.tally["media placeholders"] += 1
            parts.append(f"[file {attached.text('name', '')}".rstrip() + "]")
    content = " ".join(filter(str.strip, parts))
    if not content:
        chat.tally["empty messages"] += 1
        return None
    edited = item.text("lastEditedDateTime", "")
    chat.tally["edited"] += bool(edited)
    speaker = sender.text("displayName", "") or sender.text("id", "") or "unnamed"
    return ChatMessage(
        sys.intern(speaker), content, time_of(item, "createdDateTime"), sys.intern(sender.text("id", "") or speaker),
        item.text("id", ""), reply_to=reply, edited=bool(edited), edited_at=edited,
    )  # fmt: skip


def _conversation(row: ForeignFields) -> Chat:
    chat, names = Chat(row.text("displayName", "") or row.text("id", ""), channel_id=row.text("id", "")), NamesById()
    for item in row.objects("MessageList", []):
        kind, identity = item.text("messagetype", ""), item.text("from", "")
        if item.value.get("properties") and "deletetime" in part(item, "properties").value:
            chat.tally["deleted"] += 1
            chat.withdrawn.add(item.text("id", ""))
            continue
        if not kind.startswith(_SPOKEN):
            chat.tally["system messages"] += 1
            continue
        content = html_text(item.text("content", "")) if kind != "Text" else item.text("content", "")
        if not content.strip():
            chat.tally["empty messages"] += 1
            continue
        shown = (item.text("displayName", ""), item.text("imdisplayname", ""), identity.partition(":")[2], identity)
        speaker = next(filter(None, shown), "unnamed")
        names.saw(identity or speaker, speaker)
        chat.messages.append(
            ChatMessage(
                sys.intern(speaker), content, time_of(item, "originalarrivaltime"), sys.intern(identity or speaker),
                item.text("id", ""),
            )
        )  # fmt: skip
    settle_names(chat, names)
    return chat
