"""Telegram Desktop's JSON export (result.json): one chat, or all chats of an account."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, Names, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_cursor import JsonCursor
from memory_env.ingest.sources import Folder, Item, file_pieces
from memory_env.ingest.text_stream import well_formed
from memory_env.ingest.times import TimeError, from_epoch, instant, parse_time

_JOINS = {"invite_members", "join_group_by_link", "join_group_by_request", "create_group", "create_channel"}
_LEAVES = {"remove_members"}
# A bot's user name ends in "bot" by Telegram's rule; the export gives display names, which mostly follow ("RemindBot",
# "Quiz bot"). A surname such as Talbot is none.
_BOT = re.compile(r"(?:\wB|[\W_][Bb]|^[Bb])ot$|(?:^|[\W_])BOT$")


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
    path, member = Path(path), "result.json"
    if path.is_dir() or path.suffix.lower() == ".zip":
        member = find_member(Folder(path).names()) or member
    return parse(JsonCursor(*file_pieces(path, member)), options)


def find_member(names: list[str]) -> str:
    """The one result.json of a folder or archive; "" if there is none, or there are several."""
    found = [name for name in names if Path(name).name == "result.json"]
    return found[0] if len(found) == 1 else ""


def parse(cursor: JsonCursor, options: ReadOptions) -> list[Chat]:
    """The chats of an export's document."""
    alone, chats, account = _ChatReader(cursor, options), [], False
    for key in cursor.members():
        if key in ("chats", "left_chats"):
            account = True
            chats += [chat for chat in _listed(cursor, key, options) if chat.messages]
        else:
            alone.take(key, key)
    cursor.end()
    if not account:
        chats = [alone.finish()]
    settle_channels(chats)
    return chats


def _listed(cursor: JsonCursor, key: str, options: ReadOptions) -> Iterator[Chat]:
    """The chats of `{"about": ..., "list": [...]}`."""
    for inner in cursor.members(key):
        if inner != "list":
            cursor.value()
            continue
        for place in cursor.elements(f"{key}.list"):
            reader = _ChatReader(cursor, options, place)
            for member in cursor.members(place):
                reader.take(member, f"{place}.{member}")
            yield reader.finish()


class _ChatReader:
    """One chat, read key by key."""

    def __init__(self, cursor: JsonCursor, options: ReadOptions, place: str = ""):
        self._cursor, self._options, self._place = cursor, options, place
        self._chat, self._names = Chat("Telegram chat"), Names()
        self._header: dict[str, Any] = {}
        self._heard = False

    def take(self, key: str, place: str) -> None:
        """Read the value of `key`."""
        if key == "messages":
            self._heard = True
            for where in self._cursor.elements(place):
                self._add(Item.of(self._cursor.value(), self._cursor.where, where))
        elif key in ("name", "id"):
            self._header[key] = self._cursor.value()
            header = Item.of(self._header, self._cursor.where, self._place)
            self._chat.channel_id = header.text("id", "")
            self._chat.name = header.text("name", "") or self._chat.channel_id or self._chat.name
        else:
            self._cursor.value()

    def finish(self) -> Chat:
        """The chat. DataError if it had no messages."""
        if not self._heard:
            Item.of({}, self._cursor.where, self._place).get("messages", list)
        settle_names(self._chat, self._names)
        return self._chat

    def _add(self, item: Item) -> None:
        if item.text("type", "message") != "message":
            action = item.text("action", "")
            self._chat.tally["joins" if action in _JOINS else "leaves" if action in _LEAVES else "system messages"] += 1
            return
        message = _message(item, self._chat, self._options)
        if message is not None:
            if message.speaker_id:
                self._names.saw(message.speaker_id, message.speaker)
            self._chat.messages.append(message)


def _message(item: Item, chat: Chat, options: ReadOptions) -> ChatMessage | None:
    identity = item.text("from_id", "")
    speaker = item.text("from", "")
    if not speaker:
        speaker = "Deleted account" if not identity else f"Deleted account {identity.removeprefix('user')}"
        chat.tally["messages of deleted accounts"] += 1
    if _BOT.search(speaker) and not options.keep_bots:
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
    # Old versions wrote "edited": "1970-01-01T..." for what was never edited.
    edited = not item.text("edited", "1970").startswith("1970")
    chat.tally["edited"] += edited
    return ChatMessage(
        sys.intern(speaker), content, _time(item), sys.intern(identity), item.text("id", ""), chat.name,
        item.text("reply_to_message_id", ""), edited, chat.channel_id,
    )  # fmt: skip


def _text(item: Item) -> str:
    """`text` is a string, or a list of strings and {"type", "text"} objects."""
    value = item.value.get("text", "")
    if value is None or isinstance(value, str):
        return well_formed(value or "")
    if not isinstance(value, list):
        raise item.error("text", "must be a string or a list")
    parts = [part if isinstance(part, str) else part.get("text", "") if isinstance(part, dict) else "" for part in value]
    return well_formed("".join(part for part in parts if isinstance(part, str)))


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
