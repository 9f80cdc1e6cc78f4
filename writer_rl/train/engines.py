"""The rollout engine of a training run: built as configured, synced with a proof."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rollout.checksum import named_checksums
from rollout.engine import Engine
from rollout.hf.engine import HFEngine
from rollout.sync import BOUNDS, Sequences, SyncProbe, SyncReport, TrainerLogprobs, sync_and_probe
from rollout.tokenizer import Tokenizer
from rollout.weights import named_weights
from writer_rl.config import ConfigError, SharedConfig, resolve
from writer_rl.model.batching import collate
from writer_rl.model.lora import merged
from writer_rl.model.policy import Policy
from writer_rl.train.backend import Backend
from writer_rl.train.sampler_share import GIB, configured_share

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def build_engine(
    config: SharedConfig, backend: Backend, tokenizer: Tokenizer, model_path: str, spare: PreTrainedModel | None = None
) -> Engine:
    """The configured engine, not yet synced.

    spare: a copy of the model made before ZeRO-3 sharded it (`spare_model`); the hf engine else shares the trainer's module.
    """
    settings = config.rollout
    if settings.engine == "hf":
        module = backend.policy.model if spare is None else spare.to(backend.device)
        return HFEngine(module, tokenizer, max_batch_tokens=settings.max_batch_tokens)
    if settings.server:
        from rollout.vllm.client import VLLMServerEngine

        exchange = str(resolve(settings.sync_folder)) if settings.sync_folder else None
        files = [resolve(file) for file in settings.server]
        return VLLMServerEngine(files, leader=backend.world.is_main, sync_folder=exchange)
    if settings.tensor_parallel > 1:
        raise ConfigError("rollout.tensor_parallel: in training only a sampler server has several GPUs; set rollout.server")
    from rollout.vllm.engine import VLLMEngine

    folder = resolve(model_path)
    share, cache = device_memory(config, backend.policy.model.config.to_dict(), backend.world.size)
    return VLLMEngine(
        str(folder) if folder.is_dir() else model_path,
        tokenizer,
        dtype=config.model.dtype,
        max_model_len=settings.max_model_len,
        block_size=settings.block_size,
        gpu_memory_utilization=share,
        kv_cache_gib=cache,
        structured_output=settings.structured_output,
    )


def device_memory(config: SharedConfig, model_config: dict[str, Any], ranks: int) -> tuple[float, float | None]:
    """The share of the device that vLLM takes, and the GiB of its cache: as configured, else what the plan counts."""
    settings = config.rollout
    share = configured_share(model_config, settings, ranks)
    wanted, cache = settings.gpu_memory_utilization, settings.kv_cache_gib
    if wanted is None and share is not None and torch.cuda.is_available():
        wanted = share.of_card(torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory)
        cache = share.cache / GIB if cache is None else cache
    return 0.4 if wanted is None else wanted, cache


def spare_model(policy: Policy, config: SharedConfig, stage: int) -> PreTrainedModel | None:
    """What the hf engine samples under ZeRO-3, whose parameters lie in shards; None where it can share the trainer's module."""
    if config.rollout.engine != "hf" or stage < 3:
        return None
    return copy.deepcopy(policy.model).requires_grad_(False).eval()


def sync(engine: Engine, backend: Backend, version: int, probe: SyncProbe, bound: float | None, dtype: str) -> SyncReport:
    """Give the engine the policy's weights as `version` and prove it (`rollout.sync`). Collective.

    The hf engine has the policy's own module, adapter included; another gets an adapter's weights merged.
    """
    model, engine_dtype = backend.policy.model, getattr(torch, dtype)

    def weights() -> Iterator[tuple[str, torch.Tensor]]:
        return named_weights(model) if isinstance(engine, HFEngine) else merged(model, named_weights(model))

    return sync_and_probe(
        engine,
        weights(),
        version,
        probe,
        probe_logprobs(backend),
        bound=bound or BOUNDS[engine_dtype],
        reduce_max=lambda value: backend.world.max([value])[0],
        trainer_checksums=lambda: named_checksums(weights(), engine_dtype),
    )


def probe_logprobs(backend: Backend) -> TrainerLogprobs:
    """The trainer's side of a probe: the forward pass that trains."""

    def compute(pairs: Sequences) -> list[list[float]]:
        batch = collate([Demonstrated(tuple(prompt), tuple(completion)) for prompt, completion in pairs]).to(backend.device)
        with torch.no_grad():
            values, _ = backend.logprobs(batch)
        table = batch.per_sample(values).tolist()
        return [row[: len(completion)] for row, (_, completion) in zip(table, pairs, strict=True)]

    return compute


@dataclass(frozen=True, slots=True)
class Demonstrated:
    """A prompt with the completion that was sampled for it."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
