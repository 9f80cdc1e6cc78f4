"""How samples become micro-batches and how ranks share them: as prefix trees, or padded (`trainer.packing`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import torch

from rollout.tree.prefix_tree import Overlaps, cut, shares
from writer_rl.config import TrainerSection
from writer_rl.model.batching import HasTokens, ScoredBatch, collate, length, micro_batches
from writer_rl.train.tree_batch import TreeBatch

CPU_TOKENS, GPU_TOKENS = 4096, 16_384
"""What `trainer.micro_batch_tokens: null` stands for."""


class Packing(Protocol):
    """A way to lay out samples. Everything is a pure function of the samples in the order given."""

    def shares(self, samples: Sequence[HasTokens], ranks: int) -> list[list[int]]:
        """The samples' indices in one list a rank, about equally much work in each."""

    def micro_batches(self, samples: Sequence[HasTokens], budget: int) -> list[list[int]]:
        """The samples' indices in groups of at most `budget` forwarded tokens, largest first; a longer sample is one alone."""

    def collate(self, samples: Sequence[HasTokens]) -> ScoredBatch:
        """A group as a batch."""


class TreePacking:
    """Each distinct token once: groups and shares are cut from the samples' prefix tree where they share least."""

    def shares(self, samples: Sequence[HasTokens], ranks: int) -> list[list[int]]:
        """See `Packing.shares`; the work is the number of distinct tokens."""
        return shares(_overlaps(samples), ranks)

    def micro_batches(self, samples: Sequence[HasTokens], budget: int) -> list[list[int]]:
        """See `Packing.micro_batches`."""
        return cut(_overlaps(samples), budget)

    def collate(self, samples: Sequence[HasTokens]) -> TreeBatch:
        """See `TreeBatch.of`."""
        return TreeBatch.of(samples)


class PaddedPacking:
    """Each sample a row of its own, padded to the longest of its group."""

    def shares(self, samples: Sequence[HasTokens], ranks: int) -> list[list[int]]:
        """See `Packing.shares`; longest first, each to the rank with the fewest tokens so far."""
        found: list[list[int]] = [[] for _ in range(ranks)]
        loads = [0] * ranks
        for index in sorted(range(len(samples)), key=lambda i: -length(samples[i])):
            rank = min(range(ranks), key=lambda r: (loads[r], len(found[r]), r))
            found[rank].append(index)
            loads[rank] += length(samples[index])
        return found

    def micro_batches(self, samples: Sequence[HasTokens], budget: int) -> list[list[int]]:
        """See `writer_rl.model.batching.micro_batches`."""
        return micro_batches(samples, budget)

    def collate(self, samples: Sequence[HasTokens]) -> ScoredBatch:
        """See `writer_rl.model.batching.collate`."""
        return collate(samples)


def packing(name: Literal["tree", "padded"]) -> Packing:
    """The packing of `trainer.packing`."""
    return TreePacking() if name == "tree" else PaddedPacking()


def micro_batch_tokens(settings: TrainerSection, device: torch.device) -> int:
    """`trainer.micro_batch_tokens`, or what suits the device."""
    return settings.micro_batch_tokens or (CPU_TOKENS if device.type == "cpu" else GPU_TOKENS)


def _overlaps(samples: Sequence[HasTokens]) -> Overlaps:
    return Overlaps.of([(*s.prompt_ids, *s.completion_ids) for s in samples])
