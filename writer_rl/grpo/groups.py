"""A round's groups as every rank knows them: G scored trajectories per network, their returns and advantages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memory_env import MemoryState, Network, replay
from memory_env.replay import Completion
from rewards import RewardWeights, Scorer, StepReward, score_step
from rewards.qa_results import QAGain
from rollout.trajectory import Step, Trajectory
from writer_rl.grpo.credit import Comparison, Credit, compare, memory_key, returns_of
from writer_rl.grpo.samples import Sample
from writer_rl.train.data import TaughtNetwork

STATELESS: dict[str, Any] = {"pre_state": None, "post_state": None}
"""Steps travel between ranks without their states, which follow from the actions."""


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step and its local rewards, without its states: small enough to send to every rank.

    memory: `memory_key` of the memory it was written from, "" where credit does not ask.

    Example: ``scored.reward.phi`` is the speaker-conditioned match of the memory after this step.
    """

    step: Step
    reward: StepReward
    memory: str = ""


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

    returns: r_t of Eq. 9, [G, T]; comparison: what became of them under `trainer.credit`; qa: the terminal gain, or None where
    none was asked for; shared_past: every position was written from the memory of trajectory 0.

    Example: ``group.advantages[g, t]`` belongs to ``group.trajectories[g].steps[t]``.
    """

    network_id: str
    trajectories: tuple[ScoredTrajectory, ...]
    qa: QAGain | None
    returns: np.ndarray
    comparison: Comparison
    shared_past: bool = False

    @property
    def texts(self) -> list[list[str]]:
        """The completions, [G][T]."""
        return [[scored.step.text for scored in trajectory.steps] for trajectory in self.trajectories]

    @property
    def advantages(self) -> np.ndarray:
        """[G, T] (Eq. 24)."""
        return self.comparison.advantages

    @property
    def deviations(self) -> np.ndarray:
        """sigma of Eq. 23 of those each completion is compared among, [G, T]."""
        return self.comparison.deviations

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


def share_of_rank(networks: Sequence[str], group_size: int, rank: int, ranks: int, whole: bool = False) -> dict[str, range]:
    """Which trajectories of which networks a rank samples: a contiguous run of (network, trajectory) pairs.

    Contiguous, so that trajectories with a common past stay on one rank and share its prefix cache. whole: no network is
    divided, since its trajectories need each other's memory (local credit).

    Example: networks a and b, G = 4, rank 1 of 2: {"b": range(0, 4)}; rank 1 of 3: {"a": range(2, 4), "b": range(0, 1)}.
    """
    if whole:
        return {name: range(group_size) for name in networks[rank::ranks]}
    total = len(networks) * group_size
    first, end = rank * total // ranks, (rank + 1) * total // ranks
    share = {}
    for place, name in enumerate(networks):
        start, stop = max(first - place * group_size, 0), min(end - place * group_size, group_size)
        if start < stop:
            share[name] = range(start, stop)
    return share


def score_trajectories(
    groups: Mapping[str, Sequence[Trajectory]],
    references: Mapping[str, TaughtNetwork],
    scorer: Scorer,
    credit: Credit = "aligned",
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
                    memory_key(made.pre_state) if credit == "anchor" else "",
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
    credit: Credit = "aligned",
) -> list[Group]:
    """Groups in the order of `lengths` (network id -> T), with returns (Eq. 9) and advantages (Eq. 23-24, `credit`).

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
        rewards = [[scored.reward for scored in trajectory.steps] for trajectory in trajectories]
        terminal = qa.gains if qa else (0.0,) * group_size
        memories = [[scored.memory for scored in trajectory.steps] for trajectory in trajectories]
        comparison = compare(credit, rewards, terminal, weights, memories)
        groups.append(Group(name, trajectories, qa, returns_of(rewards, terminal, weights), comparison, credit == "local"))
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
