"""What a GRPO run is going to do, counted before anything is loaded: what `--dry-run` prints."""

from __future__ import annotations

from dataclasses import dataclass

from memory_env import PromptTemplate
from rewards import RewardWeights
from rewards.terms import WeightedTerm, weighted_terms
from writer_rl.config import ConfigError, GRPOConfig, RewardSection, resolve
from writer_rl.evaluation.asking import require_models
from writer_rl.grpo.questions import asking_line
from writer_rl.run.run_plan import resource_lines
from writer_rl.train.data import load_training
from writer_rl.train.missing import missing_data, missing_model
from writer_rl.train.prompt import fit_line
from writer_rl.train.schedule import NetworkOrder


@dataclass(frozen=True)
class RoundPlan:
    """Counts over the whole run.

    Example (the paper): 15 networks with 73 positions, 30 rounds, 240 trajectories, 1168 prompts, at most 60 updates' steps.
    """

    networks: int
    positions: int
    rounds: int
    trajectories: int
    prompts: int
    max_new_tokens: int
    optimizer_steps: int

    def lines(self) -> list[str]:
        """For the console."""
        return [
            f"networks          {self.networks} with {self.positions} writing positions",
            f"rounds            {self.rounds}, one policy update each, at most {self.optimizer_steps} optimizer steps",
            f"trajectories      {self.trajectories}",
            f"prompts           {self.prompts}, one completion each",
            f"new tokens        at most {self.prompts * self.max_new_tokens:,} ({self.max_new_tokens} per completion)",
        ]


def round_plan(config: GRPOConfig) -> RoundPlan:
    """The plan; raises what a run would raise about its data, its prompt file and its rewards (DataError, ValueError)."""
    _check_files(config)
    data = load_training(config.data)
    lengths = {taught.network.network_id: taught.length for taught in data}
    order = NetworkOrder(tuple(lengths), config.rollout.networks_per_round, config.seed)
    rounds = [order.networks(index) for index in range(config.trainer.steps)]
    size = config.rollout.group_size
    return RoundPlan(
        networks=len(data),
        positions=sum(lengths.values()),
        rounds=len(rounds),
        trajectories=size * sum(map(len, rounds)),
        prompts=size * sum(lengths[name] for names in rounds for name in names),
        max_new_tokens=config.rollout.max_new_tokens,
        optimizer_steps=len(rounds) * config.trainer.epochs,
    )


def plan_lines(config: GRPOConfig) -> list[str]:
    """What `--dry-run` prints: the plan, or, before the data exist, as much of it as is known and what makes the rest.

    Raises like `round_plan`, and PromptDoesNotFit where a position can't be read.
    """
    missing = missing_data(config.data)
    asked = [line for line in (asking_line(config),) if line]
    if not missing:
        resources = resource_lines(config, config.trainer.steps)
        return [*round_plan(config).lines(), *asked, *resources, *missing_model(config.model), fit_line(config)]
    _check_files(config)
    trainer, rollout = config.trainer, config.rollout
    trajectories = trainer.steps * rollout.networks_per_round * rollout.group_size
    return [
        f"rounds            {trainer.steps}, one policy update each, at most {trainer.steps * trainer.epochs} optimizer steps",
        f"trajectories      {trajectories}",
        *asked,
        *resource_lines(config, trainer.steps),
        *missing,
        *missing_model(config.model),
    ]


def _check_files(config: GRPOConfig) -> None:
    reward_settings(config.reward)
    if config.reward.qa.enabled:
        require_models(config.reward.qa, "reward.qa")
    if config.data.prompt:
        PromptTemplate.load(resolve(config.data.prompt))


def reward_settings(settings: RewardSection) -> tuple[RewardWeights, tuple[WeightedTerm, ...]]:
    """The paper's weights as changed, and the terms beside them; ConfigError or TermError for a name that does not exist."""
    try:
        weights = RewardWeights(**settings.weights)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"reward.weights: {str(error).removeprefix('RewardWeights.__init__() ')}") from None
    return weights, weighted_terms(settings.terms, settings.modules)
