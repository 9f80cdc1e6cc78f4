"""The stages of a curriculum as a configuration names them: their lengths, and what each shows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from memory_env.corpus import LANGUAGES, BiasRates
from memory_env.corpus.sets import sft_shape
from memory_env.corpus.shapes import Shape
from writer_rl.config import ConfigError, CurriculumStage, SFTConfig
from writer_rl.sft.demonstrations import ConversationMix, Demonstration, Pool, copy_pool, corpus_pool, network_pool
from writer_rl.train.writer import LoadedWriter


def needs_networks(config: SFTConfig) -> bool:
    """Whether a stage, or the lack of a curriculum, asks for the demonstrations of data.train."""
    stages = config.trainer.curriculum
    return not stages or any(stage.task == "memory" and stage.level is None for stage in stages)


def planned_stages(config: SFTConfig, samples: int) -> list[CurriculumStage]:
    """The curriculum with every stage's steps known; without one, `epochs` passes over `samples` demonstrations."""
    trainer = config.trainer
    stages = trainer.curriculum or (CurriculumStage(name="networks", batch=trainer.accumulation),)
    planned = []
    for stage in stages:
        _bias(stage)
        if stage.level is not None:
            _shape(stage, stage.level)
        steps = stage.max_steps or trainer.epochs * math.ceil(samples / stage.batch)
        planned.append(stage.model_copy(update={"max_steps": steps}))
    return planned


def stage_pool(
    stage: CurriculumStage, number: int, config: SFTConfig, writer: LoadedWriter, samples: list[Demonstration]
) -> Pool:
    """What stage `number` shows. samples: the demonstrations of data.train."""
    seed, limit = config.seed, config.rollout.max_new_tokens
    if stage.task == "copy":
        return copy_pool(writer.tokenizer, writer.vocabulary, stage.batch, f"{seed}/{number}")
    if stage.level is None:
        return network_pool(samples, stage.batch, f"{seed}/{number}")
    mix = ConversationMix(stage.level, _shape(stage, stage.level), stage.easier, _bias(stage), LANGUAGES[stage.language])
    return corpus_pool(mix, writer.prompt, limit, stage.batch, seed, number)


def _bias(stage: CurriculumStage) -> BiasRates | None:
    if stage.teacher == "complete":
        return None
    try:
        return BiasRates(**stage.bias)
    except TypeError as error:
        raise ConfigError(f"trainer.curriculum: stage {stage.name!r}: bias: {str(error).split('() ')[-1]}") from None


def _shape(stage: CurriculumStage, level: int) -> Shape:
    try:
        changes: dict[str, Any] = dict(stage.shape)
        return replace(sft_shape(level), **changes)
    except TypeError as error:
        raise ConfigError(f"trainer.curriculum: stage {stage.name!r}: shape: {str(error).split('() ')[-1]}") from None
