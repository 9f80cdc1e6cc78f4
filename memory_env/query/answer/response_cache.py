"""A persistent cache of accepted model responses, so that an interrupted run never pays twice."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.query.answer.token_usage import StageUsage, TokenLedger


class ResponseCache:
    """SQLite file of responses by key; safe for several threads and processes. Only accepted responses are put in."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = threading.Lock()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(self.path, timeout=60.0, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("CREATE TABLE IF NOT EXISTS responses (key TEXT PRIMARY KEY, response TEXT NOT NULL)")
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: not a usable response cache ({error}); remove the file or name another") from None

    def get(self, key: str) -> dict[str, Any] | None:
        with self._lock:
            row = self._connection.execute("SELECT response FROM responses WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, key: str, response: Mapping[str, Any]) -> None:
        with self._lock:
            text = json.dumps(dict(response))
            self._connection.execute("INSERT OR REPLACE INTO responses VALUES (?, ?)", (key, text))

    def usage(self) -> dict[str, StageUsage]:
        """Calls and tokens per stage of every response in the file: what a run has cost, interruptions included."""
        with self._lock:
            rows = self._connection.execute("SELECT response FROM responses").fetchall()
        ledger = TokenLedger()
        for (text,) in rows:
            response = json.loads(text)
            ledger.add(response["stage"], response["input_tokens"], response["output_tokens"])
        return ledger.stages()

    def close(self) -> None:
        with self._lock:
            self._connection.close()
