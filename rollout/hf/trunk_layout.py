"""Attention of rows that decode: each asks its own keys, and with its siblings those of the beginning that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from rollout.tree.attention import merge_

_forward: Callable[..., tuple[Tensor, Tensor]] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


@dataclass(frozen=True, slots=True)
class Siblings:
    """C trunks over some of B rows, at most G rows each.

    layers: keys and values [C, K, P, D] of each layer; hidden [C, 1, 1, P]: added to scores, very small where a trunk has ended,
    None where all are equally long. rows [S]: the rows that have a trunk, None for all; trunk_of [S]: which. slots [C, G]: of
    these rows, which ask each trunk (any, where fewer than G do); slot_of [S]: each row's place among the C x G.
    """

    layers: tuple[tuple[Tensor, Tensor], ...]
    hidden: Tensor | None
    rows: Tensor | None
    trunk_of: Tensor
    slots: Tensor
    slot_of: Tensor

    @classmethod
    def of(cls, layers: Sequence[tuple[Tensor, Tensor]], lengths: Tensor, rows: Tensor, trunk_of: Tensor, count: int) -> Siblings:
        """lengths [C]; rows, trunk_of [S]; count: B."""
        keys = layers[0][0]
        places = torch.arange(keys.shape[2])
        hidden = None
        if bool((lengths < keys.shape[2]).any()):
            hidden = keys.new_zeros(len(lengths), 1, 1, len(places))
            hidden.masked_fill_((places >= lengths[:, None])[:, None, None], hidden_score(keys.dtype))
        return cls(tuple(layers), hidden, *_slots(trunk_of, rows, count, len(lengths)))

    def select(self, keep: Tensor, count: int) -> Siblings | None:
        """For the rows keep [B'] of `count`, in that order; trunks that no row asks are dropped. None where none is left."""
        at = torch.full((count,), -1)
        rows = torch.arange(count) if self.rows is None else self.rows
        at[rows] = self.trunk_of
        trunk_of = at[keep]
        rows = (trunk_of >= 0).nonzero().flatten()
        left, trunk_of = trunk_of[rows].unique(return_inverse=True)
        if not len(left):
            return None
        layers, hidden = self.layers, self.hidden
        if len(left) < len(self.slots):
            layers = tuple((keys[left], values[left]) for keys, values in layers)
            hidden = None if hidden is None else hidden[left]
        return Siblings(layers, hidden, *_slots(trunk_of, rows, len(keep), len(left)))


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """One new token of each of B rows.

    hidden [B, 1, 1, W]: added to the scores of a row's own first W keys (its prompt's end, padded on the left), None for nothing;
    later ones are all seen. siblings: beginnings that rows share, None where there are none.
    """

    hidden: Tensor | None
    siblings: Siblings | None

    def select(self, keep: Tensor, count: int) -> RowsLayout:
        """For the rows keep [B'] of `count`, in that order."""
        siblings = None if self.siblings is None else self.siblings.select(keep, count)
        return replace(self, hidden=None if self.hidden is None else self.hidden[keep], siblings=siblings)

    def attention(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """See `rollout.tree.attention.Layout`: query [B, H, 1, D], a row's own keys and values [B, K, L, D]."""
        rows, heads, _, size = query.shape
        # The query heads of a key head take the place of positions, so that each key is loaded once for them.
        folded = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
        hidden = self.hidden
        if hidden is not None:
            hidden = F.pad(hidden, (0, key.shape[2] - hidden.shape[3]))
        if self.siblings is None:
            out = F.scaled_dot_product_attention(folded, key, value, attn_mask=hidden, scale=scale)
            return out.reshape(rows, 1, heads, size)
        out, lse = _forward(folded, key, value, 0.0, False, attn_mask=hidden, scale=scale)
        wide = out.to(lse.dtype)
        part, part_lse = _asked_trunks(folded, self.siblings, layer, scale)
        which = self.siblings.rows
        if which is None:
            merge_(wide, lse, part, part_lse)
        else:
            some, some_lse = wide[which], lse[which]
            merge_(some, some_lse, part, part_lse)
            wide[which] = some
        return wide.to(query.dtype).reshape(rows, 1, heads, size)


def hidden_score(dtype: torch.dtype) -> float:
    """What hides a key when added to its score; finite, so that a row that sees nothing gives no NaN."""
    return torch.finfo(dtype).min / 2


def _asked_trunks(folded: Tensor, siblings: Siblings, layer: int, scale: float | None) -> tuple[Tensor, Tensor]:
    """What the rows that have one find in their trunk [S, K, R, D], and the log-sum-exps [S, K, R]."""
    trunks, most = siblings.slots.shape
    _, heads, group, size = folded.shape
    keys, values = siblings.layers[layer]
    asking = folded if siblings.rows is None else folded[siblings.rows]
    queries = asking[siblings.slots].transpose(1, 2).reshape(trunks, heads, most * group, size)
    found, lse = _forward(queries, keys, values, 0.0, False, attn_mask=siblings.hidden, scale=scale)
    found = found.reshape(trunks, heads, most, group, size).transpose(1, 2).reshape(trunks * most, heads, group, size)
    lse = lse.reshape(trunks, heads, most, group).transpose(1, 2).reshape(trunks * most, heads, group)
    return found[siblings.slot_of], lse[siblings.slot_of]


def _slots(trunk_of: Tensor, rows: Tensor, count: int, trunks: int) -> tuple[Tensor | None, Tensor, Tensor, Tensor]:
    """`Siblings.rows`, `trunk_of`, `slots` and `slot_of`."""
    sizes = torch.bincount(trunk_of, minlength=trunks)
    most = int(sizes.max())
    order = trunk_of.argsort(stable=True)
    slot_of = torch.empty_like(order)
    slot_of[order] = torch.arange(len(order)) - (sizes.cumsum(0) - sizes)[trunk_of[order]] + trunk_of[order] * most
    slots = torch.zeros(trunks * most, dtype=torch.long)
    slots[slot_of] = torch.arange(len(order))
    return None if len(rows) == count else rows, trunk_of, slots.reshape(trunks, most), slot_of
