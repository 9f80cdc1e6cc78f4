"""The engine without dependencies: any causal language model of transformers, decoded with its own KV cache."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from rollout.checksum import named_checksums
from rollout.completion import completion_text, stop_token_ids
from rollout.engine import EngineStateError, Generation, GenerationRequest, PromptTooLong
from rollout.hf.decode import DecodeRow, decode_batch
from rollout.hf.kv_cache import decoding_attention
from rollout.tokenizer import Tokenizer
from rollout.weights import unwrapped


class HFEngine:
    """Samples a transformers model in the calling process; shares weights with a trainer that has the same module.

    Args:
        model: a causal LM, or a wrapper whose ``.module`` is one (a DeepSpeed engine). Sharing a module whose
            parameters ZeRO-3 has sharded is refused: give the engine a copy of its own.
        tokenizer: decodes completions and adds to the stop set.
        max_batch_tokens: bound on rows x (padded prompt + new tokens) of one batch; limits the KV cache.
        policy_version: of the weights the model holds now.

    Example:
        >>> engine = HFEngine(model, tokenizer)                                      # doctest: +SKIP
        >>> engine.generate([GenerationRequest((5, 9), 1, SamplingParams(max_new_tokens=8))])[0].finish_reason  # doctest: +SKIP
        'stop'
    """

    def __init__(
        self, model: nn.Module, tokenizer: Tokenizer, *, max_batch_tokens: int = 65_536, policy_version: int = 0
    ) -> None:
        module: Any = unwrapped(model)
        if any(getattr(p, "ds_id", None) is not None for p in module.parameters()):
            raise ValueError(
                "the HF engine can't sample a module that ZeRO-3 has sharded; give it its own copy of the model, use "
                "engine vllm, or ZeRO 1 or 2"
            )
        if max_batch_tokens < 1:
            raise ValueError(f"max_batch_tokens is {max_batch_tokens}; it must be at least 1")
        self.policy_version = policy_version
        self.stop_ids = stop_token_ids(tokenizer, module.config, getattr(module, "generation_config", None))
        self._module: Any = module  # None once closed
        self._tokenizer = tokenizer
        self._max_batch_tokens = max_batch_tokens
        self._context = getattr(module.config, "max_position_embeddings", None)
        self._last_logits_only = "logits_to_keep" in inspect.signature(module.forward).parameters
        self._whole = True
        self._asleep = False
        self._closed = False
        self._counts = {"prompt_tokens": 0.0, "generated_tokens": 0.0, "seconds": 0.0}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """See `rollout.engine.Engine.generate`."""
        self._require_awake("generate")
        if not self._whole:
            raise EngineStateError("generate: the last update_weights broke off; send the weights again first")
        started = time.perf_counter()
        rows = [self._row(index, request) for index, request in enumerate(requests)]
        made: dict[int, Generation] = {}
        with _evaluating(self._module), decoding_attention(self._module), torch.inference_mode():
            for batch in _batches(rows, self._max_batch_tokens):
                for row, (ids, logprobs, stopped) in zip(batch, self._decode(batch), strict=True):
                    text = completion_text(self._tokenizer, ids, self.stop_ids if stopped else frozenset())
                    made[row.index] = Generation(ids, text, logprobs, "stop" if stopped else "length")
        results = [made[index] for index in range(len(rows))]
        self._counts["prompt_tokens"] += sum(len(r.prompt_ids) for r in requests)
        self._counts["generated_tokens"] += sum(len(r.token_ids) for r in results)
        self._counts["seconds"] += time.perf_counter() - started
        return results

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Copy the tensors into the module; those that are the module's own storage are left alone.

        A shared module needs no copy, but every parameter is still checked by name and shape.
        """
        self._require_awake("update_weights")
        own = self._module.state_dict(keep_vars=True)
        self._whole = False
        missing = {name for name, _ in self._module.named_parameters()}
        for name, tensor in named_tensors:
            target = own.get(name)
            if target is None:
                raise ValueError(f"update_weights: {name!r} is no parameter of the engine's {type(self._module).__name__}")
            if target.shape != tensor.shape:
                raise ValueError(f"update_weights: {name} has shape {list(tensor.shape)}, the engine's has {list(target.shape)}")
            if target.data_ptr() != tensor.data_ptr():
                target.data.copy_(tensor)
            missing.discard(name)
        if missing:
            raise ValueError(f"update_weights: {len(missing)} parameters were not sent, {min(missing)} among them")
        self._whole = True
        self.policy_version = version

    def weight_checksums(self) -> dict[str, int]:
        """See `rollout.engine.Engine.weight_checksums`."""
        self._require_awake("weight_checksums")
        return named_checksums(self._module.named_parameters(remove_duplicate=False))

    def sleep(self) -> None:
        """Nothing to give back: caches live only within ``generate``, and the weights are the trainer's."""
        self._require_open("sleep")
        self._asleep = True

    def wake(self) -> None:
        """See `rollout.engine.Engine.wake`."""
        self._require_open("wake")
        self._asleep = False

    def restart(self) -> None:
        """The engine can't die apart from its process: only wakes it."""
        self.wake()

    def metrics(self) -> dict[str, float]:
        """Prompt tokens, generated tokens and seconds spent in ``generate`` since the last call."""
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0.0)
        return counts

    def close(self) -> None:
        """Drop the reference to the model."""
        self._closed = True
        self._module = None

    def _decode(self, batch: Sequence[DecodeRow]) -> list[tuple[tuple[int, ...], tuple[float, ...], bool]]:
        return decode_batch(self._module, batch, self.stop_ids, last_logits_only=self._last_logits_only)

    def _row(self, index: int, request: GenerationRequest) -> DecodeRow:
        length = len(request.prompt_ids)
        if not length:
            raise ValueError(f"request {index} has an empty prompt")
        room = request.sampling.max_new_tokens
        if self._context is not None:
            room = min(room, self._context - length)
            if room < 1:
                raise PromptTooLong(
                    f"request {index} has a prompt of {length} tokens; the model's context is {self._context}, and one "
                    "token must be left to write"
                )
        return DecodeRow(index, tuple(request.prompt_ids), request.seed, request.sampling, room)

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise EngineStateError(f"{what}: the engine is closed")

    def _require_awake(self, what: str) -> None:
        self._require_open(what)
        if self._asleep:
            raise EngineStateError(f"{what}: the engine is asleep; call wake() first")


def _batches(rows: Sequence[DecodeRow], max_tokens: int) -> Iterator[list[DecodeRow]]:
    """Rows sorted by prompt length, equal prompts side by side, cut where rows x padded length passes the bound.

    A single row over the bound is a batch of its own.
    """
    batch: list[DecodeRow] = []
    room = 0
    for row in sorted(rows, key=lambda r: (len(r.prompt_ids), r.prompt_ids, r.index)):
        grown = max(room, row.max_new_tokens)
        if batch and (len(batch) + 1) * (len(row.prompt_ids) + grown) > max_tokens:
            yield batch
            batch, grown = [], row.max_new_tokens
        batch.append(row)
        room = grown
    if batch:
        yield batch


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; afterwards each submodule has the mode it had (some may be frozen in evaluation)."""
    training = [m for m in module.modules() if m.training]
    module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True
