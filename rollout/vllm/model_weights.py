"""Which tensors a model directory's architecture has: what an engine must be sent, no more and no less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from rollout.engine import RolloutInputError


def expected_shapes(model_path: str) -> dict[str, torch.Size]:
    """Shapes by Hugging Face name, tied parameters under each of their names; reads only the configuration.

    Raises RolloutInputError where there is none.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(model_path)
    except (OSError, ValueError) as error:
        raise RolloutInputError(
            f"{model_path} is no Hugging Face model folder ({type(error).__name__}: it needs a config.json that "
            "transformers knows); launch/export.py writes one from a checkpoint"
        ) from None
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return {name: parameter.shape for name, parameter in model.named_parameters(remove_duplicate=False)}


def checked_tensors(
    named_tensors: Iterable[tuple[str, torch.Tensor]], expected: dict[str, torch.Size], owner: str
) -> Iterator[tuple[str, torch.Tensor]]:
    """Pass tensors on; ValueError for an unknown name, another shape, or, at the end, one that was not sent."""
    missing = dict(expected)
    for name, tensor in named_tensors:
        if name not in expected:
            raise ValueError(f"update_weights: {name!r} is no parameter of {owner}")
        if tensor.shape != expected[name]:
            raise ValueError(f"update_weights: {name} has shape {list(tensor.shape)}, the engine's has {list(expected[name])}")
        missing.pop(name, None)
        yield name, tensor
    if missing:
        raise ValueError(f"update_weights: {len(missing)} parameters were not sent, {min(missing)} among them")
