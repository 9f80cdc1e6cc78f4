"""The Writer as the trainers see it: a causal language model that gives the log-probabilities of completions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from rollout.tokenizer_file import load_as_written
from writer_rl.config import ModelSection, resolve
from writer_rl.model.batching import ScoredBatch
from writer_rl.model.logprobs import CompletionHead, Scores
from writer_rl.model.structured_init import shape_for_copying
from writer_rl.model.support import Drawing, Support

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class PolicyError(ValueError):
    """A model or tokenizer that can't be used; one line with the remedy."""


class Policy(nn.Module):
    """A causal language model whose forward pass scores completion tokens.

    `model` is the transformers model under its own names (what is exported and what the sampler loads). Its dropout is off, so
    that the same tokens under the same parameters always have the same log-probabilities.

    Example: ``logprobs, entropy = policy(collate(samples), entropy=True)``; both [N], one number per completion token.
    """

    def __init__(self, model: PreTrainedModel, logprob_chunk: int = 1024) -> None:
        super().__init__()
        self.model = model
        self.head = CompletionHead(_output_layer(model), logprob_chunk)
        _disable_dropout(model)

    def forward(self, batch: ScoredBatch, entropy: bool = False, drawn: Drawing | Support | None = None) -> Scores:
        """Log-probabilities [T] of the batch's completion tokens at temperature 1, and their entropies [T] on demand.

        drawn: see `CompletionHead.forward`.
        """
        states = _body(self.model)(**batch.inputs(self.model), use_cache=False).last_hidden_state
        return self.head(batch.predictors(states), batch.targets, entropy, batch.predictor_of, drawn)


def load_policy(settings: ModelSection, seed: int = 0, logprob_chunk: int = 1024, path: str | Path | None = None) -> Policy:
    """The Writer of a configuration, on the CPU, in training mode.

    path: load these weights instead of `settings.path` (the reference, a checkpoint).
    Raises PolicyError for a path that is no model, for weights that are not this model's, and for a model whose head does more
    than a matrix product.
    """
    source = model_source(str(path or settings.path))
    model = _random(source, settings, seed) if settings.init != "pretrained" and path is None else _pretrained(source, settings)
    if settings.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    policy = Policy(model, logprob_chunk).train()
    _check_head(policy, source)
    return policy


def load_reference(settings: ModelSection, seed: int = 0, logprob_chunk: int = 1024) -> Policy:
    """The frozen reference policy: `model.reference`, else the policy's own start."""
    plain = settings.model_copy(update={"gradient_checkpointing": False})
    return load_policy(plain, seed, logprob_chunk, settings.reference).requires_grad_(False).eval()


def load_tokenizer(settings: ModelSection, vocabulary: int | None = None) -> PreTrainedTokenizerBase:
    """The Writer's tokenizer; PolicyError without a chat template, or with ids beyond the model's `vocabulary`."""
    source = model_source(settings.tokenizer or settings.path)
    try:
        tokenizer = load_as_written(source)
    except Exception as error:  # a damaged tokenizer.json raises nothing more precise
        raise PolicyError(f"tokenizer {source}: could not be loaded: {_first_line(error)}") from None
    if not tokenizer.chat_template:
        raise PolicyError(f"tokenizer {source}: has no chat template; use an instruction-tuned model's, or set model.tokenizer")
    if vocabulary is not None and len(tokenizer) > vocabulary:
        raise PolicyError(
            f"tokenizer {source}: has {len(tokenizer)} ids, the model only {vocabulary}: not this model's tokenizer"
        )
    return tokenizer


def model_source(path: str) -> str:
    """A local directory as an absolute path, else the Hugging Face id as it is."""
    local = resolve(path)
    if local.is_dir():
        return str(local)
    if local.exists() or path.startswith((".", "/", "~")) or path.count("/") > 1:
        raise PolicyError(f"model {path}: no such directory")
    return path


def _load(call: Any, source: str, **kwargs: Any) -> Any:
    from safetensors import SafetensorError

    try:
        return call(source, **kwargs)
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError) as error:
        known = "" if Path(source).is_dir() else " (no local directory of this name either)"
        raise PolicyError(f"model {source}: could not be loaded{known}: {_first_line(error)}") from None


def _pretrained(source: str, settings: ModelSection) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    model, info = _load(
        AutoModelForCausalLM.from_pretrained,
        source,
        dtype=getattr(torch, settings.dtype),
        attn_implementation=settings.attn_implementation,
        output_loading_info=True,
    )
    absent = sorted(info["missing_keys"])
    if absent or info["mismatched_keys"]:
        name = absent[0] if absent else sorted(map(str, info["mismatched_keys"]))[0]
        raise PolicyError(f"model {source}: its weights are another model's: {name} is missing or of another shape")
    return model


def _random(source: str, settings: ModelSection, seed: int) -> PreTrainedModel:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = _load(AutoConfig.from_pretrained, source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, settings.dtype), attn_implementation=settings.attn_implementation
        )
        if settings.init == "structured":
            try:
                shape_for_copying(model)
            except ValueError as error:
                raise PolicyError(f"model.init: {error}") from None
        return model


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _causal_lm(model: nn.Module) -> PreTrainedModel:
    return cast("PreTrainedModel", cast(Any, model).get_base_model() if hasattr(model, "get_base_model") else model)


def _body(model: nn.Module) -> nn.Module:
    """The transformer below the head, adapters included."""
    return cast(nn.Module, _causal_lm(model).base_model)


def _output_layer(model: nn.Module) -> nn.Linear:
    head: Any = _causal_lm(model).get_output_embeddings()
    if not hasattr(head, "weight") or getattr(head, "bias", None) is not None:
        raise PolicyError(f"{type(model).__name__}: its output layer is no plain matrix, which the log-probabilities need")
    return head


def _disable_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            setattr(module, "attention_dropout", 0.0)  # noqa: B010 - torch types every attribute of a module as a tensor


@torch.no_grad()
def _check_head(policy: Policy, source: str) -> None:
    """Some models scale or cap their logits after the head; the log-probabilities here would then be wrong."""
    ids = torch.arange(4)[None] % policy.head.weight.shape[0]
    states = _body(policy.model)(input_ids=ids, use_cache=False).last_hidden_state
    expected = policy.model(input_ids=ids, use_cache=False).logits
    if not expected.isfinite().all():
        raise PolicyError(f"model {source}: gives logits that are not finite: its weights are damaged, take another checkpoint")
    if not torch.allclose(states @ policy.head.weight.t(), expected, rtol=1e-2, atol=1e-2):
        raise PolicyError(f"model {source}: changes its logits after the output layer (scale or cap), which is not supported")
