"""Discord channels as JSON in the layout of DiscordChatExporter: {guild, channel, messages[{timestamp, author, ...}]}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env.ingest.chat import Chat, ChatMessage, Names, ReadOptions, settle_names
from memory_env.ingest.sources import Item, read_chat_json
from memory_env.ingest.times import TimeError, parse_time

_SPOKEN = {"Default", "Reply", "0", "19", "ThreadStarterMessage", "ChatInputCommand"}
_JOINS = {"GuildMemberJoin", "RecipientAdd", "7", "1"}
_LEAVES = {"RecipientRemove", "2"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is a Discord export."""
    return isinstance(document, dict) and isinstance(document.get("channel"), dict) and "messages" in document


def read(path: str | Path, options: ReadOptions) -> Chat:
    """Read an export. DataError with file and place."""
    return parse(read_chat_json(path), str(path), options)


def parse(document: Any, where: str, options: ReadOptions) -> Chat:
    """The chat of an export's document; `where` names it in errors."""
    fields = Item.of(document, where)
    channel = Item.of(fields.get("channel", dict), where, "channel")
    chat, names = Chat(channel.text("name", "") or channel.text("id", "") or "Discord channel"), Names()
    for item in fields.objects("messages"):
        kind = item.text("type", "Default")
        if kind not in _SPOKEN:
            chat.tally["joins" if kind in _JOINS else "leaves" if kind in _LEAVES else "system messages"] += 1
            continue
        message = _message(item, chat, options)
        if message is not None:
            if message.speaker_id:
                names.saw(message.speaker_id, message.speaker)
            chat.messages.append(message)
    settle_names(chat, names)
    return chat


def _message(item: Item, chat: Chat, options: ReadOptions) -> ChatMessage | None:
    author = Item.of(item.get("author", dict), item.where, item.at("author"))
    if author.value.get("isBot") and not options.keep_bots:
        chat.tally["messages of bots"] += 1
        return None
    content = item.text("content", "")
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
        speaker, content.strip(), ts, author.text("id", ""), item.text("id", ""), chat.name,
        reference.text("messageId", ""), edited,
    )  # fmt: skip
