"""Supervised fine-tuning of the Writer on teacher trajectories, loss on completion tokens only.

The same code trains the tiny Writer from random weights, through a curriculum, and fine-tunes a pretrained model on a few
networks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory_env.corpus import BiasRates
from memory_env.corpus.sets import sft_shape
from memory_env.corpus.shapes import Shape
from memory_env.datafile import DataError
from writer_rl.config import ConfigError, CurriculumStage, SFTConfig, resolve
from writer_rl.evaluation.validation import Validation
from writer_rl.model.lora import add_adapter
from writer_rl.model.policy import load_policy, load_tokenizer
from writer_rl.run.directory import RunDirectory
from writer_rl.run.doctor import cheap_checks, require
from writer_rl.run.metrics import checked
from writer_rl.run.tracking import Tracker
from writer_rl.sft.curriculum import Curriculum, Progress
from writer_rl.sft.demonstrations import CorpusTaste, Demonstration, Stream, copy_pool, corpus_pool, demonstrate, network_pool
from writer_rl.sft.step import StepFigures, sft_step
from writer_rl.train.backend import Backend
from writer_rl.train.checkpoint import Checkpoints, save_hf, whole_weights
from writer_rl.train.data import TaughtNetwork, load_sources, load_training, taught
from writer_rl.train.deepspeed_config import zero_settings
from writer_rl.train.distributed import World, connect, disconnect
from writer_rl.train.engines import build_prompt
from writer_rl.train.optimizers import optimizer_factory
from writer_rl.train.packing import micro_batch_tokens, packing
from writer_rl.train.schedule import lr_factor
from writer_rl.train.stop import StopRequested, StopSignals, TrainingStalled
from writer_rl.train.tree_check import checked_packing

FINAL = "final"
"""The trained Writer's folder in the run directory, as `from_pretrained` reads it."""

def train(config: SFTConfig) -> int:
    """Run or resume SFT as configured; returns the exit code (0, or 130 / 143 after a signal, state saved).

    Raises ValueError subclasses for what the user can mend, RuntimeErrors for a run that failed.
    """
    require(cheap_checks(resolve(config.output_dir)))
    world = connect(config.trainer.threads)
    with StopSignals() as stop:
        run = SFTRun(config, world, stop)
        code = 1
        try:
            code = run.go()
        finally:
            run.close(code)
            disconnect()
    return code


class SFTRun:
    """Everything one run holds, and its steps."""

    def __init__(self, config: SFTConfig, world: World, stop: StopSignals) -> None:
        self.config, self.world, self.stop = config, world, stop
        self.directory = RunDirectory.open(config)
        checkpoint = world.from_main(lambda: self.directory.claim(config))
        self._build()
        self.step, self.skipped, self.consecutive, self.best, progress, wandb_id = 0, 0, 0, None, None, None
        if checkpoint is not None:
            saved = self.checkpoints.restore(checkpoint, self.backend)
            self.step, self.skipped, self.best = saved["round"], saved["skipped"], saved["best"]
            self.consecutive = saved.get("consecutive", 0)
            progress, wandb_id = Progress.from_dict(saved["progress"]), saved["wandb_id"]
        self.curriculum = Curriculum(self.stages, progress)
        self.planned = self.step + self.curriculum.remaining()
        if world.is_main:
            self.directory.roll_back(self.step)
            self.directory.write_config(config)
        self.saved_step = self.step if checkpoint is not None else -1
        self.tracker = Tracker(config, self.directory.path, self.planned, self.step, world.is_main, wandb_id)
        self.wandb_id = world.broadcast(self.tracker.wandb_id)
        self.keys: set[str] | None = None
        self.window: list[StepFigures] = []
        self.window_started = time.perf_counter()
        if self.packing_note:
            self.tracker.say(self.packing_note)
        if checkpoint is not None:
            self.tracker.say(f"going on after step {self.step} from {checkpoint}")

    def _build(self) -> None:
        config, world, trainer = self.config, self.world, self.config.trainer
        policy = add_adapter(load_policy(config.model, config.seed, trainer.logprob_chunk), config.model, config.seed)
        self.vocabulary = policy.head.weight.shape[0]
        self.tokenizer = load_tokenizer(config.model, self.vocabulary)
        context = policy.model.config.max_position_embeddings
        self.prompt = build_prompt(config.data, self.tokenizer, context, config.rollout.max_new_tokens)
        self.samples = self._network_samples()
        self.stages = planned_stages(config, len(self.samples))
        stage, _ = zero_settings(trainer, config.model.dtype)
        factory = optimizer_factory(trainer, stage, world.size)
        self.backend = Backend(policy, trainer, world, factory, dtype=config.model.dtype)
        self.trainer, self.packing_note = checked_packing(trainer, self.backend)
        self.checkpoints = Checkpoints(self.directory.checkpoints, world, trainer.keep_checkpoints)
        self.validation = self._validation()

    def _network_samples(self) -> list[Demonstration]:
        """The demonstrations of data.train, where a stage (or the lack of a curriculum) asks for them."""
        stages = self.config.trainer.curriculum
        if stages and not any(stage.task == "memory" and stage.level is None for stage in stages):
            return []
        return network_samples(load_training(self.config.data), self.prompt, self.config)

    def _validation(self) -> Validation | None:
        settings = self.config.evaluation
        if not settings.every:
            return None
        networks = load_sources(self.config.data.validation)[: settings.max_networks]
        if not networks:
            raise DataError("data.validation: no networks, and evaluation.every asks for them; set it to 0 or name some")
        if settings.metric not in Validation.keys:
            raise ConfigError(f"evaluation.metric: {settings.metric!r} is not measured; there are {', '.join(Validation.keys)}")
        from rollout.hf.engine import HFEngine

        if self.backend.stage == 3:
            raise ConfigError("evaluation.every: under ZeRO-3 SFT can't sample its own shards; set it to 0")
        data, limit = self.config.data, self.config.rollout.max_new_tokens
        self.engine = HFEngine(self.backend.policy.model, self.tokenizer, max_batch_tokens=self.config.rollout.max_batch_tokens)
        found = taught(networks, data)
        return Validation(found, self.prompt, limit, self.world, window=data.window, strict=data.strict)

    def go(self) -> int:
        """All steps that are left; returns the exit code."""
        try:
            while self.curriculum.stage is not None:
                self._stage()
            self._save()
        except StopRequested as request:
            self._save()
            self.tracker.say(f"{request}: saved after step {self.step}; the same command goes on from there")
            return request.exit_code
        self._write_final()
        return 0

    def close(self, exit_code: int) -> None:
        """Finish W&B, release the directory."""
        self.tracker.close(exit_code)
        self.directory.unlock()

    def _stage(self) -> None:
        stage, number = self.curriculum.stage, self.curriculum.progress.stage
        stream = Stream(self._pool(stage, number), self.curriculum.progress.place)
        self.tracker.phase(stage.name)
        while self.curriculum.progress.stage == number:
            self._step(stage, stream)
            self._check_stop()

    def _pool(self, stage: CurriculumStage, number: int) -> Any:
        seed, limit = self.config.seed, self.config.rollout.max_new_tokens
        if stage.task == "copy":
            return copy_pool(self.tokenizer, self.vocabulary, stage.batch, f"{seed}/{number}")
        if stage.level is None:
            return network_pool(self.samples, stage.batch, f"{seed}/{number}")
        taste = CorpusTaste(stage.level, _shape(stage), stage.easier, _bias(stage))
        return corpus_pool(taste, self.prompt, limit, stage.batch, seed, number)

    def _step(self, stage: CurriculumStage, stream: Stream) -> None:
        trainer = self.config.trainer
        factor = lr_factor(trainer, self.step, self.planned) * self.curriculum.lr_factor()
        budget = micro_batch_tokens(trainer, self.backend.device)
        figures = sft_step(self.backend, stream.next(), budget, factor, packing(self.trainer.packing))
        self.step += 1
        self.skipped += not figures.taken
        self.consecutive = 0 if figures.taken else self.consecutive + 1
        self.window.append(figures)
        number = self.curriculum.progress.stage
        self.curriculum.progress.place = stream.place
        ended = self.curriculum.advance(figures.accuracy)
        if ended:
            # A stage that ended early leaves fewer steps than were planned.
            self.planned = self.step + self.curriculum.remaining()
        evaluated, is_best = self._evaluate(ended and self.curriculum.stage is None)
        if ended or len(self.window) == trainer.log_every or evaluated.get("evaluation/phi") is not None:
            self._record(stage, number, evaluated, trainer.lr * factor)
        if is_best or self.step % trainer.checkpoint_every == 0:
            self._save(is_best)
        if self.consecutive >= trainer.max_consecutive_skips:
            raise TrainingStalled(
                f"step {self.step}: {self.consecutive} steps in a row had a loss or gradient that is not finite; "
                "lower trainer.lr or trainer.max_grad_norm, or begin again from sound weights"
            )

    def _evaluate(self, at_end: bool) -> tuple[dict[str, float | None], bool]:
        """The figures of the evaluation if one is due (None each otherwise), and whether it is the best so far."""
        if self.validation is None:
            return {}, False
        settings = self.config.evaluation
        if self.step % settings.every and not at_end:
            return dict.fromkeys(self.validation.keys), False
        self.tracker.phase("evaluation")
        found = self.validation(self.engine)
        value = found[settings.metric]
        is_best = value is not None and (self.best is None or value > self.best)
        self.best = value if is_best else self.best
        return found, is_best

    def _record(self, stage: CurriculumStage, number: int, evaluated: Mapping[str, float | None], lr: float) -> None:
        """The steps since the last record: metrics.jsonl, W&B, console."""
        steps, self.window = self.window, []
        seconds = time.perf_counter() - self.window_started
        self.window_started = time.perf_counter()
        if not self.world.is_main:
            return
        count = sum(s.completion_tokens for s in steps)
        tokens = sum(s.tokens for s in steps)
        record = checked(
            {
                "round": self.step,
                "sft/stage": number,
                "sft/loss": sum(s.loss * s.completion_tokens for s in steps) / count,
                "sft/accuracy": sum(s.accuracy * s.completion_tokens for s in steps) / count,
                "sft/completion_tokens": count,
                "sft/tokens": tokens,
                "policy/lr": lr,
                "policy/grad_norm": steps[-1].grad_norm,
                "skips/nonfinite": self.skipped,
                "skips/consecutive": self.consecutive,
                **evaluated,
                "time/steps": seconds,
                "perf/update_tokens_per_s": tokens / seconds,
            },
            self.keys,
        )
        self.keys = set(record)
        self.directory.append_metrics(record)
        self.tracker.log(record, console_line(record, stage.name, self.planned), len(steps))

    def _save(self, best: bool = False) -> None:
        if self.saved_step == self.step and not best:
            return
        self.tracker.phase("checkpoint")
        state = {
            "round": self.step,
            "skipped": self.skipped,
            "consecutive": self.consecutive,
            "best": self.best,
            "progress": self.curriculum.progress.to_dict(),
            "wandb_id": self.wandb_id,
        }
        self.checkpoints.save(self.step, self.backend, self.tokenizer, state, best)
        self.saved_step = self.step

    def _write_final(self) -> None:
        weights = whole_weights(self.backend)
        if self.world.is_main:
            folder = self.directory.path / FINAL
            save_hf(self.backend.policy, weights, self.tokenizer, folder)
            self.tracker.say(f"the trained Writer: {folder}")

    def _check_stop(self) -> None:
        """Raise StopRequested on every rank if any rank got a signal."""
        signum = int(self.world.max([self.stop.received or 0])[0])
        if signum:
            raise StopRequested(signum)


def network_samples(networks: Sequence[TaughtNetwork], prompt: Any, config: SFTConfig) -> list[Demonstration]:
    """One demonstration per position of every network."""
    window, limit = config.data.window, config.rollout.max_new_tokens
    return [
        sample
        for known in networks
        for sample in demonstrate(known.network, known.teacher.actions, known.teacher.states, prompt, limit, window)
    ]


def planned_stages(config: SFTConfig, samples: int) -> list[CurriculumStage]:
    """The curriculum with every stage's steps known; without one, `epochs` passes over `samples` demonstrations."""
    trainer = config.trainer
    stages = trainer.curriculum or (CurriculumStage(name="networks", batch=trainer.accumulation),)
    planned = []
    for stage in stages:
        _bias(stage)
        _shape(stage)
        steps = stage.max_steps or trainer.epochs * math.ceil(samples / stage.batch)
        planned.append(stage.model_copy(update={"max_steps": steps}))
    return planned


def console_line(record: Mapping[str, Any], stage: str, steps: int) -> str:
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


def _bias(stage: CurriculumStage) -> BiasRates | None:
    if stage.teacher == "complete":
        return None
    try:
        return BiasRates(**stage.bias)
    except TypeError as error:
        raise ConfigError(f"trainer.curriculum: stage {stage.name!r}: bias: {str(error).split('() ')[-1]}") from None


def _shape(stage: CurriculumStage) -> Shape | None:
    if stage.level is None:
        return None
    try:
        return replace(sft_shape(stage.level), **stage.shape)
    except TypeError as error:
        raise ConfigError(f"trainer.curriculum: stage {stage.name!r}: shape: {str(error).split('() ')[-1]}") from None
