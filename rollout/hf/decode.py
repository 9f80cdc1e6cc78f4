"""Decoding one batch of rows whose prompts have been read: a token per living row and step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from rollout.engine import SamplingParams
from rollout.hf.token_sampling import sample_tokens, sampled_logprobs, stop_table, uniforms

Sampled = tuple[tuple[int, ...], tuple[float, ...], bool]
"""Token ids, their raw log-probabilities, and whether a stop token ended them."""


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One request inside a batch; ``max_new_tokens`` is what sampling settings and context leave."""

    index: int
    prompt_ids: tuple[int, ...]
    seed: int
    sampling: SamplingParams
    max_new_tokens: int


class Rows(Protocol):
    """What a batch has read so far. Example: `rollout.hf.shared_rows.SharedRows`, `rollout.hf.padded_rows.PaddedRows`."""

    logits: Tensor
    """[B, V] float32, after the prompts."""

    def step(self, tokens: Tensor, generated: int, last: Tensor) -> Tensor:
        """The logits [B, V] float32 after these tokens [B], the `generated`-th new ones of their rows.

        last [B]: the last position that a row may reach; one that has ended stays there.
        """
        ...

    def select(self, keep: Tensor) -> None:
        """Go on with the rows keep [B'] alone."""
        ...


def decode_batch(
    state: Rows, rows: Sequence[DecodeRow], stop_ids: frozenset[int], between_steps: Callable[[], None] = lambda: None
) -> list[Sampled]:
    """Sample every row, in row order; what `between_steps` raises ends that.

    Rows that have ended leave the batch once what they would still compute outweighs the copy of what the others have read.
    """
    logits = state.logits
    device = logits.device
    steps = max(row.max_new_tokens for row in rows)
    settings = _Settings.of(rows, steps, device)
    stops = stop_table(stop_ids, logits.shape[-1], device)
    last = torch.tensor([len(row.prompt_ids) + row.max_new_tokens - 1 for row in rows], device=device)
    tokens = torch.zeros(len(rows), steps, dtype=torch.long, device=device)
    logprobs = torch.zeros(len(rows), steps, dtype=torch.float32, device=device)
    lengths = torch.zeros(len(rows), dtype=torch.long, device=device)
    stopped = torch.zeros(len(rows), dtype=torch.bool, device=device)
    present = torch.arange(len(rows), device=device)  # rows of the batch as it is now, ended ones among them
    living = torch.ones(len(rows), dtype=torch.bool, device=device)
    idle = 0  # row-steps computed for nothing since the last time that rows left
    for step in range(steps):
        drawn = settings.draw(logits, step)
        tokens[present, step] = drawn
        logprobs[present, step] = sampled_logprobs(logits, drawn)
        ended = stops[drawn]
        done = (ended | (settings.room <= step + 1)) & living
        if bool(done.any()):
            lengths[present[done]] = step + 1
            stopped[present[done & ended]] = True
            living = living & ~done
        alive = int(living.sum())
        if not alive:
            break
        idle += len(living) - alive
        if idle >= alive:
            keep = living.nonzero().flatten()
            state.select(keep)
            present, drawn, last, living, settings = present[keep], drawn[keep], last[keep], living[keep], settings.select(keep)
            idle = 0
        between_steps()
        logits = state.step(drawn, step + 1, last)
    return _results(tokens, logprobs, lengths, stopped)


def _results(*columns: Tensor) -> list[Sampled]:
    tokens, logprobs, lengths, stopped = (column.tolist() for column in columns)
    return [
        (tuple(ids[:n]), tuple(values[:n]), end) for ids, values, n, end in zip(tokens, logprobs, lengths, stopped, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Settings:
    """Sampling settings as columns over the rows of the batch."""

    greedy: Tensor
    temperature: Tensor
    top_p: Tensor
    room: Tensor
    uniform: Tensor
    any_greedy: bool
    all_greedy: bool

    @classmethod
    def of(cls, rows: Sequence[DecodeRow], steps: int, device: torch.device) -> _Settings:
        draws = np.zeros((len(rows), steps))
        for i, row in enumerate(rows):
            if not row.sampling.greedy:
                draws[i, : row.max_new_tokens] = uniforms(row.seed, row.max_new_tokens)
        greedy = [row.sampling.greedy for row in rows]
        return cls(
            greedy=torch.tensor(greedy, device=device),
            temperature=torch.tensor([1.0 if row.sampling.greedy else row.sampling.temperature for row in rows], device=device),
            top_p=torch.tensor([row.sampling.top_p for row in rows], device=device),
            room=torch.tensor([row.max_new_tokens for row in rows], device=device),
            uniform=torch.from_numpy(draws).to(device),
            any_greedy=any(greedy),
            all_greedy=all(greedy),
        )

    def select(self, keep: Tensor) -> _Settings:
        columns = (self.greedy, self.temperature, self.top_p, self.room, self.uniform)
        greedy, temperature, top_p, room, uniform = (column[keep] for column in columns)
        return _Settings(greedy, temperature, top_p, room, uniform, self.any_greedy, self.all_greedy)

    def draw(self, logits: Tensor, step: int) -> Tensor:
        """Next token ids [B] from logits [B, V]."""
        if self.all_greedy:
            return logits.argmax(-1)
        drawn = sample_tokens(logits, self.temperature, self.top_p, self.uniform[:, step])
        return torch.where(self.greedy, logits.argmax(-1), drawn) if self.any_greedy else drawn
