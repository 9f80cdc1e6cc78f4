"""Any language model behind an OpenAI-compatible endpoint, asked with the Writer's prompt file."""

from __future__ import annotations

import json
from typing import Any

from memory_env import MemoryState, ObservationLimits, PromptTemplate, Segment, observe, parse_completion
from memory_env.query.answer.endpoint_client import EndpointClient
from memory_env.replay import Completion
from rollout.action_schema import action_schema
from writer_rl.config import EvaluationConfig
from writer_rl.evaluation.prompt_file import prompt_path


class EndpointWriter:
    """A model that is asked again where it does not answer with an action list."""

    def __init__(self, client: EndpointClient, config: EvaluationConfig):
        self._client = client
        self._template = PromptTemplate.load(prompt_path(config))
        self._limits = ObservationLimits(config.data.heads_per_owner, config.data.max_chars)
        self.identity = f"endpoint:{client.settings.model}:{self._template.sha256}"

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """See `writer_rl.evaluation.writers.Writer`. Raises what the client raises: an outage is never an empty memory."""
        messages = self._template.render(observe(state, segment, self._limits))
        place = f"{network_id}, position {segment.position}" if network_id else f"position {segment.position}"
        return Completion(self._client.complete("write", messages, accept_actions, place, action_schema()))

    def close(self) -> None:
        """Nothing to free."""


def accept_actions(body: dict[str, Any]) -> str:
    """A response body as a Writer's completion; ValueError without an action list."""
    text = json.dumps(body, ensure_ascii=False)
    if not parse_completion(text).valid:
        raise ValueError("the response has no list `actions`")
    return text
