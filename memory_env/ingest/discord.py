"""Discord channels as JSON in the layout of DiscordChatExporter: {guild, channel, messages[{timestamp, author, ...}]}."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, Names, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_cursor import JsonCursor
from memory_env.ingest.sources import Item, file_pieces
from memory_env.ingest.times import TimeError, parse_time

_SPOKEN = {"Default", "Reply", "0", "19", "20", "ThreadStarterMessage", "21", "ChatInputCommand"}
_JOINS = {"GuildMemberJoin", "RecipientAdd", "7", "1"}
_LEAVES = {"RecipientRemove", "2"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is a Discord export."""
    return isinstance(document, dict) and isinstance(document.get("channel"), dict) and "messages" in document


def read(path: str | Path, options: ReadOptions) -> Chat:
    """Read an export. DataError with file and place."""
    return parse(JsonCursor(*file_pieces(path)), options)


def parse(cursor: JsonCursor, options: ReadOptions) -> Chat:
    """The chat of an export's document."""
    chat, names = Chat("Discord channel"), Names()
    header: dict[str, Any] = {}
    for key in cursor.members():
        if key != "messages":
            header[key] = cursor.value()
            if key == "channel":
                channel = Item.of(header[key], cursor.where, key)
                chat.channel_id = channel.text("id", "")
                chat.name = channel.text("name", "") or chat.channel_id or chat.name
            continue
        for place in cursor.elements(key):
            message = _message(Item.of(cursor.value(), cursor.where, place), chat, options)
            if message is not None:
                if message.speaker_id:
                    names.saw(message.speaker_id, message.speaker)
                chat.messages.append(message)
    cursor.end()
    Item.of(header, cursor.where).get("channel", dict)
    settle_names(chat, names)
    settle_channels([chat])
    return chat


def _message(item: Item, chat: Chat, options: ReadOptions) -> ChatMessage | None:
    kind = item.text("type", "Default")
    if kind not in _SPOKEN:
        chat.tally["joins" if kind in _JOINS else "leaves" if kind in _LEAVES else "system messages"] += 1
        return None
    author = Item.of(item.get("author", dict), item.where, item.at("author"))
    if author.value.get("isBot") and not options.keep_bots:
        chat.tally["messages of bots"] += 1
        return None
    content = item.text("content", "")
    forwarded = Item.of(item.get("forwardedMessage", dict, {}), item.where, item.at("forwardedMessage"))
    if forwarded.value:
        chat.tally["forwarded"] += 1
        content = f"[forwarded] {forwarded.text('content', '')} {content}".strip()
    for key, shown in (("attachments", "fileName"), ("stickers", "name"), ("embeds", "title")):
        for extra in item.objects(key, []):
            # A link's preview is an embed of what the text already says.
            if key == "embeds" and content:
                continue
            chat.tally["media placeholders"] += 1
            content = f"{content} [{key[:-1]} {extra.text(shown, '')}".rstrip() + "]"
    if not content.strip():
        chat.tally["empty messages"] += 1
        return None
    edited = item.value.get("timestampEdited") is not None
    chat.tally["edited"] += edited
    try:
        ts = parse_time(item.text("timestamp"))
    except TimeError as error:
        raise item.error("timestamp", f"can't be read ({error})") from None
    reference = Item.of(item.get("reference", dict, {}), item.where, item.at("reference"))
    speaker = author.text("nickname", "") or author.text("name", "") or "unnamed"
    return ChatMessage(
        sys.intern(speaker), content.strip(), ts, sys.intern(author.text("id", "")), item.text("id", ""), chat.name,
        reference.text("messageId", ""), edited, chat.channel_id,
    )  # fmt: skip
