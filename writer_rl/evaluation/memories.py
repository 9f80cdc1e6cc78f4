"""A memory as it was written: raw outputs replayed, and kept in a file for the next start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memory_env import MemoryState, Network, replay
from memory_env.datafile import DataError
from memory_env.replay import Completion, WrittenStep
from memory_env.text import json_utf8


@dataclass(frozen=True, slots=True)
class WrittenMemory:
    """The memory of one network, step by step.

    Example: WrittenMemory.of(network, [Completion('{"actions":[{"action":"NOOP"}]}')] * 5).state.derived() == ()
    """

    network_id: str
    steps: tuple[WrittenStep, ...]

    @property
    def state(self) -> MemoryState:
        """M_T, the memory after the last position."""
        return self.steps[-1].post_state if self.steps else MemoryState.empty()

    @classmethod
    def of(
        cls, network: Network, completions: Sequence[Completion], window: int | None = None, strict: bool = False
    ) -> WrittenMemory:
        """The same completions give the same memory. Raises DataError for another number of positions."""
        return cls(network.network_id, replay(network, completions, window, strict=strict))


class MemoryFile:
    """One JSON line per written network: {"writer", "seed", "identity", "network_id", "content", "completions"}.

    A line counts only for the same Writer identity and the same conversation; a torn last line (a kill while writing) is dropped.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lines = read_lines(path)

    def get(self, writer: str, seed: int, identity: str, network: Network) -> list[Completion] | None:
        for line in self._lines:
            place = (line.get("writer"), line.get("seed"), line.get("network_id"))
            if place == (writer, seed, network.network_id):
                if line.get("identity") != identity or line.get("content") != _content(network):
                    raise DataError(
                        f"{self.path}: holds a memory of {network.network_id} by another {writer} "
                        "(other weights, settings or messages); name another output folder"
                    )
                return [Completion(**each) for each in line["completions"]]
        return None

    def add(self, writer: str, seed: int, identity: str, network: Network, completions: Sequence[Completion]) -> None:
        line = {
            "writer": writer,
            "seed": seed,
            "identity": identity,
            "network_id": network.network_id,
            "content": _content(network),
            "completions": [_stored(each) for each in completions],
        }
        append_line(self.path, line)
        self._lines.append(line)


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Adds one JSON line; a process that is killed later has not lost it."""
    with path.open("ab") as file:
        file.write(json_utf8(value) + b"\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole JSON lines; a torn last one is cut off the file. Raises DataError for a bad line elsewhere."""
    if not path.exists():
        return []
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        path.write_bytes(whole)
    lines = []
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):  # a text may hold U+2028 and its like, no line ends there
        try:
            lines.append(json.loads(line))
        except ValueError:
            raise DataError(f"{path}, line {number}: not JSON; remove the line to redo it") from None
    return lines


def _stored(completion: Completion) -> dict[str, Any]:
    """Its fields; the tokens only where they were counted."""
    return {key: value for key, value in asdict(completion).items() if value is not None}


def _content(network: Network) -> str:
    return hashlib.sha256(network.content_digest().encode()).hexdigest()[:16]
