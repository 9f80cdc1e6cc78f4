"""Attention over a prefix tree: a token sees its ancestors and itself, and nothing is computed that no one sees.

A tree's nodes stand in one packed row, depth first, so an edge and all below it are a slice. What an edge gives to attention
is one rectangle: queries of its whole subtree, keys of the edge itself, causal from the top left corner. A node's ancestors are
those of the edges above it, so its attention is put together from one rectangle per edge by their log-sum-exps,

    o = sum_e exp(l_e - l) o_e,   l = log sum_e exp(l_e),

and backward each rectangle needs only o and l (the flash-attention recurrence, arXiv:2205.14135). No mask exists, no key is
copied, and the work is exactly one product per (token, ancestor) pair.

`install` teaches an attention implementation of transformers to take a `tree` argument; without one it stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from writer_rl.train.tree import Edge

KEYWORD = "tree"
"""The keyword under which the edges travel through a transformers model's layers to its attention."""

_taught: set[str] = set()
_HARMLESS = {"position_ids", "use_cache", "is_causal", "output_attentions", "output_hidden_states", "cache_position"}


class TreeUnsupported(ValueError):
    """An attention that does more than softmax(scale Q K^T) V over all earlier tokens; one line that says what."""


def install(implementation: str) -> None:
    """Let this attention implementation of transformers (its registered name) answer `tree`. Idempotent.

    Raises TreeUnsupported for a name that is not registered (eager attention is each model's own).
    """
    from transformers import AttentionInterface
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if implementation in _taught:
        return
    if implementation not in ALL_ATTENTION_FUNCTIONS:
        raise TreeUnsupported(f"attn_implementation {implementation} does not go through transformers' AttentionInterface")
    plain = ALL_ATTENTION_FUNCTIONS[implementation]

    def attention(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any) -> Any:
        edges = options.pop(KEYWORD, None)
        if edges is None:
            return plain(module, query, key, value, mask, **options)
        return _attend(module, query, key, value, edges, **options)

    AttentionInterface.register(implementation, attention)
    _taught.add(implementation)


def tree_attention(query: Tensor, key: Tensor, value: Tensor, edges: Sequence[Edge], scale: float | None = None) -> Tensor:
    """What each node of the tree sees of its ancestors and itself.

    query [1, H, N, D], key and value [1, K, N, D] with H a multiple of K: N nodes, depth first. Returns [1, N, H, D].
    """
    if query.device.type == "cpu":
        groups = query.shape[1] // key.shape[1]
        if groups > 1:
            key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        return _Rectangles.apply(query, key, value, tuple(edges), scale)
    return _by_paths(query, key, value, edges, scale)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    edges: Sequence[Edge],
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    more = [name for name, given in options.items() if given is not None and name not in _HARMLESS]
    if dropout or more:
        raise TreeUnsupported(f"{type(module).__name__}: its attention also takes {', '.join(more) or 'dropout'}")
    if sliding_window is not None and sliding_window < query.shape[2]:
        raise TreeUnsupported(f"{type(module).__name__}: its attention slides over {sliding_window} tokens")
    return tree_attention(query, key, value, edges, scaling), None


def _by_paths(query: Tensor, key: Tensor, value: Tensor, edges: Sequence[Edge], scale: float | None) -> Tensor:
    """Each edge's nodes ask the keys of their path, copied together: torch's own kernels on any device."""
    from torch.nn.attention.bias import causal_lower_right

    found = []
    for index, edge in enumerate(edges):
        runs = []
        while index >= 0:
            runs.append(slice(edges[index].start, edges[index].stop))
            index = edges[index].parent
        keys, values = (torch.cat([each[:, :, run] for run in reversed(runs)], 2) for each in (key, value))
        own = query[:, :, edge.start : edge.stop]
        bias = causal_lower_right(own.shape[2], keys.shape[2])
        groups = query.shape[1] != key.shape[1]
        found.append(F.scaled_dot_product_attention(own, keys, values, bias, scale=scale, enable_gqa=groups))
    return torch.cat(found, 2).transpose(1, 2)


_forward: Callable[..., tuple[Tensor, Tensor]] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_backward: Callable[..., tuple[Tensor, Tensor, Tensor]] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class _Rectangles(torch.autograd.Function):
    """Query, key, value [1, H, N, D] on the CPU -> [1, N, H, D], one flash-attention call an edge."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, edges: tuple[Edge, ...], scale: float | None) -> Tensor:
        _, heads, nodes, size = query.shape
        wide = torch.promote_types(query.dtype, torch.float32)
        out = query.new_empty(1, nodes, heads, size, dtype=wide).transpose(1, 2)
        lse = query.new_empty(1, heads, nodes, dtype=wide)
        for edge in edges:
            own, below = slice(edge.start, edge.stop), slice(edge.start, edge.end)
            part, part_lse = _forward(query[:, :, below], key[:, :, own], value[:, :, own], 0.0, True, scale=scale)
            if edge.parent < 0:
                out[:, :, below], lse[:, :, below] = part, part_lse
            else:
                total = lse[:, :, below]
                out[:, :, below].lerp_(part.to(wide), torch.sigmoid(part_lse - total).unsqueeze(-1))
                torch.logaddexp(total, part_lse, out=total)
        out = out.to(query.dtype)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.edges, ctx.scale = edges, scale
        return out.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, out, lse = ctx.saved_tensors
        grad = upstream.transpose(1, 2)
        to_query = torch.zeros_like(query, dtype=lse.dtype)
        to_key, to_value = torch.empty_like(key), torch.empty_like(value)
        for edge in ctx.edges:
            own, below = slice(edge.start, edge.stop), slice(edge.start, edge.end)
            part, to_key[:, :, own], to_value[:, :, own] = _backward(
                grad[:, :, below],
                query[:, :, below],
                key[:, :, own],
                value[:, :, own],
                out[:, :, below],
                lse[:, :, below],
                0.0,
                True,
                scale=ctx.scale,
            )
            to_query[:, :, below] += part
        return to_query.to(query.dtype), to_key, to_value, None, None
