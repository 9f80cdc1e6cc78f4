"""Matrix rooms as Element exports them in JSON: {room_name, messages[event]}; edits and redactions are events too."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_chats import documents, part, time_of
from memory_env.ingest.placeholders import poll
from memory_env.ingest.sources import ForeignFields

_MEDIA = {"m.image": "image", "m.video": "video", "m.audio": "audio", "m.file": "file"}
_POLLS = ("m.poll.start", "org.matrix.msc3381.poll.start")


def recognises(document: Any) -> bool:
    """Whether a JSON document is a room's export."""
    events = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(events, list):
        return False
    return any(isinstance(row, dict) and {"event_id", "origin_server_ts"} <= row.keys() for row in events[:5])


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read an export, or every room of a folder or archive. DataError with file and place."""
    chats = [_room(ForeignFields.of(document, where), options) for document, where in documents(path) if recognises(document)]
    settle_channels(chats)
    return chats


def _room(header: ForeignFields, options: ReadOptions) -> Chat:
    chat, names = Chat(header.text("room_name", "") or Path(header.where).stem), NamesById()
    places: dict[str, int] = {}
    edits: list[tuple[str, str, str]] = []
    for event in header.objects("messages"):
        kind, sender, content = event.text("type", ""), event.text("sender", ""), part(event, "content")
        chat.channel_id = chat.channel_id or event.text("room_id", "")
        if kind == "m.room.member":
            _count_member(chat, names, event, content)
        elif kind == "m.room.redaction":
            chat.withdrawn.add(event.text("redacts", "") or content.text("redacts", ""))
        elif "redacted_because" in part(event, "unsigned").value:
            chat.withdrawn.add(event.text("event_id", ""))
        elif kind == "m.room.message" and part(content, "m.relates_to").text("rel_type", "") == "m.replace":
            target, new = part(content, "m.relates_to").text("event_id", ""), part(content, "m.new_content")
            edits.append((target, _words(new, chat), time_of(event, "origin_server_ts")))
        elif kind in ("m.room.message", "m.sticker", *_POLLS):
            message = _message(event, content, chat, names, options)
            if message is not None:
                places[message.message_id] = len(chat.messages)
                chat.messages.append(message)
        else:
            chat.tally["system messages"] += 1
        if not names.knows(sender):
            names.saw(sender, sender.removeprefix("@").partition(":")[0] or "unnamed")
    for target, text, ts in edits:
        if target in places and text:
            chat.tally["edited"] += 1
            chat.messages[places[target]] = replace(chat.messages[places[target]], content=text, edited=True, edited_at=ts)
    chat.withdrawn.discard("")
    chat.tally["deleted"] += len(chat.withdrawn)
    chat.messages = [message for message in chat.messages if message.message_id not in chat.withdrawn]
    settle_names(chat, names)
    return chat


def _count_member(chat: Chat, names: NamesById, event: ForeignFields, content: ForeignFields) -> None:
    """A join, leave or new name; the name that a member shows stands here alone."""
    shown = content.text("displayname", "")
    if shown:
        names.saw(event.text("state_key", "") or event.text("sender", ""), shown)
    before = part(part(event, "unsigned"), "prev_content").text("membership", "")
    membership = content.text("membership", "")
    if membership != before:
        chat.tally["joins" if membership == "join" else "leaves" if membership in ("leave", "ban") else "system messages"] += 1


def _message(
    event: ForeignFields, content: ForeignFields, chat: Chat, names: NamesById, options: ReadOptions
) -> ChatMessage | None:
    if content.text("msgtype", "") == "m.notice" and not options.keep_bots:
        chat.tally["messages of bots"] += 1
        return None
    words = _words(content, chat) if event.text("type") not in _POLLS else _poll(content)
    if event.text("type") == "m.sticker":
        chat.tally["media placeholders"] += 1
        words = f"[sticker {words}".rstrip() + "]"
    if not words:
        chat.tally["empty messages"] += 1
        return None
    sender = event.text("sender")
    reply = part(part(content, "m.relates_to"), "m.in_reply_to").text("event_id", "")
    return ChatMessage(
        sys.intern(names.current(sender)), words, time_of(event, "origin_server_ts"), sys.intern(sender),
        event.text("event_id", ""), reply_to=reply,
    )  # fmt: skip


def _words(content: ForeignFields, chat: Chat) -> str:
    kind, body = content.text("msgtype", ""), content.text("body", "").strip()
    if kind in _MEDIA:
        chat.tally["media placeholders"] += 1
        named = content.text("filename", "")
        if named and body != named:
            return f"[{named}] {body}"
        return f"[{body}]" if "." in body else f"[{_MEDIA[kind]}] {body}".strip()
    if kind == "m.location":
        return f"[location: {body}]"
    if kind == "m.emote":
        return f"* {body}"
    return _without_quote(body) if part(part(content, "m.relates_to"), "m.in_reply_to").value else body


def _without_quote(body: str) -> str:
    """A reply without the quotation ("> <@bo:example.org> text") that Matrix puts before it: those are another's words."""
    if not body.startswith("> <"):
        return body
    lines = body.split("\n")
    first = next((place for place, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[first:]).strip()


def _poll(content: ForeignFields) -> str:
    asked = next((part(content, key) for key in ("m.poll", *_POLLS) if key in content.value), content)
    return poll(_text(part(asked, "question")), [_text(answer) for answer in asked.objects("answers", [])])


def _text(item: ForeignFields) -> str:
    for key in ("org.matrix.msc1767.text", "body", "text"):
        if isinstance(item.value.get(key), str):
            return item.text(key)
    for row in item.value.get("m.text") or ():
        if isinstance(row, dict) and isinstance(row.get("body"), str):
            return str(row["body"])
    return ""
