"""Checksums of weights that tell one flipped bit, add up over shards, and don't ask where a tensor lies.

An element is mixed with its place in the whole tensor, and the mixed values are added modulo 2**64. So the checksum of a
tensor is the sum over its parts, however it was cut: the shards of ZeRO-3, of tensor parallelism, the blocks of a fused
matrix. For a given place the mixing is one-to-one, so a change of a single element always shows; several changes cancel
with a chance of about 2**-64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

CHUNK = 1 << 22
"""Elements mixed at a time: bounds the 64-bit temporaries at some 100 MB."""

_MODULUS = 1 << 64
_PLACE, _MIX = -0x61C8864680B583EB, -0x4B47D0C5A1A6A2E3  # odd, so that multiplying by them is one-to-one
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Checksums = Mapping[str, int]
"""Hugging Face parameter name -> checksum in [0, 2**64)."""


def tensor_checksum(tensor: Tensor, dtype: torch.dtype | None = None) -> int:
    """Checksum of a whole tensor, as values of `dtype` (None: its own): what a copy of it into that type must have.

    Example: ``tensor_checksum(w)`` equals ``block_checksum(w[:3], w.shape) + block_checksum(w[3:], w.shape, row=3)``
    modulo 2**64.
    """
    return block_checksum(tensor, tensor.shape, dtype=dtype)


def block_checksum(block: Tensor, whole: Iterable[int], row: int = 0, column: int = 0, dtype: torch.dtype | None = None) -> int:
    """What a block contributes to the checksum of the tensor it was cut from.

    block: [r, ...] or [r, c, ...]. whole: the tensor's shape. row, column: where in its first two axes the block begins.
    Subnormal numbers and the sign of zero don't count: kernels that read weights back may flush them.

    Raises ValueError for a block that reaches beyond `whole`.
    """
    rows, *rest = tuple(whole) or (1,)
    width = _product(rest)
    inner = width // rest[0] if rest else 1
    columns = rest[0] if rest else 1
    values = block.detach().reshape(block.shape[0] if block.ndim else 1, -1)
    if row + values.shape[0] > rows or column * inner + values.shape[1] > width:
        raise ValueError(f"a block of {list(block.shape)} at row {row}, column {column} reaches beyond {[rows, columns]}")
    values = values if dtype is None else values.to(dtype)
    total = 0
    step = max(1, CHUNK // max(1, values.shape[1]))
    for start in range(0, values.shape[0], step):
        part = values[start : start + step]
        first = torch.arange(row + start, row + start + part.shape[0], device=part.device, dtype=torch.int64) * width
        places = first[:, None] + torch.arange(column * inner, column * inner + part.shape[1], device=part.device)
        total += int(_mixed(part, places).sum().item())
    return total % _MODULUS


def named_checksums(pairs: Iterable[tuple[str, Tensor]], dtype: torch.dtype | None = None) -> dict[str, int]:
    """Checksums of named tensors, one tensor at a time."""
    return {name: tensor_checksum(tensor, dtype) for name, tensor in pairs}


def added(parts: Iterable[Checksums]) -> dict[str, int]:
    """The checksums of tensors whose shards have these."""
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = (total.get(name, 0) + value) % _MODULUS
    return total


def differing(ours: Checksums, theirs: Checksums) -> list[str]:
    """Names in `ours` whose checksum `theirs` lacks or contradicts, in order."""
    return [name for name, value in ours.items() if theirs.get(name) != value]


def _mixed(values: Tensor, places: Tensor) -> Tensor:
    flushed = torch.where(values.abs() < torch.finfo(values.dtype).tiny, torch.zeros_like(values), values)
    mixed = flushed.contiguous().view(_BITS[flushed.element_size()]).long() + places * _PLACE
    mixed = mixed * _MIX
    mixed ^= (mixed >> 29) & ((1 << 35) - 1)  # a logical shift: the sign must not spread
    return mixed * _PLACE


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
