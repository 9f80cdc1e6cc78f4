"""Prompts that were read: keys and values of their prefix tree, each distinct token once; the next prompts begin from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from rollout.tree.attention import KEYWORD, ExtensionLayout, install
from rollout.tree.extension import Extension, places_in
from rollout.tree.prefix_tree import Ints, Overlaps, PrefixTree, cut

CPU_PREFILL_TOKENS = 4096
"""Distinct tokens of one forward pass on a CPU: what the passes of training hold by default, too."""

Prompt = tuple[int, ...]


class KnownPrompts:
    """Reads prompts through a model, and keeps what it computed until `forget` or the next `read`.

    A prompt's keys and values lie at places that `places` names; the tree's nodes can lie in any order. On a GPU nothing is kept
    from one `read` to the next: attention to known nodes is the CPU's.

    Example: ``known.read(model, [(5, 6, 7), (5, 6, 8)])`` computes four tokens; a later ``known.read(model, [(5, 6, 9)])`` one.
    """

    def __init__(self) -> None:
        self.computed = 0
        """Prompt tokens that went through the model so far."""
        self._prompts: tuple[Prompt, ...] = ()
        self._places: Ints = np.zeros(0, dtype=np.int64)  # of the nodes of their tree, in its order
        self._layers: list[tuple[Tensor, Tensor]] = []  # keys and values [1, heads, places, head size]

    def forget(self) -> None:
        """Drop everything: the weights have changed, or the memory is needed."""
        self._prompts, self._places, self._layers = (), np.zeros(0, dtype=np.int64), []

    def read(self, module: Any, prompts: Sequence[Prompt], *, choose_logits: bool = True) -> Tensor:
        """The logits [n, V] after each of these distinct prompts; afterwards they are known, and nothing else is.

        choose_logits: the model's ``logits_to_keep`` takes positions. Raises TreeUnsupported for attention that can't take trees.
        """
        device = next(module.parameters()).device
        if device.type == "cpu":
            self._keep(prompts)
            parts = cut(Overlaps.of(prompts), CPU_PREFILL_TOKENS)
        else:
            self.forget()
            parts = [list(range(len(prompts)))]
        found: list[tuple[int, Tensor]] = []
        for part in parts:
            found += zip(part, self._extend(module, [prompts[i] for i in part], device, choose_logits), strict=True)
        return torch.stack([row for _, row in sorted(found, key=lambda each: each[0])])

    def places(self, prompts: Sequence[Prompt]) -> list[Ints]:
        """Where the tokens of these known prompts lie, one array each."""
        tree = PrefixTree.of(prompts)
        places = places_in(tree, self._prompts, self._places)
        return [places[path] for path in tree.paths]

    def gathered(self, places: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each layer's keys and values at places [B, W], as [B, heads, W, head size]."""
        found = []
        for pair in self._layers:
            keys, values = (each[0][:, places].transpose(0, 1) for each in pair)
            found.append((keys, values))
        return found

    def _extend(self, module: Any, prompts: Sequence[Prompt], device: torch.device, choose_logits: bool) -> Tensor:
        tree = PrefixTree.of(prompts)
        count = self._layers[0][0].shape[2] if self._layers else 0
        extension = Extension.of(tree, places_in(tree, self._prompts, self._places), count)
        install(module.config._attn_implementation)
        ends = torch.from_numpy(extension.ends).to(device)
        cache = self._cache(module.config)
        out = module(
            input_ids=torch.from_numpy(extension.tokens)[None].to(device),
            position_ids=torch.from_numpy(extension.depths)[None].to(device),
            # A mask of four dimensions is handed on as it is, and the layout needs none.
            attention_mask=torch.zeros(1, 1, 1, 1, device=device),
            past_key_values=cache,
            use_cache=True,
            **({"logits_to_keep": ends} if choose_logits else {}),
            **{KEYWORD: ExtensionLayout(extension)},
        )
        self.computed += len(extension.tokens)
        self._layers = [(layer.keys, layer.values) for layer in cache.layers]
        self._add(prompts, extension.places)
        return (out.logits[0] if choose_logits else out.logits[0, ends]).float()

    def _cache(self, config: Any) -> Any:
        cache = DynamicCache(config=config)
        for layer, (keys, values) in zip(cache.layers, self._layers, strict=bool(self._layers)):
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
        return cache

    def _add(self, prompts: Sequence[Prompt], places: Ints) -> None:
        """These prompts are known now, too; places: of the nodes of their tree."""
        together = (*self._prompts, *prompts)
        tree = PrefixTree.of(together)
        new = places_in(tree, prompts, places)
        self._places = np.where(new >= 0, new, places_in(tree, self._prompts, self._places))
        self._prompts = together

    def _keep(self, prompts: Sequence[Prompt]) -> None:
        """Of what is known only what these prompts begin with."""
        tree = PrefixTree.of(prompts)
        places = places_in(tree, self._prompts, self._places)
        lengths = [int((places[path] >= 0).sum()) for path in tree.paths]
        kept = places[places >= 0]
        if not len(kept):
            self.forget()
            return
        self._prompts = tuple({tuple(prompt[:length]): None for prompt, length in zip(prompts, lengths, strict=True) if length})
        index = torch.from_numpy(kept)
        self._layers = [(keys[:, :, index], values[:, :, index]) for keys, values in self._layers]
        self._places = np.arange(len(kept))
