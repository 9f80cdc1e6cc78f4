"""What a completion is credited with, and whom it is compared with: `trainer.credit`.

Every choice has the same objective and the same number of completions, G a position. They differ in the value that is compared
and in what it is compared among:

    aligned      the return r_t of Eq. 9, among the G completions of a position (the paper, Eq. 23-24)
    trajectory   the mean over t of r_t, one advantage for the whole trajectory (plain GRPO)
    difference   r_t with R_mem replaced by its gain over the position before: what was inherited earns nothing
    local        r_t, among G completions written from one memory, that of trajectory 0; no question gain (rollout.sampler)
    anchor       r_t, among the completions that were written from the same memory, byte for byte (GiGPO)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from memory_env import MemoryState
from rewards import RewardWeights, StepReward
from writer_rl.grpo.advantages import position_advantages, position_deviations

Credit = Literal["aligned", "trajectory", "difference", "local", "anchor"]


@dataclass(frozen=True)
class Comparison:
    """A group compared; every field is [G, T].

    values: what is compared; means, deviations: mu and sigma of Eq. 23 of those it is compared among; advantages: Eq. 24.

    Example: ``comparison.advantages[g, t] == (values[g, t] - means[g, t]) / deviations[g, t]`` unless clipped or silent.
    """

    values: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    advantages: np.ndarray


def returns_of(rewards: Sequence[Sequence[StepReward]], gains: Sequence[float], weights: RewardWeights) -> np.ndarray:
    """r_t of Eq. 9, [G, T]; gains: R_QA of each trajectory."""
    return np.array(
        [[r.total(gain, t, len(row), weights) for t, r in enumerate(row)] for row, gain in zip(rewards, gains, strict=True)]
    )


def compare(
    credit: Credit,
    rewards: Sequence[Sequence[StepReward]],
    gains: Sequence[float],
    weights: RewardWeights,
    memories: Sequence[Sequence[Hashable]] | None = None,
) -> Comparison:
    """The advantages of one network's group.

    rewards: [G][T]; gains: R_QA of each trajectory; memories: for `anchor`, a key [G][T] of the memory that each completion was
    written from. Raises ValueError where `anchor` lacks them.
    """
    if credit == "trajectory":
        return _by_trajectory(returns_of(rewards, gains, weights))
    if credit == "difference":
        return _by_position(returns_of([memory_gains(row) for row in rewards], gains, weights))
    if credit == "anchor":
        if memories is None:
            raise ValueError("anchor: needs the memory that each completion was written from")
        return _by_memory(returns_of(rewards, gains, weights), memories)
    return _by_position(returns_of(rewards, gains, weights))


def memory_gains(rewards: Sequence[StepReward]) -> list[StepReward]:
    """A trajectory's rewards with R_mem replaced by its gain over the position before; before the first it is 0.

    Example: R_mem 0.5, 0.75, 0.5 becomes 0.5, 0.25, -0.25.
    """
    before = 0.0
    found = []
    for reward in rewards:
        found.append(replace(reward, mem=reward.mem - before))
        before = reward.mem
    return found


def memory_key(state: MemoryState) -> str:
    """Equal for memories that are equal byte for byte: 32 hexadecimal digits over the messages' ids, records and edges."""
    messages = [record.entry_id for record in state.verbatim()]
    text = json.dumps([messages, state.to_dict()], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _by_position(values: np.ndarray) -> Comparison:
    """Each column by itself.

    >>> _by_position(np.array([[1.0, 0.5], [0.0, 0.5]])).advantages.tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """
    means, deviations = np.ascontiguousarray(values.T).mean(axis=1), position_deviations(values)
    return Comparison(
        values, np.broadcast_to(means, values.shape), np.broadcast_to(deviations, values.shape), position_advantages(values)
    )


def _by_trajectory(returns: np.ndarray) -> Comparison:
    """The mean of each row, for all its positions.

    >>> _by_trajectory(np.array([[1.0, 0.5], [0.0, 0.5]])).advantages.tolist()
    [[1.0, 1.0], [-1.0, -1.0]]
    """
    one = _by_position(returns.mean(axis=1, keepdims=True))
    parts = (one.values, one.means, one.deviations, one.advantages)
    return Comparison(*(np.broadcast_to(part, returns.shape) for part in parts))


def _by_memory(values: np.ndarray, memories: Sequence[Sequence[Hashable]]) -> Comparison:
    """Each column in parts of equal memories; a part of one says nothing.

    >>> _by_memory(np.array([[1.0], [0.0], [0.7]]), [["a"], ["a"], ["b"]]).advantages.tolist()
    [[1.0], [-1.0], [0.0]]
    """
    found = Comparison(values, values.copy(), np.zeros_like(values), np.zeros_like(values))
    for t in range(values.shape[1]):
        parts: dict[Hashable, list[int]] = {}
        for g, row in enumerate(memories):
            parts.setdefault(row[t], []).append(g)
        for members in parts.values():
            part = _by_position(values[members, t : t + 1])
            found.means[members, t], found.deviations[members, t] = part.means[:, 0], part.deviations[:, 0]
            found.advantages[members, t] = part.advantages[:, 0]
    return found
