"""A round's groups as every rank knows them: G scored trajectories per network, their returns and advantages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memory_env import MemoryState, Network, replay
from memory_env.replay import Completion
from rewards import RewardWeights, Scorer, StepReward, score_step
from rewards.qa_gain import QAGain
from rollout.trajectory import Step, Trajectory
from writer_rl.grpo.advantages import position_advantages, position_deviations
from writer_rl.grpo.samples import Sample
from writer_rl.train.data import TaughtNetwork

STATELESS: dict[str, Any] = {"pre_state": None, "post_state": None}
"""Steps travel between ranks without their states, which follow from the actions."""


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step and its local rewards, without its states: small enough to send to every rank.

    Example: ``scored.reward.phi`` is the speaker-conditioned match of the memory after this step.
    """

    step: Step
    reward: StepReward


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    """One way of writing a network's memory, scored position by position.

    Example: ``ScoredTrajectory("net_1", 3, 0, steps)`` has one scored step for each of the network's T positions.
    """

    network_id: str
    index: int
    policy_version: int
    steps: tuple[ScoredStep, ...]


@dataclass(frozen=True)
class Group:
    """All G trajectories of one network, compared position by position.

    returns, advantages: [G, T]; deviations: [T], sigma of Eq. 23; qa: the terminal gain, or None where none was asked for.

    Example: ``group.advantages[g, t]`` belongs to ``group.trajectories[g].steps[t]``.
    """

    network_id: str
    trajectories: tuple[ScoredTrajectory, ...]
    qa: QAGain | None
    returns: np.ndarray
    advantages: np.ndarray
    deviations: np.ndarray

    def samples(self, min_abs_advantage: float = 0.0) -> list[Sample]:
        """One sample per step with a nonzero advantage of at least `min_abs_advantage`."""
        return [
            Sample(
                self.network_id,
                trajectory.index,
                position,
                scored.step.prompt_ids,
                scored.step.completion_ids,
                scored.step.logprobs,
                float(self.advantages[row, position]),
            )
            for row, trajectory in enumerate(self.trajectories)
            for position, scored in enumerate(trajectory.steps)
            if self.advantages[row, position] != 0 and abs(self.advantages[row, position]) >= min_abs_advantage
        ]


def share_of_rank(networks: Sequence[str], group_size: int, rank: int, ranks: int) -> dict[str, range]:
    """Which trajectories of which networks a rank samples: a contiguous run of (network, trajectory) pairs.

    Contiguous, so that trajectories with a common past stay on one rank and share its prefix cache.

    Example: networks a and b, G = 4, rank 1 of 2: {"b": range(0, 4)}; rank 1 of 3: {"a": range(2, 4), "b": range(0, 1)}.
    """
    total = len(networks) * group_size
    first, end = rank * total // ranks, (rank + 1) * total // ranks
    share = {}
    for place, name in enumerate(networks):
        start, stop = max(first - place * group_size, 0), min(end - place * group_size, group_size)
        if start < stop:
            share[name] = range(start, stop)
    return share


def score_trajectories(
    groups: Mapping[str, Sequence[Trajectory]], references: Mapping[str, TaughtNetwork], scorer: Scorer
) -> list[ScoredTrajectory]:
    """The local rewards of every step, then without states. One scorer, so that what siblings share is scored once."""
    scored = []
    for network_id, trajectories in groups.items():
        targets = references[network_id].teacher.states
        for trajectory in trajectories:
            steps = tuple(
                ScoredStep(
                    replace(made, **STATELESS),
                    score_step(made.actions, made.report, made.pre_state, made.post_state, target, scorer),
                )
                for made, target in zip(trajectory.steps, targets, strict=True)
            )
            scored.append(ScoredTrajectory(network_id, trajectory.index, trajectory.policy_version, steps))
    return scored


def assemble(
    scored: Iterable[ScoredTrajectory],
    lengths: Mapping[str, int],
    group_size: int,
    gains: Mapping[str, QAGain],
    weights: RewardWeights,
) -> list[Group]:
    """Groups in the order of `lengths` (network id -> T), with returns (Eq. 9) and advantages (Eq. 23-24).

    Raises RuntimeError unless every network has exactly G trajectories of T steps each: per-position statistics are unbiased only
    then.
    """
    by_network: dict[str, list[ScoredTrajectory]] = {name: [] for name in lengths}
    for trajectory in scored:
        by_network[trajectory.network_id].append(trajectory)
    groups = []
    for name, length in lengths.items():
        trajectories = tuple(sorted(by_network[name], key=lambda t: t.index))
        shape = [(t.index, len(t.steps)) for t in trajectories]
        if shape != [(index, length) for index in range(group_size)]:
            raise RuntimeError(
                f"network {name}: expected {group_size} trajectories of {length} steps, got (index, steps) {shape}"
            )
        qa = gains.get(name)
        returns = np.array(
            [
                [s.reward.total(qa.gains[g] if qa else 0.0, t, length, weights) for t, s in enumerate(trajectory.steps)]
                for g, trajectory in enumerate(trajectories)
            ]
        )
        groups.append(Group(name, trajectories, qa, returns, position_advantages(returns), position_deviations(returns)))
    return groups


def final_states(
    trajectories: Iterable[ScoredTrajectory], network: Network, window: int | None, strict: bool, provenance: Any = None
) -> list[MemoryState]:
    """M_T of each trajectory, by replaying its outputs: cheaper than sending states between ranks, and equal byte for byte."""
    states = []
    for trajectory in trajectories:
        outputs = [Completion(scored.step.text, scored.step.finish_reason == "length") for scored in trajectory.steps]
        states.append(replay(network, outputs, window, strict=strict, provenance=provenance)[-1].post_state)
    return states
