"""A trained Writer behind a server (`vllm serve`): asked greedily with its own prompt, its completion taken as it is."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from memory_env import MemoryState, ObservationLimits, PromptTemplate, Segment, observe
from memory_env.query.answer.endpoint_client import EndpointClient
from memory_env.replay import Completion
from writer_rl.config import EvaluationConfig, ModelSection, resolve
from writer_rl.evaluation.prompt_file import prompt_path

if TYPE_CHECKING:
    from rollout.writer_prompt import WriterPrompt


class ServedWriter:
    """One Writer, asked for one segment at a time; from several threads, if need be.

    The model's name, as the server knows it, may be a folder here too (vllm serve names a model by its path), or
    `model.tokenizer` names one: its prompt file, tokenizer and context are then used as if it were read directly. Its control
    tokens are broken in messages, and memory that does not fit its context is left out. Without a folder the prompt is the
    configured one, and a prompt that does not fit is the server's error.

    `identity` names everything that determines the outputs, but for the weights, which only the server knows.
    """

    def __init__(self, client: EndpointClient, config: EvaluationConfig):
        self._client, self._max_new_tokens = client, config.rollout.max_new_tokens
        folder = served_folder(client.settings.model, config)
        self._template_arguments = config.model.chat_template_kwargs
        self._template = PromptTemplate.load(prompt_path(config, folder))
        self._limits = ObservationLimits(config.data.heads_per_owner, config.data.max_chars)
        self._prompt = _writer_prompt(folder, self._template, self._limits, config) if folder else None
        self._tokenizing = threading.Lock()  # a tokenizer serves one thread at a time
        settings = [
            config.data.window, config.data.heads_per_owner, config.data.max_chars, config.data.strict,
            self._max_new_tokens, self._template.sha256, self._prompt and self._prompt.max_prompt_tokens,
            *([self._template_arguments] if self._template_arguments else []),
        ]  # fmt: skip
        self.identity = f"served:{client.settings.model}:{hashlib.sha256(json.dumps(settings).encode()).hexdigest()}"

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """See `writer_rl.evaluation.writers.Writer`. Raises what the client raises: an outage is never an empty memory."""
        place = f"{network_id}, position {segment.position}" if network_id else f"position {segment.position}"
        if self._prompt is None:
            messages = self._template.render(observe(state, segment, self._limits))
        else:
            with self._tokenizing:
                encoded = self._prompt.encode(state, segment, network_id)
            messages = self._template.render(encoded.observation, self._prompt.control_tokens)
        extra = {"chat_template_kwargs": self._template_arguments} if self._template_arguments else {}
        return Completion(*self._client.text("write", messages, self._max_new_tokens, place, extra))

    def close(self) -> None:
        """Nothing to free."""


def served_folder(model: str, config: EvaluationConfig) -> Path | None:
    """The folder on this machine that holds what the server serves, if there is one."""
    for named in (config.model.tokenizer, model):
        if named and (resolve(named) / "config.json").is_file():
            return resolve(named)
    return None


def _writer_prompt(folder: Path, template: PromptTemplate, limits: ObservationLimits, config: EvaluationConfig) -> WriterPrompt:
    from rollout.writer_prompt import WriterPrompt
    from writer_rl.model.policy import load_tokenizer

    tokenizer = load_tokenizer(ModelSection(path=str(folder)))
    context = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("max_position_embeddings", 32768)
    room = context - config.rollout.max_new_tokens
    return WriterPrompt(tokenizer, template, room, limits, config.model.chat_template_kwargs)
