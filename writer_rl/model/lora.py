"""A low-rank adapter (LoRA, through `peft`) in a policy's model: trained instead of the weights, and off it is the reference.

A matrix W of a chosen layer becomes W + (alpha / rank) B A with A [rank, columns] and B [rows, rank]; W is frozen and B begins at
zero, so that the adapted model begins as its base. Nothing here ever writes to W: merged weights are computed beside it, so
that no rounding gathers in the base, however often the sampler is synced.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from writer_rl.config import ModelSection
from writer_rl.model.batching import ScoredBatch
from writer_rl.model.policy import Policy, PolicyError

if TYPE_CHECKING:
    from peft import LoraConfig

ADAPTER = "adapter"
"""The adapter's folder inside a model folder, as `PeftModel.from_pretrained` reads it."""
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
NAME = "default"
BASE, DOWN, UP = ".base_layer.weight", f".lora_A.{NAME}.weight", f".lora_B.{NAME}.weight"
"""Names of an adapted matrix W and its factors A and B, after the layer's own."""


def add_adapter(policy: Policy, settings: ModelSection, seed: int = 0) -> Policy:
    """The policy with the adapter that `model.lora` asks for, its other weights frozen; unchanged where it asks for none.

    Seeded, and the global random state stays as it was. Raises PolicyError without `peft`, for random weights, and for
    `target_modules` that the model has not or that are its head.
    """
    lora, model = settings.lora, policy.model
    if not lora.rank:
        return policy
    if settings.init != "pretrained":
        raise PolicyError(f"model.lora: an adapter needs pretrained weights below it, not model.init {settings.init}")
    _check_targets(model, lora.target_modules)
    peft = _import_peft()
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        base_model_name_or_path=model.name_or_path,
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.target_modules),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        peft.inject_adapter_in_model(config, model, NAME)
    return policy.train(policy.training)


def has_adapter(model: nn.Module) -> bool:
    """Whether `add_adapter` gave this model one."""
    return hasattr(model, "peft_config")


class AdapterOff:
    """The frozen reference policy of a run with an adapter: the same model without it, so no second one is held.

    Example: ``reference = AdapterOff(policy); logprobs, _ = reference(batch)`` are those of the base, whatever was trained.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.model = policy.model

    @torch.no_grad()
    def __call__(self, batch: ScoredBatch, entropy: bool = False) -> tuple[Tensor, Tensor | None]:
        """See `Policy.forward`; without gradients."""
        with adapter_off(self.policy.model):
            return self.policy(batch, entropy)


@contextmanager
def adapter_off(model: nn.Module) -> Iterator[None]:
    """The base model for a while."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def base_weights(named_tensors: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """The pairs of the base model under its own names, an adapter's left out."""
    for name, tensor in named_tensors:
        if not name.endswith((DOWN, UP)):
            yield name.replace(".base_layer.", "."), tensor


def merged(model: nn.Module, named_tensors: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """A model's (name, whole tensor) pairs with the adapter added in, under the names of the model without one.

    The sum is taken in float32 and rounded once to the matrix's dtype. Pairs of a model without an adapter pass unchanged. At
    most one layer's tensors are held back, if they come in the module's order.
    """
    if not has_adapter(model):
        yield from named_tensors
        return
    config = _adapter_config(model)
    scaling = config.lora_alpha / config.r
    waiting: dict[str, dict[str, Tensor]] = {}
    for name, tensor in named_tensors:
        part = next((ending for ending in (BASE, DOWN, UP) if name.endswith(ending)), None)
        if part is None:
            yield name.replace(".base_layer.", "."), tensor
            continue
        layer = name.removesuffix(part)
        parts = waiting.setdefault(layer, {})
        parts[part] = tensor
        if len(parts) == 3:
            del waiting[layer]
            low_rank = parts[UP].float() @ parts[DOWN].float()
            yield f"{layer}.weight", (parts[BASE].float() + scaling * low_rank).to(parts[BASE].dtype)
    if waiting:
        raise ValueError(f"{min(waiting)}: its adapter came without its matrix, or only in part")


def save_adapter(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """The adapter alone, in peft's format. weights: the model's whole tensors by its own names."""
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    own = get_peft_model_state_dict(model, dict(weights), NAME, save_embedding_layers=False)
    folder.mkdir(parents=True, exist_ok=True)
    # What PeftModel, which wraps the model twice, calls them.
    tensors = {f"base_model.model.{name}": tensor.contiguous() for name, tensor in own.items()}
    save_file(tensors, folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    config = _adapter_config(model)
    config.inference_mode = True
    config.save_pretrained(str(folder))
    config.inference_mode = False


def _adapter_config(model: nn.Module) -> LoraConfig:
    return cast(Any, model).peft_config[NAME]


def _import_peft() -> Any:
    # peft imports bitsandbytes where there is one, which logs what a CPU has not.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        import peft
    except ImportError:
        raise PolicyError("model.lora: needs the package peft: pip install peft, or make setup") from None
    return peft


def _check_targets(model: nn.Module, targets: Iterable[str]) -> None:
    head = cast(Any, model).get_output_embeddings()
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear) and module is not head]
    there = sorted({name.rpartition(".")[2] for name in linear})
    for target in targets:
        if target not in there:
            raise PolicyError(f"model.lora.target_modules: {target}: this model's linear layers are {', '.join(there)}")
