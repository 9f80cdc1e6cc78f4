"""Rows that decode as any transformers model can: prompts padded on the left, equal ones read once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.hf.kv_cache import decoding_cache


class PaddedRows:
    """B rows after their prompts, the first logits [B, V] among them; see `rollout.hf.decode.Rows`.

    All rows write at the same place of the cache, so that any kind of cache will do.
    """

    def __init__(self, module: Any, prompts: Sequence[tuple[int, ...]], *, choose_logits: bool = True) -> None:
        self._module, self._extra = module, {"logits_to_keep": 1} if choose_logits else {}
        device = next(module.parameters()).device
        distinct = list(dict.fromkeys(prompts))
        which = {prompt: i for i, prompt in enumerate(distinct)}
        spread = torch.tensor([which[prompt] for prompt in prompts], device=device)
        ids, mask, positions = _left_padded(distinct, device)
        self._cache = decoding_cache(module.config)
        logits = self._forward(ids, mask, positions)
        if len(distinct) < len(prompts):
            self._cache.batch_select_indices(spread)
            logits = logits[spread]
        self.logits, self._mask, self._positions = logits, mask[spread], positions[spread, -1:] + 1

    def step(self, tokens: Tensor, generated: int, last: Tensor) -> Tensor:
        """See `rollout.hf.decode.Rows`."""
        mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), generated)], 1)
        return self._forward(tokens[:, None], mask, (self._positions + generated - 1).minimum(last[:, None]))

    def select(self, keep: Tensor) -> None:
        """See `rollout.hf.decode.Rows`."""
        self._cache.batch_select_indices(keep)
        self._mask, self._positions = self._mask[keep], self._positions[keep]

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        out = self._module(
            input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=self._cache, use_cache=True, **self._extra
        )
        return out.logits[:, -1].float()


def _left_padded(prompts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, ...]:
    """Ids, mask and positions, each [P, longest prompt]; padding is masked, whatever the tokenizer's pad is."""
    width = max(map(len, prompts))
    ids = np.zeros((len(prompts), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = prompt
        mask[row, width - len(prompt) :] = 1
    positions = (mask.cumsum(1) - 1).clip(min=0)
    return tuple(torch.from_numpy(a).to(device) for a in (ids, mask, positions))
