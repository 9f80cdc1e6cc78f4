"""A round's groups, collected by all ranks together: sampled, scored, asked about, and known to every rank in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rewards import RewardWeights, Scorer
from rewards.qa_gain import QAFailure, QAGain, QAGroup
from rewards.terms import WeightedTerm
from rollout.engine import EngineDied, SamplingParams
from rollout.sampler import Progress, sample_groups
from rollout.trajectory import Trajectory
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import GRPOConfig
from writer_rl.grpo.groups import Group, ScoredTrajectory, assemble, final_states, score_trajectories, share_of_rank
from writer_rl.grpo.questions import Questions
from writer_rl.train.data import TaughtNetwork
from writer_rl.train.distributed import World
from writer_rl.train.stop import StopRequested, StopSignals

ENGINE_LIVES = 3
"""An engine that dies as often in one round ends the run."""


class GroupCollector:
    """Makes the groups of a round with the current policy.

    data: the training networks by id. engine: this rank's. questions: None for no terminal gain. resync: gives restarted
    engines the policy's weights; collective. phase: told what is going on.

    Example: ``groups = collector.collect(("net_1", "net_2"), visit=7, seconds=seconds)``
    """

    def __init__(
        self,
        config: GRPOConfig,
        world: World,
        data: Mapping[str, TaughtNetwork],
        engine: Any,
        prompt: WriterPrompt,
        questions: Questions | None,
        weights: RewardWeights,
        terms: Sequence[WeightedTerm],
        stop: StopSignals,
        resync: Callable[[], None],
        phase: Callable[[str], None],
    ) -> None:
        self._config, self._world, self._data = config, world, data
        self._engine, self._prompt, self._questions = engine, prompt, questions
        self._weights, self._terms = weights, terms
        self._stop, self._resync, self._phase = stop, resync, phase

    def collect(self, names: Sequence[str], visit: int, seconds: dict[str, float]) -> list[Group]:
        """The groups of these networks, equal on every rank. `seconds` gets the time of each phase. Collective.

        Raises StopRequested on every rank if a signal reached any, and QAFailure on every rank if any could not judge.
        """
        with timed(seconds, "rollout"):
            local = self._sample(names, visit)
        with timed(seconds, "reward"):
            scorer = Scorer(self._weights, self._config.reward.tokenizer, self._terms)
            mine = score_trajectories(local, self._data, scorer)
            scored = [trajectory for part in self._world.gather(mine) for trajectory in part]
        with timed(seconds, "qa"):
            gains = self._ask(names, scored)
        lengths = {name: self._data[name].length for name in names}
        return assemble(scored, lengths, self._config.rollout.group_size, gains, self._weights)

    def _sample(self, names: Sequence[str], visit: int) -> dict[str, list[Trajectory]]:
        """This rank's trajectories; every rank leaves together, stopped or not."""
        local: dict[str, list[Trajectory]] | None = None
        for _ in range(ENGINE_LIVES):
            died = False
            try:
                if local is None and self._stop.received is None:
                    local = self._write(names, visit)
            except StopRequested:
                pass  # raised again below, on every rank
            except EngineDied as error:
                print(f"rank {self._world.rank}: {error}; it is restarted and the round goes on", flush=True)
                self._engine.restart()
                died = True
            self._stop.check_all(self._world)
            if not self._world.any(died):
                return local
            self._resync()
        raise EngineDied(f"the rollout engine died {ENGINE_LIVES} times in one round")

    def _write(self, names: Sequence[str], visit: int) -> dict[str, list[Trajectory]]:
        rollout, data = self._config.rollout, self._config.data
        share = share_of_rank(names, rollout.group_size, self._world.rank, self._world.size)
        return sample_groups(
            [self._data[name].network for name in share],
            self._engine,
            self._prompt,
            rollout.group_size,
            SamplingParams(rollout.temperature, rollout.top_p, rollout.max_new_tokens),
            self._config.seed,
            visit=visit,
            window=data.window,
            strict=data.strict,
            members=share,
            on_position=self._on_position,
        )

    def _on_position(self, done: Progress) -> None:
        self._phase(f"writing position {done.position + 1}/{done.positions}")
        self._stop.check()

    def _ask(self, names: Sequence[str], scored: Sequence[ScoredTrajectory]) -> dict[str, QAGain]:
        """The terminal gains; networks are shared out over the ranks, each asked about as a whole group."""
        if self._questions is None:
            return {}
        self._phase("questions")
        groups = []
        for name in names[self._world.rank :: self._world.size]:
            network = self._data[name].network
            mine = sorted((t for t in scored if t.network_id == name), key=lambda t: t.index)
            states = final_states(mine, network, self._config.data.window, self._config.data.strict)
            groups.append(QAGroup(name, network.questions, states))
        try:
            answer: list[QAGain] | QAFailure = self._questions(groups)
        except QAFailure as failure:
            answer = failure
        parts = self._world.gather(answer)
        for part in parts:
            if isinstance(part, QAFailure):
                raise part
        return {gain.network_id: gain for part in parts for gain in part}


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the wall time of the block to ``seconds[phase]``."""
    started = time.perf_counter()
    yield
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - started
