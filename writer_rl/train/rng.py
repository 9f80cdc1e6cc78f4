"""The random number generators of a process: what a checkpoint keeps of them, and how an attempt leaves no trace."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """The states of Python's, numpy's, torch's and the device's generator, as `torch.load(weights_only=True)` reads them."""
    algorithm, keys, *rest = cast(tuple[Any, ...], np.random.get_state(legacy=True))
    return {
        "python": random.getstate(),
        "numpy": [algorithm, torch.from_numpy(keys.astype(np.int64)), *rest],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Set them to what `rng_state` gave."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    algorithm, keys, *rest = state["numpy"]
    np.random.set_state((algorithm, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


@contextmanager
def as_before_unless_done() -> Iterator[None]:
    """Work that is broken off leaves the generators as it found them, so that a resume repeats it exactly."""
    before = rng_state()
    try:
        yield
    except BaseException:
        set_rng_state(before)
        raise
