"""Supervised fine-tuning of the Writer on teacher trajectories, loss on completion tokens only.

The same code trains the tiny Writer from its structured initialisation, through a curriculum, and fine-tunes a pretrained model
on a few networks. A step is in step.py, what is shown in demonstrations.py and stages.py, the order of the stages in
curriculum.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rollout.engine import Engine
from writer_rl.config import ConfigError, CurriculumStage, SFTConfig, resolve
from writer_rl.evaluation.validation import open_validation
from writer_rl.run.base import TrainingRun, carry_out
from writer_rl.sft.best_samples import best_samples
from writer_rl.sft.curriculum import Curriculum
from writer_rl.sft.demonstrations import Demonstration, Stream, network_demonstrations
from writer_rl.sft.stages import needs_networks, planned_stages, stage_pool
from writer_rl.sft.state import SFTState
from writer_rl.sft.step import StepFigures, sft_step
from writer_rl.train.checkpoint import save_hf, whole_weights
from writer_rl.train.data import load_training
from writer_rl.train.distributed import World
from writer_rl.train.packing import micro_batch_tokens, packing
from writer_rl.train.rng import as_before_unless_done
from writer_rl.train.schedule import lr_factor
from writer_rl.train.stop import StopSignals
from writer_rl.train.tree_check import checked_packing
from writer_rl.train.writer import LoadedWriter, build_backend, load_writer

FINAL = "final"
"""The trained Writer's folder in the run directory, as `from_pretrained` reads it."""


def train(config: SFTConfig) -> int:
    """Run or resume SFT as configured; see `writer_rl.run.base.carry_out`."""
    return carry_out(SFTRun, config)


class SFTRun(TrainingRun[SFTConfig, SFTState]):
    """One run: its steps, and what is said and kept of them."""

    unit = "step"

    def __init__(self, config: SFTConfig, world: World, stop: StopSignals) -> None:
        super().__init__(config, world, stop)
        self.writer = load_writer(config)
        self.tokenizer = self.writer.tokenizer
        self.samples = _network_samples(config, self.writer)
        stages = planned_stages(config, len(self.samples))
        self.backend = build_backend(self.writer.policy, config, world)
        self.trainer, packing_note = checked_packing(config.trainer, self.backend)
        self.evaluation = open_validation(config, self.writer.prompt, world)
        self.engine = self._engine() if self.evaluation else None
        self.restore(SFTState())
        self.curriculum = Curriculum(stages, self.state.progress)
        self.planned = self.state.round + self.curriculum.remaining()
        self.track(self.planned)
        self.window: list[StepFigures] = []
        self.window_started = time.perf_counter()
        if packing_note:
            self.tracker.say(packing_note)
        if self.resumed_from is not None:
            self.tracker.say(f"going on after step {self.state.round} from {self.resumed_from}")

    def _engine(self) -> Engine:
        """What samples the validation networks: the module that is trained."""
        from rollout.hf.engine import HFEngine

        if self.backend.stage == 3:
            raise ConfigError("evaluation.every: under ZeRO-3 SFT can't sample its own shards; set it to 0")
        return HFEngine(self.writer.policy.model, self.tokenizer, max_batch_tokens=self.config.rollout.max_batch_tokens)

    def rounds(self) -> None:
        """All stages that are left, each to its end."""
        while (stage := self.curriculum.stage) is not None:
            number = self.curriculum.progress.stage
            pool = stage_pool(stage, number, self.config, self.writer, self.samples)
            stream = Stream(pool, self.curriculum.progress.place)
            self.tracker.phase(stage.name)
            while self.curriculum.progress.stage == number:
                self._step(stage, number, stream)
                self.stop.check_all(self.world)

    def _step(self, stage: CurriculumStage, number: int, stream: Stream) -> None:
        trainer, state = self.config.trainer, self.state
        factor = lr_factor(trainer, state.round, self.planned) * self.curriculum.lr_factor()
        budget = micro_batch_tokens(trainer, self.backend.device)
        with as_before_unless_done():
            figures = sft_step(
                self.backend,
                stream.next(),
                budget,
                factor,
                packing(self.trainer.packing),
                lambda: self.stop.check_all(self.world),
            )
        state.count(figures.taken)
        self.window.append(figures)
        self.curriculum.progress.place = stream.place
        ended = self.curriculum.advance(figures.accuracy)
        state.progress = self.curriculum.progress
        if ended:
            # A stage that ended early leaves fewer steps than were planned.
            self.planned = state.round + self.curriculum.remaining()
        last = self.curriculum.stage is None
        evaluated: dict[str, float | None] = {}
        is_best = False
        if self.engine is not None:
            evaluated, is_best = self.evaluate(self.engine, due=state.round % self.config.evaluation.every == 0 or last)
        if ended or len(self.window) == trainer.log_every or evaluated.get("evaluation/phi") is not None:
            self._record(stage, number, evaluated, trainer.lr * factor)
        self.save_if_due(trainer.checkpoint_every, is_best)
        self.require_progress(
            ": each had a loss or gradient that is not finite; lower trainer.lr or trainer.max_grad_norm, or begin again from "
            "sound weights"
        )

    def _record(self, stage: CurriculumStage, number: int, evaluated: Mapping[str, float | None], lr: float) -> None:
        """The steps since the last record: metrics.jsonl, W&B, console."""
        steps, self.window = self.window, []
        seconds = time.perf_counter() - self.window_started
        self.window_started = time.perf_counter()
        if not self.world.is_main:
            return
        count = sum(s.completion_tokens for s in steps)
        tokens = sum(s.tokens for s in steps)
        self.log(
            {
                "round": self.state.round,
                "sft/stage": number,
                "sft/loss": sum(s.loss * s.completion_tokens for s in steps) / count,
                "sft/accuracy": sum(s.accuracy * s.completion_tokens for s in steps) / count,
                "sft/completion_tokens": count,
                "sft/tokens": tokens,
                "policy/lr": lr,
                "policy/grad_norm": steps[-1].grad_norm,
                "skips/nonfinite": self.state.skipped,
                "skips/consecutive": self.state.consecutive_skips,
                **evaluated,
                "time/steps": seconds,
                "perf/update_tokens_per_s": tokens / seconds,
            },
            lambda record: sft_line(record, stage.name, self.planned),
            len(steps),
        )

    def finish(self) -> None:
        """The trained Writer as a folder of its own."""
        weights = whole_weights(self.backend)
        if weights is not None:
            folder = self.directory.path / FINAL
            save_hf(self.backend.policy, weights, self.tokenizer, folder)
            self.tracker.say(f"the trained Writer: {folder}")


def _network_samples(config: SFTConfig, writer: LoadedWriter) -> list[Demonstration]:
    """The demonstrations of data.train, or of `trainer.best_of`, where a stage (or the lack of a curriculum) asks for them."""
    if not needs_networks(config):
        return []
    if config.trainer.best_of:
        return best_samples(resolve(config.trainer.best_of))
    limit, window = config.rollout.max_new_tokens, config.data.window
    return network_demonstrations(load_training(config.data), writer.prompt, limit, window)


def sft_line(record: Mapping[str, Any], stage: str, steps: int) -> str:
    """One readable line.

    Example: "step 120/2400  copy  loss 0.412  accuracy 91.3%  lr 5.0e-03  |g| 0.71  6,120 tokens/s"
    """
    parts = [
        f"step {record['round']}/{steps}",
        stage,
        f"loss {record['sft/loss']:.3f}" if record["sft/loss"] is not None else "loss -",
        f"accuracy {record['sft/accuracy']:.1%}",
        f"lr {record['policy/lr']:.1e}",
        f"|g| {record['policy/grad_norm']:.2f}" if record["policy/grad_norm"] is not None else "|g| -",
        f"{record['perf/update_tokens_per_s']:,.0f} tokens/s",
    ]
    if record.get("evaluation/phi") is not None:
        parts.append("  ".join(f"{n} {_three(record, n)}" for n in ("phi", "question_score", "update_accuracy")))
    return "  ".join(parts)


def _three(record: Mapping[str, Any], name: str) -> str:
    value = record[f"evaluation/{name}"]
    return "-" if value is None else f"{value:.3f}"
