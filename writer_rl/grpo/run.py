"""Position-aligned GRPO, to be read from here down: a run is rounds, and a round is sample, score, ask, update, sync, record.

Sampling is in sampling.py, the local rewards and the returns in groups.py, the terminal questions in questions.py, advantages
(Eq. 23-24) in advantages.py, the objective (Eq. 25-27) in objective.py and its update in update.py; setup.py builds the parts.
Every rank runs this same code. What a decision depends on is gathered first, so all ranks take the same branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewards import Scorer
from rollout.drift import FLOORS, DriftLimit, SamplerDrifted
from writer_rl.config import ConfigError, GRPOConfig
from writer_rl.grpo import metrics as measure
from writer_rl.grpo.groups import Group, assemble, score_trajectories
from writer_rl.grpo.plan import reward_settings
from writer_rl.grpo.questions import ask_round, asking_line
from writer_rl.grpo.records import question_records, trajectory_records
from writer_rl.grpo.samples import balanced_shares
from writer_rl.grpo.sampling import GroupSampler
from writer_rl.grpo.setup import build_parts
from writer_rl.grpo.state import GRPOState
from writer_rl.grpo.update import UpdateReport, update_policy
from writer_rl.model.support import Drawing
from writer_rl.run.base import TrainingRun, carry_out
from writer_rl.run.clock import PhaseClock
from writer_rl.run.glossary import LEGEND
from writer_rl.run.plots import draw_reward_curves
from writer_rl.run.tracking import console_line
from writer_rl.train.data import load_training, unseen_text_warning
from writer_rl.train.distributed import World
from writer_rl.train.engines import sync
from writer_rl.train.packing import packing
from writer_rl.train.reference import weights_digest
from writer_rl.train.rng import as_before_unless_done
from writer_rl.train.schedule import NetworkOrder, kept_schedule, lr_factor
from writer_rl.train.stop import StopSignals
from writer_rl.train.writer import parameter_line


def train(config: GRPOConfig) -> int:
    """Run or resume GRPO as configured; see `writer_rl.run.base.carry_out`."""
    return carry_out(GRPORun, config)


class GRPORun(TrainingRun[GRPOConfig, GRPOState]):
    """One run: its rounds, and what is said and kept of them."""

    def __init__(self, config: GRPOConfig, world: World, stop: StopSignals) -> None:
        self.weights, self.terms = reward_settings(config.reward)
        self.data = {each.network.network_id: each for each in load_training(config.data)}
        self.order = NetworkOrder(tuple(self.data), config.rollout.networks_per_round, config.seed)
        super().__init__(config, world, stop)
        parts = build_parts(config, self.data, self.directory.path, world)
        self.backend, self.tokenizer, self.evaluation = parts.backend, parts.writer.tokenizer, parts.validation
        self.reference, self.engine, self.probe, self.questions = parts.reference, parts.engine, parts.probe, parts.questions
        self.trainer, self.packing_note = parts.trainer, parts.packing_note
        self.restore(GRPOState(reference=config.model.reference or config.model.path))
        self.state.schedule_steps = self.state.schedule_steps or config.trainer.steps
        self._require_same_reference()
        self._require_frozen()
        self.track(config.trainer.steps)
        self.sampler = GroupSampler(
            config, world, stop, self.data, self.engine, parts.writer.prompt, self._sync, self.tracker.phase
        )
        self._introduce()

    def rounds(self) -> None:
        """All rounds that are left, or fewer where the evaluation no longer improves."""
        self._sync()  # also after a resume: nothing else says which weights the engine has
        patience = self.config.evaluation.patience
        while self.state.round < self.config.trainer.steps:
            self._round()
            self.stop.check_all(self.world)
            self.require_progress(self._skips())
            if patience is not None and self.state.evaluations_without_best >= patience:
                self.tracker.say(f"round {self.state.round}: {patience} evaluations without a better one: ended early")
                break

    def _round(self) -> None:
        config, index, clock = self.config, self.state.round, PhaseClock()
        credit = config.trainer.credit
        names = self.order.networks(index)
        with clock("round"):
            with clock("rollout"):
                trajectories = self.sampler.sample(names, visit=index)
            with clock("reward"):
                scorer = Scorer(self.weights, config.reward.tokenizer, self.terms)
                scored = self.world.gather_all(score_trajectories(trajectories, self.data, scorer, credit))
            with clock("qa"):
                self.tracker.phase("questions")
                gains = ask_round(self.questions, names, scored, self.data, config.data, self.world)
            lengths = {name: self.data[name].length for name in names}
            groups = assemble(scored, lengths, config.rollout.group_size, gains, self.weights, credit)
            factor = lr_factor(config.trainer, index, self.state.schedule_steps)
            self.engine.sleep()
            with clock("update"):
                update = self._update(groups, factor)
            self.engine.wake()
            with clock("sync"):
                if update.steps:
                    self._sync()
            with clock("evaluation"):
                due = bool(config.evaluation.every) and self.state.round % config.evaluation.every == 0
                evaluated, is_best = self.evaluate(self.engine.engine, due)
        ranks = self.world.gather(measure.rank_figures(update, self.engine.metrics(), clock))
        self._record(groups, update, evaluated, clock, config.trainer.lr * factor, ranks)
        self._require_steady_sampler(groups, update, ranks)
        self.save_if_due(config.trainer.checkpoint_every, is_best)

    def _update(self, groups: Sequence[Group], factor: float) -> UpdateReport:
        """One policy update on the round's samples, shared out over the ranks; counts the round."""
        self.tracker.phase("update")
        samples = [sample for group in groups for sample in group.samples(self.config.trainer.min_abs_advantage)]
        share = balanced_shares(samples, self.world.size, packing(self.trainer.packing))[self.world.rank]
        with as_before_unless_done():
            drawing = Drawing(self.config.rollout.temperature, self.config.rollout.top_p)
            update = update_policy(
                self.backend, self.reference, share, self.trainer, factor, lambda: self.stop.check_all(self.world), drawing
            )
        self.state.count(update)
        return update

    def _sync(self) -> None:
        """The engine gets the policy's weights, and proves it. Collective."""
        bound, dtype = self.config.rollout.sync_bound, self.config.model.dtype
        self.last_sync = sync(self.engine.engine, self.backend, self.state.policy_version, self.probe, bound, dtype)

    def _record(
        self,
        groups: Sequence[Group],
        update: UpdateReport,
        evaluated: Mapping[str, float | None],
        clock: PhaseClock,
        lr: float,
        ranks: Sequence[measure.RankFigures],
    ) -> None:
        """metrics.jsonl, trajectories, W&B and the console; written before the checkpoint that makes the round final."""
        if not self.world.is_main:
            return
        state, config, seed, visit = self.state, self.config, self.config.seed, self.state.round - 1
        completions = [r for g in groups for r in trajectory_records(g, seed, visit)]
        self.directory.write_trajectories(state.round, completions)
        self.directory.write_questions(state.round, [r for g in groups for r in question_records(g)])
        figures: measure.Metrics = {
            "round": state.round,
            **measure.reward_metrics(groups, positions=max(each.length for each in self.data.values())),
            **measure.rollout_metrics(groups),
            **measure.mismatch_metrics(ranks),
            **measure.engine_metrics(self.last_sync, ranks),
            **measure.policy_metrics(update, config.trainer.epochs, lr, state.policy_version, state.optimizer_steps),
            **measure.qa_metrics(groups),
            **measure.skip_metrics(state.skips, state.consecutive_skips),
            **evaluated,
            **measure.time_metrics({**clock.seconds, "checkpoint": self.checkpoint_seconds}, groups, update, ranks),
        }
        self.log(figures, lambda record: console_line(record, config.trainer.steps, update.skipped))
        if any(value is not None for value in evaluated.values()):
            self.tracker.completions(state.round, completions)
        if config.tracking.plot_every and state.round % config.tracking.plot_every == 0:
            self._plot()

    def _require_steady_sampler(
        self, groups: Sequence[Group], update: UpdateReport, ranks: Sequence[measure.RankFigures]
    ) -> None:
        """SamplerDrifted on every rank, before the round is saved, where the mismatch has grown over its first value."""
        now, settings = measure.mismatch_metrics(ranks)["rollout/mismatch_mean"], self.config.rollout
        trained = self.state.policy_version - (update.steps > 0)
        older = any(t.policy_version != trained for group in groups for t in group.trajectories)  # differs for a good reason
        if now is None or settings.mismatch_growth is None or older:
            return
        if self.state.first_mismatch is None:
            self.state.first_mismatch = now
        limit = DriftLimit(settings.mismatch_growth, settings.mismatch_floor or FLOORS[self.config.model.dtype])
        try:
            limit.require(now, self.state.first_mismatch, f"round {self.state.round}")
        except SamplerDrifted:
            self.engine.forget()  # the round that is begun again must not find what was sampled
            raise

    def _plot(self) -> None:
        draw_reward_curves(self.directory.read_metrics(), self.directory.path / "reward_curves.png")

    def finish(self) -> None:
        """The last picture."""
        if self.world.is_main and self.config.tracking.plot_every:
            self._plot()

    def saved(self) -> None:
        """The round needs its journal no more."""
        self.engine.forget()

    def release(self) -> None:
        """Free the engine."""
        self.engine.close()

    def _skips(self) -> str:
        counted = ", ".join(f"{name} {count}" for name, count in sorted(self.state.skips.items()))
        return (
            f" (skips so far: {counted}); kl: lower trainer.lr or raise trainer.kl_limit; empty: all returns of a group were "
            "alike, raise rollout.temperature"
        )

    def _require_same_reference(self) -> None:
        """The reference that began a run ends it: ConfigError where its weights have changed. Collective."""
        now, then = weights_digest(self.reference.model), self.state.reference_digest
        if then not in (now, ""):
            raise ConfigError(
                f"model.reference {self.state.reference}: its weights are not those that the run in {self.directory.path} "
                "was begun with (trained anew?); put them back, or begin a new run"
            )
        self.state.reference_digest = now

    def _require_frozen(self) -> None:
        """The judge that began a run ends it: ConfigError where its questions, budgets, prompts or judge have changed."""
        if self.questions is None:
            return
        now = self.questions.frozen(each.network for each in self.data.values())
        for part, digest in self.state.frozen.items():
            if now[part] != digest:
                raise ConfigError(
                    f"{self.directory.path}: the run was begun with other {part} of its terminal questions (reward.qa, data or "
                    "program version); begin a new run"
                )
        self.state.frozen = now

    def _introduce(self) -> None:
        """What is about to happen, in a line or two."""
        steps, done, say = self.config.trainer.steps, self.state.round, self.tracker.say
        count = parameter_line(self.backend, adapter=bool(self.config.model.lora.rank))
        say(f"{count}, {len(self.data)} networks, {steps} rounds, in {self.directory.path}")
        if self.resumed_from is not None:
            say(f"going on after round {done} from {self.resumed_from}" if done < steps else f"all {done} rounds are done")
        if (line := kept_schedule(self.config.trainer, self.state.schedule_steps, steps)) is not None:
            say(line)
        if self.packing_note:
            say(self.packing_note)
        warning = unseen_text_warning(self.data.values(), self.config.reward.tokenizer)
        if warning:
            say(warning)
        if (line := asking_line(self.config)) is not None:
            say(line)
        say(LEGEND)
