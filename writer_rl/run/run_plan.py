"""What a configured run takes of GPUs, host and disk: the one plan behind `--dry-run`, `launch/plan.py --config` and `doctor`."""

from __future__ import annotations

import os
from pathlib import Path

from writer_rl.config import GRPOConfig, TrainingConfig, resolve
from writer_rl.model.shape import ModelShape, ShapeError
from writer_rl.run.disk_plan import DiskPlan, disk_plan
from writer_rl.run.plan import GIB, MemoryPlan, RunShape, plan
from writer_rl.train.deepspeed_config import zero_settings
from writer_rl.train.sampler_share import sequences_of_rank

CONTEXT = 32_768
"""Tokens of a prompt and its completion where neither the settings nor a model folder say."""


def model_shape(config: TrainingConfig) -> ModelShape | None:
    """The shape of the configured Writer, from its folder or its well-known name; None where neither says."""
    folder = resolve(config.model.path)
    try:
        return ModelShape.load(folder if folder.exists() else config.model.path)
    except ShapeError:
        return None


def run_shape(config: TrainingConfig, ranks: int, context: int = CONTEXT) -> RunShape:
    """What of the settings decides memory, on so many GPUs."""
    trainer, rollout = config.trainer, config.rollout
    stage, offload = zero_settings(trainer, config.model.dtype)
    colocated = isinstance(config, GRPOConfig) and rollout.engine == "vllm" and not rollout.server
    return RunShape(
        gpus=ranks,
        zero=max(stage, 1),
        offload_optimizer=offload == "cpu",
        eight_bit=trainer.optimizer == "adamw8bit",
        lora_rank=config.model.lora.rank,
        checkpointing=config.model.gradient_checkpointing,
        micro_tokens=trainer.micro_batch_tokens or 16_384,
        logit_chunk=trainer.logprob_chunk,
        sequences=sequences_of_rank(rollout, ranks),
        sequence_tokens=rollout.max_model_len or context,
        sampler=colocated,
    )


def memory_plan(config: TrainingConfig, model: ModelShape, ranks: int) -> MemoryPlan:
    """GPU and host bytes of one rank (bf16 with fp32 masters)."""
    return plan(model, run_shape(config, ranks))


def run_disk_plan(config: TrainingConfig, model: ModelShape, rounds: int) -> DiskPlan:
    """Disk bytes of the run."""
    every = config.evaluation.every
    return disk_plan(model, config, rounds, rounds // every if every else 0)


def resource_lines(config: TrainingConfig, rounds: int) -> list[str]:
    """What `--dry-run` says of GPUs, host and disk."""
    model = model_shape(config)
    if model is None:
        return ["memory, disk      unknown before the model is there: python launch/plan.py --config FILE --model NAME"]
    lines = [run_disk_plan(config, model, rounds).line()]
    if config.model.dtype == "bfloat16":
        ranks = int(os.environ.get("WORLD_SIZE", "1"))
        needed = memory_plan(config, model, ranks)
        lines.append(
            f"memory            on {ranks} GPU{'s' * (ranks > 1)}: {needed.rollout_peak / GIB:.1f} GiB of each in the rollout, "
            f"{needed.update_peak / GIB:.1f} in the update, {needed.host / GIB:.1f} GiB of the host a rank"
        )
    return lines


def disk_needed(config: TrainingConfig, rounds: int) -> int:
    """Bytes that have to be free before a run begins or goes on; what its checkpoints take already counts as free."""
    model = model_shape(config)
    if model is None:
        return 0
    there = sum(file.stat().st_size for file in Path(resolve(config.output_dir), "checkpoints").rglob("*") if file.is_file())
    return max(0, run_disk_plan(config, model, rounds).fullest - there)
