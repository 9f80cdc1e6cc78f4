"""Messages as people write them in Python, as the memory reads them: checked once, with one clear error.

A message is a ChatMessage, a dict, a tuple (speaker, content, ts[, ...]) or any object with those attributes, such as a
dataclass of your own. `ts` is a datetime or ISO 8601 text; other names that chat programs use (author, text, time, ...) are
understood too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest import Chat, ChatMessage, ReadOptions, read_source
from memory_env.ingest.text_stream import well_formed
from memory_env.ingest.times import TimeError, instant, parse_time

Message = ChatMessage | Mapping[str, Any] | Sequence[Any] | object
"""What `Memory.remember` takes for one message."""

_FIELDS = {each.name: each for each in fields(ChatMessage)}
_ORDER = ("speaker", "content", "ts", "speaker_id", "message_id", "channel", "reply_to")
_ALIASES = {
    "author": "speaker", "sender": "speaker", "name": "speaker", "user": "speaker", "from": "speaker",
    "text": "content", "body": "content", "message": "content",
    "time": "ts", "timestamp": "ts", "date": "ts", "datetime": "ts", "created_at": "ts", "at": "ts",
    "id": "message_id", "user_id": "speaker_id", "author_id": "speaker_id", "chat": "channel",
}  # fmt: skip


def as_messages(source: Iterable[Message], channel: str = "") -> list[ChatMessage]:
    """`source` as messages; `channel` is that of messages that name none.

    Raises DataError that names the place and the key for what is no message.

    Example:
        as_messages([("Alice", "hello", datetime(2025, 3, 1, 10))])
        == [ChatMessage("Alice", "hello", "2025-03-01T10:00:00")]
    """
    if isinstance(source, (Mapping, ChatMessage)) or not isinstance(source, Iterable):
        raise DataError(f"messages: give a list of messages, not one {type(source).__name__}")
    return [as_message(message, f"messages[{place}]", channel) for place, message in enumerate(source)]


def as_message(message: Message, where: str = "message", channel: str = "") -> ChatMessage:
    """One message (see `as_messages`)."""
    values = {name: value for name, value in _values(message, where).items() if value is not None}
    for name in ("speaker", "content", "ts"):
        if name not in values:
            raise DataError(f"{where}: has no {name}; a message is speaker, content and ts (a datetime or ISO 8601)")
    values["ts"] = _time(values["ts"], where)
    for name, value in values.items():
        values[name] = _checked(name, value, where)
    if not values["speaker"].strip():
        raise DataError(f"{where}: speaker is empty; name who said it")
    values["channel"] = values.get("channel") or channel
    return ChatMessage(**values)


def _values(message: Message, where: str) -> dict[str, Any]:
    if isinstance(message, ChatMessage) or (is_dataclass(message) and not isinstance(message, type)):
        return _named({each.name: getattr(message, each.name) for each in fields(message)}, where, strict=False)
    if isinstance(message, Mapping):
        return _named(message, where, strict=True)
    if isinstance(message, (str, bytes)):
        raise DataError(f"{where}: is text alone; say who said it and when: (speaker, content, ts)")
    if isinstance(message, Sequence):
        if not 3 <= len(message) <= len(_ORDER):
            raise DataError(f"{where}: has {len(message)} parts; write it as ({', '.join(_ORDER)}), the first three at least")
        return dict(zip(_ORDER, message, strict=False))
    names = [name for name in (*_FIELDS, *_ALIASES) if hasattr(message, name)]
    if not names:
        raise DataError(f"{where}: a {type(message).__name__} is no message; give a dict, a tuple or a ChatMessage")
    return _named({name: getattr(message, name) for name in names}, where, strict=False)


def _named(given: Mapping[str, Any], where: str, strict: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key if key in _FIELDS else _ALIASES.get(key, "")
        if name and (name not in values or key in _FIELDS):
            values[name] = value
        elif strict and not name:
            raise DataError(f"{where}: knows no key {key!r}; there are {', '.join(_FIELDS)}")
    return values


def _time(value: Any, where: str) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise DataError(f"{where}: ts must be a datetime or text, not {type(value).__name__}")
    if isinstance(value, str) and instant(value) is not None:
        return value
    try:
        return parse_time(str(value))
    except TimeError as error:
        raise DataError(f"{where}: ts: {error}; write it like 2025-03-01T18:30") from None


def _checked(name: str, value: Any, where: str) -> Any:
    if name == "edited" and isinstance(value, bool):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and name.endswith("_id"):
        return str(value)
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} must be text, not {type(value).__name__}")
    return well_formed(value)


def read_chats(source: str | Path, format: str, options: ReadOptions, counts: dict[str, int]) -> list[Chat]:
    """The chats of an export; `counts` gets how many messages were handled in which way. DataError for what can't be read."""
    read = read_source(source, format, options)
    for chat in read.chats:
        for what, count in chat.tally.items():
            counts[what] = counts.get(what, 0) + count
    # Benchmarks come as networks; their messages are remembered like any others.
    told = [
        Chat(
            network.network_id,
            [
                ChatMessage(
                    message.speaker,
                    message.content,
                    message.ts,
                    message.speaker_id,
                    message.turn_id,
                    network.network_id,
                    message.reply_to,
                )
                for message in network.messages
            ],
        )
        for network in read.networks
    ]
    for chat in told:
        chat.messages = [_well_formed(message) for message in chat.messages]
    return [*read.chats, *told]


def _well_formed(message: ChatMessage) -> ChatMessage:
    texts = {each.name: getattr(message, each.name) for each in fields(message) if each.type == "str"}
    whole: dict[str, Any] = {name: well_formed(text) for name, text in texts.items()}
    return message if whole == texts else replace(message, **whole)
