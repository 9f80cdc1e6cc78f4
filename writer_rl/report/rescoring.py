"""What if the reward had been another one: stored rollouts scored again, and what that changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rewards import RewardWeights, Scorer, StepReward, score_step
from rewards.terms import WeightedTerm
from writer_rl.config import ConfigError, GRPOConfig, RewardSection, load_config, parse_overrides
from writer_rl.grpo.advantages import MIN_SIGMA, position_advantages, position_deviations
from writer_rl.grpo.plan import reward_settings
from writer_rl.report.stored_run import StoredGroup, StoredRound, StoredRun


@dataclass(frozen=True)
class Scores:
    """A group scored: rewards [G][T], returns and advantages [G, T], deviations [T] (Eq. 9, 23-24).

    Example: ``scores.advantages[g, t]`` belongs to ``group.records[g][t]``.
    """

    rewards: tuple[tuple[StepReward, ...], ...]
    returns: np.ndarray
    advantages: np.ndarray
    deviations: np.ndarray


class Rescorer:
    """Scores stored groups under one setting of the rewards, without a model.

    Example: ``Rescorer(config.reward)(group).advantages``; with the run's own settings these are the stored ones to the bit.
    """

    def __init__(self, settings: RewardSection) -> None:
        """Raises ConfigError or TermError for a weight or term that does not exist."""
        weights, terms = reward_settings(settings)
        self.weights: RewardWeights = weights
        self.terms: tuple[WeightedTerm, ...] = terms
        self.scorer = Scorer(weights, settings.tokenizer, terms)

    def __call__(self, group: StoredGroup) -> Scores:
        targets = group.taught.teacher.states
        rewards = tuple(
            tuple(
                score_step(made.actions, made.report, made.pre_state, made.post_state, target, self.scorer)
                for made, target in zip(row, targets, strict=True)
            )
            for row in group.steps
        )
        length = group.taught.length
        returns = np.array(
            [
                [reward.total(gain or 0.0, t, length, self.weights) for t, reward in enumerate(row)]
                for row, gain in zip(rewards, group.gains, strict=True)
            ]
        )
        return Scores(rewards, returns, position_advantages(returns), position_deviations(returns))


def stored_scores(group: StoredGroup) -> tuple[np.ndarray, np.ndarray]:
    """Returns and advantages [G, T] as the run had them."""
    returns = np.array([[line.total for line in row] for row in group.records])
    return returns, np.array([[line.advantage for line in row] for row in group.records])


@dataclass(frozen=True, slots=True)
class Change:
    """What other rewards do to some completions; `columns` are (network, position) cells of G completions each.

    signs: advantages that became positive, negative or zero and were not; silent: columns with sigma < 0.02, before and after;
    return_rank, advantage_rank: Spearman's correlation of before and after, None where one side is constant.

    Example: Change(completions=8, columns=1, return_before=0.41, return_after=0.52, signs=3, ...)
    """

    completions: int
    columns: int
    return_before: float
    return_after: float
    signs: int
    silent_before: int
    silent_after: int
    advantage_shift: float
    return_rank: float | None
    advantage_rank: float | None


def change(before: Iterable[tuple[np.ndarray, np.ndarray]], after: Iterable[tuple[np.ndarray, np.ndarray]]) -> Change:
    """The change over groups, each given as (returns, advantages) [G, T]."""
    pairs = list(zip(before, after, strict=True))
    old_returns, old_advantages, new_returns, new_advantages = (
        np.concatenate([pair[side][part].ravel() for pair in pairs]) for side in (0, 1) for part in (0, 1)
    )
    return Change(
        completions=old_returns.size,
        columns=sum(pair[0][0].shape[1] for pair in pairs),
        return_before=float(old_returns.mean()),
        return_after=float(new_returns.mean()),
        signs=int((np.sign(old_advantages) != np.sign(new_advantages)).sum()),
        silent_before=sum(_silent(pair[0][0]) for pair in pairs),
        silent_after=sum(_silent(pair[1][0]) for pair in pairs),
        advantage_shift=float(np.abs(new_advantages - old_advantages).mean()),
        return_rank=_rank(old_returns, new_returns),
        advantage_rank=_rank(old_advantages, new_advantages),
    )


def what_if_settings(run: StoredRun, overrides: Sequence[str]) -> RewardSection:
    """The run's reward settings with `overrides` ("--reward.weights.mem", "0.3", ...).

    Raises ConfigError for a setting that is no reward, or one of the questions, whose answers are stored and not asked again.
    """
    for key, _ in parse_overrides(overrides):
        if not key.startswith("reward."):
            raise ConfigError(
                f"command line: --{key}: only reward settings can be changed afterwards, e.g. --reward.weights.mem 0.3"
            )
        if key.startswith("reward.qa"):
            raise ConfigError(
                f"command line: --{key}: the questions are not asked again; weigh their gain with --reward.weights.qa"
            )
    config = load_config("grpo", run.path / "config.yaml", overrides)
    assert isinstance(config, GRPOConfig)
    reward_settings(config.reward)
    return config.reward


def rescored(rounds: Sequence[StoredRound], settings: RewardSection) -> tuple[Change, dict[int, Change]]:
    """The change over all rounds, and that of each by its number."""
    score = Rescorer(settings)
    before, after, single = [], [], {}
    for each in rounds:
        old = [stored_scores(group) for group in each.groups]
        scores = [score(group) for group in each.groups]
        new = [(s.returns, s.advantages) for s in scores]
        single[each.number] = change(old, new)
        before += old
        after += new
    return change(before, after), single


def _silent(returns: np.ndarray) -> int:
    return int((position_deviations(returns) < MIN_SIGMA).sum())


def _rank(before: np.ndarray, after: np.ndarray) -> float | None:
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        return None
    from scipy.stats import spearmanr  # a second to import, and most callers stop earlier

    return float(spearmanr(before, after).statistic)
