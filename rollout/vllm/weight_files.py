"""Weights on their way through a folder: for engines in another process, which can't be handed tensors."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file

SHARD_BYTES = 2**30
SHARED_MEMORY = "/dev/shm"


@contextmanager
def weight_files(
    named_tensors: Iterable[tuple[str, torch.Tensor]],
    parent: str | None = None,
    shard_bytes: int = SHARD_BYTES,
    total_bytes: int = 0,
) -> Iterator[Path]:
    """A folder of safetensors files with all tensors, removed afterwards.

    Args:
        parent: where the folder is made; None: shared memory if ``total_bytes`` fit there, else the temporary directory.
            Reader and writer on different machines need a path both see.
        shard_bytes: a file is written, and its tensors forgotten, once it holds this much.
    """
    folder = Path(tempfile.mkdtemp(prefix="writer-weights-", dir=parent or default_parent(total_bytes)))
    try:
        _write(named_tensors, folder, shard_bytes)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def default_parent(total_bytes: int = 0) -> str:
    """Shared memory where it can hold so much (a container's is often 64 MiB), else the temporary directory."""
    if os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > total_bytes:
        return SHARED_MEMORY
    return tempfile.gettempdir()


def _write(named_tensors: Iterable[tuple[str, torch.Tensor]], folder: Path, shard_bytes: int) -> None:
    shard: dict[str, torch.Tensor] = {}
    size = number = 0
    for name, tensor in named_tensors:
        # A copy on the host: the source may be a gathered shard that is about to vanish, or share storage (tied heads).
        shard[name] = tensor.detach().to("cpu", copy=True).contiguous()
        size += shard[name].nbytes
        if size >= shard_bytes:
            save_file(shard, folder / f"model-{number:05d}.safetensors")
            shard, size, number = {}, 0, number + 1
    if shard:
        save_file(shard, folder / f"model-{number:05d}.safetensors")
