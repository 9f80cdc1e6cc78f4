"""A round's trajectories: each rank samples its share, and an engine that dies takes no round with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rollout.engine import Engine, EngineDied, SamplingParams, interrupted_by
from rollout.sampler import WrittenPosition, sample_groups
from rollout.trajectory import Trajectory
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import GRPOConfig
from writer_rl.grpo.groups import share_of_rank
from writer_rl.train.data import TaughtNetwork
from writer_rl.train.distributed import World
from writer_rl.train.stop import StopRequested, StopSignals

ENGINE_LIVES = 3
"""An engine that dies as often in one round ends the run."""


@dataclass(frozen=True)
class GroupSampler:
    """Samples the groups of a round with the current policy.

    data: the training networks by id. engine: this rank's. resync: gives restarted engines the policy's weights; collective.
    phase: told what is going on.

    Example: ``sampler.sample(("net_1", "net_2"), visit=7)["net_1"][3].steps[0].text``
    """

    config: GRPOConfig
    world: World
    stop: StopSignals
    data: Mapping[str, TaughtNetwork]
    engine: Engine
    prompt: WriterPrompt
    resync: Callable[[], None]
    phase: Callable[[str], None]

    def sample(self, names: Sequence[str], visit: int) -> dict[str, list[Trajectory]]:
        """This rank's share of the networks' trajectories. Collective: every rank leaves together.

        visit: the round, part of every random stream. Raises StopRequested on every rank if a signal reached any, EngineDied
        after ENGINE_LIVES deaths.
        """
        made: dict[str, list[Trajectory]] | None = None
        for _ in range(ENGINE_LIVES):
            died = False
            try:
                if made is None and self.stop.received is None:
                    with interrupted_by(self.stop.check, self.engine):
                        made = self._write(names, visit)
            except StopRequested:
                pass  # raised again below, on every rank
            except EngineDied as error:
                print(f"rank {self.world.rank}: {error}; it is restarted and the round goes on", flush=True)
                self.engine.restart()
                died = True
            self.stop.check_all(self.world)
            if not self.world.any(died) and made is not None:
                return made
            self.resync()
        raise EngineDied(f"the rollout engine died {ENGINE_LIVES} times in one round")

    def _write(self, names: Sequence[str], visit: int) -> dict[str, list[Trajectory]]:
        rollout, data, shared_past = self.config.rollout, self.config.data, self.config.trainer.credit == "local"
        share = share_of_rank(names, rollout.group_size, self.world.rank, self.world.size, whole=shared_past)
        return sample_groups(
            [self.data[name].network for name in share],
            self.engine,
            self.prompt,
            rollout.group_size,
            SamplingParams(rollout.temperature, rollout.top_p, rollout.max_new_tokens),
            self.config.seed,
            visit=visit,
            window=data.window,
            strict=data.strict,
            members=share,
            shared_past=shared_past,
            on_position=self._on_position,
        )

    def _on_position(self, done: WrittenPosition) -> None:
        self.phase(f"writing position {done.position + 1}/{done.positions}")
        self.stop.check()
