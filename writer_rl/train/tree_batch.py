"""Samples as one packed row of their prefix tree: each distinct token once, and every sample's log-probabilities read off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollout.tree.attention import KEYWORD, TreeLayout, install
from rollout.tree.prefix_tree import Branch, PrefixTree
from writer_rl.model.batching import HasTokens, require_prompts


@dataclass(frozen=True, slots=True)
class TreeBatch:
    """B samples with T distinct completion tokens between them, predicted from P of the tree's N nodes.

    input_ids, position_ids [1, N] int64: the nodes' tokens and depths. edges: see `PrefixTree.edges`.
    states [P] int64: the nodes that predict. targets [T] int64: the tokens that they predict. predictor_of [T] int64: from which
    of the P. places [B, C] int64: which of the T is each completion's token; mask [B, C] bool: where it has one.

    Example (prompt 5 6, completions 8 9 and 8 4): nodes 5 6 8 9 4 (the tree's order is 5 6 8 4 9); states [1, 2] predict
    targets [8, 4, 9], predictor_of [0, 1, 1]; places [[0, 2], [0, 1]]: token 8 is scored once, for both.
    """

    input_ids: Tensor
    position_ids: Tensor
    edges: tuple[Branch, ...]
    states: Tensor
    targets: Tensor
    predictor_of: Tensor
    places: Tensor
    mask: Tensor

    @classmethod
    def of(cls, samples: Sequence[HasTokens]) -> TreeBatch:
        """The samples, in this order; equal ones share everything. A sample needs at least one prompt token (ValueError)."""
        require_prompts(samples)
        tree = PrefixTree.of([(*s.prompt_ids, *s.completion_ids) for s in samples])
        completions = [path[len(s.prompt_ids) :] for s, path in zip(samples, tree.paths, strict=True)]
        # Depth first, a node's children may come after its descendants; by parent, each state's targets stand together.
        nodes = np.unique(np.concatenate(completions))
        nodes = nodes[np.argsort(tree.parents[nodes], kind="stable")]
        states, predictor_of = np.unique(tree.parents[nodes], return_inverse=True)
        place_of = np.zeros(len(tree), dtype=np.int64)
        place_of[nodes] = np.arange(len(nodes))
        counts = np.array([len(each) for each in completions])
        mask = np.arange(counts.max()) < counts[:, None]
        places = np.zeros(mask.shape, dtype=np.int64)
        places[mask] = place_of[np.concatenate(completions)]
        return cls(
            input_ids=torch.from_numpy(tree.tokens)[None],
            position_ids=torch.from_numpy(tree.depths)[None],
            edges=tree.edges,
            states=torch.from_numpy(states),
            targets=torch.from_numpy(tree.tokens[nodes]),
            predictor_of=torch.from_numpy(predictor_of.reshape(-1)),
            places=torch.from_numpy(places),
            mask=torch.from_numpy(mask),
        )

    def to(self, device: torch.device | str) -> TreeBatch:
        """The same batch on another device."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "edges"}
        return replace(self, **{name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()})

    def inputs(self, model: nn.Module) -> dict[str, Any]:
        """See `ScoredBatch.inputs`. Raises TreeUnsupported for a model whose attention can't take a tree."""
        install(model.config._attn_implementation)
        # A mask of four dimensions is handed on as it is: transformers then makes none of its own, which would cost N x N.
        no_mask = torch.zeros(1, 1, 1, 1, device=self.input_ids.device)
        return {
            "input_ids": self.input_ids,
            "position_ids": self.position_ids,
            "attention_mask": no_mask,
            KEYWORD: TreeLayout(self.edges),
        }

    def predictors(self, states: Tensor) -> Tensor:
        """[P, H] of [1, N, H]."""
        return states[0, self.states]

    def per_sample(self, values: Tensor) -> Tensor:
        """[T] values of the distinct completion tokens as [B, C], zero where there is no token; differentiable."""
        if not len(values):
            return values.new_zeros(self.mask.shape)
        return torch.where(self.mask, values[self.places], values.new_zeros(()))

    def forwarded(self) -> int:
        """N."""
        return self.input_ids.numel()
