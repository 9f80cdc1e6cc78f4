"""What a memory file keeps so that it can be searched at once: every message's search words, and vectors of both tracks.

The tables follow the messages and records: whatever is deleted or changed there is deleted here by triggers, and what is missing
is added by `Search.catch_up` and `Search.add_vectors`, at any time, in any number of steps. They hold nothing that is not in
the file already, so dropping their rows loses nothing. A file that may only be read gets its tables in working memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memory_env.datafile import DataError

MESSAGES, RECORDS = "messages", "records"
_STEP = 2000
_TABLES = """
CREATE VIRTUAL TABLE {at}message_words USING fts5(words, tokenize = "unicode61 remove_diacritics 0");
CREATE TABLE {at}message_vectors (place INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE {at}record_vectors (place INTEGER PRIMARY KEY, vector BLOB NOT NULL);
"""
SEARCH_SCHEMA = (
    _TABLES.format(at="")
    + """
CREATE TRIGGER messages_forgotten AFTER DELETE ON messages BEGIN
    DELETE FROM message_words WHERE rowid = old.place; DELETE FROM message_vectors WHERE place = old.place; END;
CREATE TRIGGER messages_changed AFTER UPDATE OF content, place ON messages BEGIN
    DELETE FROM message_words WHERE rowid = old.place; DELETE FROM message_vectors WHERE place = old.place; END;
CREATE TRIGGER records_forgotten AFTER DELETE ON records BEGIN DELETE FROM record_vectors WHERE place = old.place; END;
CREATE TRIGGER records_changed AFTER UPDATE OF content, place ON records BEGIN
    DELETE FROM record_vectors WHERE place = old.place; END;
"""
)
"""The migration's script (memory_env.store.schema)."""


def scrub(db: sqlite3.Connection) -> None:
    """Merge the word index, so that no page of it still holds words of deleted messages. Before VACUUM, outside a transaction."""
    db.execute("INSERT INTO message_words(message_words) VALUES ('optimize')")


@dataclass(frozen=True)
class Places:
    """Where every message stands, as arrays over the places in use, ascending.

    `place` int64 [N]; `speaker` and `session` int64 [N], numbers into `speakers` and `sessions`; `turn` int64 [N]; `position`
    int64 [N]; `at` float64 [N], seconds since 1970, NaN for none.
    """

    place: np.ndarray
    speaker: np.ndarray
    session: np.ndarray
    turn: np.ndarray
    position: np.ndarray
    at: np.ndarray
    speakers: tuple[str, ...]
    sessions: tuple[str, ...]


class Search:
    """The search tables of one open memory file.

    `words_of(text)` gives a text's search terms. `writable`: whether the file may be written.
    """

    def __init__(self, db: sqlite3.Connection, words_of: Callable[[str], Sequence[str]], writable: bool = True):
        self._db, self._words_of = db, words_of
        self._at = "main."
        self._counts: dict[str, int] | None = None
        if not writable:
            self._beside()

    def _beside(self) -> None:
        if self._at != "side.":
            self._db.execute("ATTACH ':memory:' AS side")
            for statement in _TABLES.format(at="side.").strip().split(";\n"):
                self._db.execute(statement)
            self._at, self._counts = "side.", None

    def catch_up(self) -> int:
        """Index the words of messages that are not yet; how many there were. In working memory where the file is being
        written."""
        at, added = self._at, 0
        held, indexed = (self._one(f"SELECT count(*) FROM {table}") for table in ("messages", f"{at}message_words_docsize"))
        if held == indexed:
            return 0
        self._counts = None
        missing = [place for (place,) in self._db.execute(
            f"SELECT place FROM messages WHERE place NOT IN (SELECT id FROM {at}message_words_docsize)"
        )]  # fmt: skip
        try:
            for start in range(0, len(missing), _STEP):
                part = missing[start : start + _STEP]
                rows = [(place, " ".join(self._words_of(text))) for place, text in self._texts(MESSAGES, part)]
                self._insert(f"INSERT OR IGNORE INTO {at}message_words(rowid, words) VALUES (?, ?)", rows)
                added += len(rows)
        except sqlite3.IntegrityError:
            # Another reader added the same words meanwhile.
            return self.catch_up()
        except sqlite3.OperationalError:
            if self._at == "side.":
                raise
            self._beside()
            return self.catch_up()
        return added

    def _insert(self, statement: str, rows: Sequence[tuple]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def word_scores(self, terms: Sequence[str], most: int) -> tuple[np.ndarray, np.ndarray]:
        """(places int64 [M], BM25 scores float64 [M]) of the best `most` messages that hold any of the terms, best first.

        Where every term is in a twentieth of all messages, the newest that hold the rarest of them: BM25 would tell them apart by
        their length alone."""
        telling, common = self._telling(terms)
        wanted = " OR ".join(f'"{term}"' for term in telling or common[:1])
        if not wanted:
            return np.array([], dtype=np.int64), np.array([])
        if not telling:
            query = f"SELECT rowid FROM {self._at}message_words WHERE message_words MATCH ? ORDER BY rowid DESC LIMIT ?"
            newest = [place for (place,) in self._db.execute(query, (wanted, most))]
            return np.array(newest, dtype=np.int64), np.linspace(1.0, 0.5, len(newest))
        rows = self._db.execute(
            f"SELECT rowid, -bm25(message_words) FROM {self._at}message_words WHERE message_words MATCH ? ORDER BY rank LIMIT ?",
            (wanted, most),
        ).fetchall()
        return np.array([row[0] for row in rows], dtype=np.int64), np.array([row[1] for row in rows], dtype=np.float64)

    def _telling(self, terms: Sequence[str]) -> tuple[list[str], list[str]]:
        """(terms that tell messages apart, terms that a twentieth of all messages hold, the rarest first)."""
        distinct = [term for term in dict.fromkeys(terms) if '"' not in term]
        if self._counts is None:
            self._db.execute("DROP TABLE IF EXISTS temp.word_counts")
            schema = self._at.rstrip(".")
            self._db.execute(f"CREATE VIRTUAL TABLE temp.word_counts USING fts5vocab({schema}, message_words, row)")
            self._counts = {}
        counts = self._counts
        for term in distinct:
            if term not in counts:
                found = self._db.execute("SELECT doc FROM temp.word_counts WHERE term = ?", (term,)).fetchone()
                counts[term] = int(found[0]) if found else 0
        limit = max(100, self._one(f"SELECT count(*) FROM {self._at}message_words_docsize") // 20)
        held = [term for term in distinct if counts[term]]
        rare = [term for term in held if counts[term] <= limit]
        return rare, sorted(set(held) - set(rare), key=lambda term: (counts[term], term))

    def places(self) -> Places:
        """Every message's place."""
        rows = self._db.execute("SELECT place, speaker, session, turn, position, at FROM messages ORDER BY place").fetchall()
        place, speaker, session, turn, position, at = zip(*rows, strict=True) if rows else ((), (), (), (), (), ())
        speakers, sessions = tuple(dict.fromkeys(speaker)), tuple(dict.fromkeys(session))
        numbers = {name: number for number, name in enumerate(speakers)}
        order = {name: number for number, name in enumerate(sessions)}
        return Places(
            np.array(place, dtype=np.int64),
            np.array([numbers[name] for name in speaker], dtype=np.int64),
            np.array([order[name] for name in session], dtype=np.int64),
            np.array(turn, dtype=np.int64),
            np.array(position, dtype=np.int64),
            np.array([float("nan") if value is None else value for value in at], dtype=np.float64),
            speakers,
            sessions,
        )

    def missing_vectors(self, track: str) -> int:
        """How many of a track's texts have no vector yet."""
        return self._one(f"SELECT count(*) FROM {track}") - self._one(f"SELECT count(*) FROM {self._vectors(track)}")

    def without_vector(self, track: str) -> list[int]:
        """Places of a track's texts that have no vector yet, the newest first."""
        query = f"SELECT place FROM {track} WHERE place NOT IN (SELECT place FROM {self._vectors(track)}) ORDER BY place DESC"
        return [place for (place,) in self._db.execute(query)]

    def add_vectors(
        self, track: str, places: Sequence[int], encode: Callable[[Sequence[str]], np.ndarray], step: int = 256
    ) -> Iterator[int]:
        """Encode and keep the texts at `places`, some at a time; yields how many are done. Stopped anywhere, the rest is
        missing."""
        done = 0
        for start in range(0, len(places), step):
            rows = list(self._texts(track, places[start : start + step]))
            vectors = encode([text for _, text in rows]).astype(np.float16)
            kept = [(place, vector.tobytes()) for (place, _), vector in zip(rows, vectors, strict=True)]
            try:
                self._insert(f"INSERT OR REPLACE INTO {self._vectors(track)} VALUES (?, ?)", kept)
            except sqlite3.OperationalError:
                if self._at == "side.":
                    raise
                return  # being written by another program: they are made when it is done
            done += len(rows)
            yield done

    def vectors(self, track: str) -> tuple[np.ndarray, np.ndarray]:
        """(places int64 [M], unit vectors float32 [M, D]) of a track, by place."""
        rows = self._db.execute(f"SELECT place, vector FROM {self._vectors(track)} ORDER BY place").fetchall()
        if not rows:
            return np.array([], dtype=np.int64), np.zeros((0, 1), dtype=np.float32)
        matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float16).reshape(len(rows), -1)
        return np.array([row[0] for row in rows], dtype=np.int64), matrix.astype(np.float32)

    def embedder(self, name: str) -> None:
        """Say who makes the vectors; those of another embedder are dropped."""
        known = self._db.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
        if self._at == "side." or (known and known[0] == name):
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for track in (MESSAGES, RECORDS):
                self._db.execute(f"DELETE FROM {self._vectors(track)}")
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('embedder', ?)", (name,))
            self._db.execute("COMMIT")
        except sqlite3.OperationalError:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._beside()

    def _vectors(self, track: str) -> str:
        if track not in (MESSAGES, RECORDS):
            raise DataError(f"no track {track!r}: choose {MESSAGES} or {RECORDS}")
        return f"{self._at}{track[:-1]}_vectors"

    def _texts(self, track: str, places: Sequence[int]) -> Iterator[tuple[int, str]]:
        for start in range(0, len(places), 500):
            part = list(places[start : start + 500])
            marks = ",".join("?" * len(part))
            yield from self._db.execute(f"SELECT place, content FROM {track} WHERE place IN ({marks})", part)

    def _one(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])
