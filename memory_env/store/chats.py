"""Which chat of a memory an export belongs to, and how its dates are read: kept in the memory file, decided once.

A chat is known by its id where the export has one. Else by what is said in it: an export that shares messages with a
chat of the memory is that chat, whatever its file is called. Else by its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memory_env.ingest.chat import Chat, name_form
from memory_env.ingest.text_stream import well_formed
from memory_env.ingest.times import ASSUMED, BY_NUMBERS, instant
from memory_env.store.dates import swap_held, swapped
from memory_env.store.near import minute_of, words_key
from memory_env.store.store import MemoryStore

SHARED = 0.5
"""An export is a chat of the memory if it holds this share of what the shorter of the two has of their common time."""
SURE = 3
"""Fewer shared messages than this are believed only of chats that also share their speakers."""

# Files that are called after what they are, not after a chat.
_NAMELESS = re.compile(
    r"_?(chats?|messages?(_\d+)?|results?|exports?|conversations?|whatsapp( chat)?|history|log|data|group)?", re.IGNORECASE
)

_Print = tuple[float, str, tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class KnownChat:
    """A chat that the memory holds: its channel in the tables, its id, its name, and how its dates were read.

    Example:
        KnownChat("Family", "", "Family", "dmy", certainty=0)
    """

    channel: str
    channel_id: str
    name: str
    date_order: str
    certainty: int


def known_chats(store: MemoryStore) -> list[KnownChat]:
    """The chats of a memory, in the order of their channels."""
    query = "SELECT channel, channel_id, name, date_order, certainty FROM chats ORDER BY channel"
    return [KnownChat(*row) for row in store.connection.execute(query)]


def identified(store: MemoryStore, chat: Chat) -> Chat:
    """`chat` as the memory knows it: under its channel and id, its dates in the order that is right for both.

    A chat that is new is noted in the file. What had to be assumed or put right is added to the chat's notes.
    """
    # A file's name may hold bytes that are no Unicode.
    chat.name = well_formed(chat.name)
    known = known_chats(store)
    turned = _turned(chat, known)
    found, reading = _known_as(store, chat, [chat, turned] if turned is not None else [chat], known)
    if found is None:
        chat = _as_others(chat, turned, known)
        found = _new(chat, known)
        _note(store, found)
        return _under(chat, found)
    dates = chat.dates
    if dates is not None and turned is not None:
        differs = reading is turned or (reading is None and found.date_order not in ("", dates.order))
        if differs and dates.certainty > found.certainty:
            with store.changing() as db:
                count = swap_held(db, found.channel, found.channel_id)
            chat.notes.append(f"{count} messages known since before had day and month exchanged: put right")
        elif differs:
            chat = turned
            chat.notes.append("day and month are read as they were when the memory first read this chat")
        if dates.certainty > found.certainty or not found.date_order:
            found = replace(found, date_order=dates.order, certainty=max(dates.certainty, found.certainty))
    _note(store, replace(found, channel_id=found.channel_id or chat.channel_id))
    return _under(chat, replace(found, channel_id=found.channel_id or chat.channel_id))


def _as_others(chat: Chat, turned: Chat | None, known: Sequence[KnownChat]) -> Chat:
    """A new chat whose dates could be read in two ways, read like those of the other chats: they come from one phone."""
    orders = {each.date_order for each in known if each.date_order in ("dmy", "mdy") and each.certainty > ASSUMED}
    dates = chat.dates
    if dates is None or turned is None or dates.certainty > ASSUMED or len(orders) != 1:
        return chat
    (order,) = orders
    notes = [note for note in chat.notes if note != dates.note]
    chat = chat if order == dates.order else turned
    notes.append("the dates could be day/month or month/day: read like those of the chats that the memory holds")
    return replace(chat, notes=notes, dates=replace(dates, order=order, note=""))


def _turned(chat: Chat, known: Sequence[KnownChat]) -> Chat | None:
    """`chat` with day and month exchanged, where its order or that of what the memory holds is not certain."""
    dates = chat.dates
    if dates is None or dates.order not in ("dmy", "mdy"):
        return None
    if dates.certainty >= BY_NUMBERS and all(each.certainty >= BY_NUMBERS for each in known):
        return None
    return replace(chat, messages=[replace(message, ts=swapped(message.ts)) for message in chat.messages])


def _under(chat: Chat, known: KnownChat) -> Chat:
    """`chat` with its messages under the channel that the memory calls it by."""
    chat.channel_id = known.channel_id
    for place, message in enumerate(chat.messages):
        if (message.channel, message.channel_id) != (known.channel, known.channel_id):
            chat.messages[place] = replace(message, channel=known.channel, channel_id=known.channel_id)
    return chat


def _note(store: MemoryStore, known: KnownChat) -> None:
    with store.changing() as db:
        row = (known.channel, known.channel_id, known.name, known.date_order, known.certainty)
        db.execute("INSERT OR REPLACE INTO chats VALUES (?, ?, ?, ?, ?)", row)


def _new(chat: Chat, known: Sequence[KnownChat]) -> KnownChat:
    taken = {each.channel for each in known}
    channel = name = chat.name if not chat.messages or not chat.messages[0].channel else chat.messages[0].channel
    number = 2
    while channel in taken:
        channel, number = f"{name} ({number})", number + 1
    order, certainty = (chat.dates.order, chat.dates.certainty) if chat.dates else ("", 0)
    return KnownChat(channel, chat.channel_id, chat.name, order, certainty)


def _known_as(
    store: MemoryStore, chat: Chat, readings: Sequence[Chat], known: Sequence[KnownChat]
) -> tuple[KnownChat | None, Chat | None]:
    """The chat of the memory that `chat` is, and which reading of its dates showed it; (None, None) for a new one."""
    if chat.channel_id:
        by_id = next((each for each in known if each.channel_id == chat.channel_id), None)
        # Files of the first format kept no ids.
        named = next((each for each in known if not each.channel_id and each.channel == chat.name), None)
        return by_id or named, None
    listed = {message.channel for message in chat.messages} - {""}
    if listed:
        return next((each for each in known if not each.channel_id and each.channel in listed), None), None
    candidates = [each for each in known if not each.channel_id]
    best: tuple[float, KnownChat, Chat] | None = None
    for reading in readings:
        for each in candidates:
            score = _shared(store, each, reading)
            if score > 0 and (best is None or score > best[0]):
                best = score, each, reading
    if best is not None:
        return best[1], best[2]
    return next((each for each in candidates if _bears_the_name(store, chat, each)), None), None


def _shared(store: MemoryStore, known: KnownChat, chat: Chat) -> float:
    """How many messages a chat of the memory shares with an export; 0 where that makes them no one chat."""
    times = [at for message in chat.messages if (at := instant(message.ts)) is not None]
    undated = len(times) < len(chat.messages)
    low, high = (min(times) // 60 * 60, max(times) + 60) if times else (0.0, 0.0)
    forms = {name: name_form(speaker) for name, speaker, _ in store.members()}
    rows = store.connection.execute(
        "SELECT at, speaker, content FROM messages WHERE channel = ? AND (at BETWEEN ? AND ? OR (? AND at IS NULL))",
        (known.channel, low, high, undated),
    ).fetchall()
    if not rows:
        return 0.0
    dated = [row[0] for row in rows if row[0] is not None]
    begin, end = min(dated, default=0.0), max(dated, default=0.0)
    inside = [m for m in chat.messages if (at := instant(m.ts)) is None or begin - 60 <= at <= end + 60]
    held = Counter(_prints((at, forms.get(speaker, speaker), content) for at, speaker, content in rows))
    told = Counter(_prints((instant(m.ts), name_form(m.speaker), m.content) for m in inside))
    common = (held & told).total()
    if common < SHARED * min(held.total(), told.total()):
        return 0.0
    # All that is held of that time, or speakers in common, make few messages enough.
    speakers = {form for _, form, _ in held} & {form for _, form, _ in told}
    everyone = {name_form(message.speaker) for message in chat.messages}
    enough = common >= SURE or common == held.total() or len(speakers) > 1 or speakers == everyone
    return float(common) if enough else 0.0


def _prints(said: Iterable[tuple[float | None, str, str]]) -> Iterable[_Print]:
    return ((minute_of(at), speaker, words_key(content)) for at, speaker, content in said)


def _bears_the_name(store: MemoryStore, chat: Chat, known: KnownChat) -> bool:
    """Whether an export that shares no message with a chat goes on with it, by its name and, without one, its speakers."""
    if chat.name != known.name:
        return False
    if chat.named and not _NAMELESS.fullmatch(chat.name):
        return True
    # Without a name of its own it must have the speakers, and none of the time: that would have shown the same messages.
    times = [at for message in chat.messages if (at := instant(message.ts)) is not None]
    spans = "SELECT 1 FROM messages WHERE channel = ? AND at BETWEEN ? AND ? LIMIT 1"
    if times and store.connection.execute(spans, (known.channel, min(times), max(times))).fetchone() is not None:
        return False
    query = "SELECT DISTINCT speaker FROM messages WHERE channel = ?"
    forms = {name: name_form(speaker) for name, speaker, _ in store.members()}
    held = {forms.get(name, name) for (name,) in store.connection.execute(query, (known.channel,))}
    told = {name_form(message.speaker) for message in chat.messages}
    return not held or 2 * len(held & told) >= min(len(held), len(told)) and bool(held & told)
