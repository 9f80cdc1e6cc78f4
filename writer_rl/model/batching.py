"""Ragged samples as micro-batches: what a policy scores (`ScoredBatch`), and the plain way to lay it out, right-padded.

Padding stands on the right and attention is causal, so no real token ever sees it: no attention mask is needed, and what a
token is worth comes from lengths alone, never from its value (a pad id may equal the stop id).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn


class HasTokens(Protocol):
    """Anything with the token ids of a prompt (at least one) and of a completion."""

    @property
    def prompt_ids(self) -> Sequence[int]: ...

    @property
    def completion_ids(self) -> Sequence[int]: ...


class ScoredBatch(Protocol):
    """B samples laid out for a forward pass, T distinct completion tokens between them, predicted from P states.

    Example: `Batch` (padded: every token of every sample is its own) and `writer_rl.train.tree_batch.TreeBatch`.
    """

    @property
    def mask(self) -> Tensor:
        """[B, C] bool: which of the C columns of a completion are tokens."""

    @property
    def targets(self) -> Tensor:
        """[T] int64: the completion tokens to score."""

    @property
    def predictor_of(self) -> Tensor | None:
        """[T] int64, nondecreasing: which of the P states predicts each of them; None: one each, in order."""

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""

    def inputs(self, model: nn.Module) -> dict[str, Any]:
        """What the transformer below the head is called with."""

    def predictors(self, states: Tensor) -> Tensor:
        """[P, H], of the transformer's last hidden states those that predict."""

    def per_sample(self, values: Tensor) -> Tensor:
        """[T] values of completion tokens as [B, C], zero where there is no token; differentiable."""

    def forwarded(self) -> int:
        """Tokens that the per-token layers compute, padding included."""


@dataclass(frozen=True, slots=True)
class Batch:
    """B padded samples with N completion tokens between them.

    input_ids [B, L] int64: prompt, completion, padding (0).
    mask [B, C] bool: which of the C columns of a completion are tokens; C is the longest completion.
    rows, columns [N] int64: where in [B, L] the state stands that predicts each completion token, sample by sample.
    targets [N] int64: the completion tokens.

    Example (prompts 5 6 and 7, completions 8 9 and 4):
        input_ids [[5, 6, 8, 9], [7, 4, 0, 0]]; mask [[1, 1], [1, 0]]; rows [0, 0, 1]; columns [1, 2, 0]; targets [8, 9, 4]
    """

    input_ids: Tensor
    mask: Tensor
    rows: Tensor
    columns: Tensor
    targets: Tensor

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return replace(self, **{f.name: getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)})

    @property
    def predictor_of(self) -> None:
        """Every completion token has a state of its own."""
        return None

    def inputs(self, model: nn.Module) -> dict[str, Any]:
        """See `ScoredBatch.inputs`."""
        return {"input_ids": self.input_ids}

    def predictors(self, states: Tensor) -> Tensor:
        """[N, H] of [B, L, H]."""
        return states[self.rows, self.columns]

    def forwarded(self) -> int:
        """B x L."""
        return self.input_ids.numel()

    def per_sample(self, values: Tensor) -> Tensor:
        """[N] values of completion tokens as [B, C], zero where there is no token; differentiable."""
        return values.new_zeros(self.mask.shape).masked_scatter(self.mask, values)


def collate(samples: Sequence[HasTokens]) -> Batch:
    """The samples, in this order, as one batch. A sample needs at least one prompt token (ValueError)."""
    require_prompts(samples)
    length = max(len(s.prompt_ids) + len(s.completion_ids) for s in samples)
    input_ids = torch.zeros(len(samples), length, dtype=torch.long)
    counts = torch.tensor([len(s.completion_ids) for s in samples])
    mask = torch.arange(int(counts.max())) < counts[:, None]
    for row, sample in enumerate(samples):
        ids = [*sample.prompt_ids, *sample.completion_ids]
        input_ids[row, : len(ids)] = torch.tensor(ids)
    prompts = torch.tensor([len(s.prompt_ids) for s in samples])
    rows, offsets = mask.nonzero(as_tuple=True)
    columns = prompts[rows] + offsets - 1
    return Batch(input_ids, mask, rows, columns, input_ids[rows, columns + 1])


def require_prompts(samples: Sequence[HasTokens]) -> None:
    """ValueError for a sample without prompt tokens."""
    if any(not len(s.prompt_ids) for s in samples):
        raise ValueError("a sample without prompt tokens has nothing that predicts its first completion token")


def length(sample: HasTokens) -> int:
    """Tokens of prompt and completion."""
    return len(sample.prompt_ids) + len(sample.completion_ids)


def micro_batches(samples: Sequence[HasTokens], token_budget: int) -> list[list[int]]:
    """Indices of `samples` in groups of similar length whose padded size is at most `token_budget` tokens.

    Longest first, so that too large a budget shows at once; a sample longer than the budget is a group of its own. Every index
    appears once, and equal input gives equal groups.
    """
    order = sorted(range(len(samples)), key=lambda i: -length(samples[i]))
    groups: list[list[int]] = []
    for index in order:
        widest = length(samples[groups[-1][0]]) if groups else 0
        if groups and widest * (len(groups[-1]) + 1) <= token_budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
