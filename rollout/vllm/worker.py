"""What runs inside vLLM's workers: reading back the weights that they really compute with.

vLLM keeps weights in its own layout: fused (query, key and value in one matrix), sharded over GPUs, and on CPUs packed
away in a kernel. Each worker gives the checksums of what it holds under the Hugging Face names; those of all workers add
up to the whole tensors' (`rollout.checksum`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rollout.checksum import block_checksum

Shapes = Mapping[str, tuple[int, ...]]
"""Hugging Face parameter name -> shape of the whole tensor."""


class WeightReader:
    """Methods that vLLM adds to its workers (``worker_extension_cls``), to be called by name through ``collective_rpc``."""

    def weight_checksums(self, shapes: dict[str, tuple[int, ...]], dtype: str) -> dict[str, int]:
        """This worker's part of each parameter's checksum; a parameter that it can't find is left out.

        dtype: the engine's. A kernel may keep a bias in a wider type, with the same values.
        """
        from vllm.distributed import get_tensor_model_parallel_rank

        with torch.inference_mode():
            model = self.model_runner.get_model()  # type: ignore[attr-defined]
            return model_checksums(model, shapes, getattr(torch, dtype), get_tensor_model_parallel_rank())


def model_checksums(model: nn.Module, shapes: Shapes, dtype: torch.dtype, rank: int = 0) -> dict[str, int]:
    """Checksums of a vLLM model's weights by Hugging Face name: of worker `rank`'s share, under tensor parallelism."""
    found: dict[str, int] = {}
    for name, block in held_weights(model):
        for part, rows in _unfused(model, name, block, shapes):
            whole = shapes[part]
            row, column, size = _place(model.get_submodule(name.rpartition(".")[0]), rows, whole, rank)
            found[part] = block_checksum(rows[:size], whole, row, column, dtype) if size else 0
    return found


def held_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """(name in the vLLM model, tensor) of every parameter; a matrix inside a CPU kernel is read back through it."""
    for module_name, module in model.named_modules():
        kernel = getattr(module, "cpu_linear", None)
        for name, parameter in module.named_parameters(recurse=False):
            if name == "weight" and kernel is not None and type(module).__name__ != "VocabParallelEmbedding":
                yield f"{module_name}.{name}", read_through(kernel, parameter, _inputs(module))
            elif parameter.numel():
                yield f"{module_name}.{name}", parameter


def read_through(kernel: Any, weight: Tensor, inputs: int) -> Tensor:
    """The matrix [outputs, inputs] that ``kernel(x, weight, bias)`` multiplies by: its answer to the unit vectors.

    Exact: of each sum one term is the weight, the others are zero.
    """
    identity = torch.eye(inputs, dtype=weight.dtype, device=weight.device)
    return kernel(identity, weight, None).t()


def _inputs(module: nn.Module) -> int:
    for attribute in ("input_size_per_partition", "embedding_dim"):
        if hasattr(module, attribute):
            return int(getattr(module, attribute))
    raise AttributeError(f"{type(module).__name__} does not say how many inputs it has")


def _unfused(model: nn.Module, name: str, block: Tensor, shapes: Shapes) -> Iterator[tuple[str, Tensor]]:
    """The Hugging Face tensors inside one of vLLM's, with their rows (this worker's)."""
    if name in shapes:
        yield name, block
        return
    stem, _, leaf = name.rpartition(".")
    fused = stem.rpartition(".")[2]
    packed: Mapping[str, list[str]] = getattr(model, "packed_modules_mapping", None) or {}
    parts = [f"{stem.removesuffix(fused)}{part}.{leaf}" for part in packed.get(fused, ())]
    if not parts or any(part not in shapes for part in parts):
        return  # no parameter of the trainer's: a buffer or a scale of vLLM's own
    module = model.get_submodule(stem)
    start = 0
    for part, size in zip(parts, _local_sizes(module, [shapes[part][0] for part in parts]), strict=True):
        yield part, block[start : start + size]
        start += size


def _local_sizes(module: nn.Module, whole: list[int]) -> list[int]:
    """Rows of each part of a fused matrix on this worker; keys and values are repeated where there are too few heads."""
    size = int(getattr(module, "tp_size", 1))
    repeats = int(getattr(module, "num_kv_head_replicas", 1))
    return [rows * (repeats if index else 1) // size for index, rows in enumerate(whole)]


def _place(module: nn.Module, block: Tensor, whole: tuple[int, ...], rank: int) -> tuple[int, int, int]:
    """(row, column, rows that count): where worker `rank`'s block begins in the whole tensor. Copies count once."""
    shards: Any = getattr(module, "shard_indices", None)
    if shards is not None:  # a vocabulary, padded at the end
        start, end = int(shards.org_vocab_start_index), int(shards.org_vocab_end_index)
        return start, 0, end - start
    if block.ndim > 1 and block.shape[1] < whole[1]:
        return 0, rank * block.shape[1], block.shape[0]
    if block.shape[0] < whole[0]:
        copies = int(getattr(module, "tp_size", 1)) * block.shape[0] // whole[0]
        return rank // copies * block.shape[0], 0, 0 if rank % copies else block.shape[0]
    return 0, 0, 0 if rank else block.shape[0]
