"""Discord channels as JSON in the layout of DiscordChatExporter: {guild, channel, messages[{timestamp, author, ...}]}."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_cursor import JsonCursor
from memory_env.ingest.placeholders import poll
from memory_env.ingest.sources import ForeignFields, file_pieces
from memory_env.ingest.text_stream import well_formed
from memory_env.ingest.times import TimeError, parse_time

_SPOKEN = {"Default", "Reply", "0", "19", "20", "ThreadStarterMessage", "21", "ChatInputCommand"}
_JOINS = {"GuildMemberJoin", "RecipientAdd", "7", "1"}
_LEAVES = {"RecipientRemove", "2"}
_MARKUP = re.compile(r"<@!?(?P<user>\d+)>|<a?:(?P<emoji>\w+):\d+>")


def recognises(document: Any) -> bool:
    """Whether a JSON document is a Discord export."""
    return isinstance(document, dict) and isinstance(document.get("channel"), dict) and "messages" in document


def read(path: str | Path, options: ReadOptions) -> Chat:
    """Read an export. DataError with file and place."""
    return parse(JsonCursor(*file_pieces(path)), options)


def parse(cursor: JsonCursor, options: ReadOptions) -> Chat:
    """The chat of an export's document."""
    chat, names = Chat("Discord channel"), NamesById()
    header: dict[str, Any] = {}
    for key in cursor.members():
        if key != "messages":
            header[key] = cursor.value()
            if key == "channel":
                channel = ForeignFields.of(header[key], cursor.where, key)
                chat.channel_id = channel.text("id", "")
                chat.name = channel.text("name", "") or chat.channel_id or chat.name
            continue
        for place in cursor.elements(key):
            message = _message(ForeignFields.of(cursor.value(), cursor.where, place), chat, options)
            if message is not None:
                if message.speaker_id:
                    names.saw(message.speaker_id, message.speaker)
                chat.messages.append(message)
    cursor.end()
    ForeignFields.of(header, cursor.where).get("channel", dict)
    settle_names(chat, names)
    settle_channels([chat])
    return chat


def _message(item: ForeignFields, chat: Chat, options: ReadOptions) -> ChatMessage | None:
    kind = item.text("type", "Default")
    if kind not in _SPOKEN:
        chat.tally["joins" if kind in _JOINS else "leaves" if kind in _LEAVES else "system messages"] += 1
        return None
    author = ForeignFields.of(item.get("author", dict), item.where, item.at("author"))
    if author.value.get("isBot") and not options.keep_bots:
        chat.tally["messages of bots"] += 1
        return None
    content = _words(item, chat)
    forwarded = _part(item, "forwardedMessage")
    if forwarded.value:
        chat.tally["forwarded"] += 1
        content = f"[forwarded] {_words(forwarded, chat)} {content}".strip()
    if not content.strip():
        chat.tally["empty messages"] += 1
        return None
    edited = item.value.get("timestampEdited") is not None
    chat.tally["edited"] += edited
    try:
        ts = parse_time(item.text("timestamp"))
    except TimeError as error:
        raise item.error("timestamp", f"can't be read ({error})") from None
    reference = _part(item, "reference")
    speaker = author.text("nickname", "") or author.text("name", "") or "unnamed"
    return ChatMessage(
        sys.intern(speaker), content.strip(), ts, sys.intern(author.text("id", "")), item.text("id", ""), chat.name,
        reference.text("messageId", ""), edited, chat.channel_id, item.text("timestampEdited", ""),
    )  # fmt: skip


def _part(item: ForeignFields, key: str) -> ForeignFields:
    return ForeignFields.of(item.get(key, dict, {}), item.where, item.at(key))


def _words(item: ForeignFields, chat: Chat) -> str:
    """The text of a message or of one that was forwarded, with all that hangs on it."""
    text = _resolved(item.text("content", ""), item)
    parts = [text, _poll(item)]
    for key, shown in (("attachments", "fileName"), ("stickers", "name")):
        for extra in item.objects(key, []):
            chat.tally["media placeholders"] += 1
            parts.append(f"[{key[:-1]} {extra.text(shown, '')}".rstrip() + "]")
    for embed in item.objects("embeds", []):
        url = embed.text("url", "")
        # A link's preview is an embed of what the text already points to.
        if url and url in text:
            continue
        chat.tally["media placeholders"] += 1
        parts.append(_embed(embed))
    return " ".join(part for part in parts if part.strip())


def _embed(embed: ForeignFields) -> str:
    told = [embed.text("title", ""), embed.text("description", "")]
    told += [f"{field.text('name', '')}: {field.text('value', '')}" for field in embed.objects("fields", [])]
    words = " - ".join(" ".join(part.split()) for part in told if part.strip(" :"))
    return f"[embed {words}]" if words else "[embed]"


def _poll(item: ForeignFields) -> str:
    asked = _part(item, "poll")
    if not asked.value:
        return ""
    question = asked.value.get("question")
    answers = [answer.value.get("poll_media") or answer.value.get("text") for answer in asked.objects("answers", [])]
    return poll(_plain(question), [_plain(answer) for answer in answers])


def _plain(value: Any) -> str:
    """A text, or the text inside of an object."""
    text = value.get("text") if isinstance(value, dict) else value
    return well_formed(text) if isinstance(text, str) else ""


def _resolved(text: str, item: ForeignFields) -> str:
    """`text` with raw mentions and emoji as a reader sees them: the message itself says who is mentioned."""
    if "<" not in text:
        return text
    names = {
        person.text("id", ""): person.text("nickname", "") or person.text("name", "") for person in item.objects("mentions", [])
    }

    def shown(match: re.Match[str]) -> str:
        return f":{match['emoji']}:" if match["emoji"] else f"@{names.get(match['user']) or match['user']}"

    return _MARKUP.sub(shown, text)
