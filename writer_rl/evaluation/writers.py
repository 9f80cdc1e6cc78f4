"""A Writer: something that writes the next segment of a network. Which there are, and how they write whole networks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

from memory_env import MemoryState, Network, Segment
from memory_env.datafile import DataError
from memory_env.query.answer.endpoint_client import EndpointClient
from memory_env.replay import Completion, write
from writer_rl.config import DataSection, EvaluationConfig
from writer_rl.evaluation.checkpoint_writer import CheckpointWriter, checkpoint_folder
from writer_rl.evaluation.endpoint_writer import EndpointWriter
from writer_rl.evaluation.served_writer import ServedWriter
from writer_rl.train.data import with_teachers

TEACHER, NOBODY, ENDPOINT, SERVED = "teacher", "none", "endpoint:", "served:"
NOOP_OUTPUT = '{"actions":[{"action":"NOOP"}]}'


class Writer(Protocol):
    """Something that writes the next segment of a network.

    Example:
        class Nobody:
            identity = "none"
            def write(self, state, segment, network_id=""): return Completion('{"actions":[{"action":"NOOP"}]}')
            def close(self): pass
    """

    @property
    def identity(self) -> str:
        """Names everything that determines the outputs."""
        ...

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """What is written about `segment`, given the memory before it; `network_id` names the conversation, where it has a name.

        Raises `rollout.writer_prompt.PromptDoesNotFit` where roster and segment alone exceed the context: a shorter segment may
        fit.
        """
        ...

    def close(self) -> None:
        """Free what it holds. Twice is once."""
        ...


@runtime_checkable
class LockstepWriter(Protocol):
    """A Writer that writes several networks faster together than one after the other."""

    def write_networks(self, networks: Sequence[Network]) -> Iterator[tuple[Network, list[Completion]]]:
        """Each network with its completions, in the order given."""
        ...


def write_networks(
    writer: Writer, networks: Sequence[Network], data: DataSection, concurrency: int
) -> Iterator[tuple[Network, list[Completion]]]:
    """Each network with its completions, in the order given, as soon as it is written.

    A Writer that waits for a server writes `concurrency` networks at a time; each waits for its own positions only.
    """
    if isinstance(writer, LockstepWriter):
        yield from writer.write_networks(networks)
        return

    def written(network: Network) -> list[Completion]:
        def next_output(state: MemoryState, segment: Segment) -> Completion:
            return writer.write(state, segment, network.network_id)

        return [made.output for made in write(network.segments(data.window), next_output, strict=data.strict)]

    pool = ThreadPoolExecutor(concurrency)
    try:
        yield from zip(networks, pool.map(written, networks), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


class Nobody:
    """Writes nothing: System 2 stays empty."""

    identity = NOBODY

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """A NOOP."""
        return Completion(NOOP_OUTPUT)

    def close(self) -> None:
        """Nothing to free."""


class TeacherWriter:
    """The teacher's actions about these networks, replayed: the upper reference."""

    identity = TEACHER

    def __init__(self, networks: Sequence[Network], data: DataSection):
        self._networks, self._data = networks, data

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """What the teacher wrote there. Raises DataError for a network without a teacher."""
        actions = self._actions.get(network_id)
        if actions is None:
            raise DataError(f"--writer teacher: has written nothing about {network_id or 'these messages'}; name another Writer")
        return Completion(_output(actions[segment.position]))

    def close(self) -> None:
        """Nothing to free."""

    @cached_property
    def _actions(self) -> dict[str, Sequence[Sequence[object]]]:
        known = with_teachers(self._networks, self._data) if self._networks else []
        return {each.network.network_id: each.teacher.actions for each in known}


@dataclass(frozen=True, slots=True)
class WriterSpec:
    """A row of the table: a name and one source per training seed.

    A source is a checkpoint folder, "teacher", "none" (nothing is derived: the lower reference), "endpoint:MODEL" (a language
    model, asked again where it does not answer in JSON) or "served:MODEL" (a trained Writer behind a server).
    Example: WriterSpec.parse("RL=runs/a/final,runs/b/final") -> WriterSpec("RL", ("runs/a/final", "runs/b/final")).
    """

    name: str
    sources: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> WriterSpec:
        name, equals, rest = text.partition("=")
        if not equals:
            name, rest = (Path(text).name or text, text)
        sources = tuple(part.strip() for part in rest.split(",") if part.strip())
        if not name.strip() or not sources:
            raise DataError(
                f"--writer {text}: expected NAME=PATH[,PATH2,...], 'teacher', 'none', NAME=endpoint:MODEL or NAME=served:MODEL"
            )
        if len(sources) > 1 and any(source in (TEACHER, NOBODY) for source in sources):
            raise DataError(f"--writer {text}: 'teacher' and 'none' have no seeds; give each a row of its own")
        return cls(name.strip(), sources)


def open_writer(
    source: str, config: EvaluationConfig, client: Callable[[str], EndpointClient], networks: Sequence[Network] = ()
) -> Writer:
    """The Writer of a source. Nothing is loaded before it writes.

    client: makes the client of a model behind an endpoint. networks: those a teacher can be asked about.
    Raises DataError for a folder without a model.
    """
    if source == TEACHER:
        return TeacherWriter(networks, config.data)
    if source == NOBODY:
        return Nobody()
    if source.startswith(ENDPOINT):
        return EndpointWriter(client(source.removeprefix(ENDPOINT)), config)
    if source.startswith(SERVED):
        return ServedWriter(client(source.removeprefix(SERVED)), config)
    return CheckpointWriter(checkpoint_folder(source), config)


def _output(actions: Sequence[object]) -> str:
    return json.dumps({"actions": list(actions)}, ensure_ascii=False, separators=(",", ":"))
