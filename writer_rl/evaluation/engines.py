"""A checkpoint as a rollout engine and its prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env import ObservationLimits, PromptTemplate
from rollout.engine import Engine
from rollout.tokenizer import Tokenizer
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import EvaluationConfig, ModelSection
from writer_rl.evaluation.prompt_file import prompt_path
from writer_rl.model.policy import load_policy, load_tokenizer
from writer_rl.train.prompt import allowed_context


def open_engine(folder: Path, config: EvaluationConfig) -> tuple[Engine, WriterPrompt]:
    """(engine, prompt) of a model folder; close the engine when done."""
    own = (folder / "tokenizer_config.json").is_file() or (folder / "tokenizer.json").is_file()
    tokenizer_source = None if own else config.model.tokenizer
    settings = config.model.model_copy(update={"path": str(folder), "tokenizer": tokenizer_source, "init": "pretrained"})
    tokenizer = load_tokenizer(settings)
    if config.rollout.engine == "vllm":
        engine, context = _vllm(folder, tokenizer, config)
    else:
        engine, context = _transformers(settings, tokenizer, config)
    template = PromptTemplate.load(prompt_path(config, folder))
    limits = ObservationLimits(config.data.heads_per_owner, config.data.max_chars)
    room = context - config.rollout.max_new_tokens
    return engine, WriterPrompt(tokenizer, template, room, limits, config.model.chat_template_kwargs)


def _transformers(settings: ModelSection, tokenizer: Tokenizer, config: EvaluationConfig) -> tuple[Engine, int]:
    import torch

    from rollout.hf.engine import HFEngine

    model: Any = load_policy(settings).eval().model
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    context = allowed_context(model.config.max_position_embeddings, config.rollout)
    return HFEngine(model, tokenizer, max_batch_tokens=config.rollout.max_batch_tokens), context


def _vllm(folder: Path, tokenizer: Tokenizer, config: EvaluationConfig) -> tuple[Engine, int]:
    from rollout.vllm.engine import VLLMEngine

    settings = config.rollout
    engine = VLLMEngine(
        str(folder),
        tokenizer,
        dtype=config.model.dtype,
        max_model_len=settings.max_model_len,
        block_size=settings.block_size,
        gpu_memory_utilization=settings.gpu_memory_utilization or 0.4,
        kv_cache_gib=settings.kv_cache_gib,
        tensor_parallel=settings.tensor_parallel,
        structured_output=settings.structured_output,
        sleep_mode=False,
    )
    return engine, engine.max_model_len
