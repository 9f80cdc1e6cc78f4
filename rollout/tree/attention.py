"""Attention over a prefix tree: a token sees its ancestors and itself, and nothing is computed that no one sees.

A tree's nodes stand in one packed row, depth first, so an edge and all below it are a slice. Pairs of tokens and ancestors come
in rectangles (`rollout.tree.rectangles`): queries of a subtree, keys of an edge, causal from the top left corner. A node's
attention is put together from those it appears in by their log-sum-exps,

    o = sum_e exp(l_e - l) o_e,   l = log sum_e exp(l_e),

and backward each rectangle needs only o and l (the flash-attention recurrence, arXiv:2205.14135). No mask exists.

`install` teaches an attention implementation of transformers to take a `tree` argument; without one it stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rollout.tree.prefix_tree import Branch
from rollout.tree.rectangles import Rectangle, Run, rectangles

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


def tree_attention(query: Tensor, key: Tensor, value: Tensor, edges: Sequence[Branch], scale: float | None = None) -> Tensor:
    """What each node of the tree sees of its ancestors and itself.

    query [1, H, N, D], key and value [1, K, N, D] with H a multiple of K: N nodes, depth first. Returns [1, N, H, D].
    """
    if query.device.type == "cpu":
        groups = query.shape[1] // key.shape[1]
        if groups > 1:
            key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        return _Rectangles.apply(query, key, value, rectangles(tuple(edges)), scale)
    return _by_paths(query, key, value, edges, scale)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    edges: Sequence[Branch],
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


def _by_paths(query: Tensor, key: Tensor, value: Tensor, edges: Sequence[Branch], scale: float | None) -> Tensor:
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
    """Query, key, value [1, H, N, D] on the CPU -> [1, N, H, D], one flash-attention call a rectangle."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: tuple[Rectangle, ...], scale: float | None) -> Tensor:
        _, heads, nodes, size = query.shape
        wide = torch.promote_types(query.dtype, torch.float32)
        out = query.new_empty(1, nodes, heads, size, dtype=wide).transpose(1, 2)
        lse = query.new_empty(1, heads, nodes, dtype=wide)
        for lead, start, stop, end, first in plan:
            asking, asked = (*lead, (start, end)), (*lead, (start, stop))
            part, part_lse = _forward(_rows(query, asking), _rows(key, asked), _rows(value, asked), 0.0, True, scale=scale)
            skip = part.shape[2] - (end - start)
            part, part_lse = part[:, :, skip:], part_lse[:, :, skip:]
            if first:
                out[:, :, start:end], lse[:, :, start:end] = part, part_lse
            else:
                total = lse[:, :, start:end]
                out[:, :, start:end].lerp_(part.to(wide), torch.sigmoid(part_lse - total).unsqueeze(-1))
                torch.logaddexp(total, part_lse, out=total)
        out = out.to(query.dtype)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.plan, ctx.scale = plan, scale
        return out.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, out, lse = ctx.saved_tensors
        upstream = upstream.transpose(1, 2)
        to_query, to_key, to_value = (torch.zeros_like(each, dtype=lse.dtype) for each in (query, key, value))
        for lead, start, stop, end, _ in ctx.plan:
            asking, asked = (*lead, (start, end)), (*lead, (start, stop))
            keys, values = _rows(key, asked), _rows(value, asked)
            skip = keys.shape[2] - (stop - start)
            grad = upstream[:, :, start:end]
            if skip:  # what the lead's queries find is thrown away
                grad = torch.cat([grad.new_zeros(*grad.shape[:2], skip, grad.shape[3]), grad], 2)
            saved = (_rows(query, asking), keys, values, _rows(out, asking), _rows(lse, asking))
            part, key_part, value_part = _backward(grad, *saved, 0.0, True, scale=ctx.scale)
            to_query[:, :, start:end] += part[:, :, skip:]
            at = 0
            for begin, after in asked:
                rows = slice(at, at := at + after - begin)
                to_key[:, :, begin:after] += key_part[:, :, rows]
                to_value[:, :, begin:after] += value_part[:, :, rows]
        return to_query.to(query.dtype), to_key.to(key.dtype), to_value.to(value.dtype), None, None


def _rows(tensor: Tensor, runs: Sequence[Run]) -> Tensor:
    """The nodes of these runs; a view where it is one run."""
    parts = [tensor[:, :, start:stop] for start, stop in runs]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)
