"""The DeepSpeed engine behind the few calls that a trainer needs: backward, look, then step or discard.

The one owner of the accumulation boundary. A gradient is looked at (norm, finiteness; over all ranks) before anything changes;
a discarded update leaves parameters, optimizer state and step counters as they were, on every ZeRO stage.
"""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from writer_rl.config import TrainerSection
from writer_rl.model.batching import ScoredBatch
from writer_rl.model.policy import Policy
from writer_rl.model.support import Drawing, Support
from writer_rl.train.deepspeed_config import BackendError, deepspeed_config, zero_settings
from writer_rl.train.distributed import World

OptimizerFactory = Callable[[nn.Module, TrainerSection], torch.optim.Optimizer]


@dataclass(frozen=True)
class StepOutcome:
    """What became of an accumulated gradient.

    Example: ``StepOutcome(taken=False, grad_norm=nan)``: not finite, discarded.
    """

    taken: bool
    grad_norm: float
    """Before clipping, over all ranks."""


def parameter_groups(module: nn.Module) -> list[dict[str, Any]]:
    """Every trainable parameter, in groups for an optimizer: decay on matrices only."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    # Under ZeRO-3 a parameter's own shape is that of an empty shard; ds_shape is the real one.
    matrices = [p for p in parameters if len(getattr(p, "ds_shape", p.shape)) >= 2]
    vectors = [p for p in parameters if len(getattr(p, "ds_shape", p.shape)) < 2]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def adamw(module: nn.Module, settings: TrainerSection) -> torch.optim.Optimizer:
    """AdamW on every trainable parameter."""
    return torch.optim.AdamW(
        parameter_groups(module),
        lr=settings.lr,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
        fused=True,
    )


class Backend:
    """A policy, its optimizer and DeepSpeed.

    policy: on the CPU; it moves to `world.device`. settings: `trainer` of the configuration. optimizer: makes the optimizer
    (default AdamW); its param groups' `lr` are the rates that `step(lr_factor)` scales.

    Example (one update over micro-batches, on every rank):
        for i, batch in enumerate(batches):
            loss = ...                                         # this rank's share, see `backward`
            backend.backward(loss, last=i == len(batches) - 1)
        outcome = backend.step(lr_factor=schedule(round))      # or backend.discard()
    """

    def __init__(
        self, policy: Policy, settings: TrainerSection, world: World, optimizer: OptimizerFactory = adamw, dtype: str = "float32"
    ) -> None:
        self.world = world
        self.stage, self.offload = zero_settings(settings, dtype)
        self.max_grad_norm = settings.max_grad_norm
        deepspeed = import_deepspeed()
        config = deepspeed_config(settings, world, dtype)
        self.policy = shard(policy, config, world.device) if self.stage == 3 else policy.to(world.device)
        self.engine, self.optimizer, _, _ = deepspeed.initialize(
            model=self.policy,
            optimizer=optimizer(self.policy, settings),
            config=config,
            dist_init_required=False,
        )
        self._base_rates = [group["lr"] for group in self.optimizer.param_groups]
        self._pending = False

    @property
    def device(self) -> torch.device:
        """Where the policy is."""
        return self.world.device

    def logprobs(self, batch: ScoredBatch, entropy: bool = False) -> tuple[Tensor, Tensor | None]:
        """`Policy.forward` through DeepSpeed, which the backward pass needs. All ranks call it equally often."""
        return self.engine(batch, entropy=entropy)

    def logprobs_as_drawn(
        self, batch: ScoredBatch, drawn: Drawing | Support, entropy: bool = False
    ) -> tuple[Tensor, Tensor | None, Tensor, Support]:
        """`logprobs`, then those renormalised over what the sampler could draw, and these sets (`CompletionHead.forward`)."""
        return self.engine(batch, entropy=entropy, drawn=drawn)

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add the gradient of `loss`.

        loss: this rank's summand of the update's loss: the gradients of all ranks' and all micro-batches' losses are summed, not
        averaged, so each is divided by the whole update's count. last: the update's last micro-batch on this rank; every rank
        has the same number of them.
        """
        self.engine.set_gradient_accumulation_boundary(last)
        # DeepSpeed averages over ranks; the sum is what one big batch would give.
        self.engine.backward(loss * self.world.size, scale_wrt_gas=False)
        self._pending = True

    def step(self, lr_factor: float = 1.0) -> StepOutcome:
        """Clip and apply the gradient, or discard it if its norm is not finite on any rank.

        lr_factor scales every param group's rate. Collective.
        """
        norm = self._grad_norm()
        if not math.isfinite(norm):
            self.discard()
            return StepOutcome(False, norm)
        for group, rate in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * lr_factor
        if self.stage == 0:
            torch.nn.utils.clip_grads_with_norm_(
                self.policy.parameters(), self.max_grad_norm, torch.tensor(norm, device=self.device), foreach=True
            )
        steps = self.engine.global_steps
        self.engine.step()
        if self.engine.global_steps != steps + 1:
            raise RuntimeError(f"DeepSpeed took {self.engine.global_steps - steps} steps where one was due")
        self._pending = False
        return StepOutcome(True, norm)

    def discard(self) -> None:
        """Forget the accumulated gradient; nothing else changes. Collective, and harmless without a gradient."""
        if not self._pending:
            return
        self._pending = False
        self.engine.zero_grad()
        if self.stage == 0:
            return
        optimizer = self.optimizer
        optimizer.zero_grad()
        if hasattr(optimizer, "clear_hp_grads"):  # bfloat16 with ZeRO-1 keeps float32 sums apart
            return
        optimizer.reset_cpu_buffers()
        # What the ZeRO optimizers themselves drop after an overflow.
        if self.stage < 3:
            from deepspeed.runtime.zero.stage_1_and_2 import INITIAL_MICRO_STEP_ID

            optimizer.micro_step_id = INITIAL_MICRO_STEP_ID
            optimizer._release_preflattened_grad_buffers()
            for group in list(optimizer.averaged_gradients):
                optimizer.averaged_gradients[group] = None
            for group in list(optimizer.all_grad_tensors):
                optimizer.all_grad_tensors[group] = None
        else:
            optimizer.averaged_gradients = {}

    def rates(self) -> list[float]:
        """The learning rate of each param group, as last used."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def save(self, folder: Path) -> None:
        """Write trained parameters and optimizer state under `folder`, each rank its part. Collective."""
        frozen = self._frozen()
        self.engine.save_checkpoint(str(folder), tag="engine", save_latest=False, exclude_frozen_parameters=frozen)

    def _frozen(self) -> bool:
        """Whether parameters are frozen: an adapter's base, which lies where the run got it from."""
        return any(not parameter.requires_grad for parameter in self.policy.parameters())

    def load(self, folder: Path) -> None:
        """Read what `save` wrote with the same number of ranks and ZeRO stage. Collective."""
        path, _ = self.engine.load_checkpoint(str(folder), tag="engine", load_module_strict=not self._frozen())
        if path is None:
            raise BackendError(f"{folder}: holds no state of a DeepSpeed engine")

    def _grad_norm(self) -> float:
        """The norm of the summed gradient before clipping; nan or inf if any rank's part is not finite."""
        optimizer = self.optimizer
        if self.stage == 0:
            grads = [p.grad for p in self.policy.parameters() if p.grad is not None]
            return float(torch.nn.utils.get_total_norm(grads, foreach=True))
        from deepspeed.runtime.utils import combine_grad_norm_groups, get_global_norm_of_tensors

        if hasattr(optimizer, "clear_hp_grads"):
            norm = get_global_norm_of_tensors(optimizer.get_grads_for_norm()[0], mpu=None)
        elif self.stage < 3:
            norm = optimizer.scaled_global_norm()
        else:
            norm = combine_grad_norm_groups(optimizer._get_norm_groups())
        norm = float(norm)
        return norm if norm >= 0 else math.nan  # DeepSpeed writes -1 for a norm that is not finite


def shard(policy: Policy, config: dict[str, Any], device: torch.device) -> Policy:
    """The policy in ZeRO-3 shards on `device`, in place. Matrix by matrix: no device ever holds the whole of it. Collective."""
    deepspeed = import_deepspeed()
    deepspeed.zero.Init(module=policy, config_dict_or_path=config)
    deepspeed.zero.register_external_parameter(policy.head, policy.head.weight)
    for buffer in policy.buffers():  # which zero.Init leaves where they are
        buffer.data = buffer.data.to(device)
    return policy


def import_deepspeed() -> Any:
    """DeepSpeed without its chatter, and without its shared-memory op, which it would compile at first use on a CPU.

    A run killed during that compilation leaves a lock behind, for which every later run waits in silence; gloo does the work.
    """
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.distributed")
    import deepspeed
    import deepspeed.comm

    if os.environ.get("DS_ACCELERATOR") == "cpu":
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    from deepspeed.utils import logger

    logger.setLevel(logging.WARNING)
    if not deepspeed.comm.is_initialized():
        deepspeed.init_distributed(auto_mpi_discovery=False, verbose=False)
    return deepspeed
