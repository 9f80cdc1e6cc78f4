"""A chat as its export tells it, before it is cut into sessions: what every reader of a chat format returns."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field, replace

from memory_env.ingest.times import DateOrder

_JOINERS = re.compile("[\u200c\u200d]")
DATE_ORDERS = ("auto", "dmy", "mdy", "ymd")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. `ts` is ISO 8601, with the zone where the export gives one; `speaker_id` and `channel_id` survive a
    change of name. `edited_at` is when it was edited last, where the export says so.

    Example:
        ChatMessage("Alice", "See you at eight.", "2025-03-01T19:04:00+01:00", speaker_id="user17", message_id="812")
    """

    speaker: str
    content: str
    ts: str
    speaker_id: str = ""
    message_id: str = ""
    channel: str = ""
    reply_to: str = ""
    edited: bool = False
    channel_id: str = ""
    edited_at: str = ""


@dataclass
class Chat:
    """The messages of one export, in its order.

    `tally` counts what the reader handled ("media placeholders", "deleted", "joins", ...); `notes` are assumptions that
    the user should know of; `former_names` are earlier names of members, by the name that is used now. `named` is false
    where the file doesn't say what the chat is called. `dates` is how numeric dates were read, None where there are none.
    `withdrawn` are the ids of messages that the export says were deleted.
    """

    name: str
    messages: list[ChatMessage] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    former_names: dict[str, list[str]] = field(default_factory=dict)
    channel_id: str = ""
    named: bool = True
    dates: DateOrder | None = None
    withdrawn: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class ReadOptions:
    """How to read what a file leaves open.

    date_order: of numeric dates such as 03/04/25; auto decides from the whole file. columns: our column -> the file's.
    keep_bots: messages of bots are left out (and counted) unless this is set. channel: only this channel.
    """

    date_order: str = "auto"
    keep_bots: bool = False
    channel: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    delimiter: str = ""

    def __post_init__(self) -> None:
        if self.date_order not in DATE_ORDERS:
            raise ValueError(f"date_order must be one of {', '.join(DATE_ORDERS)}, not {self.date_order!r}")


class NamesById:
    """Names by stable id: the last name that an id bore is the one used, the earlier ones are remembered.

    Example:
        names.saw("user17", "Ali"); names.saw("user17", "Alice"); names.current("user17") == "Alice"
    """

    def __init__(self) -> None:
        self._by_id: dict[str, list[str]] = {}

    def saw(self, identity: str, name: str) -> None:
        """`identity` was called `name` at this point of the export."""
        known = self._by_id.setdefault(identity, [])
        if not known or known[-1] != name:
            known.append(name)

    def knows(self, identity: str) -> bool:
        """Whether `identity` had a name so far."""
        return identity in self._by_id

    def current(self, identity: str) -> str:
        """The last name of `identity`; the id itself if it never had one."""
        known = self._by_id.get(identity)
        return known[-1] if known else identity

    def former(self) -> dict[str, list[str]]:
        """Earlier names by current name, for those who changed it."""
        found: dict[str, list[str]] = {}
        for known in self._by_id.values():
            earlier = [name for name in dict.fromkeys(known) if name != known[-1]]
            if earlier:
                found.setdefault(known[-1], []).extend(earlier)
        return found


def settle_names(chat: Chat, names: NamesById) -> None:
    """Give every message the current name of its speaker_id, and count who changed it and who shares one."""
    for place, message in enumerate(chat.messages):
        current = names.current(message.speaker_id) if message.speaker_id else message.speaker
        if current != message.speaker:
            chat.messages[place] = replace(message, speaker=current)
    chat.former_names = names.former()
    if chat.former_names:
        chat.tally["renamed members"] += len(chat.former_names)
    count_namesakes(chat)


def name_form(name: str) -> str:
    """A name for comparing: composed and decomposed letters, wide and narrow ones are the same.

    Example:
        name_form("Zoe\u0308") == name_form("Zo\u00eb")
    """
    if name.isascii():
        return name
    return " ".join(_JOINERS.sub("", unicodedata.normalize("NFKC", name)).split())


def settle_forms(chat: Chat) -> None:
    """Give members whose names differ in Unicode form alone one name: its composed form."""
    forms: dict[tuple[str, str], str] = {}
    for place, message in enumerate(chat.messages):
        if not message.speaker.isascii():
            key = name_form(message.speaker), message.speaker_id
            name = forms.setdefault(key, unicodedata.normalize("NFC", message.speaker))
            if name != message.speaker:
                chat.messages[place] = replace(message, speaker=name)


def count_namesakes(chat: Chat) -> None:
    """Count the members who share a name with another."""
    bearers: dict[str, set[str]] = {}
    for message in chat.messages:
        bearers.setdefault(message.speaker, set()).add(message.speaker_id)
    shared = sum(len(ids) for ids in bearers.values() if len(ids) > 1)
    if shared:
        chat.tally["members who share a name"] += shared


def settle_channels(chats: list[Chat]) -> None:
    """Give every message its chat's name as its channel, and its channel_id; of chats with one name the later are numbered.

    Example:
        chats called "Ann", "Ann", "" have the channels "Ann", "Ann (2)", ""
    """
    taken: set[str] = set()
    for chat in chats:
        channel, number = chat.name, 2
        while channel in taken:
            channel, number = f"{chat.name} ({number})", number + 1
        taken.add(channel)
        for place, message in enumerate(chat.messages):
            if (message.channel, message.channel_id) != (channel, chat.channel_id):
                chat.messages[place] = replace(message, channel=channel, channel_id=chat.channel_id)
