"""Sequences that share beginnings as one prefix tree: every distinct prefix is a node, and stands in it once.

The samples of one update repeat each other: system text, roster and messages, the memory as far as siblings agree, completions
until they part. What a causal model computes at a token depends on the tokens before it alone, so equal prefixes have equal
states, and a tree holds all there is to compute.

Nodes are numbered depth first, siblings in the order of their tokens. Below a node therefore lies one run of numbers, and
"j is i or an ancestor of i" is ``j <= i < end of j's subtree``: attention needs no mask but slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Branch(NamedTuple):
    """A run of nodes without a branch: nodes [start, stop); with everything below it, nodes [start, end).

    parent: the index of the edge it hangs from, -1 at a root.
    """

    start: int
    stop: int
    end: int
    parent: int


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Sequences in lexicographic order, which puts next to each other what shares most.

    order [n]: indices of the sequences. shared [n]: how many tokens each has in common with the one before it in that order (its
    most with any earlier one); 0 for the first. lengths [n]: tokens, in that order.

    Example (sequences 1 2 3, 4 5, 1 2 4): order 0 2 1, shared 0 2 0, lengths 3 3 2: five distinct nodes.
    """

    order: Ints
    shared: Ints
    lengths: Ints

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Overlaps:
        """Equal sequences keep the order in which they came."""
        tuples = [tuple(s) for s in sequences]
        order = sorted(range(len(tuples)), key=tuples.__getitem__)
        shared = np.zeros(len(order), dtype=np.int64)
        before = np.zeros(0, dtype=np.int64)
        for place, index in enumerate(order):
            tokens = np.asarray(tuples[index], dtype=np.int64)
            shared[place] = common_prefix(before, tokens)
            before = tokens
        lengths = np.array([len(tuples[i]) for i in order], dtype=np.int64)
        return cls(np.array(order, dtype=np.int64), shared, lengths)


@dataclass(frozen=True)
class PrefixTree:
    """The distinct prefixes of some sequences.

    tokens, depths, parents [N]: of each node; depth counts from 0, the parent of a root is -1. paths: for every sequence, as
    given, the nodes of its tokens.

    Example (sequences 1 2 3 and 1 2 4 5):
        tokens [1, 2, 3, 4, 5]; depths [0, 1, 2, 2, 3]; parents [-1, 0, 1, 1, 3]; paths [0, 1, 2] and [0, 1, 3, 4];
        edges (0, 2, 5, -1), (2, 3, 3, 0), (3, 5, 5, 0): nodes 0-1 are seen by all five, 3-4 by themselves alone.
    """

    tokens: Ints
    depths: Ints
    parents: Ints
    paths: tuple[Ints, ...]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> PrefixTree:
        """The tree of these sequences; an empty one adds nothing."""
        overlaps = Overlaps.of(sequences)
        paths: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(sequences)
        tokens: list[Ints] = []
        depths: list[Ints] = []
        parents: list[Ints] = []
        size, before = 0, np.zeros(0, dtype=np.int64)
        for index, shared, length in zip(overlaps.order, overlaps.shared, overlaps.lengths, strict=True):
            own = np.arange(size, size + length - shared)
            above = own - 1
            if len(own):
                above[0] = before[shared - 1] if shared else -1
            tokens.append(np.asarray(sequences[index], dtype=np.int64)[shared:])
            depths.append(np.arange(shared, length))
            parents.append(above)
            before = paths[index] = np.concatenate([before[:shared], own])
            size += len(own)
        return cls(_joined(tokens), _joined(depths), _joined(parents), tuple(paths))

    def __len__(self) -> int:
        """Distinct tokens."""
        return len(self.tokens)

    @cached_property
    def edges(self) -> tuple[Branch, ...]:
        """The tree's edges, depth first; together they hold every node once."""
        children = np.bincount(self.parents + 1, minlength=len(self) + 1)
        # A node begins an edge at a root and below a branch.
        starts = np.flatnonzero((self.parents < 0) | (children[self.parents + 1] > 1)).tolist()
        stops = [*starts[1:], len(self)][: len(starts)]
        ends, above = stops[:], [-1] * len(starts)
        open_edges: list[int] = []
        for index, start in enumerate(starts):
            while open_edges and self.depths[starts[open_edges[-1]]] >= self.depths[start]:
                ends[open_edges.pop()] = start
            above[index] = open_edges[-1] if open_edges else -1
            open_edges.append(index)
        for index in open_edges:
            ends[index] = len(self)
        return tuple(Branch(*each) for each in zip(starts, stops, ends, above, strict=True))


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def common_prefix(one: Ints, other: Ints) -> int:
    """How many tokens two sequences have in common from the start."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length


def cut(overlaps: Overlaps, budget: int) -> list[list[int]]:
    """The sequences in groups of at most `budget` distinct tokens that repeat as few tokens as possible; indices, each once.

    Groups are runs of the lexicographic order. Each begins a tree of its own, so a cut costs the tokens that its two sides share:
    the cuts of least cost are found by dynamic programming (of equal cost: the fewest groups). A sequence longer than the
    budget is a group of its own. The largest group comes first, so that too large a budget shows at once.

    Example (lengths 5 5 5, shared 0 4 1, budget 6): groups of the first two and the last; the other cut would repeat 4 tokens.
    """
    count = len(overlaps.order)
    own = (overlaps.lengths - overlaps.shared).tolist()
    shared, lengths = overlaps.shared.tolist(), overlaps.lengths.tolist()
    best: list[tuple[int, int, int]] = [(0, 0, 0)]  # repeated tokens, groups, where the last group begins
    for end in range(1, count + 1):
        options = []
        later = 0  # distinct tokens that the sequences after `begin` add
        for begin in reversed(range(end)):
            if begin == end - 1 or lengths[begin] + later <= budget:
                repeated, number, _ = best[begin]
                options.append((repeated + shared[begin], number + 1, begin))
            later += own[begin]
            if later > budget:
                break
        best.append(min(options))
    groups, end = [], count
    while end:
        begin = best[end][2]
        distinct = lengths[begin] + sum(own[begin + 1 : end])
        groups.append((-distinct, begin, overlaps.order[begin:end].tolist()))
        end = begin
    return [group for _, _, group in sorted(groups)]


def shares(overlaps: Overlaps, parts: int) -> list[list[int]]:
    """The sequences in exactly `parts` lists (some may be empty), the largest of them as few distinct tokens as possible.

    Each is a run of the lexicographic order, so that what shares most stays together.

    Example (lengths 4 4 4 4, shared 0 3 0 3, two parts): 5 distinct tokens in each.
    """
    low, high = int(overlaps.lengths.max(initial=1)), max(1, int(overlaps.lengths.sum()))
    while low < high:
        middle = (low + high) // 2
        if len(_filled(overlaps, middle)) <= parts:
            high = middle
        else:
            low = middle + 1
    groups = _filled(overlaps, low)
    return groups + [[]] * (parts - len(groups))


def _filled(overlaps: Overlaps, budget: int) -> list[list[int]]:
    """As few runs as possible of at most `budget` distinct tokens each, which no sequence exceeds."""
    runs: list[list[int]] = []
    room = 0
    for index, shared, length in zip(overlaps.order.tolist(), overlaps.shared, overlaps.lengths, strict=True):
        if not runs or length - shared > room:
            runs.append([])
            room, shared = budget, 0
        room -= length - shared
        runs[-1].append(index)
    return runs
