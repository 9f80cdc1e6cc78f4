"""Which optimizer a configuration asks for: AdamW, AdamW with moments in 8 bits, or Muon for matrices beside AdamW for the rest.

Muon (Jordan et al., 2024) replaces a matrix's momentum by the nearest orthogonal matrix, so that every direction of the matrix
moves at the same pace; small models learn to copy in a fraction of AdamW's steps. `torch.optim.Muon` computes in bfloat16, which
CPUs without it emulate slowly; here the iteration is float32, and matrices of one shape are orthogonalised as one stack.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw as adamw_step

from writer_rl.config import TrainerSection
from writer_rl.train.backend import OptimizerFactory, adamw, parameter_groups

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic iteration x <- a x + b (x x^T) x + c (x x^T)^2 x."""
ITERATIONS = 5
MOMENTUM = 0.95
RMS = 0.2
"""Root mean square of an update's entries at rate 1, about AdamW's."""
EIGHT_BIT_ELEMENTS = 2**30
"""At most so many in one group of the 8-bit optimizer: ZeRO flattens a group, and the kernels count elements in 32 bits."""


class OptimizerError(ValueError):
    """An optimizer that can't work as configured; one line with the remedy."""


def optimizer_factory(settings: TrainerSection, zero_stage: int, ranks: int) -> OptimizerFactory:
    """What makes the configured optimizer for a `writer_rl.train.backend.Backend`.

    Raises OptimizerError for adamw8bit without bitsandbytes, and for muon where ZeRO gives a rank only pieces of matrices:
    stage 1 or 2 on several ranks, and stage 3.
    """
    if settings.optimizer == "adamw":
        return adamw
    if settings.optimizer == "adamw8bit":
        _import_bitsandbytes()
        return adamw8bit
    if zero_stage == 3 or (zero_stage and ranks > 1):
        raise OptimizerError(
            f"trainer.optimizer: muon needs whole matrices, and ZeRO {zero_stage} on {ranks} rank(s) shards them; "
            "use adamw or trainer.zero_stage 0"
        )
    return muon_and_adamw


def adamw8bit(module: nn.Module, settings: TrainerSection) -> torch.optim.Optimizer:
    """AdamW whose two moments take a byte each: blocks of 256 values share a float32 scale (Dettmers et al., 2021).

    Tensors of fewer than 4,096 elements keep float32 moments.
    """
    return _import_bitsandbytes().AdamW8bit(
        [part for group in parameter_groups(module) for part in _parts(group, EIGHT_BIT_ELEMENTS)],
        lr=settings.lr,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )


def _parts(group: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """A parameter group cut so that none has more than `most` elements; a larger parameter is alone."""
    parts: list[list[nn.Parameter]] = [[]]
    size = 0
    for p in group["params"]:
        count = getattr(p, "ds_numel", p.numel())
        if parts[-1] and size + count > most:
            parts.append([])
            size = 0
        parts[-1].append(p)
        size += count
    return [{**group, "params": part} for part in parts]


def _import_bitsandbytes() -> Any:
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it logs what a CPU has not
    try:
        import bitsandbytes.optim
    except (ImportError, OSError, RuntimeError):  # the latter two: its library does not fit the machine's CUDA
        raise OptimizerError(
            "trainer.optimizer: adamw8bit needs the package bitsandbytes: pip install bitsandbytes, or use adamw"
        ) from None
    return bitsandbytes.optim


def muon_and_adamw(module: nn.Module, settings: TrainerSection) -> MuonAdamW:
    """Muon on the matrices between embedding and head (rate `matrix_lr`), AdamW on embedding, head and vectors (rate `lr`)."""
    tables = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
    tables |= {id(m.weight) for name, m in module.named_modules() if name.endswith("lm_head") and isinstance(m, nn.Linear)}
    trained = [p for p in module.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.dim() == 2 and id(p) not in tables]
    chosen = {id(p) for p in matrices}
    return MuonAdamW(
        matrices,
        [p for p in trained if id(p) not in chosen],
        matrix_lr=settings.matrix_lr,
        lr=settings.lr,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )


class MuonAdamW(torch.optim.Optimizer):
    """One optimizer with two rules: param group 0 is Muon's, group 1 AdamW's (either may be absent).

    matrices: [rows, columns] parameters. Muon's step, with momentum buffer b and Nesterov momentum m = 0.95:
        b <- m b + g;  u <- orthogonal(g + m b);  p <- p (1 - lr wd) - lr 0.2 sqrt(max(rows, columns)) u
    Vectors have no weight decay.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        others: Iterable[nn.Parameter],
        matrix_lr: float,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        matrices, others = list(matrices), list(others)
        if any(p.dim() != 2 for p in matrices):
            raise ValueError("Muon is defined for matrices only")
        common = {"betas": betas, "eps": eps}
        groups: list[dict[str, Any]] = [
            {"params": matrices, "lr": matrix_lr, "rule": "muon", "weight_decay": weight_decay},
            {"params": [p for p in others if p.dim() > 1], "lr": lr, "rule": "adamw", "weight_decay": weight_decay},
            {"params": [p for p in others if p.dim() < 2], "lr": lr, "rule": "adamw", "weight_decay": 0.0},
        ]
        super().__init__([group for group in groups if group["params"]], common)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step of both rules on the parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if group["rule"] == "muon":
                self._muon(parameters, group)
            else:
                self._adamw(parameters, group)
        return loss

    def _muon(self, parameters: list[nn.Parameter], group: dict[str, Any]) -> None:
        by_shape: dict[tuple[int, ...], list[nn.Parameter]] = defaultdict(list)
        for p in parameters:
            by_shape[tuple(p.shape)].append(p)
        for shape, same in by_shape.items():
            gradients = torch.stack([_gradient(p).float() for p in same])
            for p in same:
                self.state[p].setdefault("momentum", torch.zeros_like(p, dtype=torch.float32))
            momenta = torch.stack([self.state[p]["momentum"] for p in same]).mul_(MOMENTUM).add_(gradients)
            updates = orthogonal(gradients.add_(momenta, alpha=MOMENTUM))
            rate = group["lr"] * RMS * max(shape) ** 0.5
            for p, momentum, update in zip(same, momenta, updates, strict=True):
                self.state[p]["momentum"].copy_(momentum)
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update.to(p.dtype), alpha=-rate)

    def _adamw(self, parameters: list[nn.Parameter], group: dict[str, Any]) -> None:
        for p in parameters:
            state = self.state[p]
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32, device=p.device)
                state["exp_avg"] = torch.zeros_like(p)
                state["exp_avg_sq"] = torch.zeros_like(p)
        states = [self.state[p] for p in parameters]
        adamw_step(
            list[Tensor](parameters),
            [_gradient(p) for p in parameters],
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [],
            [s["step"] for s in states],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices [n, rows, columns] with their singular values moved to about 1 (0.7 to 1.2), float32.

    Newton-Schulz on the smaller side. A zero matrix stays zero.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(ITERATIONS):
        gram = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if tall else x
