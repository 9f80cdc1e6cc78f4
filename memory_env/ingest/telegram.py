"""Telegram Desktop's JSON export (result.json): one chat, or all chats of an account."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, settle_channels, settle_names
from memory_env.ingest.json_cursor import JsonCursor
from memory_env.ingest.placeholders import poll
from memory_env.ingest.sources import Folder, ForeignFields, file_pieces
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
    path = Path(path)
    members = [""]
    if path.is_dir() or path.suffix.lower() == ".zip":
        members = find_members(Folder(path).names()) or ["result.json"]
    chats = [chat for member in members for chat in parse(JsonCursor(*file_pieces(path, member)), options)]
    settle_channels(chats)
    return chats


def find_members(names: list[str]) -> list[str]:
    """The exports of a folder or archive: its outermost result.json files. One deeper down was sent in a chat."""
    found = [name for name in names if Path(name).name == "result.json"]
    outermost = min((name.count("/") for name in found), default=0)
    return [name for name in found if name.count("/") == outermost]


def parse(cursor: JsonCursor, options: ReadOptions) -> list[Chat]:
    """The chats of an export's document."""
    alone, chats, account = _ChatReader(cursor, options), [], False
    for key in cursor.members():
        if key in ("chats", "left_chats"):
            account = True
            chats += [chat for chat in _chats(cursor, key, options) if chat.messages]
        else:
            alone.take(key, key)
    cursor.end()
    if not account:
        chats = [alone.finish()]
    settle_channels(chats)
    return chats


def _chats(cursor: JsonCursor, key: str, options: ReadOptions) -> Iterator[Chat]:
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
        self._chat, self._names = Chat("Telegram chat"), NamesById()
        self._header: dict[str, Any] = {}
        self._heard = False

    def take(self, key: str, place: str) -> None:
        """Read the value of `key`."""
        if key == "messages":
            self._heard = True
            for where in self._cursor.elements(place):
                self._add(ForeignFields.of(self._cursor.value(), self._cursor.where, where))
        elif key in ("name", "id"):
            self._header[key] = self._cursor.value()
            header = ForeignFields.of(self._header, self._cursor.where, self._place)
            self._chat.channel_id = header.text("id", "")
            self._chat.name = header.text("name", "") or self._chat.channel_id or self._chat.name
        else:
            self._cursor.value()

    def finish(self) -> Chat:
        """The chat. DataError if it had no messages."""
        if not self._heard:
            ForeignFields.of({}, self._cursor.where, self._place).get("messages", list)
        settle_names(self._chat, self._names)
        return self._chat

    def _add(self, item: ForeignFields) -> None:
        if item.text("type", "message") != "message":
            action = item.text("action", "")
            self._chat.tally["joins" if action in _JOINS else "leaves" if action in _LEAVES else "system messages"] += 1
            return
        message = _message(item, self._chat, self._options)
        if message is not None:
            if message.speaker_id:
                self._names.saw(message.speaker_id, message.speaker)
            self._chat.messages.append(message)


def _message(item: ForeignFields, chat: Chat, options: ReadOptions) -> ChatMessage | None:
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
    # The author of a forwarded message is null once the account is gone; the words are still not the forwarder's.
    if "forwarded_from" in item.value or "forwarded_from_id" in item.value:
        chat.tally["forwarded"] += 1
        author = item.text("forwarded_from", "")
        content = f"[forwarded{f' from {author}' if author else ''}] {content}"
    if not content.strip():
        chat.tally["empty messages"] += 1
        return None
    # Old versions wrote "edited": "1970-01-01T..." for what was never edited.
    edited = not item.text("edited", "1970").startswith("1970")
    chat.tally["edited"] += edited
    return ChatMessage(
        sys.intern(speaker), content, _time(item), sys.intern(identity), item.text("id", ""), chat.name,
        item.text("reply_to_message_id", ""), edited, chat.channel_id, item.text("edited", "") if edited else "",
    )  # fmt: skip


def _text(item: ForeignFields, key: str = "text") -> str:
    """`key` is a string, or a list of strings and {"type", "text"} objects."""
    value = item.value.get(key)
    if key == "text" and value in (None, ""):
        value = item.value.get("text_entities")
    if value is None or isinstance(value, str):
        return well_formed(value or "")
    if not isinstance(value, list):
        raise item.error(key, "must be a string or a list")
    parts = [part if isinstance(part, str) else part.get("text", "") if isinstance(part, dict) else "" for part in value]
    return well_formed("".join(part for part in parts if isinstance(part, str)))


def _placeholder(item: ForeignFields) -> str:
    """What stands for all that a message holds besides its text."""
    kind = item.text("media_type", "")
    if kind == "sticker":
        return f"[sticker {item.text('sticker_emoji', '')}".strip() + "]"
    if kind:
        return f"[{kind.replace('_', ' ')}]"
    if "photo" in item.value:
        return "[photo]"
    structured = next((show(item) for key, show in _STRUCTURED.items() if item.value.get(key)), "")
    return structured or (f"[file {item.text('file_name', '')}".strip() + "]" if "file" in item.value else "")


def _part(item: ForeignFields, key: str) -> ForeignFields:
    return ForeignFields.of(item.get(key, dict, {}), item.where, item.at(key))


def _listed(what: str, *words: str) -> str:
    told = ", ".join(word for word in words if word)
    return f"[{what}: {told}]" if told else f"[{what}]"


def _poll(item: ForeignFields) -> str:
    asked = _part(item, "poll")
    return poll(_text(asked, "question"), [_text(answer) for answer in asked.objects("answers", [])])


def _to_do(item: ForeignFields) -> str:
    tasks = _part(item, "todo_list")
    lists = (tasks.objects(key, []) for key in ("answers", "items", "tasks"))
    return _listed("to-do list", "; ".join([_text(tasks, "title"), *(_text(task) for tasks in lists for task in tasks)]))


def _location(item: ForeignFields) -> str:
    place = _part(item, "location_information")
    named = item.text("place_name", ""), item.text("address", "")
    return _listed("location", *(named if any(named) else (place.text("latitude", ""), place.text("longitude", ""))))


def _contact(item: ForeignFields) -> str:
    contact = _part(item, "contact_information")
    name = f"{contact.text('first_name', '')} {contact.text('last_name', '')}".strip()
    return _listed("contact", name, contact.text("phone_number", ""))


def _invoice(item: ForeignFields) -> str:
    invoice = _part(item, "invoice_information")
    return _listed("invoice", invoice.text("title", ""), invoice.text("description", ""))


_STRUCTURED: dict[str, Callable[[ForeignFields], str]] = {
    "poll": _poll,
    "todo_list": _to_do,
    "location_information": _location,
    "contact_information": _contact,
    "invoice_information": _invoice,
    "game_title": lambda item: _listed("game", item.text("game_title"), item.text("game_description", "")),
}


def _time(item: ForeignFields) -> str:
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
