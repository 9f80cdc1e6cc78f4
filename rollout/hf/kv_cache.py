"""A KV cache and an attention for decoding many short rows, both equal in value to transformers' own.

On a CPU a step of a small model spends most of its time copying: transformers' dynamic cache copies itself for each
token, and grouped-query attention repeats keys and values for each query head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

GROUPED_SDPA = "grouped_sdpa"


class GrowingLayer(DynamicLayer):
    """A dynamic cache layer with room to spare: a new token is written in place, not concatenated.

    ``keys`` and ``values`` [B, heads, length, head size] are views of buffers that are longer by up to a quarter.
    """

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append ``key_states`` and ``value_states`` [B, heads, new, head size]; returns all keys and all values."""
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if start == 0:
            self.lazy_initialization(key_states, value_states)
            self._buffers = tuple(states.new_empty(0) for states in (key_states, value_states))
        if start == 0 or self._buffers[0].shape[-2] < end:
            held = zip(self._buffers, (key_states, value_states), strict=True)
            self._buffers = tuple(self._enlarged(old[:, :, :start] if start else old, states, start, end) for old, states in held)
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start:end] = states
        return self._expose(end)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows ``indices`` [B'], in that order; an index may occur more than once."""
        if length := self.get_seq_length():
            self._buffers = tuple(buffer.index_select(0, indices) for buffer in self._buffers)
            self._expose(length)

    def _expose(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = (buffer[:, :, :length] for buffer in self._buffers)
        self.keys, self.values = keys, values
        return keys, values

    @staticmethod
    def _enlarged(old: torch.Tensor, states: torch.Tensor, start: int, end: int) -> torch.Tensor:
        batch, heads, _, size = states.shape
        buffer = states.new_empty(batch, heads, end + max(32, end // 4), size)
        if start:
            buffer[:, :, :start] = old
        return buffer


def decoding_cache(config: Any) -> DynamicCache:
    """The model's dynamic cache with its plain layers growing in place; other kinds of layers stay as they are."""
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    if cache.layer_class_to_replicate is DynamicLayer:
        cache.layer_class_to_replicate = GrowingLayer
    return cache


def grouped_sdpa(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention that reads each key head once for its group of query heads.

    With one query position, the group's heads take the place of positions: query [B, H, 1, D] becomes [B, K, H/K, D]
    beside keys [B, K, L, D], and the mask [B, 1, 1, L] broadcasts. Anything else is transformers' own function.
    """
    batch, heads, positions, size = query.shape
    per_head_mask = attention_mask is not None and attention_mask.shape[1] != 1
    if positions != 1 or heads == key.shape[1] or per_head_mask or kwargs.get("position_bias") is not None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    folded = query.reshape(batch, key.shape[1], heads // key.shape[1], size)
    out = torch.nn.functional.scaled_dot_product_attention(folded, key, value, attn_mask=attention_mask, scale=scaling)
    return out.reshape(batch, 1, heads, value.shape[-1]), None


AttentionInterface.register(GROUPED_SDPA, grouped_sdpa)
AttentionMaskInterface.register(GROUPED_SDPA, sdpa_mask)


@contextmanager
def decoding_attention(module: Any) -> Iterator[None]:
    """On a CPU, a model that uses sdpa decodes with `grouped_sdpa`; elsewhere kernels group heads by themselves."""
    config = module.config
    if getattr(config, "_attn_implementation", None) != "sdpa" or next(module.parameters()).device.type != "cpu":
        yield
        return
    config._attn_implementation = GROUPED_SDPA
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"
