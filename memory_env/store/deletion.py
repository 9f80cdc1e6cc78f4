"""The transaction that forgets: rows go, and what others said or recorded loses the forgotten words (memory_env.store.forget)."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_env.actions import parse_completion
from memory_env.store.erase import mark_due
from memory_env.store.forwards import without_forwarded
from memory_env.store.quotations import Quotations
from memory_env.store.tombstones import Tombstones, identity

SOMEONE = "[someone]"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What left the memory.

    Example:
        Forgotten(messages=812, records=64, edges=9, completions=41, quotations=17)
    """

    messages: int = 0
    records: int = 0
    edges: int = 0
    completions: int = 0
    quotations: int = 0
    """Texts of others that quoted what was forgotten (or, with `redact`, that said the name)."""


@dataclass
class Chosen:
    """What is to go: entry ids of both tracks, coordinates and names that no remaining row may have, tombstones to set up."""

    messages: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    member: str = ""
    names: tuple[str, ...] = ()
    speaker_ids: tuple[str, ...] = ()
    waiting: set[int] = field(default_factory=set)
    redact: bool = False
    tombstones: list[bytes] = field(default_factory=list)
    person: bytes = b""

    def is_member(self, name: str) -> bool:
        """Whether this is a name of the member who is to go."""
        return identity(name) in {identity(each) for each in self.names}


def delete(db: sqlite3.Connection, chosen: Chosen) -> Forgotten:
    """The transaction's work; every statement of it is undone if any fails."""
    db.execute("PRAGMA secure_delete=ON")
    Tombstones(db).add(chosen.tombstones, chosen.person)
    mark_due(db)
    quotes = _quotations(db, chosen)
    changed = _cut_messages(db, chosen, quotes)
    Tombstones(db).runs().add(quotes.runs(), chosen.person)
    orphans = _orphans(db, chosen)
    links = _bridged(db, chosen.records | orphans)
    gone = chosen.records | orphans
    edges = _delete_edges(db, gone, links)
    changed += _cut_records(db, chosen, gone, quotes, links)
    completions = _clear_completions(db, chosen, gone, quotes)
    _delete_rows(db, "messages", chosen.messages)
    _delete_rows(db, "records", gone)
    for table in _tables_by_entry(db):
        _delete_rows(db, table, chosen.messages | gone)
    if chosen.member:
        db.execute("DELETE FROM members WHERE name = ?", (chosen.member,))
    changed += _clear_inbox(db, chosen, quotes)
    # What a Writer wrote for a track that is not whole yet; it is asked again. Why it refused others may quote anything.
    db.execute("DELETE FROM drafts")
    db.execute("UPDATE unwritten SET reason = '' WHERE reason != ''")
    db.execute(
        "DELETE FROM members WHERE name NOT IN (SELECT speaker FROM messages UNION SELECT owner FROM records "
        "UNION SELECT source FROM records)"
    )
    db.execute(
        "DELETE FROM segments WHERE position NOT IN (SELECT position FROM messages UNION SELECT position FROM records)"
    )
    return Forgotten(len(chosen.messages), len(gone), edges, completions, changed)


def _quotations(db: sqlite3.Connection, chosen: Chosen) -> Quotations:
    texts = [
        (place if at is None else at, content)
        for entry_id, place, at, content in db.execute("SELECT entry_id, place, at, content FROM messages")
        if entry_id in chosen.messages
    ]
    inbox = db.execute("SELECT place, content FROM inbox")
    texts += [(float("-inf"), content) for place, content in inbox if place in chosen.waiting]
    return Quotations(texts)


def _cut_messages(db: sqlite3.Connection, chosen: Chosen, quotes: Quotations) -> int:
    """Take quotations (and the name) out of what stays; how many messages changed."""
    if not quotes and not chosen.member:
        return 0
    query = "SELECT entry_id, place, at, content, speaker, key FROM messages ORDER BY coalesce(at, place), place"
    said = names_pattern(chosen) if chosen.redact else None
    stones = Tombstones(db)
    changes, originals = [], []
    for entry_id, place, at, content, speaker, key in db.execute(query).fetchall():
        if entry_id in chosen.messages:
            continue
        when = place if at is None else at
        cut = without_forwarded(quotes.cut(content, when), chosen.is_member)
        cut = said.sub(SOMEONE, cut) if said else cut
        if cut != content:
            changes.append((cut, entry_id))
            # The same message read again must not bring the quoted words back as an edit.
            originals += stones.message(key, speaker, content)
    db.executemany("UPDATE messages SET content = ? WHERE entry_id = ?", changes)
    stones.add(originals)
    return len(changes)


def _clear_inbox(db: sqlite3.Connection, chosen: Chosen, quotes: Quotations) -> int:
    """The same for messages that belong to no segment yet."""
    said = names_pattern(chosen) if chosen.redact else None
    changed = 0
    for place, speaker, speaker_id, content in db.execute("SELECT place, speaker, speaker_id, content FROM inbox").fetchall():
        theirs = speaker_id in chosen.speaker_ids if speaker_id and chosen.speaker_ids else chosen.is_member(speaker)
        if place in chosen.waiting or theirs:
            db.execute("DELETE FROM inbox WHERE place = ?", (place,))
            continue
        cut = without_forwarded(quotes.cut(content, float("inf")), chosen.is_member)
        cut = said.sub(SOMEONE, cut) if said else cut
        if cut != content:
            db.execute("UPDATE inbox SET content = ? WHERE place = ?", (cut, place))
            changed += 1
    return changed


def names_pattern(chosen: Chosen) -> re.Pattern[str]:
    """The member's names as whole words, longest first, and the first word of a name of several."""
    names = {*chosen.names, *(name.split()[0] for name in chosen.names if len(name.split()[0]) > 2)}
    return re.compile(
        "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names, key=len, reverse=True)), re.IGNORECASE
    )


def _orphans(db: sqlite3.Connection, chosen: Chosen) -> set[str]:
    """Records that rest on forgotten messages alone."""
    if not chosen.messages:
        return set()
    return {
        entry_id
        for entry_id, from_ids in db.execute("SELECT entry_id, from_ids FROM records")
        if entry_id not in chosen.records and (support := json.loads(from_ids)) and chosen.messages.issuperset(support)
    }


def _bridged(db: sqlite3.Connection, gone: set[str]) -> dict[str, str]:
    """New record -> the version before it, for chains that lose one in between."""
    before = {new: old for old, new in db.execute("SELECT old, new FROM edges ORDER BY place")}
    bridges = {}
    for new, old in before.items():
        if new in gone or old not in gone:
            continue
        while old in gone and old in before:
            old = before[old]
        if old not in gone:
            bridges[new] = old
    return bridges


def _delete_edges(db: sqlite3.Connection, gone: set[str], bridges: dict[str, str]) -> int:
    deleted = 0
    for place, old, new in db.execute("SELECT place, old, new FROM edges").fetchall():
        if new in bridges and old in gone:
            db.execute("UPDATE edges SET old = ? WHERE place = ?", (bridges[new], place))
        elif old in gone or new in gone:
            db.execute("DELETE FROM edges WHERE place = ?", (place,))
            deleted += 1
    return deleted


def _cut_records(
    db: sqlite3.Connection, chosen: Chosen, gone: set[str], quotes: Quotations, bridges: dict[str, str]
) -> int:
    """Take quotations (and the name), forgotten messages and forgotten versions out of the records that stay."""
    said = names_pattern(chosen) if chosen.redact else None
    changed = 0
    query = "SELECT entry_id, content, from_ids, links FROM records"
    for entry_id, content, from_ids, links in db.execute(query).fetchall():
        if entry_id in gone:
            continue
        cut = quotes.cut(content, float("inf")) if quotes else content
        cut = said.sub(SOMEONE, cut) if said else cut
        support = [message for message in json.loads(from_ids) if message not in chosen.messages]
        older = [bridges.get(entry_id, "") if link in gone else link for link in json.loads(links)]
        now = (cut, json.dumps(support), json.dumps([link for link in older if link]))
        if now != (content, from_ids, links):
            db.execute("UPDATE records SET content = ?, from_ids = ?, links = ? WHERE entry_id = ?", (*now, entry_id))
            changed += cut != content
    return changed


def _clear_completions(db: sqlite3.Connection, chosen: Chosen, gone: set[str], quotes: Quotations) -> int:
    """Empty the Writer's outputs that tell what is forgotten, and their error lines; how many."""
    positions = _positions(db, "messages", chosen.messages) | _positions(db, "records", gone)
    contents = {content for entry_id, content in db.execute("SELECT entry_id, content FROM records") if entry_id in gone}
    told = _Told(chosen, gone, contents, quotes)
    cleared = 0
    for position, completion, report in db.execute("SELECT position, completion, report FROM segments").fetchall():
        document = json.loads(report)
        if completion and told.by(completion, position in positions):
            completion, document["errors"] = "", []
            cleared += 1
        document["errors"] = [line for line in document.get("errors", []) if not told.in_line(line)]
        for key in ("created_ids", "updated_from"):
            document[key] = [entry_id for entry_id in document.get(key, []) if entry_id not in gone]
        now = json.dumps(document, ensure_ascii=False)
        if now != report or not completion:
            db.execute("UPDATE segments SET completion = ?, report = ? WHERE position = ?", (completion, now, position))
    return cleared


class _Told:
    """Whether a Writer's output tells what is forgotten."""

    def __init__(self, chosen: Chosen, gone: set[str], contents: set[str], quotes: Quotations):
        self._called, self._gone, self._contents, self._quotes = chosen.names, gone, contents, quotes
        self._names = names_pattern(chosen) if chosen.names else None
        self._redact = chosen.redact

    def by(self, completion: str, touched: bool) -> bool:
        """`touched`: the output was written about a forgotten message, or made a forgotten record."""
        parsed = parse_completion(completion)
        if not parsed.valid:
            return touched or self.in_line(completion)
        for action in parsed.actions:
            if not isinstance(action, dict):
                return True
            if action.get("entry_id") in self._gone or action.get("content") in self._contents:
                return True
            if not {action.get("owner"), action.get("source")}.isdisjoint(self._called):
                return True
            if any(self._quotes.in_text(text, float("inf")) for text in _strings(action)):
                return True
            if self._redact and self._names and any(self._names.search(text) for text in _strings(action)):
                return True
        return False

    def in_line(self, text: str) -> bool:
        return bool(self._names and self._names.search(text)) or self._quotes.in_text(text, float("inf"))


def _strings(value: Any) -> list[str]:
    """Every string inside a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _strings(part)]
    return [text for part in value for text in _strings(part)] if isinstance(value, list) else []


def _positions(db: sqlite3.Connection, table: str, ids: set[str]) -> set[int]:
    return {position for position, entry_id in db.execute(f"SELECT position, entry_id FROM {table}") if entry_id in ids}


def _tables_by_entry(db: sqlite3.Connection) -> list[str]:
    """Other tables with a row per record or message, such as an index of vectors."""
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        name
        for name in names
        if name not in ("messages", "records")
        and any(column[1] == "entry_id" for column in db.execute(f'PRAGMA table_info("{name}")'))
    ]


def _delete_rows(db: sqlite3.Connection, table: str, ids: Iterable[str]) -> None:
    db.executemany(f'DELETE FROM "{table}" WHERE entry_id = ?', [(entry_id,) for entry_id in ids])


def values_of(db: sqlite3.Connection, query: str, values: Sequence[Any]) -> set[Any]:
    """The first column of a query's rows."""
    return {row[0] for row in db.execute(query, values)}
