"""Position-aligned GRPO: rounds of rollouts, rewards, one policy update, a proven weight sync, and a checkpoint.

Every rank runs this same code. What a decision depends on is gathered first, so all ranks take the same branch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from memory_env import DataError
from rewards import RewardWeights, Scorer
from rewards.qa_gain import QAFailure, QAGain, QAGroup
from rewards.terms import weighted_terms
from rollout.engine import EngineDied, SamplingParams
from rollout.sampler import Progress as PositionDone
from rollout.sampler import sample_groups
from rollout.sync import Probe
from writer_rl import metrics as measure
from writer_rl.backend import Backend
from writer_rl.checkpoint import Checkpoints, find_checkpoint
from writer_rl.config import ConfigError, GRPOConfig, resolve
from writer_rl.data import TaughtNetwork, load_sources, load_training, taught
from writer_rl.distributed import World, connect, disconnect
from writer_rl.doctor import cheap_checks, require
from writer_rl.engines import JournaledEngine, build_engine, build_prompt, spare_model, sync
from writer_rl.groups import (
    Group,
    ScoredTrajectory,
    assemble,
    final_states,
    score_trajectories,
    share_of_rank,
    trajectory_records,
)
from writer_rl.plots import draw_reward_curves
from writer_rl.policy import load_policy, load_reference, load_tokenizer
from writer_rl.questions import open_questions
from writer_rl.runs import RunDirectory
from writer_rl.samples import balanced_shares
from writer_rl.schedule import NetworkOrder, lr_factor
from writer_rl.stop import StopRequested, StopSignals
from writer_rl.tracking import Tracker
from writer_rl.update import UpdateReport, update_policy
from writer_rl.validation import Validation


class TrainingStalled(RuntimeError):
    """Too many rounds in a row without an optimizer step."""


@dataclass
class RunState:
    """What decides the rest of a run besides parameters and optimizer; saved with every checkpoint."""

    round: int = 0
    """Rounds finished; the network order is a function of it."""
    policy_version: int = 0
    optimizer_steps: int = 0
    skips: dict[str, int] = field(default_factory=dict)
    consecutive_skips: int = 0
    best: float | None = None
    evaluations_without_best: int = 0
    wandb_id: str | None = None
    reference: str = ""
    """The frozen policy of the KL term."""


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
        self.weights = _reward_weights(config)
        self.terms = weighted_terms(config.reward.terms, config.reward.modules)
        self.data = {t.network.network_id: t for t in load_training(config.data)}
        self.order = NetworkOrder(tuple(self.data), config.rollout.networks_per_round, config.seed)
        self.directory = RunDirectory.open(config)
        checkpoint = world.broadcast(self._claim_directory() if world.is_main else None)
        self._build()
        self.state = RunState(reference=config.model.reference or config.model.path)
        if checkpoint is not None:
            saved = self.checkpoints.restore(checkpoint, self.backend)
            self.state = RunState(**{key: saved[key] for key in asdict(self.state)})
        if world.is_main:
            self.directory.roll_back(self.state.round)
            self.directory.write_config(config)
        self.saved_round = self.state.round if checkpoint is not None else -1
        self.tracker = Tracker(
            config, self.directory.path, config.trainer.steps, self.state.round, world.is_main, self.state.wandb_id
        )
        self.state.wandb_id = world.broadcast(self.tracker.wandb_id)
        self.keys = next((set(record) for record in reversed(self.directory.read_metrics())), None)
        self.checkpoint_seconds = 0.0
        if checkpoint is not None:
            self.tracker.say(f"going on after round {self.state.round} from {checkpoint}")

    def _claim_directory(self) -> Any:
        """Lock the run directory and find the checkpoint to go on from, or None."""
        self.directory.lock()
        resume = self.config.trainer.resume
        if resume == "never":
            self.directory.require_unused()
            return None
        if resume != "auto":
            return find_checkpoint(resolve(resume))
        latest = Checkpoints(self.directory.checkpoints, self.world).latest()
        if latest is not None:
            self.directory.require_same_settings(self.config)
        return latest

    def _build(self) -> None:
        config, world, trainer = self.config, self.world, self.config.trainer
        policy = load_policy(config.model, config.seed, trainer.logprob_chunk)
        vocabulary = policy.head.weight.shape[0]
        self.tokenizer = load_tokenizer(config.model, vocabulary)
        self.reference = load_reference(config.model, config.seed, trainer.logprob_chunk).to(world.device)
        if self.reference.head.weight.shape[0] != vocabulary:
            raise ConfigError(f"model.reference: {config.model.reference} has another vocabulary than {config.model.path}")
        context = policy.model.config.max_position_embeddings
        self.prompt = build_prompt(config.data, self.tokenizer, context, config.rollout.max_new_tokens)
        from writer_rl.deepspeed_config import zero_settings

        spare = spare_model(policy, config, zero_settings(trainer, config.model.dtype)[0])
        self.backend = Backend(policy, trainer, world, dtype=config.model.dtype)
        self.checkpoints = Checkpoints(self.directory.checkpoints, world, trainer.keep_checkpoints)
        engine = build_engine(config, self.backend, self.tokenizer, config.model.path, spare)
        self.engine = JournaledEngine(engine, self.directory.path / f".rollout-{world.rank:05d}.jsonl")
        self.questions = open_questions(config.reward.qa, self.directory.path)
        self.probe = Probe.of([self._first_prompt()])
        self.options = {"window": config.data.window, "strict": config.data.strict}
        self.validation = self._validation()

    def _first_prompt(self) -> tuple[int, ...]:
        from memory_env import MemoryState

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
        limit = self.config.rollout.max_new_tokens
        return Validation(taught(networks, self.config.data), self.prompt, limit, self.world, **self.options)

    def go(self) -> int:
        """All rounds that are left; returns the exit code."""
        steps = self.config.trainer.steps
        self._sync()  # also after a resume: nothing else says which weights the engine has
        try:
            while self.state.round < steps:
                self._round()
                self._check_stop()
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
        with _timed(seconds, "round"):
            names = self.order.networks(index)
            with _timed(seconds, "rollout"):
                local = self._sample(names, index)
            with _timed(seconds, "reward"):
                scored = self._score(local)
            with _timed(seconds, "qa"):
                gains = self._ask(names, scored)
            lengths = {name: self.data[name].length for name in names}
            groups = assemble(scored, lengths, config.rollout.group_size, gains, self.weights)
            samples = [s for group in groups for s in group.samples(config.trainer.min_abs_advantage)]
            self.tracker.phase("update")
            self.engine.sleep()
            with _timed(seconds, "update"):
                share = balanced_shares(samples, self.world.size)[self.world.rank]
                factor = lr_factor(config.trainer, index, config.trainer.steps)
                update = update_policy(self.backend, self.reference, share, config.trainer, factor)
            self.engine.wake()
            self._count(update)
            with _timed(seconds, "sync"):
                if update.steps:
                    self._sync()
            with _timed(seconds, "evaluation"):
                evaluated, is_best = self._evaluate()
        seconds["checkpoint"] = self.checkpoint_seconds
        self._record(groups, update, evaluated, seconds, config.trainer.lr * factor)
        if is_best or self.state.round % config.trainer.checkpoint_every == 0:
            self._save(is_best)

    def _sample(self, names: tuple[str, ...], index: int) -> dict[str, Any]:
        """This rank's trajectories of the round; every rank leaves together, stopped or not."""
        settings = self.config.rollout
        share = share_of_rank(names, settings.group_size, self.world.rank, self.world.size)
        sampling = SamplingParams(settings.temperature, settings.top_p, settings.max_new_tokens)
        networks = [self.data[name].network for name in share]
        local: dict[str, Any] | None = None
        for _ in range(3):
            died = False
            try:
                if local is None and self.stop.received is None:
                    local = sample_groups(
                        networks,
                        self.engine,
                        self.prompt,
                        settings.group_size,
                        sampling,
                        self.config.seed,
                        visit=index,
                        members=share,
                        on_position=self._on_position,
                        **self.options,
                    )
            except StopRequested:
                pass
            except EngineDied as error:
                print(f"rank {self.world.rank}: {error}; the engine is restarted and the round repeated", flush=True)
                self.engine.restart()
                died = True
            self._check_stop()
            if not self.world.any(died):
                return local
            self._sync()
        raise EngineDied("the rollout engine died three times in one round")

    def _on_position(self, done: PositionDone) -> None:
        self.tracker.phase(f"writing position {done.position + 1}/{done.positions}")
        self.stop.check()

    def _score(self, local: Mapping[str, Any]) -> list[ScoredTrajectory]:
        scorer = Scorer(self.weights, self.config.reward.tokenizer, self.terms)
        mine = score_trajectories(local, self.data, scorer)
        return [trajectory for part in self.world.gather(mine) for trajectory in part]

    def _ask(self, names: tuple[str, ...], scored: list[ScoredTrajectory]) -> dict[str, QAGain]:
        """The terminal gains; networks are shared out over the ranks, each asked about as a whole group."""
        if self.questions is None:
            return {}
        self.tracker.phase("questions")
        groups = []
        for name in names[self.world.rank :: self.world.size]:
            network = self.data[name].network
            mine = sorted((t for t in scored if t.network_id == name), key=lambda t: t.index)
            states = final_states(mine, network, self.config.data.window, self.config.data.strict)
            groups.append(QAGroup(name, network.questions, states))
        try:
            answer: list[QAGain] | QAFailure = self.questions(groups)
        except QAFailure as failure:
            answer = failure
        parts = self.world.gather(answer)
        for part in parts:
            if isinstance(part, QAFailure):
                raise part
        return {gain.network_id: gain for part in parts for gain in part}

    def _count(self, update: UpdateReport) -> None:
        state = self.state
        state.round += 1
        state.optimizer_steps += update.steps
        if update.steps:
            state.policy_version += 1
        if update.skipped:
            state.skips[update.skipped] = state.skips.get(update.skipped, 0) + 1
        state.consecutive_skips = 0 if update.steps else state.consecutive_skips + 1

    def _sync(self) -> None:
        bound, dtype = self.config.rollout.sync_bound, self.config.model.dtype
        sync(self.engine.engine, self.backend, self.state.policy_version, self.probe, bound, dtype)

    def _evaluate(self) -> tuple[dict[str, float | None], bool]:
        """The figures of the evaluation if one is due (None each otherwise), and whether it is the best so far."""
        if self.validation is None:
            return {}, False
        state, settings = self.state, self.config.evaluation
        if state.round % settings.every:
            return dict.fromkeys(self.validation.keys), False
        self.tracker.phase("evaluation")
        found = self.validation(self.engine.engine)
        if settings.metric not in found:
            raise ConfigError(f"evaluation.metric: {settings.metric!r} is not measured; there are {', '.join(found)}")
        value = found[settings.metric]
        is_best = value is not None and (state.best is None or value > state.best)
        state.best = value if is_best else state.best
        state.evaluations_without_best = 0 if is_best else state.evaluations_without_best + 1
        return found, is_best

    def _record(
        self, groups: list[Group], update: UpdateReport, evaluated: Mapping[str, Any], seconds: Mapping[str, float], lr: float
    ) -> None:
        """metrics.jsonl, trajectories, W&B and the console; written before the checkpoint that makes the round final."""
        parts = self.world.gather((update.sampler_logprobs, update.trainer_logprobs))
        if not self.world.is_main:
            return
        state, config = self.state, self.config
        joined = [[value for part in parts for value in part[side]] for side in (0, 1)]
        update = replace(update, sampler_logprobs=joined[0], trainer_logprobs=joined[1])
        steps = [scored.step for group in groups for trajectory in group.trajectories for scored in trajectory.steps]
        peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
        positions = max(network.length for network in self.data.values())
        record = measure.checked(
            {
                "round": state.round,
                **measure.reward_metrics(groups, positions),
                **measure.rollout_metrics(groups, update),
                **measure.policy_metrics(update, config.trainer.epochs, lr, state.policy_version, state.optimizer_steps),
                **measure.qa_metrics(groups),
                **measure.skip_metrics(state.skips, state.consecutive_skips),
                **evaluated,
                **measure.time_metrics(seconds, sum(len(s.completion_ids) for s in steps), update.tokens * len(update.epochs), peak),
            },
            self.keys,
        )
        self.keys = set(record)
        self.directory.write_trajectories(state.round, [r for group in groups for r in trajectory_records(group)])
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

    def _check_stop(self) -> None:
        """Raise StopRequested on every rank if any rank got a signal."""
        signum = int(self.world.max([self.stop.received or 0])[0])
        if signum:
            raise StopRequested(signum)

    def _should_end(self) -> bool:
        state, trainer, patience = self.state, self.config.trainer, self.config.evaluation.patience
        if state.consecutive_skips >= trainer.max_consecutive_skips:
            if self.saved_round != state.round:
                self._save()
            reasons = ", ".join(f"{name} {count}" for name, count in sorted(state.skips.items()))
            raise TrainingStalled(
                f"round {state.round}: {state.consecutive_skips} rounds in a row without an optimizer step (skips so far: {reasons}); "
                "kl: lower trainer.lr or raise trainer.kl_limit; empty: all returns of a group were alike, raise rollout.temperature"
            )
        if patience is not None and state.evaluations_without_best >= patience:
            self.tracker.say(f"round {state.round}: {patience} evaluations without a better one: ended early")
            return True
        return False


def console_line(record: Mapping[str, Any], steps: int, skipped: str | None) -> str:
    """One readable line per update.

    Example: "round 3/30  return 0.512  mem 0.431  valid 0.98  kl 0.0031  clip 1.2%  entropy 0.41  |g| 0.83  silent 40%  len 34  9.1 s"
    """

    def show(label: str, key: str, form: str) -> str:
        value = record.get(key)
        return f"{label} {'-' if value is None else format(value, form)}"

    parts = [
        f"round {record['round']}/{steps}",
        show("return", "reward/return/mean", ".3f"),
        show("mem", "reward/mem/mean", ".3f"),
        show("valid", "reward/valid/mean", ".2f"),
        show("qa", "qa/gain/mean", "+.2f"),
        show("kl", "policy/kl", ".4f"),
        show("clip", "policy/clip_fraction", ".1%"),
        show("entropy", "policy/entropy", ".2f"),
        show("|g|", "policy/grad_norm", ".2f"),
        show("silent", "reward/zero_variance", ".0%"),
        show("len", "rollout/completion_length/mean", ".0f"),
        show("eval", "evaluation/total", ".3f") if record.get("evaluation/total") is not None else "",
        f"{record['time/round']:.1f} s",
        f"skipped: {skipped}" if skipped else "",
    ]
    return "  ".join(part for part in parts if part)


def _reward_weights(config: GRPOConfig) -> RewardWeights:
    try:
        return RewardWeights(**config.reward.weights)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"reward.weights: {str(error).removeprefix('RewardWeights.__init__() ')}") from None


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - started


__all__ = ["GRPORun", "RunState", "TaughtNetwork", "TrainingStalled", "console_line", "train"]
