"""A whole memory as one JSON document, and a memory file from such a document.

{"schema": "writer-rl-memory/1", "layout": 2, "member": null,
 "tables": {"messages": [{"place": 1, "speaker": "Alice", ...}, ...], ...}}

`layout` is the format of the memory file it came from; an older one is upgraded when it is read. Bytes are hexadecimal. Indexes
for searching are left out, since they are made anew. The document of one member holds what they said and what is recorded about
or by them, and nothing of anybody else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.store.schema import MIGRATIONS, file_format, open_layout
from memory_env.store.store import MemoryStore

SCHEMA = "writer-rl-memory/1"
TABLES = (
    "meta", "members", "chats", "segments", "messages", "records", "edges", "tombstones", "inbox", "unwritten",
    "forgotten_runs",
)  # fmt: skip
"""What is exported, in this order."""

_OF_MEMBER = {
    "members": "name = :member",
    "messages": "speaker = :member",
    "records": "owner = :member OR source = :member",
    "edges": "old IN (SELECT entry_id FROM records WHERE owner = :member OR source = :member)",
    "segments": "position IN (SELECT position FROM records WHERE owner = :member OR source = :member)"
    " OR position IN (SELECT position FROM messages WHERE speaker = :member)",
}


def export_json(store: MemoryStore, member: str = "") -> Iterator[str]:
    """The document in pieces of text; of one `member` alone, if one is named. DataError for a member it does not know."""
    db = store.connection
    if member and not db.execute("SELECT 1 FROM members WHERE name = ?", (member,)).fetchone():
        known = ", ".join(name for name, _, _ in store.members()) or "nobody"
        raise DataError(f"{store.path}: {member!r} is no member; it knows {known}")
    head = {"schema": SCHEMA, "layout": file_format(db, store.path), "member": member or None}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "tables": {'
    for number, table in enumerate(_exported(db, member)):
        yield ("," if number else "") + f'\n"{table}": ['
        for place, row in enumerate(_rows(db, table, member)):
            yield ("," if place else "") + "\n" + json.dumps(row, ensure_ascii=False)
        yield "\n]"
    yield "\n}}\n"


def _exported(db: sqlite3.Connection, member: str) -> list[str]:
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [table for table in TABLES if table in there and (not member or table in _OF_MEMBER)]


def _rows(db: sqlite3.Connection, table: str, member: str) -> Iterator[dict[str, Any]]:
    columns = [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
    where = f" WHERE {_OF_MEMBER[table]}" if member else ""
    for values in db.execute(f"SELECT * FROM {table}{where} ORDER BY 1", {"member": member} if member else {}):
        row = {name: value.hex() if isinstance(value, bytes) else value for name, value in zip(columns, values, strict=True)}
        if member and table == "segments":
            # The Writer's raw output is about everybody.
            row["completion"], row["report"] = "", json.dumps(_without_lines(json.loads(row["report"])))
        yield row


def _without_lines(report: dict[str, Any]) -> dict[str, Any]:
    return {name: [] if isinstance(value, list) else value for name, value in report.items()}


def import_json(document: Any, path: str | Path, where: str = "the document") -> None:
    """Write a memory file from an exported document. `path` must not exist; after an error it does not.

    DataError, naming `where`, for what is no such document.
    """
    path = Path(path)
    if path.exists():
        raise DataError(f"{path}: is there already; name a new file")
    tables, layout = _checked(document, where)
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            open_layout(db, path, migrations=MIGRATIONS[:layout])
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM meta")
            for table, rows in tables.items():
                _insert(db, table, rows, where)
            db.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?)", (str(layout),))
            db.execute("COMMIT")
        with MemoryStore(path) as store:
            # Anything that refers to nothing shows here.
            store.state()
            for _ in store.segments():
                pass
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        _remove(path)
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: does not fit together ({error}); is it a whole export?") from None
    except BaseException:
        _remove(path)
        raise


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _checked(document: Any, where: str) -> tuple[Mapping[str, list[Any]], int]:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataError(f"{where}: is no exported memory (its `schema` is not {SCHEMA!r})")
    layout, tables = document.get("layout"), document.get("tables")
    if not isinstance(layout, int) or isinstance(layout, bool) or layout < 1:
        raise DataError(f"{where}: `layout` must be a whole number from 1")
    if layout > len(MIGRATIONS):
        raise DataError(f"{where}: is of layout {layout}, this program knows {len(MIGRATIONS)}; use a newer release")
    if not isinstance(tables, dict):
        raise DataError(f"{where}: `tables` must be an object")
    for table, rows in tables.items():
        if table not in TABLES:
            raise DataError(f"{where}: `tables` has {table!r}, which no memory has")
        if not isinstance(rows, list):
            raise DataError(f"{where}: `tables.{table}` must be a list")
    return {table: tables[table] for table in TABLES if table in tables}, layout


def _insert(db: sqlite3.Connection, table: str, rows: Iterable[Any], where: str) -> None:
    kinds = {column[1]: column[2] for column in db.execute(f"PRAGMA table_info({table})")}
    if not kinds and rows:
        raise DataError(f"{where}: `tables.{table}` is no table of this layout")
    marks = ", ".join(f":{name}" for name in kinds)
    for number, row in enumerate(rows):
        place = f"{where}: `tables.{table}[{number}]`"
        if not isinstance(row, dict) or set(row) != set(kinds):
            raise DataError(f"{place}: must be an object with {', '.join(kinds)}")
        values = {name: _value(value, kinds[name], f"{place}.{name}") for name, value in row.items()}
        db.execute(f"INSERT INTO {table} ({', '.join(kinds)}) VALUES ({marks})", values)


def _value(value: Any, kind: str, place: str) -> Any:
    wanted: dict[str, type | tuple[type, ...]] = {"TEXT": str, "INTEGER": int, "REAL": (int, float), "BLOB": str}
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, wanted[kind]):
        raise DataError(f"{place}: must be {'hexadecimal' if kind == 'BLOB' else kind.lower()}, not {type(value).__name__}")
    if kind != "BLOB" or not isinstance(value, str):
        return value
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise DataError(f"{place}: is not hexadecimal") from None
