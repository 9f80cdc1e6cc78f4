"""The frame of a training run: its directory, checkpoints, tracker and evaluation, and how it resumes, stops and ends.

GRPO and SFT fill it in (writer_rl/grpo/run.py, writer_rl/sft/run.py). Every rank runs the same code; what a decision depends on
is gathered first, so that all ranks take the same branch.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from rollout.engine import Engine
from rollout.tokenizer import Tokenizer
from writer_rl.config import TrainingConfig, resolve
from writer_rl.run.directory import RunDirectory
from writer_rl.run.doctor import cheap_checks, require
from writer_rl.run.metrics import Metrics, checked_metrics
from writer_rl.run.run_plan import disk_needed
from writer_rl.run.state import RunState
from writer_rl.run.tracking import Tracker
from writer_rl.train.backend import Backend
from writer_rl.train.checkpoint import Checkpoints
from writer_rl.train.distributed import World, connect, disconnect
from writer_rl.train.keeper import watch
from writer_rl.train.stop import StopRequested, StopSignals, TrainingStalled

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)
StateT = TypeVar("StateT", bound=RunState)


class Evaluation(Protocol):
    """Measures the policy that an engine samples; collective. `writer_rl.evaluation.validation.Validation` is one."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The figures that it gives, whether or not they could be measured."""
        ...

    def __call__(self, engine: Engine) -> dict[str, float | None]: ...


class TrainingRun(ABC, Generic[ConfigT, StateT]):
    """What every run holds, and what it does beside its rounds.

    A subclass builds what it trains, then calls `begin`; it implements `rounds`, and `finish`, `saved` and `release` where it
    has something to do there.
    """

    unit: ClassVar[str] = "round"
    """What a round is called."""

    backend: Backend
    tokenizer: Tokenizer
    state: StateT
    evaluation: Evaluation | None = None

    def __init__(self, config: ConfigT, world: World, stop: StopSignals) -> None:
        """Open the run's directory; `resumed_from` is the checkpoint to go on from, None for a fresh start.

        Raises RunError or CheckpointError, on every rank, where `trainer.resume` can't be followed.
        """
        self.config, self.world, self.stop = config, world, stop
        self.directory = RunDirectory.open(config)
        self.resumed_from: Path | None = world.decided_by_main(lambda: self.directory.claim(config))
        self.checkpoints = Checkpoints(
            self.directory.checkpoints, world, config.trainer.keep_checkpoints, config.trainer.keep_weights
        )
        self.checkpoint_seconds = 0.0
        self._saved_round: int | None = None
        self._keys: set[str] | None = None

    @abstractmethod
    def rounds(self) -> None:
        """Do all rounds that are left. Raises StopRequested on every rank after a signal."""

    def finish(self) -> None:
        """What is left to do after the last round. Collective."""

    def saved(self) -> None:
        """The state is safe in a checkpoint."""

    def release(self) -> None:
        """Free engines and the like, at the end of every run, failed ones too."""

    def restore(self, fresh: StateT) -> None:
        """`state`, parameters and optimizer: those of the checkpoint, else `fresh` and as they were built. Collective.

        What was written after that checkpoint is forgotten.
        """
        self.state = fresh
        if self.resumed_from is not None:
            self.state = fresh.from_dict(self.checkpoints.restore(self.resumed_from, self.backend))
            self._saved_round = self.state.round
        if self.world.is_main:
            self.directory.roll_back(self.state.round)
            self.checkpoints.forget_after(self.state.round)
            self.directory.write_config(self.config)
            self.directory.write_environment()

    def track(self, rounds: int) -> None:
        """Open console and W&B, for so many rounds in all. Collective."""
        state = self.state
        self.tracker = Tracker(self.config, self.directory.path, rounds, state.round, self.world.is_main, state.wandb_id)
        state.wandb_id = self.world.broadcast(self.tracker.wandb_id)

    def go(self) -> int:
        """All that is left; returns the exit code: 0, or 130 / 143 after a signal, the state saved."""
        try:
            self.rounds()
            self.save()
        except StopRequested as request:
            self.save()
            self.tracker.say(f"{request}: saved after {self.unit} {self.state.round}; the same command goes on from there")
            return request.exit_code
        self.finish()
        return 0

    def close(self, exit_code: int) -> None:
        """Finish W&B, release engines and directory."""
        self.tracker.close(exit_code)
        self.release()
        self.directory.unlock()

    def evaluate(self, engine: Engine, due: bool) -> tuple[dict[str, float | None], bool]:
        """The figures of the evaluation if one is due (None each otherwise), and whether it is the best so far. Collective."""
        if self.evaluation is None:
            return {}, False
        if not due:
            return dict.fromkeys(self.evaluation.keys), False
        self.tracker.phase("evaluation")
        found = self.evaluation(engine)
        return found, self.state.evaluated(found[self.config.evaluation.metric])

    def log(self, figures: Metrics, line: Callable[[Metrics], str], rounds: int = 1) -> None:
        """To metrics.jsonl, W&B and the console (`line` makes the console's); called on the main rank.

        Raises RuntimeError where a key came or went since the last call.
        """
        record = checked_metrics(figures, self._keys)
        self._keys = set(record)
        self.directory.append_metrics(record)
        self.tracker.log(record, line(record), rounds)

    def save_if_due(self, every: int, best: bool) -> None:
        """After a round: a checkpoint to go on from `every` so many rounds; a light one where its weights are due or the best."""
        number, weights_every = self.state.round, self.config.trainer.weights_every
        if number % every == 0:
            self.save(best)
        elif best or (weights_every is not None and number % weights_every == 0):
            self.save(best, light=True)

    def save(self, best: bool = False, light: bool = False) -> None:
        """Write a checkpoint to go on from, unless the newest is of this very round; or a light one. Collective."""
        if self._saved_round == self.state.round and not best:
            return
        started = time.perf_counter()
        self.tracker.phase("checkpoint")
        self.checkpoints.save(self.state.round, self.backend, self.tokenizer, self.state.to_dict(), best, light)
        if not light:
            self.saved()
            self._saved_round = self.state.round
        self.checkpoint_seconds = time.perf_counter() - started

    def require_progress(self, reason: str) -> None:
        """TrainingStalled, the state saved, after `trainer.max_consecutive_skips` rounds in a row without an optimizer step."""
        skips = self.state.consecutive_skips
        if skips >= self.config.trainer.max_consecutive_skips:
            self.save()
            raise TrainingStalled(
                f"{self.unit} {self.state.round}: {skips} {self.unit}s in a row without an optimizer step{reason}"
            )


def carry_out(kind: Callable[[ConfigT, World, StopSignals], TrainingRun], config: ConfigT) -> int:
    """Run or resume a run of this kind; returns the exit code (0, or 130 / 143 after a signal, state saved).

    Raises ValueError subclasses for what the user can mend, TrainingStalled and other RuntimeErrors for a run that failed.
    """
    rounds = getattr(config.trainer, "steps", 1)
    require(cheap_checks(resolve(config.output_dir), disk_needed=disk_needed(config, rounds)))
    world = connect(config.trainer.threads)
    with StopSignals() as stop:
        watch(stop)
        run = kind(config, world, stop)
        code = 1
        try:
            code = run.go()
        finally:
            run.close(code)
            disconnect()
    return code
