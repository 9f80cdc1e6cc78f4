"""From a state and a segment to the token ids the Writer reads, and never more of them than it may."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jinja2

from memory_env import MemoryState, Observation, ObservationLimits, PromptTemplate, Segment, observe
from rollout.engine import RolloutInputError
from rollout.tokenizer import Tokenizer

_MARKER = re.compile(r"^[<\[{].*[>\]}]$", re.DOTALL)
SEARCH_STEPS = 12
MOST_OMITTED = 9999
"""A number of records left out that no memory reaches."""


class PromptDoesNotFit(ValueError):
    """Roster and segment alone exceed the prompt limit. Nothing is cut silently: the message says what to change."""


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as the engine reads it, and the observation it shows.

    Example: ``EncodedPrompt(token_ids=(1, 40, 7, ...), observation=<Observation>, omitted_heads=0)``
    """

    token_ids: tuple[int, ...]
    observation: Observation
    omitted_heads: int


class WriterPrompt:
    """Renders observations through a prompt file and the tokenizer's chat template.

    Args:
        tokenizer: a transformers tokenizer with a chat template.
        template: the prompt file.
        max_prompt_tokens: bound on every prompt: the model's context less the new tokens. Where the memory does not
            fit, the heads least related to the segment are left out and counted.
        limits: bounds on the memory shown, whatever fits.
        chat_template_kwargs: further arguments of the tokenizer's chat template, e.g. ``{"enable_thinking": False}``.

    Raises RolloutInputError for a tokenizer without a chat template, or one that refuses the prompt file's roles.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: PromptTemplate,
        max_prompt_tokens: int,
        limits: ObservationLimits | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
            raise RolloutInputError(
                f"tokenizer {name} has no chat template; use an instruct model's tokenizer, or put a "
                "chat_template.jinja beside its tokenizer.json"
            )
        if max_prompt_tokens < 1:
            raise RolloutInputError(f"max_prompt_tokens is {max_prompt_tokens}; the context must exceed max_new_tokens")
        self.tokenizer = tokenizer
        self.template = template
        self.max_prompt_tokens = max_prompt_tokens
        self.limits = limits or ObservationLimits()
        self.chat_template_kwargs = dict(chat_template_kwargs or {})
        self.control_tokens = control_tokens(tokenizer)
        # G trajectories share the state before position 0, and a network met again the same first observation.
        self._token_ids = lru_cache(maxsize=1024)(self._render)

    def encode(self, state: MemoryState, segment: Segment, network_id: str = "") -> EncodedPrompt:
        """The prompt of ``segment`` given the memory before it. ``network_id`` names the place in errors.

        Raises `PromptDoesNotFit`.
        """
        observation = observe(state, segment, self.limits)
        token_ids = self._token_ids(observation)
        if len(token_ids) > self.max_prompt_tokens:
            observation, token_ids = self._fitting(observation, state, segment, network_id)
        return EncodedPrompt(token_ids, observation, observation.omitted_heads)

    def fewest_tokens(self, segment: Segment, roster: Iterable[str]) -> int:
        """Tokens of the shortest prompt of ``segment``: members and messages without any memory.

        roster: everybody who has spoken up to and in it.
        """
        observation, _ = self._narrowed(MemoryState.from_records((), roster), segment, 0)
        # A prompt file may say how many records are left out, which takes a few tokens more.
        return len(self._render(replace(observation, omitted_heads=MOST_OMITTED)))

    def _fitting(
        self, full: Observation, state: MemoryState, segment: Segment, network_id: str
    ) -> tuple[Observation, tuple[int, ...]]:
        """The largest observation that fits: a search over the characters of memory shown."""
        best = self._narrowed(state, segment, 0)
        if len(best[1]) > self.max_prompt_tokens:
            raise PromptDoesNotFit(
                f"network {network_id or '?'}, position {segment.position}: roster and segment alone need "
                f"{len(best[1])} tokens, {self.max_prompt_tokens} are allowed; split the segment (data.window) or use "
                "a model with a longer context"
            )
        low, high = 0, _characters(full)
        for _ in range(SEARCH_STEPS):
            middle = (low + high) // 2
            if middle == low:
                break
            candidate = self._narrowed(state, segment, middle)
            if len(candidate[1]) <= self.max_prompt_tokens:
                low, best = middle, candidate
            else:
                high = middle
        return best

    def _narrowed(self, state: MemoryState, segment: Segment, max_chars: int) -> tuple[Observation, tuple[int, ...]]:
        observation = observe(state, segment, replace(self.limits, max_chars=min(max_chars, self.limits.max_chars)))
        return observation, self._token_ids(observation)

    def _render(self, observation: Observation) -> tuple[int, ...]:
        messages = self.template.render(observation, self.control_tokens)
        try:
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self.chat_template_kwargs
            )
        except jinja2.TemplateError as error:
            roles = ", ".join(message["role"] for message in messages)
            raise RolloutInputError(
                f"the tokenizer's chat template refuses the roles {roles} of {self.template.path}: {error}; if it "
                "knows no system role, write the prompt file as one user section"
            ) from None
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def control_tokens(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Strings that the tokenizer reads as one id wherever they stand: special tokens, and ones like ``<tool_call>``.

    Message text is broken wherever it holds one of them, so that data can't end a turn or open another.
    """
    special = set(tokenizer.all_special_tokens)
    for token in tokenizer.added_tokens_decoder.values():
        if token.special or _MARKER.match(token.content):
            special.add(token.content)
    return tuple(sorted(special))


def _characters(observation: Observation) -> int:
    """An upper bound on what the heads shown count for against ``max_chars``."""
    return sum(len(h.owner) + len(h.source) + len(h.layer) + len(h.content) + 64 for h in observation.heads)
