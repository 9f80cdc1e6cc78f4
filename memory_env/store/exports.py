"""Taking an export into a memory: what is new of it, as segments, and what it changes of what the memory holds.

An export may have grown, be older than the last one, come from another phone, or be the same again. Each of its messages
is held once, whichever export told it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memory_env.ingest.chat import Chat, ChatMessage, name_form
from memory_env.ingest.sessions import GAP_HOURS, MOST_MESSAGES, without_repeats
from memory_env.ingest.times import instant
from memory_env.store.changes import Changes, Edit, apply_edits, is_newer, rename, withdraw
from memory_env.store.chats import identified
from memory_env.store.intake import WINDOW, cut_segments
from memory_env.store.keys import message_keys
from memory_env.store.near import ComparedMessage, matched, words_key
from memory_env.store.rows import Arrived, edit_of
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import admitted


@dataclass
class Taken:
    """What came of exports: segments of new messages, how many were known already or may not come back, and what changed.

    Example:
        Taken([segment], known=4031, near=12)      # 12 of the 4031 were written differently
    """

    arrived: list[Arrived] = field(default_factory=list)
    known: int = 0
    near: int = 0
    held_back: int = 0
    changes: Changes = field(default_factory=Changes)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Held:
    place: int
    said: ComparedMessage
    message_id: str
    key: bytes


def take_in(
    store: MemoryStore,
    chats: Sequence[Chat],
    window: int = WINDOW,
    gap_hours: float = GAP_HOURS,
    most: int = MOST_MESSAGES,
) -> Taken:
    """What `store` does not hold yet of `chats`, cut into segments; edits, deletions and new names are applied at once."""
    taken = Taken()
    fresh: list[tuple[ChatMessage, bytes]] = []
    for chat in chats:
        chat = identified(store, chat)
        messages, held_back = admitted(store.connection, without_repeats(chat))
        taken.held_back += held_back
        new = _new_of(store, chat, messages, taken)
        taken.known += len(messages) - len(new)
        rename(store, messages, taken.changes)
        fresh += new
        taken.notes += [note for note in chat.notes if note not in taken.notes]
    taken.notes += _late(store, fresh)
    taken.arrived = cut_segments(store, fresh, window, gap_hours, most)
    if taken.near:
        taken.notes.append(f"{taken.near} messages are known from an export that writes them differently: not taken twice")
    taken.notes += taken.changes.notes()
    return taken


def _late(store: MemoryStore, fresh: Sequence[tuple[ChatMessage, bytes]]) -> list[str]:
    """A word about new messages that are older than the last one of their chat or, where records are kept, of the memory."""
    db = store.connection
    latest = dict(db.execute("SELECT channel, max(at) FROM messages WHERE at IS NOT NULL GROUP BY channel"))
    recorded = db.execute("SELECT 1 FROM records LIMIT 1").fetchone() is not None
    overall = max(latest.values()) if recorded and latest else float("-inf")
    late = [
        message
        for message, _ in fresh
        if (at := instant(message.ts)) is not None and at < max(overall, latest.get(message.channel, float("-inf")))
    ]
    return [f"{len(late)} new messages are older than the last one known: what is current stays"] if late else []


def _new_of(store: MemoryStore, chat: Chat, messages: Sequence[ChatMessage], taken: Taken) -> list[tuple[ChatMessage, bytes]]:
    """The messages of one chat that the memory does not hold, with their keys."""
    if not messages:
        return []
    keys = message_keys(messages)
    channel = messages[0].channel
    held = _held(store, channel, messages)
    by_key = {each.key: each for each in held}
    edits: list[Edit] = []
    used: set[int] = set()
    left: list[int] = []
    for place, (message, key) in enumerate(zip(messages, keys, strict=True)):
        same = by_key.get(key) if message.message_id else None
        if same is not None:
            used.add(same.place)
            _edit(message, same, edits)
        else:
            left.append(place)
    fresh: list[int] = []
    # A message without an id may be any that is held; one with an id only one that was told without.
    for has_id in (False, True):
        group = [place for place in left if bool(messages[place].message_id) == has_id]
        candidates = [each for each in held if each.place not in used and not (has_id and each.message_id)] if group else []
        found = matched([each.said for each in candidates], [_said(messages[place]) for place in group])
        for place, index in zip(group, found, strict=True):
            if index is None:
                # An unmatched text whose key is held is the earlier version of a message that was edited.
                if keys[place] not in by_key:
                    fresh.append(place)
                continue
            same = candidates[index]
            used.add(same.place)
            taken.near += (same.said.at, same.said.content) != (instant(messages[place].ts), messages[place].content)
            _edit(messages[place], same, edits)
    apply_edits(store, edits, taken.changes)
    if chat.withdrawn:
        here = ChatMessage("", "", "", channel=channel, channel_id=chat.channel_id)
        told = [replace(here, message_id=identity) for identity in sorted(chat.withdrawn)]
        withdraw(store, message_keys(told), taken.changes)
    return [(messages[place], keys[place]) for place in sorted(fresh)]


def _edit(message: ChatMessage, held: _Held, edits: list[Edit]) -> None:
    """Note an edit where the told text is another and newer; other votes or another placeholder of a file are none."""
    if message.content == held.said.content or not is_newer(message, held.said.edited):
        return
    if words_key(message.content) != words_key(held.said.content):
        edits.append(Edit(held.place, message.content, edit_of(message)))


def _said(message: ChatMessage) -> ComparedMessage:
    return ComparedMessage(name_form(message.speaker), instant(message.ts), message.content, edit_of(message))


def _held(store: MemoryStore, channel: str, messages: Sequence[ChatMessage]) -> list[_Held]:
    """What the memory holds of a chat in the time that an export spans, in its order."""
    times = [at for message in messages if (at := instant(message.ts)) is not None]
    undated = len(times) < len(messages)
    low, high = (min(times) // 60 * 60, max(times) + 60) if times else (0.0, 0.0)
    forms = {name: name_form(speaker) for name, speaker, _ in store.members()}
    rows = store.connection.execute(
        "SELECT place, speaker, at, content, edited, message_id, key FROM messages"
        " WHERE channel = ? AND (at BETWEEN ? AND ? OR (? AND at IS NULL)) ORDER BY place",
        (channel, low, high, undated),
    )
    return [
        _Held(place, ComparedMessage(forms.get(speaker, speaker), at, content, edited), message_id, key)
        for place, speaker, at, content, edited, message_id, key in rows
    ]

