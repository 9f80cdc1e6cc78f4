"""Slack's workspace export: a folder or zip with users.json, channels.json and CHANNEL/YYYY-MM-DD.json."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, count_namesakes
from memory_env.ingest.slack_blocks import block_text
from memory_env.ingest.sources import Folder, ForeignFields
from memory_env.ingest.times import TimeError, from_epoch

_DAY = re.compile(r"^(?:.*/)?([^/]+)/(\d{4}-\d{2}-\d{2})\.json$")
_MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_JOINS = {"channel_join", "group_join"}
_LEAVES = {"channel_leave", "group_leave"}
_SPOKEN = {"", "thread_broadcast", "file_share", "me_message", "bot_message", "reply_broadcast"}


def recognises(names: list[str]) -> bool:
    """Whether a folder's file names are those of a Slack export."""
    return any(Path(name).name == "users.json" for name in names) and any(_DAY.match(name) for name in names)


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read an export, one chat per channel. DataError with file and place."""
    folder = Folder(path)
    files = folder.names()
    users = _users(folder, files)
    days: dict[str, list[str]] = {}
    for name in files:
        day = _DAY.match(name)
        if day and options.channel in ("", day[1]):
            days.setdefault(day[1], []).append(name)
    if not days:
        wanted = f"channel {options.channel!r}" if options.channel else "a channel's days (CHANNEL/YYYY-MM-DD.json)"
        raise DataError(f"{path}: holds no {wanted}; is this a Slack export?")
    ids = _channel_ids(folder, files)
    chats = [
        _channel(folder, Chat(channel, channel_id=ids.get(channel, "")), sorted(names), users, options)
        for channel, names in sorted(days.items())
    ]
    users.resolve(chats)
    return chats


class _Users:
    """Slack's users: names by id, and who is a bot."""

    def __init__(self) -> None:
        self.names = NamesById()
        self.bots: set[str] = set()
        self._unknown: set[str] = set()

    def name(self, identity: str) -> str:
        """The name of a user; the id itself as long as no name is known."""
        if not self.names.knows(identity):
            self._unknown.add(identity)
        return self.names.current(identity)

    def resolve(self, chats: list[Chat]) -> None:
        """Name those who were mentioned before a message of their own gave their name, such as guests."""
        late = [identity for identity in self._unknown if identity and self.names.knows(identity)]
        for chat in chats if late else ():
            for place, message in enumerate(chat.messages):
                content = message.content
                for identity in late:
                    content = content.replace(f"@{identity}", f"@{self.names.current(identity)}")
                if content != message.content:
                    chat.messages[place] = replace(message, content=content)


def _users(folder: Folder, files: list[str]) -> _Users:
    users = _Users()
    for name in files:
        if Path(name).name != "users.json":
            continue
        where = f"{folder.path}/{name}"
        document = folder.json(name)
        if not isinstance(document, list):
            raise DataError(f"{where}: is no list of users")
        for index, value in enumerate(document):
            user = ForeignFields.of(value, where, f"[{index}]")
            identity = user.text("id")
            profile = ForeignFields.of(user.get("profile", dict, {}), where, user.at("profile"))
            shown = profile.text("display_name", "") or profile.text("real_name", "") or user.text("real_name", "")
            users.names.saw(identity, shown or user.text("name", "") or identity)
            if user.value.get("is_bot") or identity == "USLACKBOT":
                users.bots.add(identity)
    return users


def _channel_ids(folder: Folder, files: list[str]) -> dict[str, str]:
    """The ids of channels by name; direct messages have their id for a name."""
    ids: dict[str, str] = {}
    for name in files:
        if Path(name).name in ("channels.json", "groups.json", "mpims.json"):
            where, document = f"{folder.path}/{name}", folder.json(name)
            for index, value in enumerate(document if isinstance(document, list) else ()):
                channel = ForeignFields.of(value, where, f"[{index}]")
                ids[channel.text("name", "")] = channel.text("id", "")
    return ids


def _channel(folder: Folder, chat: Chat, files: list[str], users: _Users, options: ReadOptions) -> Chat:
    for name in files:
        where = f"{folder.path}/{name}"
        document = folder.json(name)
        if not isinstance(document, list):
            raise DataError(f"{where}: is no list of messages")
        for index, value in enumerate(document):
            message = _message(ForeignFields.of(value, where, f"[{index}]"), chat, users, options)
            if message is not None:
                chat.messages.append(message)
    count_namesakes(chat)
    return chat


def _message(item: ForeignFields, chat: Chat, users: _Users, options: ReadOptions) -> ChatMessage | None:
    subtype = item.text("subtype", "")
    if item.text("type", "message") != "message" or subtype not in _SPOKEN:
        deleted = subtype in ("tombstone", "message_deleted")
        kind = "joins" if subtype in _JOINS else "leaves" if subtype in _LEAVES else "deleted" if deleted else "system messages"
        if deleted:
            chat.withdrawn.add(item.text("deleted_ts", "") or item.text("ts", ""))
        chat.tally[kind] += 1
        return None
    identity = item.text("user", "") or item.text("bot_id", "")
    if (subtype == "bot_message" or "bot_id" in item.value or identity in users.bots) and not options.keep_bots:
        chat.tally["messages of bots"] += 1
        return None
    content = _plain(item.text("text", ""), users)
    if not content.strip():
        content = block_text(item.get("blocks", list, []), users.name)
    content = " ".join(part for part in (content, *_attached(item, content, users)) if part.strip())
    for file in item.objects("files", []):
        chat.tally["media placeholders"] += 1
        content = f"{content} [file {file.text('name', '') or file.text('title', '')}".rstrip() + "]"
    if not content.strip():
        chat.tally["empty messages"] += 1
        return None
    edited = "edited" in item.value
    chat.tally["edited"] += edited
    stamp, thread = item.text("ts"), item.text("thread_ts", "")
    try:
        ts = from_epoch(float(stamp))
    except (TimeError, ValueError) as error:
        raise item.error("ts", f"can't be read ({error})") from None
    speaker = _speaker(item, identity, users)
    reply = thread if thread != stamp else ""
    return ChatMessage(
        sys.intern(speaker), content.strip(), ts, sys.intern(identity), stamp, chat.name, reply, edited, chat.channel_id,
        ForeignFields.of(item.get("edited", dict, {}), item.where, item.at("edited")).text("ts", ""),
    )  # fmt: skip


def _attached(item: ForeignFields, content: str, users: _Users) -> Iterator[str]:
    """Messages of another channel that were shared, and apps' cards; not the previews of links that the text gives."""
    for part in item.objects("attachments", []):
        if part.text("from_url", "") and part.text("from_url") in content and not part.value.get("is_msg_unfurl"):
            continue
        told = [part.text("pretext", ""), part.text("title", ""), part.text("text", "")]
        told += [f"{field.text('title', '')}: {field.text('value', '')}" for field in part.objects("fields", [])]
        told = [_plain(text, users) for text in told if text.strip(" :")]
        if not told:
            told = [block_text(part.get("blocks", list, []), users.name) or _plain(part.text("fallback", ""), users)]
        if any(told):
            yield f"[shared: {' - '.join(told)}]"


def _speaker(item: ForeignFields, identity: str, users: _Users) -> str:
    """A user's name; guests of another workspace stand only in the message's own `user_profile`."""
    if not identity:
        return item.text("username", "") or "unknown"
    profile = ForeignFields.of(item.get("user_profile", dict, {}), item.where, item.at("user_profile"))
    guest = profile.text("display_name", "") or profile.text("real_name", "") or profile.text("name", "")
    if guest and not users.names.knows(identity):
        users.names.saw(identity, guest)
    return users.name(identity)


def _plain(text: str, users: _Users) -> str:
    """Slack's <@U1>, <#C1|name>, <url|label> and &amp; as a reader sees them."""

    def shown(match: re.Match[str]) -> str:
        sigil, target, label = match.groups()
        if sigil == "@":
            return f"@{label or users.name(target)}"
        if sigil == "#":
            return f"#{label or target}"
        if sigil == "!":
            return f"@{label or target}".replace("@@", "@")
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_MARKUP.sub(shown, text))
