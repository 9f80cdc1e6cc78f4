"""The engine without dependencies: any causal language model of transformers, decoded with its own KV cache."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from rollout.checksum import named_checksums
from rollout.completion import completion_text, stop_token_ids
from rollout.engine import EngineStateError, Generation, GenerationRequest, PromptTooLong
from rollout.hf.decode import DecodeRow, Rows, decode_batch
from rollout.hf.known_prompts import KnownPrompts
from rollout.hf.kv_cache import decoding_attention
from rollout.hf.padded_rows import PaddedRows
from rollout.hf.shared_check import sharing_problem
from rollout.hf.shared_rows import SharedRows
from rollout.tokenizer import Tokenizer
from rollout.tree.trunks import trunks
from rollout.weights import unwrapped

_log = logging.getLogger(__name__)


class HFEngine:
    """Samples a transformers model in the calling process; shares weights with a trainer that has the same module.

    Prompts are read as a prefix tree, each distinct token once, and rows that begin alike go on from what was read once for all
    of them; inside `keep_prompts` also the prompts of the next call. A model that can't do this (it is tried at the first call)
    has its prompts padded, and one line says why.

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
        self._counts = {"prompt_tokens": 0.0, "cached_prompt_tokens": 0.0, "generated_tokens": 0.0, "seconds": 0.0}
        self._known = KnownPrompts()
        self._keeping = False
        self._check: Callable[[], None] = _nothing
        self._shares: bool | None = None  # whether the model can; None: not tried yet

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """See `rollout.engine.Engine.generate`."""
        self._require_awake("generate")
        if not self._whole:
            raise EngineStateError("generate: the last update_weights broke off; send the weights again first")
        started = time.perf_counter()
        rows = [self._row(index, request) for index, request in enumerate(requests)]
        made: dict[int, Generation] = {}
        with self._sampling():
            for batch in _batches(rows, self._max_batch_tokens):
                decoded = decode_batch(self._read(batch), batch, self.stop_ids, self._check)
                for row, (ids, logprobs, stopped) in zip(batch, decoded, strict=True):
                    text = completion_text(self._tokenizer, ids, self.stop_ids if stopped else frozenset())
                    made[row.index] = Generation(ids, text, logprobs, "stop" if stopped else "length")
        results = [made[index] for index in range(len(rows))]
        self._counts["prompt_tokens"] += sum(len(r.prompt_ids) for r in requests)
        self._counts["generated_tokens"] += sum(len(r.token_ids) for r in results)
        self._counts["seconds"] += time.perf_counter() - started
        return results

    @contextmanager
    def interruptible(self, check: Callable[[], None]) -> Iterator[None]:
        """See `rollout.engine.Interruptible`."""
        self._check = check
        try:
            yield
        finally:
            self._check = _nothing

    @contextmanager
    def keep_prompts(self) -> Iterator[None]:
        """See `rollout.engine.KeepsPrompts`."""
        self._known.forget()
        self._keeping = True
        try:
            yield
        finally:
            self._keeping = False
            self._known.forget()

    def read_prompts(self, requests: Sequence[GenerationRequest]) -> None:
        """See `rollout.engine.KeepsPrompts`."""
        self._require_awake("read_prompts")
        rows = [self._row(index, request) for index, request in enumerate(requests)]
        counts = dict(self._counts)  # of what is sampled
        with self._sampling():
            for batch in _batches(rows, self._max_batch_tokens) if self._shares else ():
                self._read(batch)
        self._counts = counts

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Copy the tensors into the module; those that are the module's own storage are left alone.

        A shared module needs no copy, but every parameter is still checked by name and shape.
        """
        self._require_awake("update_weights")
        own = self._module.state_dict(keep_vars=True)
        self._whole = False
        self._known.forget()
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
        """Give back what is known of prompts; the weights are the trainer's."""
        self._require_open("sleep")
        self._known.forget()
        self._asleep = True

    def wake(self) -> None:
        """See `rollout.engine.Engine.wake`."""
        self._require_open("wake")
        self._asleep = False

    def restart(self) -> None:
        """The engine can't die apart from its process: only wakes it."""
        self.wake()

    def metrics(self) -> dict[str, float]:
        """Counts since the last call, with ``cached_prompt_tokens`` (not computed) and ``prefix_cache_hit_rate`` (0 to 1)."""
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0.0)
        counts["prefix_cache_hit_rate"] = counts["cached_prompt_tokens"] / max(counts["prompt_tokens"], 1.0)
        return counts

    def close(self) -> None:
        """Drop the reference to the model."""
        self._closed = True
        self._module = None
        self._known.forget()

    @contextmanager
    def _sampling(self) -> Iterator[None]:
        """The module as it samples, and whether it can share known at the first call."""
        with _evaluating(self._module), torch.inference_mode():
            if self._shares is None:
                problem = sharing_problem(self._module, choose_logits=self._last_logits_only)
                self._shares = problem is None
                if problem:
                    _log.warning("rollout engine hf: padded prompts, no shared prefixes: %s", problem)
            if self._shares:
                try:
                    yield
                finally:
                    if not self._keeping:
                        self._known.forget()
                return
            with decoding_attention(self._module):
                yield

    def _read(self, batch: Sequence[DecodeRow]) -> Rows:
        """The batch's prompts, read."""
        prompts = [row.prompt_ids for row in batch]
        if not self._shares:
            self._counts["cached_prompt_tokens"] += sum(map(len, prompts)) - sum(map(len, set(prompts)))
            return PaddedRows(self._module, prompts, choose_logits=self._last_logits_only)
        before = self._known.computed
        rows = SharedRows(self._module, self._known, prompts, choose_logits=self._last_logits_only)
        self._counts["cached_prompt_tokens"] += sum(map(len, prompts)) - (self._known.computed - before)
        return rows

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
    """Rows that share most side by side, of similar lengths, cut where rows x longest (prompt + new tokens) passes the bound.

    A single row over the bound is a batch of its own.
    """
    batch: list[DecodeRow] = []
    longest = room = 0
    for row in _ordered(rows):
        length, grown = max(longest, len(row.prompt_ids)), max(room, row.max_new_tokens)
        if batch and (len(batch) + 1) * (length + grown) > max_tokens:
            yield batch
            batch, length, grown = [], len(row.prompt_ids), row.max_new_tokens
        batch.append(row)
        longest, room = length, grown
    if batch:
        yield batch


def _ordered(rows: Sequence[DecodeRow]) -> list[DecodeRow]:
    """By groups that share a beginning, groups by their longest prompt; the same whatever order the rows come in."""
    rows = sorted(rows, key=lambda row: (row.prompt_ids, row.seed, row.index))
    if not rows:
        return []
    groups = [[rows[place] for place in trunk.rows] for trunk in trunks([row.prompt_ids for row in rows])]
    groups.sort(key=lambda group: max(len(row.prompt_ids) for row in group))
    return [row for group in groups for row in group]


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


def _nothing() -> None:
    """Between decode steps, where nobody wants to end a call."""
