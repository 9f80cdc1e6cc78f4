"""What happened to messages and members after a memory first saw them: edits, deletions, new names.

Each is applied in one transaction and can be applied again without effect. A deleted message is forgotten
(memory_env.store.forget). Records that were made of an edited one stay, as the Writer has not read it again;
`Changes.resting` counts them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_env.ingest.chat import ChatMessage, name_form
from memory_env.ingest.times import instant
from memory_env.roster import canonical_names
from memory_env.store.forget import forget_messages
from memory_env.store.rows import edit_of
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import Tombstones


@dataclass(frozen=True, slots=True)
class Edit:
    """A held message whose text is another now.

    Example:
        Edit(place=17, content="eight, not seven", edited="2025-03-01T19:06:00")
    """

    place: int
    content: str
    edited: str


@dataclass
class Changes:
    """What an export changed of what the memory held.

    Example:
        Changes(edited=2, withdrawn=1, renamed=["Bo is now called Robert"], resting=1)
    """

    edited: int = 0
    withdrawn: int = 0
    renamed: list[str] = field(default_factory=list)
    resting: int = 0

    def notes(self) -> list[str]:
        """As lines for the user."""
        told = []
        if self.edited:
            told.append(f"{self.edited} messages were edited since: their new text is kept")
        if self.withdrawn:
            told.append(f"{self.withdrawn} messages were deleted in the chat since: forgotten here too")
        if self.resting:
            told.append(f"{self.resting} records were made of messages that were edited since; they stay as they are")
        return told + self.renamed


def is_newer(told: ChatMessage, edited: str) -> bool:
    """Whether the text that an export tells is newer than the held one, which was edited at `edited`.

    An edited text is newer than one that was not edited; of two with times the later; else the one that was told later.
    """
    mine = edit_of(told)
    if bool(mine) != bool(edited):
        return bool(mine)
    return mine > edited if mine[:1].isdigit() and edited[:1].isdigit() else True


def apply_edits(store: MemoryStore, edits: Sequence[Edit], changes: Changes) -> None:
    """Give messages their new text."""
    if not edits:
        return
    with store.changing() as db:
        rows = [(edit.content, edit.edited, edit.place) for edit in edits]
        db.executemany("UPDATE messages SET content = ?, edited = ? WHERE place = ?", rows)
        changes.edited += len(edits)
        changes.resting += _resting(db, [edit.place for edit in edits])


def withdraw(store: MemoryStore, keys: Sequence[bytes], changes: Changes) -> None:
    """Forget the messages with these keys, which their chat says were deleted; an older export does not bring them back."""
    held: list[str] = []
    with store.changing() as db:
        stones = Tombstones(db)
        for key in keys:
            row = db.execute("SELECT entry_id FROM messages WHERE key = ?", (key,)).fetchone()
            held += row or ()
            stones.add(stones.message(key, "", ""))
    if held:
        forget_messages(store, held)
        changes.withdrawn += len(held)


def rename(store: MemoryStore, messages: Iterable[ChatMessage], changes: Changes) -> None:
    """Call members by the last name that their id bears, in messages and records alike; the former names are kept.

    An export that ends before the name was given changes nothing.
    """
    latest: dict[str, tuple[float, str]] = {}
    for message in messages:
        at = instant(message.ts)
        if message.speaker_id and at is not None and at >= latest.get(message.speaker_id, (at, ""))[0]:
            latest[message.speaker_id] = at, message.speaker
    if not latest:
        return
    query = "SELECT name, speaker, speaker_id, named_at, former FROM members WHERE speaker_id != ''"
    rows = store.connection.execute(query).fetchall()
    for name, speaker, speaker_id, named_at, former in rows:
        at, now = latest.get(speaker_id, (None, speaker))
        if at is None or name_form(now) == name_form(speaker) or (named_at is not None and at <= named_at):
            continue
        others = [(other, "") for other, _, _ in store.members() if other != name]
        given = canonical_names([*others, (now, speaker_id)])[now, speaker_id]
        known = [*json.loads(former), name]
        with store.changing() as db:
            db.execute(
                "UPDATE members SET name = ?, speaker = ?, named_at = ?, former = ? WHERE name = ?",
                (given, now, at, json.dumps(list(dict.fromkeys(known)), ensure_ascii=False), name),
            )
            db.execute("UPDATE messages SET speaker = ? WHERE speaker = ?", (given, name))
            db.execute("UPDATE records SET owner = ? WHERE owner = ?", (given, name))
            db.execute("UPDATE records SET source = ? WHERE source = ?", (given, name))
        changes.renamed.append(f"{name} is now called {given}")


def former_names(store: MemoryStore) -> dict[str, list[str]]:
    """Earlier names of members by the name that is used now."""
    rows = store.connection.execute("SELECT name, former FROM members WHERE former != '[]' ORDER BY name")
    return {name: json.loads(former) for name, former in rows}


def keep_former_names(store: MemoryStore, former: Mapping[str, Sequence[str]]) -> None:
    """Keep the earlier names that an export tells of, by the name that it uses now; where several bear that one, none."""
    for speaker, names in former.items():
        rows = store.connection.execute("SELECT name, former FROM members WHERE speaker = ?", (speaker,)).fetchall()
        if len(rows) != 1:
            continue
        member, known = rows[0][0], json.loads(rows[0][1])
        every = [name for name in dict.fromkeys([*known, *names]) if name != member]
        if every != known:
            with store.changing() as db:
                db.execute("UPDATE members SET former = ? WHERE name = ?", (json.dumps(every, ensure_ascii=False), member))


def _resting(db: sqlite3.Connection, places: Sequence[int]) -> int:
    """How many records cite one of these messages."""
    query = (
        "SELECT count(DISTINCT r.place) FROM records r, json_each(r.from_ids) f WHERE f.value IN"
        " (SELECT entry_id FROM messages WHERE place IN (SELECT value FROM json_each(?)))"
    )
    return int(db.execute(query, (json.dumps(list(places)),)).fetchone()[0])
