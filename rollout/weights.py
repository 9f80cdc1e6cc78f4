"""All parameters of a training module as (name, tensor) pairs, ready for an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from torch import Tensor, nn

GROUP_BYTES = 256 * 2**20


def named_weights(module: nn.Module, group_bytes: int = GROUP_BYTES, tied: bool = True) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter whole under its Hugging Face name, tied ones under each of their names.

    A tied ``lm_head.weight`` is sent although ``save_pretrained`` would leave it out: an engine that packs its head
    keeps a stale one otherwise (log-probabilities off by 0.5 to 0.7, silently).

    Args:
        module: a model, or a wrapper whose ``.module`` is one (a DeepSpeed engine).
        group_bytes: parameters that ZeRO-3 has sharded are gathered in consecutive groups of at most this size, one
            group at a time, and released before the next. Gathering is collective: every rank has to drain the
            iterator.
        tied: False: a tied parameter once, under its first name, as files hold it.
    """
    model = unwrapped(module)
    parameters = list(model.named_parameters(remove_duplicate=not tied))
    for group in _groups(parameters, group_bytes):
        with _gathered([parameter for _, parameter in group]):
            for name, parameter in group:
                # The engine may still hold a shard's tensor when the group is released.
                yield name, parameter.detach().clone() if hasattr(parameter, "ds_id") else parameter.detach()


def unwrapped(module: nn.Module) -> nn.Module:
    """The model inside wrappers that hold it as ``.module``; asked of the submodules, for wrappers forward attributes."""
    while "module" in (children := dict(module.named_children())):
        module = children["module"]
    return module


def _groups(parameters: list[tuple[str, nn.Parameter]], group_bytes: int) -> Iterator[list[tuple[str, nn.Parameter]]]:
    group: list[tuple[str, nn.Parameter]] = []
    size = 0
    for name, parameter in parameters:
        count = getattr(parameter, "ds_numel", None) or parameter.numel()
        grown = size + count * parameter.element_size()
        if group and grown > group_bytes:
            yield group
            group, grown = [], count * parameter.element_size()
        group.append((name, parameter))
        size = grown
    if group:
        yield group


def _gathered(parameters: list[nn.Parameter]) -> AbstractContextManager[object]:
    if not any(hasattr(parameter, "ds_id") for parameter in parameters):
        return nullcontext()
    import deepspeed

    return deepspeed.zero.GatheredParameters(list(dict.fromkeys(parameters)))
