"""A checkpoint as a rollout engine and its prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env import ObservationLimits, PromptTemplate
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import EvaluationConfig
from writer_rl.policy import load_policy, load_tokenizer


def open_engine(folder: Path, config: EvaluationConfig) -> tuple[Any, WriterPrompt]:
    """(engine, prompt) of a model folder; close the engine when done."""
    from writer_rl.evaluation.writers import prompt_path

    own = (folder / "tokenizer_config.json").is_file() or (folder / "tokenizer.json").is_file()
    tokenizer_source = None if own else config.model.tokenizer
    settings = config.model.model_copy(update={"path": str(folder), "tokenizer": tokenizer_source, "init": "pretrained"})
    tokenizer = load_tokenizer(settings)
    if config.rollout.engine == "vllm":
        from rollout.vllm_engine import VLLMEngine

        engine, context = _vllm(VLLMEngine, folder, tokenizer, config)
    else:
        import torch
        from rollout.hf_engine import HFEngine

        policy = load_policy(settings).eval()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = policy.model.to(device)
        engine, context = HFEngine(model, tokenizer), model.config.max_position_embeddings
    limits = ObservationLimits(config.data.heads_per_owner, config.data.max_chars)
    room = context - config.rollout.max_new_tokens
    return engine, WriterPrompt(tokenizer, PromptTemplate.load(prompt_path(config)), room, limits)


def _vllm(engine_type: Any, folder: Path, tokenizer: Any, config: EvaluationConfig) -> tuple[Any, int]:
    from transformers import AutoConfig

    engine = engine_type(str(folder), tokenizer, config.rollout)
    return engine, AutoConfig.from_pretrained(folder).max_position_embeddings
