"""Telegram Desktop's JSON export (result.json): one chat, or all chats of an account."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, Names, ReadOptions, settle_names
from memory_env.ingest.sources import Folder, Item, read_chat_json
from memory_env.ingest.times import TimeError, from_epoch, instant, parse_time

_JOINS = {"invite_members", "join_group_by_link", "join_group_by_request", "create_group", "create_channel"}
_LEAVES = {"remove_members"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is a Telegram export."""
    if not isinstance(document, dict):
        return False
    messages = document.get("messages")
    if isinstance(messages, list):
        return any(isinstance(item, dict) and {"date", "type"} <= item.keys() and "id" in item for item in messages[:5])
    return isinstance(document.get("chats"), dict) and isinstance(document["chats"].get("list"), list)


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read an export. DataError with file and place."""
    path = Path(path)
    if path.is_dir() or path.suffix.lower() == ".zip":
        return parse(Folder(path).json("result.json", _slim), f"{path}/result.json", options)
    return parse(read_chat_json(path, _slim), str(path), options)


def parse(document: Any, where: str, options: ReadOptions) -> list[Chat]:
    """The chats of an export's document; `where` names it in errors."""
    fields = Item.of(document, where)
    if "chats" in fields.value:
        listed = Item.of(fields.get("chats", dict), where, "chats")
        chats = [_chat(item, options) for item in listed.objects("list")]
        return [chat for chat in chats if chat.messages]
    return [_chat(fields, options)]


def _slim(value: dict[str, Any]) -> dict[str, Any]:
    """A JSON object without what no reader needs: `text_entities` says the text a second time, with its markup."""
    value.pop("text_entities", None)
    value.pop("reactions", None)
    for key in ("from", "from_id", "type"):
        if isinstance(value.get(key), str):
            value[key] = sys.intern(value[key])
    return value


def _chat(fields: Item, options: ReadOptions) -> Chat:
    chat = Chat(fields.text("name", "") or fields.text("id", "") or "Telegram chat")
    names = Names()
    for item in fields.objects("messages"):
        if item.text("type", "message") != "message":
            action = item.text("action", "")
            chat.tally["joins" if action in _JOINS else "leaves" if action in _LEAVES else "system messages"] += 1
            continue
        message = _message(item, chat, options)
        if message is not None:
            if message.speaker_id:
                names.saw(message.speaker_id, message.speaker)
            chat.messages.append(message)
    settle_names(chat, names)
    return chat


def _message(item: Item, chat: Chat, options: ReadOptions) -> ChatMessage | None:
    identity = item.text("from_id", "")
    speaker = item.text("from", "")
    if not speaker:
        speaker = "Deleted account" if not identity else f"Deleted account {identity.removeprefix('user')}"
        chat.tally["messages of deleted accounts"] += 1
    # Telegram demands that a bot's user name ends in "bot"; the export gives display names, which mostly follow.
    if speaker.lower().endswith("bot") and not options.keep_bots:
        chat.tally["messages of bots"] += 1
        return None
    content = _text(item)
    placeholder = _placeholder(item)
    if placeholder:
        chat.tally["media placeholders"] += 1
        content = f"{placeholder} {content}".strip()
    if item.value.get("forwarded_from"):
        chat.tally["forwarded"] += 1
        content = f"[forwarded from {item.text('forwarded_from')}] {content}"
    if not content.strip():
        chat.tally["empty messages"] += 1
        return None
    edited = "edited" in item.value
    chat.tally["edited"] += edited
    return ChatMessage(
        speaker, content, _time(item), identity, item.text("id", ""), chat.name,
        item.text("reply_to_message_id", ""), edited,
    )  # fmt: skip


def _text(item: Item) -> str:
    """`text` is a string, or a list of strings and {"type", "text"} objects."""
    value = item.value.get("text", "")
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise item.error("text", "must be a string or a list")
    parts = [part if isinstance(part, str) else part.get("text", "") if isinstance(part, dict) else "" for part in value]
    return "".join(part for part in parts if isinstance(part, str))


def _placeholder(item: Item) -> str:
    kind = item.text("media_type", "")
    if kind == "sticker":
        return f"[sticker {item.text('sticker_emoji', '')}".strip() + "]"
    if kind:
        return f"[{kind.replace('_', ' ')}]"
    if "photo" in item.value:
        return "[photo]"
    if "poll" in item.value:
        poll = Item.of(item.get("poll", dict, {}), item.where, item.at("poll"))
        return f"[poll: {poll.text('question', '')}]"
    if "location_information" in item.value:
        return "[location]"
    if "contact_information" in item.value:
        return "[contact]"
    return f"[file {item.text('file_name', '')}".strip() + "]" if "file" in item.value else ""


def _time(item: Item) -> str:
    """`date` is local time without a zone; with `date_unixtime` beside it the zone is known."""
    local, epoch = item.text("date", ""), item.text("date_unixtime", "")
    try:
        local = parse_time(local) if local else ""
        if not epoch:
            if not local:
                raise item.error("date", "is missing; export with dates")
            return local
        seconds = int(float(epoch))
        offset = round(((instant(local) or seconds) - seconds) / 60) if local else 0
        return from_epoch(seconds, offset if abs(offset) <= 14 * 60 else 0)
    except DataError:
        raise
    except (TimeError, ValueError) as error:
        raise item.error("date", f"can't be read ({error})") from None
