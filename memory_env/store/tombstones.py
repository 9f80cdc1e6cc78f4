"""What may not come back: keyed hashes of forgotten members, messages, records and chats, which hold no name and no text.

The key is made for each memory file and lies in it, so two files of one person's chats can't be compared by their tombstones.
Whoever has the file can still ask it about a name that they know.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_env.actions import action_kind, parse_completion, schema_error
from memory_env.ingest.chat import ChatMessage
from memory_env.state import MemoryState
from memory_env.store.forgotten_runs import ForgottenRuns
from memory_env.store.forwards import without_forwarded
from memory_env.store.keys import message_keys
from memory_env.store.quotations import WHOLE_WORDS, folded_words

_KEY = "tombstone_key"
_SIZE = 16


def identity(name: str) -> str:
    """A name as it is compared: Unicode form, case and spaces make no other person."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class Tombstones:
    """The tombstones of one memory file.

    Example:
        stones = Tombstones(connection)
        stones.add(stones.member(["Alice"], ["user17"]))
        stones.allows(ChatMessage("alice", "hello", "2025-03-01"), key) is False
    """

    def __init__(self, db: sqlite3.Connection):
        self._db = db
        row = db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
        self._key = bytes.fromhex(row[0]) if row else b""
        self._digests = {digest for (digest,) in db.execute("SELECT digest FROM tombstones")}

    def __len__(self) -> int:
        return len(self._digests)

    def add(self, digests: Iterable[bytes], of: bytes = b"") -> None:
        """Set them up, in the transaction that is under way. `of`: the digest that `remove` takes them all down by."""
        new = set(digests) - self._digests
        self._db.executemany("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", [(digest, of) for digest in sorted(new)])
        self._digests |= new

    def remove(self, of: bytes) -> int:
        """Take down what was set up as `of`; how many there were."""
        self.runs().remove(of)
        return self._db.execute("DELETE FROM tombstones WHERE of = ?", (of,)).rowcount if of else 0

    def person(self, name: str) -> bytes:
        """What a member's tombstones are taken down by."""
        return self._digest("person", identity(name))

    def member(self, names: Iterable[str], ids: Iterable[str]) -> list[bytes]:
        """Those of a member who is known by `names` and, where a chat gave any, by `ids`."""
        ids = [speaker_id for speaker_id in ids if speaker_id]
        kinds = ["name"] if ids else ["name", "name without an id"]
        named = [self._digest(kind, identity(name)) for kind in kinds for name in names]
        return [*named, *(self._digest("id", speaker_id) for speaker_id in ids)]

    def message(self, key: bytes, speaker: str, content: str) -> list[bytes]:
        """Those of one message: its key, and, where it says enough to be told apart, who said what."""
        digests = [self._digest("message", key.hex())]
        words = folded_words(content)
        return [*digests, self._digest("said", identity(speaker), *words)] if len(words) >= WHOLE_WORDS else digests

    def record(self, owner: str, source: str, layer: str, content: str) -> bytes:
        """That of a derived record: the same content in the same coordinates is not written again."""
        return self._digest("record", owner, source, layer, *folded_words(content))

    def chat(self, *names: str) -> list[bytes]:
        """Those of a chat, by its name and its id."""
        return [self._digest("chat", name) for name in names if name]

    def allows(self, message: ChatMessage, key: bytes) -> bool:
        """Whether a message may come in: neither it nor who says it nor its chat was forgotten."""
        if not self._digests:
            return True
        kind = "name without an id" if message.speaker_id else "name"
        barred = [self._digest(kind, identity(message.speaker)), *self.chat(message.channel, message.channel_id)]
        if message.speaker_id:
            barred.append(self._digest("id", message.speaker_id))
        barred += self.message(key, message.speaker, message.content)
        return self._digests.isdisjoint(barred)

    def key(self) -> bytes:
        """What the file's hashes are keyed by; made at the first need."""
        if not self._key:
            self._key = secrets.token_bytes(32)
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, self._key.hex()))
        return self._key

    def bars_record(self, owner: str, source: str, layer: str, content: str) -> bool:
        """Whether a derived record was forgotten."""
        return self.record(owner, source, layer, content) in self._digests

    def bars_name(self, name: str) -> bool:
        """Whether a member of that name was forgotten."""
        return self._digest("name", identity(name)) in self._digests

    def runs(self) -> ForgottenRuns:
        """The runs of words that may not come back."""
        return ForgottenRuns(self._db, self.key)

    def _digest(self, *parts: str) -> bytes:
        # A tuple's repr joins its parts unambiguously.
        return hashlib.blake2b(repr(parts).encode(), key=self.key(), digest_size=_SIZE).digest()


def admitted(db: sqlite3.Connection, messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], int]:
    """The messages that may come in, without quotations of what was forgotten; and how many may not."""
    stones = Tombstones(db)
    runs = stones.runs()
    if not len(stones) and not runs:
        return list(messages), 0
    allowed = [message for message, key in zip(messages, message_keys(messages), strict=True) if stones.allows(message, key)]
    return [without_quotations(message, stones, runs) for message in allowed], len(messages) - len(allowed)


def without_quotations(message: ChatMessage, stones: Tombstones, runs: ForgottenRuns) -> ChatMessage:
    """The message without quotations of what was forgotten, and without what it forwards of who was."""
    cut = without_forwarded(runs.cut(message.content), stones.bars_name)
    return message if cut == message.content else replace(message, content=cut)


def allowed_output(db: sqlite3.Connection, state: MemoryState, output: str) -> str:
    """A Writer's output on `state` without the actions that would record again what was forgotten; NOOP where none is left."""
    parsed = parse_completion(output)
    if not any(action_kind(action) in ("ADD", "UPDATE") for action in parsed.actions):
        return output
    stones = Tombstones(db)
    kept = [action for action in parsed.actions if not _records_again(action, state, stones)]
    if len(kept) == len(parsed.actions):
        return output
    return json.dumps({"actions": kept or [{"action": "NOOP"}]}, ensure_ascii=False)


def _records_again(action: object, state: MemoryState, stones: Tombstones) -> bool:
    if not isinstance(action, dict) or schema_error(action):
        return False
    if action["action"] == "ADD":
        return stones.bars_record(action["owner"], action["source"], action["layer"], action["content"])
    old = state.get(action["entry_id"]) if action["action"] == "UPDATE" else None
    return old is not None and stones.bars_record(old.owner, old.source, old.layer, action["content"])
