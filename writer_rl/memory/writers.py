"""Who writes a living memory, one segment at a time: an exported Writer, one behind a server, any model, or nobody."""

from __future__ import annotations

import json
from typing import Protocol

from memory_env import MemoryState, ObservationLimits, PromptTemplate, Segment, observe
from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
from rollout.action_schema import action_schema
from writer_rl.config import EvaluationConfig
from writer_rl.evaluation.prompt_file import prompt_path
from writer_rl.evaluation.writers import (
    ENDPOINT,
    NOBODY,
    SERVED,
    accept_actions,
    checkpoint_folder,
    checkpoint_identity,
)

NOOP_OUTPUT = '{"actions":[{"action":"NOOP"}]}'


class SegmentTooLong(ValueError):
    """Roster and segment do not fit the Writer's context: a shorter segment may."""


class SegmentWriter(Protocol):
    """`identity` names everything that determines the outputs."""

    identity: str

    def write(self, state: MemoryState, segment: Segment) -> tuple[str, bool]:
        """(completion, whether it hit the length limit). Raises SegmentTooLong."""
        ...

    def close(self) -> None: ...


class Nobody:
    """Writes nothing: the memory holds the messages alone."""

    identity = NOBODY

    def write(self, state: MemoryState, segment: Segment) -> tuple[str, bool]:
        """A NOOP."""
        return NOOP_OUTPUT, False

    def close(self) -> None:
        """Nothing to free."""


class CheckpointWriter:
    """An exported Writer (or any checkpoint), decoded greedily."""

    def __init__(self, source: str, config: EvaluationConfig):
        from rollout.engine import SamplingParams
        from writer_rl.evaluation.engines import open_engine

        folder = checkpoint_folder(source)
        self.identity = checkpoint_identity(folder, config)
        self._engine, self._prompt = open_engine(folder, config)
        self._sampling = SamplingParams(greedy=True, max_new_tokens=config.rollout.max_new_tokens)

    def write(self, state: MemoryState, segment: Segment) -> tuple[str, bool]:
        """The Writer's completion."""
        from rollout.engine import GenerationRequest
        from rollout.writer_prompt import PromptDoesNotFit

        try:
            encoded = self._prompt.encode(state, segment)
        except PromptDoesNotFit as error:
            raise SegmentTooLong(str(error)) from None
        made = self._engine.generate([GenerationRequest(encoded.token_ids, 0, self._sampling)])[0]
        return made.text, made.finish_reason == "length"

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()


class EndpointWriter:
    """A model behind an OpenAI-compatible endpoint, asked with the Writer's prompt file."""

    def __init__(self, client: EndpointClient, config: EvaluationConfig):
        self._client = client
        self._template = PromptTemplate.load(prompt_path(config))
        self._limits = ObservationLimits(config.data.heads_per_owner, config.data.max_chars)
        self.identity = f"{ENDPOINT}{client.settings.model}:{self._template.sha256}"

    def write(self, state: MemoryState, segment: Segment) -> tuple[str, bool]:
        """The model's action list. Raises what the client raises: an outage is never an empty memory."""
        messages = self._template.render(observe(state, segment, self._limits))
        written = self._client.complete("write", messages, accept_actions, f"position {segment.position}", action_schema())
        return written, False

    def close(self) -> None:
        """Nothing to free."""


class ServedWriter:
    """A trained Writer behind a server, asked with its own prompt; its completion counts as it is."""

    def __init__(self, client: EndpointClient, config: EvaluationConfig):
        from writer_rl.evaluation.served import ServedModel

        self._model = ServedModel(client, config)
        self.identity = self._model.identity

    def write(self, state: MemoryState, segment: Segment) -> tuple[str, bool]:
        """The Writer's completion. Raises what the client raises: an outage is never an empty memory."""
        from rollout.writer_prompt import PromptDoesNotFit

        try:
            written = self._model.complete(state, segment)
        except PromptDoesNotFit as error:
            raise SegmentTooLong(str(error)) from None
        return written.text, written.hit_length_limit

    def close(self) -> None:
        """Nothing to free."""


def open_segment_writer(source: str, config: EvaluationConfig | None = None, base_url: str | None = None) -> SegmentWriter:
    """The Writer that `source` names: "none", "endpoint:MODEL", "served:MODEL", or a folder (DataError without a model in it).

    Without a `config` see `own_config`.
    """
    if source == NOBODY:
        return Nobody()
    config = config or own_config(source)
    for prefix, behind in ((ENDPOINT, EndpointWriter), (SERVED, ServedWriter)):
        if source.startswith(prefix):
            settings = EndpointSettings(source.removeprefix(prefix), base_url, max_tokens=config.rollout.max_new_tokens)
            return behind(EndpointClient(settings).check(), config)
    return CheckpointWriter(source, config)


def own_config(source: str) -> EvaluationConfig:
    """How to run a Writer that nobody configured: with the prompt it was trained with (`prompt_path`), and room for the prompt in
    its context: at most a quarter for the output."""
    config = EvaluationConfig()
    if source == NOBODY or source.startswith(ENDPOINT):
        return config
    if source.startswith(SERVED):
        from writer_rl.evaluation.served import served_folder

        folder = served_folder(source.removeprefix(SERVED), config)
        if folder is None:
            return config
    else:
        folder = checkpoint_folder(source)
    context = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("max_position_embeddings", 32768)
    most = max(1, min(config.rollout.max_new_tokens, int(context) // 4))
    return config.model_copy(update={"rollout": config.rollout.model_copy(update={"max_new_tokens": most})})
