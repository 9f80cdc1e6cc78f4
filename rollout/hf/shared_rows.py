"""Rows that decode on prompts read once.

Keys and values are forked from the prompts' tree, or stay in common where that leaves less to read (`rollout.tree.trunks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.hf.known_prompts import KnownPrompts, Prompt
from rollout.hf.kv_cache import decoding_cache
from rollout.hf.trunk_layout import RowsLayout, Siblings, hidden_score
from rollout.tree.attention import KEYWORD
from rollout.tree.prefix_tree import Ints
from rollout.tree.trunks import QUERY_COST, Trunk, trunks


class SharedRows:
    """B rows after their prompts, the first logits [B, V] among them; see `rollout.hf.decode.Rows`.

    Nothing is padded but what a row keeps of its prompt for itself. On a GPU that is all of it.
    """

    def __init__(self, module: Any, known: KnownPrompts, prompts: Sequence[Prompt], *, choose_logits: bool = True) -> None:
        self._module, self._extra = module, {"logits_to_keep": 1} if choose_logits else {}
        distinct = list(dict.fromkeys(prompts))
        logits = known.read(module, distinct, choose_logits=choose_logits)
        device = self._device = logits.device
        which = {prompt: i for i, prompt in enumerate(distinct)}
        self.logits = logits[torch.tensor([which[prompt] for prompt in prompts], device=device)]
        self._positions = torch.tensor([[len(prompt)] for prompt in prompts], device=device)
        places = known.places(distinct)
        by_row = [places[which[prompt]] for prompt in prompts]
        self._on_cpu = device.type == "cpu"
        shared = worthwhile([len(prompt) for prompt in prompts], trunks(prompts)) if self._on_cpu else []
        self._cache = decoding_cache(module.config)
        own, hidden = _left_padded(by_row, shared)
        if own.shape[1]:
            for layer, (keys, values) in zip(self._cache.layers, known.gathered(own.to(device)), strict=True):
                layer.update(keys, values)
        self._hidden = hidden.to(device)
        dtype = next(module.parameters()).dtype
        added = torch.zeros(len(prompts), 1, 1, own.shape[1], dtype=dtype)
        added.masked_fill_(hidden[:, None, None], hidden_score(dtype))
        self._layout = RowsLayout(added if bool(hidden.any()) else None, _siblings(known, by_row, shared))

    def step(self, tokens: Tensor, generated: int, last: Tensor) -> Tensor:
        """See `rollout.hf.decode.Rows`."""
        rows = len(tokens)
        if self._on_cpu:
            # A mask of four dimensions is handed on as it is, and the layout needs none.
            how = {"attention_mask": torch.zeros(1, 1, 1, 1), KEYWORD: self._layout}
        else:
            how = {"attention_mask": torch.cat([~self._hidden, self._hidden.new_ones(rows, generated)], 1)}
        out = self._module(
            input_ids=tokens[:, None],
            position_ids=(self._positions + generated - 1).minimum(last[:, None]),
            past_key_values=self._cache,
            use_cache=True,
            **how,
            **self._extra,
        )
        return out.logits[:, -1].float()

    def select(self, keep: Tensor) -> None:
        """See `rollout.hf.decode.Rows`."""
        self._cache.batch_select_indices(keep)
        self._layout = self._layout.select(keep, len(self._positions))
        self._positions, self._hidden = self._positions[keep], self._hidden[keep]


def worthwhile(lengths: Sequence[int], parts: Sequence[Trunk]) -> list[Trunk]:
    """Those of the parts that have a trunk; none where, with everything padded to equal lengths, a step would not read less.

    Example (lengths 100 and 100): ``[Trunk((0, 1), 90)]`` stays; of one token in common it would be ``[]``.
    """
    shared = [part for part in parts if part.length]
    if not shared:
        return []
    begun = {row: part.length for part in shared for row in part.rows}
    own = max(length - begun.get(row, 0) for row, length in enumerate(lengths))
    trunk, most = max(part.length for part in shared), max(len(part.rows) for part in shared)
    read = own * len(lengths) + len(shared) * trunk * (1 + QUERY_COST * most)
    return shared if read < max(lengths) * len(lengths) else []


def _left_padded(places: Sequence[Ints], shared: Sequence[Trunk]) -> tuple[Tensor, Tensor]:
    """What each row keeps for itself: places [B, W], padded on the left with 0, and where they are padding."""
    begun = {row: part.length for part in shared for row in part.rows}
    own = [each[begun.get(row, 0) :] for row, each in enumerate(places)]
    width = max(map(len, own))
    table = np.zeros((len(own), width), dtype=np.int64)
    for row, each in enumerate(own):
        table[row, width - len(each) :] = each
    hidden = np.arange(width) < width - np.array([[len(each)] for each in own])
    return torch.from_numpy(table), torch.from_numpy(hidden)


def _siblings(known: KnownPrompts, places: Sequence[Ints], shared: Sequence[Trunk]) -> Siblings | None:
    if not shared:
        return None
    lengths = torch.tensor([part.length for part in shared])
    table = torch.zeros(len(shared), int(lengths.max()), dtype=torch.long)
    for index, part in enumerate(shared):
        table[index, : part.length] = torch.from_numpy(places[part.rows[0]][: part.length])
    rows = torch.tensor([row for part in shared for row in part.rows])
    trunk_of = torch.tensor([index for index, part in enumerate(shared) for _ in part.rows])
    order = rows.argsort()
    layers = [(keys.contiguous(), values.contiguous()) for keys, values in known.gathered(table)]
    return Siblings.of(layers, lengths, rows[order], trunk_of[order], len(places))
