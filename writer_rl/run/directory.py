"""A run directory: what stands where, who may write to it, and how it is rolled back to a checkpoint.

config.yaml  environment.json  metrics.jsonl  trajectories/round-000001.jsonl  questions/round-000001.jsonl
checkpoints/  reward_curves.png  wandb/  evaluation.json
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from memory_env.files import write_text
from memory_env.text import json_utf8
from writer_rl.config import SFTConfig, SharedConfig, TrainingConfig, config_keys, resolve, to_yaml
from writer_rl.run.environment import environment

FREE_KEYS: tuple[str, ...] = (
    "output_dir",
    "tracking",
    "evaluation",
    "model.gradient_checkpointing",
    "rollout.gpu_memory_utilization",
    "rollout.kv_cache_gib",
    "rollout.max_batch_tokens",
    "rollout.mismatch_floor",
    "rollout.mismatch_growth",
    "rollout.server",
    "rollout.sync_bound",
    "rollout.sync_folder",
    "reward.qa.base_url",
    "reward.qa.concurrency",
    "reward.qa.deadline_s",
)
FREE_KEYS += tuple(
    f"trainer.{key}"
    for key in (
        "steps", "resume", "keep_checkpoints", "checkpoint_every", "weights_every", "keep_weights", "max_consecutive_skips",
        "threads",
    )  # fmt: skip
)
"""Settings (or sections) that may differ when a run goes on: they do not decide what it computes."""


class RunError(ValueError):
    """A run directory that can't be used as asked; one line with the remedy."""


class RunDirectory:
    """The files of one run. One process (rank 0) writes.

    Example: ``run = RunDirectory.open(config); run.append_metrics({"round": 1, ...})``
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics_file = path / "metrics.jsonl"
        self.trajectories = path / "trajectories"
        self.questions = path / "questions"
        self.checkpoints = path / "checkpoints"
        self._lock: Any = None

    @classmethod
    def open(cls, config: SharedConfig) -> RunDirectory:
        """The directory of `config.output_dir`, created where it is missing."""
        path = resolve(config.output_dir)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"output_dir {path}: can't be made: {error.strerror}") from None
        return cls(path)

    def lock(self) -> None:
        """Keep other runs out until this process ends; RunError if one is in."""
        self._lock = (self.path / ".lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"output_dir {self.path}: another run is writing there; wait for it or name another") from None

    def unlock(self) -> None:
        """Let other runs in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def claim(self, config: TrainingConfig) -> Path | None:
        """Lock the directory and say which checkpoint to go on from, as `trainer.resume` asks; None: from the beginning.

        What was written after that checkpoint is forgotten. RunError or CheckpointError where it can't be as asked.
        """
        from writer_rl.train.checkpoint import find_checkpoint, pointed_checkpoint, read_state

        self.lock()
        resume = config.trainer.resume
        if resume == "never":
            self.require_unused()
            return None
        auto = resume == "auto"
        checkpoint = pointed_checkpoint(self.checkpoints, "latest") if auto else find_checkpoint(resolve(resume), resumable=True)
        if checkpoint is not None:
            _require_same_training(checkpoint, read_state(checkpoint), config)
            if auto:
                self.require_same_settings(config)
            elif checkpoint.resolve().parent != self.checkpoints.resolve():
                self.require_unused()
        return checkpoint

    def require_unused(self) -> None:
        """RunError if a run has written here already."""
        if self.metrics_file.is_file() or self.checkpoints.is_dir():
            raise RunError(f"output_dir {self.path}: holds a run; go on with --trainer.resume auto, or name another directory")

    def write_config(self, config: SharedConfig) -> None:
        """The resolved configuration as config.yaml. It can hold no secret: keys come from the environment alone."""
        write_text(self.path / "config.yaml", to_yaml(config))

    def write_environment(self) -> None:
        """Interpreter, machine and packages as environment.json: those of the last start, where a run went on elsewhere."""
        write_text(self.path / "environment.json", json.dumps(environment(), indent=1) + "\n")

    def require_same_settings(self, config: SharedConfig) -> None:
        """RunError naming the first setting that decides the results and differs from the run's config.yaml."""
        file = self.path / "config.yaml"
        if not file.is_file():
            return
        try:
            before = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError):
            raise RunError(
                f"{file}: is damaged, so that the run's settings are unknown; go on with --trainer.resume and a checkpoint of it"
            ) from None
        for key, now in deciding_settings(config).items():
            then = _look_up(before, key)
            if then not in (now, _ABSENT):
                raise RunError(
                    f"output_dir {self.path}: the run there has {key} {then}, not {now}: keep it, name another "
                    "directory, or go on from one of its checkpoints with --trainer.resume PATH"
                )

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """One line to metrics.jsonl, on the disk when this returns."""
        with self.metrics_file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, allow_nan=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def read_metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; those that are no records (torn by a kill or a full disk) left out."""
        if not self.metrics_file.is_file():
            return []
        records = []
        for line in self.metrics_file.read_bytes().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("round"), int):
                records.append(record)
        return records

    def write_trajectories(self, number: int, records: Iterable[Mapping[str, Any]]) -> None:
        """Every completion of a round (or step) with its rewards (writer_rl/run/rollout_files.py)."""
        _write_lines(self.trajectories, number, records)

    def write_questions(self, number: int, records: Iterable[Mapping[str, Any]]) -> None:
        """Every terminal question of a round with evidence, answers and verdicts; no file where nothing was asked."""
        records = list(records)
        if records:
            _write_lines(self.questions, number, records)

    def roll_back(self, rounds: int) -> None:
        """Forget what was written after the first `rounds` rounds (metrics lines carry their number as ``round``, from 1)."""
        kept = [record for record in self.read_metrics() if record["round"] <= rounds]
        if self.metrics_file.is_file():
            write_text(self.metrics_file, "".join(json.dumps(record) + "\n" for record in kept))
        for folder in (self.trajectories, self.questions):
            for file in folder.glob("round-*.jsonl"):
                if file > _round_file(folder, rounds):
                    file.unlink()


def _round_file(folder: Path, number: int) -> Path:
    return folder / f"round-{number:06d}.jsonl"


def _write_lines(folder: Path, number: int, records: Iterable[Mapping[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    _round_file(folder, number).write_bytes(b"".join(json_utf8(record) + b"\n" for record in records))


def deciding_settings(config: SharedConfig) -> dict[str, Any]:
    """The settings that decide what a run computes, by dotted key: all but FREE_KEYS.

    Example: has "trainer.lr" and "seed", but neither "output_dir" nor "tracking.wandb".
    """
    tree = config.model_dump(mode="json")
    return {
        key: _look_up(tree, key)
        for key, _, _ in config_keys(type(config))
        if not any(key == name or key.startswith(f"{name}.") for name in FREE_KEYS)
    }


def _require_same_training(checkpoint: Path, state: Mapping[str, Any], config: SharedConfig) -> None:
    """RunError for a checkpoint of SFT where GRPO is to go on, and the other way round."""
    is_sft = "progress" in state
    if is_sft != isinstance(config, SFTConfig):
        kind, other = ("SFT", "GRPO") if is_sft else ("GRPO", "SFT")
        raise RunError(
            f"{checkpoint}: belongs to {kind}, {other} can't go on from it; name another output_dir and begin from its weights: "
            f"--model.path {checkpoint}/model"
        )


_ABSENT = object()  # a setting that an older version of the program did not have


def _look_up(tree: object, key: str) -> object:
    for part in key.split("."):
        if not isinstance(tree, dict) or part not in tree:
            return _ABSENT
        tree = tree[part]
    return tree
