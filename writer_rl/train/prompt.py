"""The Writer's prompt as configured, and whether every position of some networks fits it: known before the first round."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from memory_env import Network, ObservationLimits, PromptTemplate
from rollout.tokenizer import Tokenizer
from rollout.writer_prompt import PromptDoesNotFit, WriterPrompt
from writer_rl.config import DEFAULT_PROMPT, ConfigError, DataSection, ModelSection, RolloutSection, TrainingConfig, resolve
from writer_rl.train.data import load_sources, load_training


def allowed_context(model: int, settings: RolloutSection) -> int:
    """Tokens of a prompt and its completion: the model's context, or `rollout.max_model_len` where that is set.

    Raises ConfigError where more is asked for than the model has.
    """
    asked = settings.max_model_len
    if asked is not None and asked > model:
        raise ConfigError(f"rollout.max_model_len: {asked} is more than the model's context of {model} tokens")
    return asked or model


def build_prompt(
    data: DataSection, tokenizer: Tokenizer, context: int, max_new_tokens: int, model: ModelSection | None = None
) -> WriterPrompt:
    """The Writer's prompt within a context of so many tokens, room for the completion left.

    model: whose arguments the chat template gets; None: none.
    """
    if context <= max_new_tokens:
        raise ConfigError(f"rollout.max_new_tokens: {max_new_tokens} leaves no room for a prompt in a context of {context}")
    template = PromptTemplate.load(resolve(data.prompt) if data.prompt else DEFAULT_PROMPT)
    limits = ObservationLimits(heads_per_owner=data.heads_per_owner, max_chars=data.max_chars)
    arguments = model.chat_template_kwargs if model else {}
    return WriterPrompt(tokenizer, template, context - max_new_tokens, limits, arguments)


def require_fitting(prompt: WriterPrompt, networks: Iterable[Network], window: int | None) -> int:
    """The number of positions of the networks, all of which fit `prompt` without any memory: what does not is left out.

    Raises PromptDoesNotFit naming the first that does not, and a window that does if there is one.
    """
    positions = 0
    for network in networks:
        misfit = _first_misfit(prompt, network, window)
        if misfit is not None:
            raise PromptDoesNotFit(
                f"network {network.network_id}, position {misfit[0]}: roster and segment alone need {misfit[1]} tokens, "
                f"{prompt.max_prompt_tokens} are allowed (the context less rollout.max_new_tokens); "
                f"{_remedy(prompt, network, window)}"
            )
        positions += len(network.segments(window))
    return positions


def prompt_at_hand(config: TrainingConfig) -> WriterPrompt | None:
    """The prompt of the configured Writer without its weights; None where its tokenizer is not on this machine."""
    from writer_rl.model.policy import load_tokenizer

    folder = _folder(config.model.path)
    if folder is None or not (folder / "config.json").is_file():
        return None
    tokenizer = config.model.tokenizer and _folder(config.model.tokenizer)
    if config.model.tokenizer and tokenizer is None:
        return None
    context = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("max_position_embeddings")
    if context is None:
        return None
    settings = config.model.model_copy(update={"path": str(folder), "tokenizer": tokenizer and str(tokenizer)})
    context = allowed_context(context, config.rollout)
    return build_prompt(config.data, load_tokenizer(settings), context, config.rollout.max_new_tokens, config.model)


def fit_line(config: TrainingConfig) -> str:
    """For `--dry-run`: that every training and validation position fits, or why that is not known yet.

    Raises PromptDoesNotFit where one does not.
    """
    prompt = prompt_at_hand(config)
    if prompt is None:
        return f"longest prompt    not checked: the tokenizer of {config.model.path} is not on this machine"
    networks = [each.network for each in load_training(config.data)]
    if config.evaluation.every:
        networks += load_sources(config.data.validation)[: config.evaluation.max_networks]
    count = require_fitting(prompt, networks, config.data.window)
    own = "; rollout.server may allow fewer, which the run asks it before round 1" if config.rollout.server else ""
    return f"longest prompt    all {count} positions fit {prompt.max_prompt_tokens:,} tokens{own}"


def _first_misfit(prompt: WriterPrompt, network: Network, window: int | None) -> tuple[int, int] | None:
    """(position, tokens that it needs) of the first segment that does not fit."""
    roster: set[str] = set()
    for segment in network.segments(window):
        roster.update(message.speaker for message in segment.messages)
        needed = prompt.fewest_tokens(segment, roster)
        if needed > prompt.max_prompt_tokens:
            return segment.position, needed
    return None


def _remedy(prompt: WriterPrompt, network: Network, window: int | None) -> str:
    smaller = max(len(segment.messages) for segment in network.segments(window)) // 2
    while smaller and _first_misfit(prompt, network, smaller):
        smaller //= 2
    if smaller:
        return f"data.window {smaller} fits (teacher data then made with the same --window), or take a longer context"
    return "one message alone is too long for any data.window: shorten it, leave the network out, or take a longer context"


def _folder(source: str) -> Path | None:
    """A model's folder: itself, or where the Hugging Face cache has it."""
    if resolve(source).is_dir():
        return resolve(source)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source, local_files_only=True))
    except (OSError, ValueError):  # not there, or no name of a model
        return None
