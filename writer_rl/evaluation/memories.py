"""A memory as it was written: raw outputs replayed through the environment, and kept in a file for the next start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_env import DataError, MemoryState, Network, Report, parse_completion, step
from memory_env.text import json_utf8


@dataclass(frozen=True, slots=True)
class Completion:
    """What a Writer gave at one position. Example: Completion('{"actions":[{"action":"NOOP"}]}')."""

    text: str
    hit_length_limit: bool = False


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """One position replayed; the fields `writer_rl.evaluation.memory_metrics` reads of a rollout step."""

    actions: list[Any]
    report: Report
    pre_state: MemoryState
    post_state: MemoryState


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one network."""

    network_id: str
    steps: tuple[WrittenStep, ...]

    @property
    def state(self) -> MemoryState:
        return self.steps[-1].post_state if self.steps else MemoryState.empty()


def replay(network: Network, completions: Sequence[Completion], window: int | None = None, strict: bool = False) -> Memory:
    """The same completions give the same memory. Raises DataError for another number of positions."""
    segments = network.segments(window)
    if len(segments) != len(completions):
        raise DataError(f"network {network.network_id}: {len(completions)} outputs for {len(segments)} positions")
    state, steps = MemoryState.empty(), []
    for segment, completion in zip(segments, completions, strict=True):
        parsed = parse_completion(completion.text)
        after, report = step(
            state,
            segment,
            parsed.actions if parsed.valid else completion.text,
            hit_length_limit=completion.hit_length_limit,
            strict=strict,
        )
        steps.append(WrittenStep(parsed.actions, report, state, after))
        state = after
    return Memory(network.network_id, tuple(steps))


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
                return [Completion(each["text"], each["hit_length_limit"]) for each in line["completions"]]
        return None

    def add(self, writer: str, seed: int, identity: str, network: Network, completions: Sequence[Completion]) -> None:
        line = {
            "writer": writer,
            "seed": seed,
            "identity": identity,
            "network_id": network.network_id,
            "content": _content(network),
            "completions": [{"text": each.text, "hit_length_limit": each.hit_length_limit} for each in completions],
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


def _content(network: Network) -> str:
    return hashlib.sha256(network.content_digest().encode()).hexdigest()[:16]
