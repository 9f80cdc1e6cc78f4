"""An answer from a memory, with the evidence behind it."""

from __future__ import annotations

from dataclasses import dataclass

from memory_env.query.protocol import Evidence, EvidenceItem
from memory_env.store.store import MemoryStore
from memory_env.text import one_line


@dataclass(frozen=True)
class EvidenceLine:
    """One piece of evidence: who said it, when, what, about whom, and the messages behind it.

    `track` is "messages" or "memory"; `behind` are the verbatim messages of a derived record, each on one line.
    """

    track: str
    speaker: str
    ts: str
    content: str
    owner: str = ""
    layer: str = ""
    current: bool = True
    behind: tuple[str, ...] = ()

    def __str__(self) -> str:
        about = f" about {self.owner}" if self.owner and self.owner != self.speaker else ""
        outdated = "" if self.current else " (since superseded)"
        # On one line: a message may hold a line that looks like somebody else's.
        line = one_line(f"{self.speaker} @ {self.ts}{about}: {' '.join(self.content.split())}{outdated}")
        if self.track == "messages":
            return line
        return "\n".join([f"{line}  [{self.layer}]", *(f"    from {message}" for message in self.behind)])


@dataclass(frozen=True)
class Answered:
    """An answer with its evidence, the derived records first."""

    question: str
    text: str
    evidence: tuple[EvidenceLine, ...]


def answered(question: str, text: str, evidence: Evidence, store: MemoryStore) -> Answered:
    """An answer and what it was read from; the messages behind records are read from the file."""
    records = [item for row in evidence.rows for chain in row.chains for item in chain]
    records += [item for row in evidence.rows for item in row.said]
    fallbacks = [row.fallback for row in evidence.rows if row.fallback is not None]
    spoken = list(dict.fromkeys([*fallbacks, *evidence.messages]))
    lines = [_line("memory", item, store) for item in dict.fromkeys(records)]
    return Answered(question, text, tuple(lines + [_line("messages", item, store) for item in spoken]))


def _line(track: str, item: EvidenceItem, store: MemoryStore) -> EvidenceLine:
    behind = [
        one_line(f"{message.source} @ {message.ts}: {' '.join(message.content.split())}")
        for entry_id in (item.messages if track == "memory" else ())
        if (message := store.message(entry_id)) is not None
    ]
    return EvidenceLine(track, item.source, item.ts, item.content, item.owner, item.layer, item.current, tuple(behind))
