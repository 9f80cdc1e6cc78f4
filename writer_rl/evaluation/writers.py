"""Who writes the memory: checkpoints, the teacher, a model behind an endpoint or server, or nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from memory_env import MemoryState, Network, ObservationLimits, PromptTemplate, Segment, observe, parse_completion
from memory_env.datafile import DataError
from memory_env.query.answer.endpoint_client import EndpointClient
from memory_env.replay import Completion, write
from rollout.action_schema import action_schema
from writer_rl.config import EvaluationConfig, resolve
from writer_rl.evaluation.prompt_file import prompt_path
from writer_rl.train.data import taught

TEACHER, NOBODY, ENDPOINT, SERVED = "teacher", "none", "endpoint:", "served:"
NETWORKS_AT_ONCE = 16


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


class Writer(Protocol):
    """`identity` names everything that determines the outputs."""

    @property
    def identity(self) -> str: ...

    def write(self, networks: Sequence[Network], done: Callable[[Network, list[Completion]], None]) -> None:
        """Calls `done` for every network as soon as it is written."""
        ...


def open_writer(source: str, config: EvaluationConfig, client: Callable[[str], EndpointClient]) -> Writer:
    """The Writer of a source; `client(model)` makes an endpoint client. Nothing is loaded before it writes."""
    if source == TEACHER:
        return TeacherWriter(config)
    if source == NOBODY:
        return NobodyWriter(config)
    if source.startswith(ENDPOINT):
        return EndpointWriter(client(source.removeprefix(ENDPOINT)), config)
    if source.startswith(SERVED):
        from writer_rl.evaluation.served import ServedModel, ServedWriter

        return ServedWriter(ServedModel(client(source.removeprefix(SERVED)), config), config)
    return CheckpointWriter(checkpoint_folder(source), config)


def checkpoint_folder(source: str) -> Path:
    """The model folder that a path means: itself (an export), a checkpoint's model, or that of a run's newest checkpoint."""
    path = resolve(source)
    for candidate in (path, path / "model"):
        if (candidate / "config.json").is_file():
            return candidate
    from writer_rl.train.checkpoint import CheckpointError, find_checkpoint

    try:
        return find_checkpoint(path) / "model"
    except CheckpointError:
        raise DataError(f"--writer {source}: no model there; name an exported folder, a checkpoint or a run directory") from None


class TeacherWriter:
    """The teacher's actions, replayed: the upper reference."""

    def __init__(self, config: EvaluationConfig):
        self._config = config
        self.identity = TEACHER

    def write(self, networks: Sequence[Network], done: Callable[[Network, list[Completion]], None]) -> None:
        for known in taught(networks, self._config.data):
            done(known.network, [Completion(_output(actions)) for actions in known.teacher.actions])


class NobodyWriter:
    """NOOP everywhere: System 2 stays empty."""

    identity = NOBODY

    def __init__(self, config: EvaluationConfig):
        self._window = config.data.window

    def write(self, networks: Sequence[Network], done: Callable[[Network, list[Completion]], None]) -> None:
        for network in networks:
            done(network, [Completion(_output([{"action": "NOOP"}])) for _ in network.segments(self._window)])


class EndpointWriter:
    """A model behind an OpenAI-compatible endpoint, with the Writer's own prompt file; greedy."""

    def __init__(self, client: EndpointClient, config: EvaluationConfig):
        self._client, self._config = client, config
        self._prompt = PromptTemplate.load(prompt_path(config))
        self._limits = ObservationLimits(config.data.heads_per_owner, config.data.max_chars)
        self.identity = f"endpoint:{client.settings.model}:{self._prompt.sha256}"

    def write(self, networks: Sequence[Network], done: Callable[[Network, list[Completion]], None]) -> None:
        for network in networks:
            done(network, self._network(network))

    def _network(self, network: Network) -> list[Completion]:
        def ask(state: MemoryState, segment: Segment) -> Completion:
            messages = self._prompt.render(observe(state, segment, self._limits))
            place = f"{network.network_id}, position {segment.position}"
            return Completion(self._client.complete("write", messages, accept_actions, place, action_schema()))

        return [made.output for made in write(network.segments(self._config.data.window), ask, strict=self._config.data.strict)]


class CheckpointWriter:
    """A trained model, decoded greedily by the configured engine."""

    def __init__(self, folder: Path, config: EvaluationConfig):
        self._folder, self._config = folder, config
        self.identity = checkpoint_identity(folder, config)

    def write(self, networks: Sequence[Network], done: Callable[[Network, list[Completion]], None]) -> None:
        from rollout.sampler import write_memories
        from writer_rl.evaluation.engines import open_engine

        engine, prompt = open_engine(self._folder, self._config)
        try:
            for batch in _batches(networks, NETWORKS_AT_ONCE):
                written = write_memories(
                    batch,
                    engine,
                    prompt,
                    self._config.rollout.max_new_tokens,
                    window=self._config.data.window,
                    strict=self._config.data.strict,
                )
                for network in batch:
                    steps = written[network.network_id].steps
                    done(network, [Completion(made.text, made.finish_reason == "length") for made in steps])
        finally:
            engine.close()


def accept_actions(body: dict[str, Any]) -> str:
    """A response body as a Writer's completion; ValueError without an action list."""
    text = json.dumps(body, ensure_ascii=False)
    if not parse_completion(text).valid:
        raise ValueError("the response has no list `actions`")
    return text


def _output(actions: Sequence[Any]) -> str:
    return json.dumps({"actions": list(actions)}, ensure_ascii=False, separators=(",", ":"))


def checkpoint_identity(folder: Path, config: EvaluationConfig) -> str:
    """Hash over the model's files and the settings that shape its outputs (not over its path)."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in (".json", ".safetensors", ".bin", ".jinja", ".model"):
            digest.update(file.name.encode())
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    settings = [
        config.data.window, config.data.heads_per_owner, config.data.max_chars, config.data.strict,
        config.rollout.max_new_tokens, config.model.dtype, PromptTemplate.load(prompt_path(config, folder)).sha256,
    ]  # fmt: skip
    digest.update(json.dumps(settings).encode())
    return digest.hexdigest()


def _batches(networks: Sequence[Network], size: int) -> Iterator[Sequence[Network]]:
    for start in range(0, len(networks), size):
        yield networks[start : start + size]
