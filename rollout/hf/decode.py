"""Decoding one batch of prompts: one prefill of the distinct prompts, then a token per row and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rollout.engine import SamplingParams
from rollout.hf.kv_cache import decoding_cache
from rollout.hf.token_sampling import sample_tokens, sampled_logprobs, stop_table, uniforms


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One request inside a batch; ``max_new_tokens`` is what sampling settings and context leave."""

    index: int
    prompt_ids: tuple[int, ...]
    seed: int
    sampling: SamplingParams
    max_new_tokens: int


def decode_batch(
    module: Any, rows: Sequence[DecodeRow], stop_ids: frozenset[int], *, last_logits_only: bool = True
) -> list[tuple[tuple[int, ...], tuple[float, ...], bool]]:
    """Sample every row: (token ids, raw log-probabilities, ended by a stop token) in row order.

    Prompts are padded on the left, so that all rows write at the same cache index; equal prompts are read once and
    their cache is shared out. Rows that have ended leave the batch.
    """
    device = next(module.parameters()).device
    extra = {"logits_to_keep": 1} if last_logits_only else {}
    prompts = list(dict.fromkeys(row.prompt_ids for row in rows))
    prompt_of = {prompt: i for i, prompt in enumerate(prompts)}
    steps = max(row.max_new_tokens for row in rows)
    ids, mask, positions = _left_padded(prompts, device)
    cache = decoding_cache(module.config)
    out = module(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True, **extra)

    spread = torch.tensor([prompt_of[row.prompt_ids] for row in rows], device=device)
    logits = out.logits[:, -1].float()
    if len(prompts) < len(rows):
        cache.batch_select_indices(spread)
        logits = logits[spread]
    # Columns of generated tokens are all visible, so the mask of every step is a prefix of this one.
    mask = torch.cat([mask[spread], mask.new_ones(len(rows), steps)], dim=1)
    next_position = positions[spread, -1:] + 1
    width = ids.shape[1]

    settings = _Settings.of(rows, steps, device)
    stops = stop_table(stop_ids, logits.shape[-1], device)
    tokens = torch.zeros(len(rows), steps, dtype=torch.long, device=device)
    logprobs = torch.zeros(len(rows), steps, dtype=torch.float32, device=device)
    lengths = torch.zeros(len(rows), dtype=torch.long, device=device)
    stopped = torch.zeros(len(rows), dtype=torch.bool, device=device)
    alive = torch.arange(len(rows), device=device)
    for step in range(steps):
        drawn = settings.draw(logits, step)
        tokens[alive, step] = drawn
        logprobs[alive, step] = sampled_logprobs(logits, drawn)
        ended = stops[drawn]
        done = ended | (settings.room <= step + 1)
        if bool(done.any()):
            lengths[alive[done]] = step + 1
            stopped[alive[ended]] = True
            keep = (~done).nonzero().flatten()
            if not len(keep):
                break
            cache.batch_select_indices(keep)
            alive, drawn, mask, next_position = alive[keep], drawn[keep], mask[keep], next_position[keep]
            settings = settings.select(keep)
        out = module(
            input_ids=drawn[:, None], attention_mask=mask[:, : width + step + 1], position_ids=next_position + step,
            past_key_values=cache, use_cache=True, **extra,
        )  # fmt: skip
        logits = out.logits[:, -1].float()
    return _results(tokens, logprobs, lengths, stopped)


def _left_padded(prompts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[torch.Tensor, ...]:
    """Ids, mask and positions, each [P, longest prompt]; padding is masked, whatever the tokenizer's pad is."""
    width = max(map(len, prompts))
    ids = np.zeros((len(prompts), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = prompt
        mask[row, width - len(prompt) :] = 1
    positions = (mask.cumsum(1) - 1).clip(min=0)
    return tuple(torch.from_numpy(a).to(device) for a in (ids, mask, positions))


def _results(*columns: torch.Tensor) -> list[tuple[tuple[int, ...], tuple[float, ...], bool]]:
    tokens, logprobs, lengths, stopped = (column.tolist() for column in columns)
    return [
        (tuple(ids[:n]), tuple(values[:n]), end) for ids, values, n, end in zip(tokens, logprobs, lengths, stopped, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Settings:
    """Sampling settings as columns over the living rows."""

    greedy: torch.Tensor
    temperature: torch.Tensor
    top_p: torch.Tensor
    room: torch.Tensor
    uniform: torch.Tensor
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

    def select(self, keep: torch.Tensor) -> _Settings:
        columns = (self.greedy, self.temperature, self.top_p, self.room, self.uniform)
        greedy, temperature, top_p, room, uniform = (column[keep] for column in columns)
        return _Settings(greedy, temperature, top_p, room, uniform, self.any_greedy, self.all_greedy)

    def draw(self, logits: torch.Tensor, step: int) -> torch.Tensor:
        """Next token ids [B] from logits [B, V]."""
        if self.all_greedy:
            return logits.argmax(-1)
        drawn = sample_tokens(logits, self.temperature, self.top_p, self.uniform[:, step])
        return torch.where(self.greedy, logits.argmax(-1), drawn) if self.any_greedy else drawn
