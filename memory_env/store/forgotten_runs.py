"""Words of forgotten messages in what arrives later: cut out by keyed hashes of their runs, which hold no word.

When messages are forgotten, their runs (memory_env.store.quotations: six words in a row, or a whole shorter message) are kept as
keyed hashes. A message that comes in afterwards and says such a run loses it, as one that was there before did. Shorter pieces
between quotation marks are found at the time of forgetting alone.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence

from memory_env.store.quotations import WHOLE_WORDS, Words, cut_words, folded_words

RUNS_SCHEMA = """
CREATE TABLE forgotten_runs (
    start BLOB NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL, of BLOB NOT NULL,
    PRIMARY KEY (start, digest)) WITHOUT ROWID;
"""
"""The migration's script (memory_env.store.schema). `start` finds the candidates: it is made of a run's first words."""

_AT_ONCE = 500


class ForgottenRuns:
    """The runs of one memory file that may not come back.

    Example:
        runs = ForgottenRuns(connection, lambda: key)
        runs.add([("i", "moved", "to", "oslo", "last", "spring")])
        runs.cut("she wrote: I moved to Oslo last spring!") == "she wrote: [forgotten]!"
    """

    def __init__(self, db: sqlite3.Connection, key: Callable[[], bytes]):
        """`key`: what the file's tombstones are keyed by; asked for when it is needed."""
        self._db, self._key = db, key
        self._any = db.execute("SELECT 1 FROM forgotten_runs LIMIT 1").fetchone() is not None

    def __bool__(self) -> bool:
        return self._any

    def add(self, runs: Iterable[Words], of: bytes = b"") -> None:
        """Keep the hashes of runs, in the transaction that is under way. `of`: what `remove` takes them down by."""
        rows = [(self._start(run), self._digest(run), len(run), of) for run in sorted(runs)]
        self._db.executemany("INSERT OR IGNORE INTO forgotten_runs VALUES (?, ?, ?, ?)", rows)
        self._any = self._any or bool(rows)

    def remove(self, of: bytes) -> None:
        """Take down what was set up as `of`."""
        self._db.execute("DELETE FROM forgotten_runs WHERE of = ?", (of,))

    def cut(self, text: str) -> str:
        """`text` without the forgotten runs."""
        if not self._any:
            return text
        words = folded_words(text)
        return cut_words(text, self._found(words)) if len(words) >= WHOLE_WORDS else text

    def _found(self, words: Words) -> list[tuple[int, int]]:
        """The runs among `words`, as (first word, word after the last)."""
        places: dict[bytes, list[int]] = {}
        for place in range(len(words) - WHOLE_WORDS + 1):
            places.setdefault(self._start(words[place:]), []).append(place)
        return [
            (place, place + size)
            for start, digest, size in self._known(list(places))
            for place in places[start]
            if place + size <= len(words) and self._digest(words[place : place + size]) == digest
        ]

    def _known(self, starts: Sequence[bytes]) -> list[tuple[bytes, bytes, int]]:
        known = []
        for first in range(0, len(starts), _AT_ONCE):
            part = starts[first : first + _AT_ONCE]
            marks = ",".join("?" * len(part))
            known += self._db.execute(f"SELECT start, digest, size FROM forgotten_runs WHERE start IN ({marks})", part).fetchall()
        return known

    def _start(self, words: Words) -> bytes:
        return self._hash(words[:WHOLE_WORDS], 4)

    def _digest(self, words: Words) -> bytes:
        return self._hash(words, 8)

    def _hash(self, words: Words, size: int) -> bytes:
        return hashlib.blake2b(" ".join(words).encode(), key=self._key(), digest_size=size, person=b"run").digest()
