"""Attention over a prefix tree: a token sees its ancestors and itself, and nothing is computed that no one sees.

A tree's nodes stand in one packed row, depth first, so an edge and all below it are a slice. Pairs of tokens and ancestors come
in rectangles (`rollout.tree.rectangles`): queries of a subtree, keys of an edge, causal from the top left corner. A node's
attention is put together from those it appears in by their log-sum-exps,

    o = sum_e exp(l_e - l) o_e,   l = log sum_e exp(l_e),

and backward each rectangle needs only o and l (the flash-attention recurrence, arXiv:2205.14135). No mask exists.

`install` teaches an attention implementation of transformers to take a `tree` argument, a `Layout`; without one it stays what it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from rollout.tree.extension import Extension
from rollout.tree.prefix_tree import Branch
from rollout.tree.rectangles import Rectangle, Run, rectangles

KEYWORD = "tree"
"""The keyword under which a `Layout` travels through a transformers model's layers to its attention."""

_taught: set[str] = set()
_HARMLESS = {"position_ids", "use_cache", "is_causal", "output_attentions", "output_hidden_states", "cache_position"}


class Layout(Protocol):
    """How the tokens of a forward pass see each other. Example: `TreeLayout`."""

    def attention(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """What a layer's queries [B, H, L, D] see, as [B, L, H, D]; keys and values are [B, K, M, D], with H a multiple of K."""


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """One packed row of a prefix tree's nodes. Example: ``TreeLayout(PrefixTree.of([(1, 2, 3), (1, 2, 4, 5)]).edges)``."""

    edges: tuple[Branch, ...]

    def attention(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """See `tree_attention`."""
        return tree_attention(query, key, value, self.edges, scale)


@dataclass(frozen=True, slots=True)
class ExtensionLayout:
    """One packed row of a tree's new nodes; keys and values of the known ones stand before theirs."""

    extension: Extension

    def attention(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """See `extension_attention`."""
        return extension_attention(query, key, value, self.extension, scale)


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
        layout = options.pop(KEYWORD, None)
        if layout is None:
            return plain(module, query, key, value, mask, **options)
        return _attend(module, query, key, value, layout, **options)

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


def extension_attention(query: Tensor, key: Tensor, value: Tensor, extension: Extension, scale: float | None = None) -> Tensor:
    """What each new node of a tree sees of its ancestors, known ones too, and itself.

    query [1, H, N, D]; key and value [1, K, P + N, D]: of the P known places, then of the new nodes. Returns [1, N, H, D].
    Without gradients. Known nodes can be asked on the CPU only.
    """
    if not extension.above:
        start = key.shape[2] - query.shape[2]
        return tree_attention(query, key[:, :, start:], value[:, :, start:], extension.edges, scale)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    new = key.shape[2] - query.shape[2]
    out, lse = _asked(query, key[:, :, new:], value[:, :, new:], rectangles(extension.edges), scale)
    for runs, start, end in extension.above:
        found = _forward(query[:, :, start:end], _rows(key, runs), _rows(value, runs), 0.0, False, scale=scale)
        merge_(out[:, :, start:end], lse[:, :, start:end], *found)
    return out.to(query.dtype).transpose(1, 2)


def merge_(out: Tensor, lse: Tensor, part: Tensor, part_lse: Tensor) -> None:
    """Add what other keys gave: out, part [..., D] with the log-sum-exps [...] of their scores. In place, of `out` and `lse`."""
    out.lerp_(part.to(out.dtype), torch.sigmoid(part_lse - lse).unsqueeze(-1))
    torch.logaddexp(lse, part_lse, out=lse)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    more = [name for name, given in options.items() if given is not None and name not in _HARMLESS]
    if dropout or more:
        raise TreeUnsupported(f"{type(module).__name__}: its attention also takes {', '.join(more) or 'dropout'}")
    if sliding_window is not None and sliding_window < key.shape[2]:
        raise TreeUnsupported(f"{type(module).__name__}: its attention slides over {sliding_window} tokens")
    return layout.attention(getattr(module, "layer_idx", 0), query, key, value, scaling), None


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


def _asked(query: Tensor, key: Tensor, value: Tensor, plan: tuple[Rectangle, ...], scale: float | None) -> tuple[Tensor, Tensor]:
    """What the plan's rectangles give together [1, H, N, D], and the log-sum-exps [1, H, N]; float32 at least."""
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
            merge_(out[:, :, start:end], lse[:, :, start:end], part, part_lse)
    return out, lse


class _Rectangles(torch.autograd.Function):
    """Query, key, value [1, H, N, D] on the CPU -> [1, N, H, D], one flash-attention call a rectangle."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: tuple[Rectangle, ...], scale: float | None) -> Tensor:
        out, lse = _asked(query, key, value, plan, scale)
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
