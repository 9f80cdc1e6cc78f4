"""Position-aligned GRPO: rounds of rollouts, rewards, one policy update, a proven weight sync, and a checkpoint.

Every rank runs this same code. What a decision depends on is gathered first, so all ranks take the same branch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from memory_env import MemoryState
from memory_env.datafile import DataError
from rollout.journal import JournaledEngine
from rollout.sync import Probe
from writer_rl.config import ConfigError, GRPOConfig, resolve
from writer_rl.evaluation.validation import Validation
from writer_rl.grpo import metrics as measure
from writer_rl.grpo.collector import GroupCollector, timed
from writer_rl.grpo.groups import Group
from writer_rl.grpo.plan import reward_settings
from writer_rl.grpo.questions import Questions
from writer_rl.grpo.records import question_records, trajectory_records
from writer_rl.grpo.samples import balanced_shares
from writer_rl.grpo.state import RunState
from writer_rl.grpo.update import Reference, UpdateReport, update_policy
from writer_rl.model.lora import AdapterOff, add_adapter
from writer_rl.model.policy import Policy, load_policy, load_reference, load_tokenizer, model_source
from writer_rl.run.directory import RunDirectory, deciding_settings
from writer_rl.run.doctor import cheap_checks, require
from writer_rl.run.metrics import checked
from writer_rl.run.plots import draw_reward_curves
from writer_rl.run.tracking import Tracker, console_line
from writer_rl.train.backend import Backend
from writer_rl.train.checkpoint import Checkpoints
from writer_rl.train.data import load_sources, load_training, taught, unseen_text_warning
from writer_rl.train.deepspeed_config import zero_settings
from writer_rl.train.distributed import World, connect, disconnect
from writer_rl.train.engines import build_engine, build_prompt, spare_model, sync
from writer_rl.train.optimizers import optimizer_factory
from writer_rl.train.packing import packing
from writer_rl.train.schedule import NetworkOrder, lr_factor
from writer_rl.train.stop import StopRequested, StopSignals, TrainingStalled
from writer_rl.train.tree_check import checked_packing


def train(config: GRPOConfig) -> int:
    """Run or resume GRPO as configured; returns the exit code (0, or 130 / 143 after a signal, state saved).

    Raises ValueError subclasses for what the user can mend, TrainingStalled and other RuntimeErrors for a run that failed.
    """
    require(cheap_checks(resolve(config.output_dir)))
    world = connect(config.trainer.threads)
    with StopSignals() as stop:
        run = GRPORun(config, world, stop)
        code = 1
        try:
            code = run.go()
        finally:
            run.close(code)
            disconnect()
    return code


class GRPORun:
    """Everything one run holds, and its rounds."""

    def __init__(self, config: GRPOConfig, world: World, stop: StopSignals) -> None:
        self.config, self.world, self.stop = config, world, stop
        weights, terms = reward_settings(config.reward)
        self.data = {t.network.network_id: t for t in load_training(config.data)}
        self.order = NetworkOrder(tuple(self.data), config.rollout.networks_per_round, config.seed)
        self.directory = RunDirectory.open(config)
        checkpoint = world.from_main(lambda: self.directory.claim(config))
        self._build()
        self.state = RunState(reference=config.model.reference or config.model.path)
        if checkpoint is not None:
            saved = self.checkpoints.restore(checkpoint, self.backend)
            self.state = RunState(**{key: saved[key] for key in asdict(self.state)})
        self._require_frozen()
        if world.is_main:
            self.directory.roll_back(self.state.round)
            self.checkpoints.forget_after(self.state.round)
            self.directory.write_config(config)
        self.saved_round = self.state.round if checkpoint is not None else -1
        self.tracker = Tracker(
            config, self.directory.path, config.trainer.steps, self.state.round, world.is_main, self.state.wandb_id
        )
        self.state.wandb_id = world.broadcast(self.tracker.wandb_id)
        self.keys: set[str] | None = None
        self.checkpoint_seconds = 0.0
        self.collector = GroupCollector(
            config,
            world,
            self.data,
            self.engine,
            self.prompt,
            self.questions,
            weights,
            terms,
            stop,
            resync=self._sync,
            phase=self.tracker.phase,
        )
        self._introduce(checkpoint)

    def _build(self) -> None:
        config, world, trainer = self.config, self.world, self.config.trainer
        # First, because an endpoint without a model or key shows here, before gigabytes are read.
        cache = "responses.sqlite" if world.is_main else f"responses-{world.rank:05d}.sqlite"
        self.questions = Questions(config.reward.qa, self.directory.path / cache) if config.reward.qa.enabled else None
        if config.model.lora.dropout:
            raise ConfigError("model.lora.dropout: GRPO compares log-probabilities of the same tokens; set it for sft only")
        policy = add_adapter(load_policy(config.model, config.seed, trainer.logprob_chunk), config.model, config.seed)
        vocabulary = policy.head.weight.shape[0]
        self.tokenizer = load_tokenizer(config.model, vocabulary)
        self.reference = self._reference(policy)
        context = policy.model.config.max_position_embeddings
        self.prompt = build_prompt(config.data, self.tokenizer, context, config.rollout.max_new_tokens)
        stage, _ = zero_settings(trainer, config.model.dtype)
        spare = spare_model(policy, config, stage)
        optimizer = optimizer_factory(trainer, stage, world.size)
        self.backend = Backend(policy, trainer, world, optimizer, dtype=config.model.dtype)
        self.trainer, self.packing_note = checked_packing(trainer, self.backend, self.reference)
        self.checkpoints = Checkpoints(self.directory.checkpoints, world, trainer.keep_checkpoints)
        engine = build_engine(config, self.backend, self.tokenizer, model_source(config.model.path), spare)
        journal = self.directory.path / f".rollout-{world.rank:05d}.jsonl"
        self.engine = JournaledEngine(engine, journal, identity=json.dumps(deciding_settings(config)))
        self.probe = Probe.of([self._first_prompt()])
        self.validation = self._validation()

    def _reference(self, policy: Policy) -> Reference:
        """The frozen policy of the KL term: the policy's own base, where an adapter is trained, else a model of its own."""
        model = self.config.model
        if model.lora.rank and model.reference in (None, model.path):
            return AdapterOff(policy)
        reference = load_reference(model, self.config.seed, self.config.trainer.logprob_chunk).to(self.world.device)
        if reference.head.weight.shape[0] != policy.head.weight.shape[0]:
            raise ConfigError(f"model.reference: {model.reference} has another vocabulary than {model.path}")
        return reference

    def _require_frozen(self) -> None:
        """The judge that began a run ends it: ConfigError where its questions, budgets, prompts or judge have changed."""
        if self.questions is None:
            return
        now = self.questions.frozen(taught.network for taught in self.data.values())
        for part, digest in self.state.frozen.items():
            if now[part] != digest:
                raise ConfigError(
                    f"{self.directory.path}: the run was begun with other {part} of its terminal questions (reward.qa, data or "
                    "program version); begin a new run"
                )
        self.state.frozen = now

    def _introduce(self, checkpoint: Path | None) -> None:
        """What is about to happen, in a line or two."""
        sizes = [(getattr(p, "ds_numel", p.numel()), p.requires_grad) for p in self.backend.policy.parameters()]
        count = f"{sum(size for size, _ in sizes):,} parameters"
        if self.config.model.lora.rank:
            count += f" ({sum(size for size, trained in sizes if trained):,} of an adapter are trained)"
        steps, done = self.config.trainer.steps, self.state.round
        self.tracker.say(f"{count}, {len(self.data)} networks, {steps} rounds, in {self.directory.path}")
        if checkpoint is not None:
            self.tracker.say(f"going on after round {done} from {checkpoint}" if done < steps else f"all {done} rounds are done")
        if self.packing_note:
            self.tracker.say(self.packing_note)
        warning = unseen_text_warning(self.data.values(), self.config.reward.tokenizer)
        if warning:
            self.tracker.say(warning)

    def _first_prompt(self) -> tuple[int, ...]:
        first = next(iter(self.data.values())).network
        segment = first.segments(self.config.data.window)[0]
        return self.prompt.encode(MemoryState.empty(), segment, first.network_id).token_ids

    def _validation(self) -> Validation | None:
        settings = self.config.evaluation
        if not settings.every:
            return None
        networks = load_sources(self.config.data.validation)[: settings.max_networks]
        if not networks:
            raise DataError("data.validation: no networks, and evaluation.every asks for them; set it to 0 or name some")
        if settings.metric not in Validation.keys:
            raise ConfigError(f"evaluation.metric: {settings.metric!r} is not measured; there are {', '.join(Validation.keys)}")
        limit = self.config.rollout.max_new_tokens
        options = {"window": self.config.data.window, "strict": self.config.data.strict}
        return Validation(taught(networks, self.config.data), self.prompt, limit, self.world, **options)

    def go(self) -> int:
        """All rounds that are left; returns the exit code."""
        steps = self.config.trainer.steps
        self._sync()  # also after a resume: nothing else says which weights the engine has
        try:
            while self.state.round < steps:
                self._round()
                self.stop.check_all(self.world)
                if self._should_end():
                    break
            if self.saved_round != self.state.round:
                self._save()
        except StopRequested as request:
            if self.saved_round != self.state.round:
                self._save()
            self.tracker.say(f"{request}: saved after round {self.state.round}; the same command goes on from there")
            return request.exit_code
        if self.world.is_main and self.config.tracking.plot_every:
            self._plot()
        return 0

    def close(self, exit_code: int) -> None:
        """Finish W&B, release engine and directory."""
        self.tracker.close(exit_code)
        self.engine.close()
        self.directory.unlock()

    def _round(self) -> None:
        config, index = self.config, self.state.round
        seconds: dict[str, float] = {}
        with timed(seconds, "round"):
            groups = self.collector.collect(self.order.networks(index), index, seconds)
            samples = [s for group in groups for s in group.samples(config.trainer.min_abs_advantage)]
            self.tracker.phase("update")
            self.engine.sleep()
            with timed(seconds, "update"):
                share = balanced_shares(samples, self.world.size, packing(self.trainer.packing))[self.world.rank]
                factor = lr_factor(config.trainer, index, config.trainer.steps)
                update = update_policy(self.backend, self.reference, share, self.trainer, factor)
            self.engine.wake()
            self.state.count(update)
            with timed(seconds, "sync"):
                if update.steps:
                    self._sync()
            with timed(seconds, "evaluation"):
                evaluated, is_best = self._evaluate()
        seconds["checkpoint"] = self.checkpoint_seconds
        self._record(groups, update, evaluated, seconds, config.trainer.lr * factor)
        if is_best or self.state.round % config.trainer.checkpoint_every == 0:
            self._save(is_best)

    def _sync(self) -> None:
        bound, dtype = self.config.rollout.sync_bound, self.config.model.dtype
        self.last_sync = sync(self.engine.engine, self.backend, self.state.policy_version, self.probe, bound, dtype)

    def _evaluate(self) -> tuple[dict[str, float | None], bool]:
        """The figures of the evaluation if one is due (None each otherwise), and whether it is the best so far."""
        if self.validation is None:
            return {}, False
        state, settings = self.state, self.config.evaluation
        if state.round % settings.every:
            return dict.fromkeys(self.validation.keys), False
        self.tracker.phase("evaluation")
        found = self.validation(self.engine.engine)
        return found, state.evaluated(found[settings.metric])

    def _record(
        self, groups: list[Group], update: UpdateReport, evaluated: Mapping[str, Any], seconds: Mapping[str, float], lr: float
    ) -> None:
        """metrics.jsonl, trajectories, W&B and the console; written before the checkpoint that makes the round final."""
        parts = self.world.gather((update.sampler_logprobs, update.trainer_logprobs, self.engine.metrics()))
        if not self.world.is_main:
            return
        state, config = self.state, self.config
        joined = [[value for part in parts for value in part[side]] for side in (0, 1)]
        update = replace(update, sampler_logprobs=joined[0], trainer_logprobs=joined[1])
        steps = [scored.step for group in groups for trajectory in group.trajectories for scored in trajectory.steps]
        peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
        positions = max(network.length for network in self.data.values())
        record = checked(
            {
                "round": state.round,
                **measure.reward_metrics(groups, positions),
                **measure.rollout_metrics(groups, update),
                **measure.engine_metrics(self.last_sync, [part[2] for part in parts]),
                **measure.policy_metrics(update, config.trainer.epochs, lr, state.policy_version, state.optimizer_steps),
                **measure.qa_metrics(groups),
                **measure.skip_metrics(state.skips, state.consecutive_skips),
                **evaluated,
                **measure.time_metrics(
                    seconds, sum(len(s.completion_ids) for s in steps), update.tokens * len(update.epochs), peak
                ),
            },
            self.keys,
        )
        self.keys = set(record)
        seed, visit = config.seed, state.round - 1
        self.directory.write_trajectories(state.round, [r for g in groups for r in trajectory_records(g, seed, visit)])
        self.directory.write_questions(state.round, [r for g in groups for r in question_records(g)])
        self.directory.append_metrics(record)
        self.tracker.log(record, console_line(record, config.trainer.steps, update.skipped))
        if config.tracking.plot_every and state.round % config.tracking.plot_every == 0:
            self._plot()

    def _plot(self) -> None:
        draw_reward_curves(self.directory.read_metrics(), self.directory.path / "reward_curves.png")

    def _save(self, best: bool = False) -> None:
        started = time.perf_counter()
        self.tracker.phase("checkpoint")
        self.checkpoints.save(self.state.round, self.backend, self.tokenizer, asdict(self.state), best)
        self.engine.forget()
        self.saved_round = self.state.round
        self.checkpoint_seconds = time.perf_counter() - started

    def _should_end(self) -> bool:
        state, trainer, patience = self.state, self.config.trainer, self.config.evaluation.patience
        if state.consecutive_skips >= trainer.max_consecutive_skips:
            if self.saved_round != state.round:
                self._save()
            reasons = ", ".join(f"{name} {count}" for name, count in sorted(state.skips.items()))
            raise TrainingStalled(
                f"round {state.round}: {state.consecutive_skips} rounds in a row without an optimizer step (skips so far: "
                f"{reasons}); kl: lower trainer.lr or raise trainer.kl_limit; empty: all returns of a group were alike, raise "
                "rollout.temperature"
            )
        if patience is not None and state.evaluations_without_best >= patience:
            self.tracker.say(f"round {state.round}: {patience} evaluations without a better one: ended early")
            return True
        return False
