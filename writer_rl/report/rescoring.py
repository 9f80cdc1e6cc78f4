"""What if the reward had been another one: stored rollouts scored again, and what that changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rewards import RewardWeights, Scorer, StepReward, score_step
from rewards.terms import WeightedTerm
from writer_rl.config import ConfigError, GRPOConfig, load_config, parse_overrides
from writer_rl.grpo.advantages import MIN_SIGMA
from writer_rl.grpo.consistency import contradicted, neighbour_correlation
from writer_rl.grpo.credit import Comparison, Credit, compare, memory_key, returns_of
from writer_rl.grpo.plan import reward_settings
from writer_rl.report.stored_run import StoredGroup, StoredRound, StoredRun


@dataclass(frozen=True)
class GroupScores:
    """A group scored: rewards [G][T], returns [G, T] of Eq. 9, and what became of them under the credit (Eq. 23-24).

    Example: ``scores.advantages[g, t]`` belongs to ``group.records[g][t]``.
    """

    rewards: tuple[tuple[StepReward, ...], ...]
    returns: np.ndarray
    comparison: Comparison
    texts: Sequence[Sequence[str]]

    @property
    def advantages(self) -> np.ndarray:
        """[G, T]."""
        return self.comparison.advantages

    @property
    def figures(self) -> GroupFigures:
        """What `change` compares."""
        return GroupFigures(self.returns, self.comparison.advantages, self.comparison.deviations, self.texts)


class Rescorer:
    """Scores stored groups under one setting of the rewards and of the credit, without a model.

    Example: ``Rescorer(config)(group).advantages``; with the run's own settings these are the stored ones to the bit.
    """

    def __init__(self, config: GRPOConfig) -> None:
        """Raises ConfigError or TermError for a weight or term that does not exist."""
        settings = config.reward
        weights, terms = reward_settings(settings)
        self.credit: Credit = config.trainer.credit
        self.weights: RewardWeights = weights
        self.terms: tuple[WeightedTerm, ...] = terms
        self.scorer = Scorer(weights, settings.tokenizer, terms)

    def __call__(self, group: StoredGroup) -> GroupScores:
        targets = group.taught.teacher.states
        rewards = tuple(
            tuple(
                score_step(made.actions, made.report, made.pre_state, made.post_state, target, self.scorer)
                for made, target in zip(row, targets, strict=True)
            )
            for row in group.steps
        )
        gains = [gain or 0.0 for gain in group.gains]
        memories = [[memory_key(made.pre_state) for made in row] for row in group.steps] if self.credit == "anchor" else None
        comparison = compare(self.credit, rewards, gains, self.weights, memories)
        return GroupScores(rewards, returns_of(rewards, gains, self.weights), comparison, _texts(group))


class GroupFigures(NamedTuple):
    """Returns (Eq. 9), advantages, sigma and completions of a group, [G, T] each."""

    returns: np.ndarray
    advantages: np.ndarray
    deviations: np.ndarray
    texts: Sequence[Sequence[str]]


def stored_scores(group: StoredGroup) -> GroupFigures:
    """What the lines of a group hold; a sigma that an old line lacks is that of its column's returns."""
    returns = np.array([[line.total for line in row] for row in group.records])
    columns = returns.std(axis=0)
    sigma = [[line.fields.get("sigma", columns[t]) for t, line in enumerate(row)] for row in group.records]
    advantages = np.array([[line.advantage for line in row] for row in group.records])
    return GroupFigures(returns, advantages, np.array(sigma, dtype=float), _texts(group))


@dataclass(frozen=True, slots=True)
class Change:
    """What other rewards do to some completions; `columns` are (network, position) cells of G completions each.

    signs: advantages that became positive, negative or zero and were not; silent: columns with sigma < 0.02, before and after;
    return_rank, advantage_rank: Spearman's correlation of before and after, None where one side is constant; neighbours,
    contradicted: how local the credit is, before and after (writer_rl/grpo/consistency.py).

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
    neighbours_before: float | None
    neighbours_after: float | None
    contradicted_before: float | None
    contradicted_after: float | None


def change(before: Iterable[GroupFigures], after: Iterable[GroupFigures]) -> Change:
    """The change over groups."""
    pairs = list(zip(before, after, strict=True))
    old_returns, old_advantages, new_returns, new_advantages = (
        np.concatenate([getattr(pair[side], part).ravel() for pair in pairs])
        for side in (0, 1)
        for part in ("returns", "advantages")
    )
    return Change(
        completions=old_returns.size,
        columns=sum(pair[0][0].shape[1] for pair in pairs),
        return_before=float(old_returns.mean()),
        return_after=float(new_returns.mean()),
        signs=int((np.sign(old_advantages) != np.sign(new_advantages)).sum()),
        silent_before=sum(_silent(pair[0]) for pair in pairs),
        silent_after=sum(_silent(pair[1]) for pair in pairs),
        advantage_shift=float(np.abs(new_advantages - old_advantages).mean()),
        return_rank=_rank(old_returns, new_returns),
        advantage_rank=_rank(old_advantages, new_advantages),
        neighbours_before=neighbour_correlation(pair[0].advantages for pair in pairs),
        neighbours_after=neighbour_correlation(pair[1].advantages for pair in pairs),
        contradicted_before=contradicted((pair[0].texts, pair[0].advantages) for pair in pairs),
        contradicted_after=contradicted((pair[1].texts, pair[1].advantages) for pair in pairs),
    )


def what_if_settings(run: StoredRun, overrides: Sequence[str]) -> GRPOConfig:
    """The run's configuration with `overrides` of its rewards ("--reward.weights.mem", "0.3", ...) and `--trainer.credit`.

    Raises ConfigError for another setting, for one of the questions, whose answers are stored and not asked again, and for a
    credit whose completions the run has not written.
    """
    for key, _ in parse_overrides(overrides):
        if not key.startswith("reward.") and key != "trainer.credit":
            raise ConfigError(
                f"command line: --{key}: only reward settings can be changed afterwards, e.g. --reward.weights.mem 0.3, and "
                "--trainer.credit"
            )
        if key.startswith("reward.qa"):
            raise ConfigError(
                f"command line: --{key}: the questions are not asked again; weigh their gain with --reward.weights.qa"
            )
    config = load_config("grpo", run.path / "config.yaml", overrides)
    assert isinstance(config, GRPOConfig)
    reward_settings(config.reward)
    if (config.trainer.credit == "local") != (run.config.trainer.credit == "local"):
        raise ConfigError(
            f"command line: --trainer.credit {config.trainer.credit}: the run's completions were written for "
            f"{run.config.trainer.credit}; local credit writes others, from one memory"
        )
    return config


def rescored(rounds: Sequence[StoredRound], config: GRPOConfig) -> tuple[Change, dict[int, Change]]:
    """The change over all rounds, and that of each by its number."""
    score = Rescorer(config)
    before, after, single = [], [], {}
    for each in rounds:
        old = [stored_scores(group) for group in each.groups]
        new = [score(group).figures for group in each.groups]
        single[each.number] = change(old, new)
        before += old
        after += new
    return change(before, after), single


def _texts(group: StoredGroup) -> list[list[str]]:
    return [[line.text for line in row] for row in group.records]


def _silent(figures: GroupFigures) -> int:
    """Columns in which nothing is learnt."""
    return int((figures.deviations < MIN_SIGMA).all(axis=0).sum())


def _rank(before: np.ndarray, after: np.ndarray) -> float | None:
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        return None
    from scipy.stats import spearmanr  # a second to import, and most callers stop earlier

    return float(spearmanr(before, after).statistic)
