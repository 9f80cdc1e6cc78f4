"""From a configuration to the parts of a GRPO run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memory_env import MemoryState
from rollout.engine import Engine
from rollout.journal import JournaledEngine
from rollout.sync import SyncProbe
from writer_rl.config import ConfigError, GRPOConfig, GRPOTrainer
from writer_rl.evaluation.validation import Validation, open_validation
from writer_rl.grpo.questions import Questions
from writer_rl.model.lora import AdapterOff
from writer_rl.model.policy import Policy, load_reference, model_source
from writer_rl.run.directory import deciding_settings
from writer_rl.train.backend import Backend
from writer_rl.train.data import TaughtNetwork
from writer_rl.train.deepspeed_config import zero_settings
from writer_rl.train.distributed import World
from writer_rl.train.engines import build_engine, spare_model
from writer_rl.train.prompt import require_fitting
from writer_rl.train.reference import FrozenReference, ShardedReference
from writer_rl.train.tree_check import checked_packing
from writer_rl.train.writer import LoadedWriter, build_backend, load_writer


@dataclass(frozen=True)
class Parts:
    """What a run trains and samples with.

    trainer: the settings, with the layout of samples that this model allows; packing_note: why it is not the one asked for.
    reference: the frozen policy of the KL term. engine: this rank's sampler. probe: what proves that it has the policy's
    weights. questions: who asks the terminal questions; None where none are asked. validation: the evaluation during training,
    if any.
    """

    writer: LoadedWriter
    reference: FrozenReference
    backend: Backend
    trainer: GRPOTrainer
    packing_note: str | None
    engine: JournaledEngine
    probe: SyncProbe
    questions: Questions | None
    validation: Validation | None


def build_parts(config: GRPOConfig, data: Mapping[str, TaughtNetwork], folder: Path, world: World) -> Parts:
    """Everything loaded and built; `folder` is the run directory. Collective.

    Raises ConfigError, DataError, PolicyError and other ValueErrors for what the user can mend.
    """
    # First, because an endpoint without a model or key shows here, before gigabytes are read.
    cache = "responses.sqlite" if world.is_main else f"responses-{world.rank:05d}.sqlite"
    questions = Questions(config.reward.qa, folder / cache) if asks_questions(config) else None
    if config.model.lora.dropout:
        raise ConfigError("model.lora.dropout: GRPO compares log-probabilities of the same tokens; set it for sft only")
    writer = load_writer(config)
    require_fitting(writer.prompt, (each.network for each in data.values()), config.data.window)
    reference = _reference(writer.policy, config, world)
    stage, _ = zero_settings(config.trainer, config.model.dtype)
    spare = spare_model(writer.policy, config, stage)
    backend = build_backend(writer.policy, config, world)
    trainer, packing_note = checked_packing(config.trainer, backend, reference)
    engine = build_engine(config, backend, writer.tokenizer, model_source(config.model.path), spare)
    _stay_within(engine, writer, config, data)
    journal = folder / f".rollout-{world.rank:05d}.jsonl"
    return Parts(
        writer,
        reference,
        backend,
        trainer,
        packing_note,
        JournaledEngine(engine, journal, identity=json.dumps(deciding_settings(config))),
        SyncProbe.of([_first_prompt(writer, config, data)]),
        questions,
        open_validation(config, writer.prompt, world),
    )


def asks_questions(config: GRPOConfig) -> bool:
    """Local credit has no final memory of each trajectory to ask about."""
    return config.reward.qa.enabled and config.trainer.credit != "local"


def _stay_within(engine: Engine, writer: LoadedWriter, config: GRPOConfig, data: Mapping[str, TaughtNetwork]) -> None:
    """Prompts no longer than an engine takes whose own limit is below the model's context."""
    longest, limit = getattr(engine, "max_model_len", None), config.rollout.max_new_tokens
    if longest is None or longest - limit >= writer.prompt.max_prompt_tokens:
        return
    if longest <= limit:
        raise ConfigError(f"rollout.max_new_tokens: {limit} leaves no room for a prompt in the engine's {longest} tokens")
    writer.prompt.max_prompt_tokens = longest - limit
    require_fitting(writer.prompt, (each.network for each in data.values()), config.data.window)


def _reference(policy: Policy, config: GRPOConfig, world: World) -> FrozenReference:
    """The policy's own base, where an adapter is trained, else a model of its own, in shards where the policy is. Collective."""
    model = config.model
    if model.lora.rank and model.reference in (None, model.path):
        return AdapterOff(policy)
    reference = load_reference(model, config.seed, config.trainer.logprob_chunk)
    if reference.head.weight.shape[0] != policy.head.weight.shape[0]:
        raise ConfigError(f"model.reference: {model.reference} has another vocabulary than {model.path}")
    if zero_settings(config.trainer, model.dtype)[0] == 3:
        return ShardedReference(reference, config.trainer, world, model.dtype)
    return reference.to(world.device)


def _first_prompt(writer: LoadedWriter, config: GRPOConfig, data: Mapping[str, TaughtNetwork]) -> tuple[int, ...]:
    first = next(iter(data.values())).network
    segment = first.segments(config.data.window)[0]
    return writer.prompt.encode(MemoryState.empty(), segment, first.network_id).token_ids
