"""The engine protocol: token ids and seeds in; token ids, raw log-probabilities and a finish reason out.

Nothing but token ids crosses this boundary, so that no text is ever tokenised twice (a re-tokenised completion is
another completion). An engine serves one policy at a time, named by ``policy_version``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch

FinishReason = Literal["stop", "length"]


class RolloutInputError(ValueError):
    """A model folder, tokenizer or setting can't be used; the message is one line with the remedy."""


class EngineError(RuntimeError):
    """A rollout engine could not do what was asked; the message is one line with the remedy."""


class EngineDied(EngineError):
    """The engine is gone. The round is lost, the run is not: ``restart()``, sync, repeat with the same seeds."""


class EngineStateError(EngineError):
    """A call that the engine's state forbids: generating or loading while asleep, generating with discarded weights."""


class PromptTooLong(ValueError):
    """A prompt leaves no room for a single new token in the engine's context."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is drawn.

    ``temperature`` divides the logits, then ``top_p`` keeps the smallest set of most probable tokens whose mass reaches
    it (the token that crosses the threshold included). ``greedy`` takes the most probable token and ignores both, as
    well as the seed. ``max_new_tokens`` counts the stop token.

    Example: ``SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=2048)``, the paper's rollouts.
    """

    temperature: float = 0.8
    top_p: float = 0.95
    max_new_tokens: int = 2048
    greedy: bool = False

    def __post_init__(self) -> None:
        if not self.greedy and not 0.0 < self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature}; it must be positive (use greedy for temperature 0)")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p is {self.top_p}; it must be in (0, 1]")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {self.max_new_tokens}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One completion to sample.

    Equal requests to an engine with equal weights give equal completions, whatever else is in the call (up to float
    noise of the batch's shape).

    Example: ``GenerationRequest((5, 9, 2), request_seed(0, "n1", 3, 0, 0), SamplingParams())``
    """

    prompt_ids: tuple[int, ...]
    seed: int
    sampling: SamplingParams


@dataclass(frozen=True, slots=True)
class Generation:
    """One sampled completion.

    ``token_ids`` [n] are the sampled ids, the stop token included when ``finish_reason`` is ``"stop"``; ``logprobs``
    [n] are their *raw* log-probabilities: temperature 1, full vocabulary, whatever the sampling settings were.
    ``text`` is the completion without its stop token; other special tokens stay visible in it. ``"length"`` means
    that ``max_new_tokens`` or the model's context ended it.

    Example: ``Generation((17, 4, 1), '{"actions":[]}', (-0.1, -0.02, -0.3), "stop")`` where 1 is the stop token.
    """

    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[float, ...]
    finish_reason: FinishReason


@runtime_checkable
class Engine(Protocol):
    """A sampler of one policy. ``rollout.hf.engine.HFEngine`` and ``rollout.vllm.engine.VLLMEngine`` implement it.

    States: *awake* -> ``sleep()`` -> *asleep* -> ``wake()`` -> *awake*; ``close()`` ends it. Asleep, ``generate`` and
    ``update_weights`` raise `EngineStateError`. Where sleeping discards the weights, ``generate`` also refuses between
    ``wake()`` and the next ``update_weights``.
    """

    @property
    def policy_version(self) -> int:
        """Counts the policies this engine has served; part of every request's seed. Set by ``update_weights``."""
        ...

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Sample all requests as one batch; results in request order.

        Raises `PromptTooLong`, `EngineStateError`, or `EngineDied` when the engine is gone.
        """
        ...

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Serve these weights from now on, as policy ``version``; every cache computed from older weights is dropped.

        ``named_tensors`` are all parameters of the model under their Hugging Face names, ``lm_head.weight`` included
        when it is tied (`rollout.weights.named_weights` yields that, gathering ZeRO-3 shards group by group). Each
        tensor is used before the next is drawn. A name or shape that does not fit raises `ValueError`. Call it through
        `rollout.sync.sync_and_probe`, which also proves that the weights arrived.
        """
        ...

    def weight_checksums(self) -> Mapping[str, int]:
        """`rollout.checksum` of every parameter as this engine computes with it, by Hugging Face name, tied ones under each.

        Read from where the next forward pass reads, never from what was sent.
        """
        ...

    def sleep(self) -> None:
        """Give back the memory that only sampling needs. A no-op where there is none. Twice is once."""
        ...

    def wake(self) -> None:
        """Undo ``sleep``. Twice is once."""
        ...

    def restart(self) -> None:
        """Start anew after `EngineDied`; the weights are then unknown until the next ``update_weights``."""
        ...

    def metrics(self) -> dict[str, float]:
        """Figures since the last call: at least ``prompt_tokens``, ``generated_tokens`` and ``seconds``."""
        ...

    def close(self) -> None:
        """Release everything. Twice is once; any other call after it raises `EngineStateError`."""
        ...


@runtime_checkable
class KeepsPrompts(Protocol):
    """An engine that can begin a call's prompts from what it computed for those of the call before, under unchanged weights.

    What a call computes then depends, in the last digits, on the calls before it: who wants the same digits again has to make the
    same calls, or have their prompts read. So it is done on request only: `rollout.sampler.sample_groups` asks for it.
    """

    def keep_prompts(self) -> AbstractContextManager[None]:
        """Keep them from call to call; begins and ends with nothing known."""
        ...

    def read_prompts(self, requests: Sequence[GenerationRequest]) -> None:
        """Know what ``generate(requests)`` would have left known, without sampling."""
        ...


def keeping_prompts(engine: Engine) -> AbstractContextManager[None]:
    """`KeepsPrompts.keep_prompts` of an engine that has it; nothing for another."""
    return engine.keep_prompts() if isinstance(engine, KeepsPrompts) else nullcontext()


@runtime_checkable
class Interruptible(Protocol):
    """An engine whose ``generate`` can be ended between decode steps."""

    def interruptible(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `check` between decode steps. What it raises ends the call; the engine can be asked again."""
        ...


def interrupted_by(check: Callable[[], None], engine: Engine) -> AbstractContextManager[None]:
    """`Interruptible.interruptible` of an engine that has it; nothing for another."""
    return engine.interruptible(check) if isinstance(engine, Interruptible) else nullcontext()
