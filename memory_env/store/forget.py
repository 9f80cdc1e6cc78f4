"""Forgetting: a member, messages, records or a chat leave the memory file, with whatever was made of their words.

Gone are the messages, the records about and by the member, records that rest on forgotten messages alone, their edges,
the Writer's raw outputs that tell of them, and quotations of their words in what others said
(memory_env.store.quotations). What stays keeps its ids. One transaction deletes; then the file is rewritten
(memory_env.store.erase).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from memory_env.datafile import DataError
from memory_env.store.dates import renew_keys
from memory_env.store.deletion import SOMEONE, Chosen, Forgotten, delete, names_pattern, values_of
from memory_env.store.erase import rewrite
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import Tombstones, identity


def forget_member(store: MemoryStore, name: str, redact: bool = False) -> Forgotten:
    """Forget a member: what they said, what is recorded about or by them, their words in what others said.

    redact: also put "[someone]" for the name where others say it. DataError for a name that the memory does not know.
    """
    with store.changing() as db:
        known = sorted(values_of(db, "SELECT name FROM members UNION SELECT speaker FROM inbox", []))
        if name not in known:
            close = [other for other in known if identity(other) == identity(name)]
            now = [row[0] for row in db.execute("SELECT name, former FROM members") if name in json.loads(row[1])]
            hint = f"did you mean {close[0]!r}?" if close else f"it knows {', '.join(known[:20]) or 'nobody'}"
            hint = f"that is {' or '.join(now)} today" if now else hint
            raise DataError(f"{store.path}: {name!r} is no member; {hint}")
        told = list(db.execute("SELECT speaker, speaker_id FROM members WHERE name = ?", (name,)))
        former = [json.loads(row[0]) for row in db.execute("SELECT former FROM members WHERE name = ?", (name,))]
        names = tuple(dict.fromkeys([name, *(speaker for speaker, _ in told), *(each for list_ in former for each in list_)]))
        chosen = Chosen(member=name, names=names, redact=redact)
        chosen.messages = values_of(db, "SELECT entry_id FROM messages WHERE speaker = ?", [name])
        chosen.records = values_of(db, "SELECT entry_id FROM records WHERE owner = ? OR source = ?", [name, name])
        stones = Tombstones(db)
        chosen.speaker_ids = tuple(speaker_id for _, speaker_id in told if speaker_id)
        chosen.tombstones = stones.member(names, chosen.speaker_ids)
        chosen.person = stones.person(name)
        forgotten = delete(db, chosen)
        _unname_chats(db, chosen)
    _rewrite(store)
    return forgotten


def forget_messages(store: MemoryStore, ids: Sequence[str]) -> Forgotten:
    """Forget single messages, named by entry id or by their id in the export. DataError for an id that is not there."""
    with store.changing() as db:
        stones = Tombstones(db)
        chosen = Chosen()
        for given in ids:
            query = "SELECT entry_id, key, speaker, content FROM messages WHERE entry_id = ? OR message_id = ?"
            found = list(db.execute(query, (given, given)))
            waiting = values_of(db, "SELECT place FROM inbox WHERE message_id = ?", [given])
            chosen.waiting |= waiting
            if not found and not waiting:
                raise DataError(f"{store.path}: it holds no message {given!r}; `export` lists the ids")
            for entry_id, key, speaker, content in found:
                chosen.messages.add(entry_id)
                chosen.tombstones += stones.message(key, speaker, content)
        forgotten = delete(db, chosen)
    _rewrite(store)
    return forgotten


def forget_records(store: MemoryStore, ids: Sequence[str]) -> Forgotten:
    """Forget derived records, each with its earlier and later versions: an older one must not become current again.

    DataError for an id that is not there.
    """
    with store.changing() as db:
        state = store.state()
        chosen = Chosen()
        stones = Tombstones(db)
        for given in ids:
            record = state.get(given)
            if record is None or not values_of(db, "SELECT entry_id FROM records WHERE entry_id = ?", [given]):
                raise DataError(f"{store.path}: it holds no record {given!r}; `export` lists the ids")
            for version in state.chain(given):
                chosen.records.add(version.entry_id)
                chosen.tombstones.append(stones.record(version.owner, version.source, version.layer, version.content))
        forgotten = delete(db, chosen)
    _rewrite(store)
    return forgotten


def forget_chat(store: MemoryStore, channel: str) -> Forgotten:
    """Forget a chat: its messages and what was written of them. DataError for a chat that the memory does not know."""
    with store.changing() as db:
        known = sorted(values_of(db, "SELECT channel FROM messages UNION SELECT channel FROM inbox", []))
        if channel not in known:
            raise DataError(f"{store.path}: it knows no chat {channel!r}; it has {', '.join(map(repr, known)) or 'none'}")
        chosen = Chosen(tombstones=Tombstones(db).chat(channel))
        chosen.waiting = values_of(db, "SELECT place FROM inbox WHERE channel = ?", [channel])
        chosen.messages = values_of(db, "SELECT entry_id FROM messages WHERE channel = ?", [channel])
        of_chat = "SELECT position FROM messages WHERE channel = ?"
        chosen.records = values_of(db, f"SELECT entry_id FROM records WHERE position IN ({of_chat})", [channel])
        forgotten = delete(db, chosen)
        db.execute("DELETE FROM chats WHERE channel = ?", (channel,))
    _rewrite(store)
    return forgotten


def allow_again(store: MemoryStore, name: str) -> bool:
    """Let a forgotten member's messages come in again; whether anyone was forgotten under that name."""
    with store.changing() as db:
        stones = Tombstones(db)
        return len(stones) > 0 and stones.remove(stones.person(name)) > 0


def _unname_chats(db: sqlite3.Connection, chosen: Chosen) -> None:
    """A chat of two is called after the other: it loses that name. With `redact` every chat does that has it in its name."""
    said = names_pattern(chosen) if chosen.redact else None
    # Such a chat is found again by its name alone.
    by_name = values_of(db, "SELECT channel FROM messages WHERE message_id != ''", [])
    for channel, channel_id, name in db.execute("SELECT channel, channel_id, name FROM chats ORDER BY channel").fetchall():
        if channel in chosen.names or name in chosen.names:
            unnamed = SOMEONE
        elif said and (channel_id or channel not in by_name):
            unnamed = said.sub(SOMEONE, name)
        else:
            continue
        if unnamed == name == channel:
            continue
        label, number = unnamed, 2
        while values_of(db, "SELECT channel FROM chats WHERE channel = ?", [label]) - {channel}:
            label, number = f"{unnamed} ({number})", number + 1
        db.execute("UPDATE chats SET channel = ?, name = ? WHERE channel = ?", (label, unnamed, channel))
        for table in ("messages", "inbox"):
            db.execute(f"UPDATE {table} SET channel = ? WHERE channel = ?", (label, channel))
        if label != channel:
            renew_keys(db, label, channel_id)


def _rewrite(store: MemoryStore) -> None:
    with store.reporting():
        rewrite(store.connection, store.path)
