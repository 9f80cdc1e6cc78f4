"""The frozen reference of the KL term: whole on every rank, or in shards under ZeRO-3; and a hash of its weights.

A path says where a reference came from, not what it is: trained anew, the same path gives another KL. So a run keeps the hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from rollout.checksum import named_checksums
from rollout.weights import named_weights
from writer_rl.config import TrainerSection
from writer_rl.model.batching import ScoredBatch
from writer_rl.model.lora import base_weights
from writer_rl.model.policy import Policy
from writer_rl.train.backend import import_deepspeed, shard
from writer_rl.train.deepspeed_config import deepspeed_config
from writer_rl.train.distributed import World


class FrozenReference(Protocol):
    """Called like a `Policy`; `model` has its weights (an adapter of the policy's beside them, where it is the policy's base)."""

    @property
    def model(self) -> nn.Module: ...

    def __call__(self, batch: ScoredBatch, entropy: bool = False) -> tuple[Tensor, Tensor | None]: ...


class ShardedReference:
    """A reference whose weights lie in ZeRO-3 shards, gathered layer by layer in each pass; on the host with `offload_param`.

    policy: on the CPU, frozen; it is sharded in place, one matrix at a time. A GPU then holds bytes / ranks. Calls are
    collective: every rank makes equally many.

    Example: ``reference = ShardedReference(load_reference(model), trainer, world, "bfloat16"); logprobs, _ = reference(batch)``
    """

    def __init__(self, policy: Policy, settings: TrainerSection, world: World, dtype: str) -> None:
        deepspeed = import_deepspeed()
        config = deepspeed_config(settings, world, dtype)
        config["zero_optimization"] = {k: v for k, v in config["zero_optimization"].items() if k != "offload_optimizer"}
        self.model: nn.Module = shard(policy, config, world.device).model
        self.engine, *_ = deepspeed.initialize(model=policy, config=config, dist_init_required=False)
        self.engine.eval()

    @torch.no_grad()
    def __call__(self, batch: ScoredBatch, entropy: bool = False) -> tuple[Tensor, Tensor | None]:
        """See `Policy.forward`; without gradients."""
        return self.engine(batch, entropy=entropy)


def weights_digest(model: nn.Module) -> str:
    """SHA-256 over the checksums of all weights by name, an adapter's left out. Collective under ZeRO-3.

    The same for a model whole or in shards, with an adapter or without one.
    """

    def weights() -> Iterator[tuple[str, Tensor]]:
        yield from base_weights(named_weights(model, tied=False))

    return hashlib.sha256(json.dumps(named_checksums(weights()), sort_keys=True).encode()).hexdigest()
