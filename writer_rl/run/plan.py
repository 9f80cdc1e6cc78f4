"""How much GPU memory a run takes, from shapes: what `launch/plan.py` prints and docs/scaling.md derives.

Bytes per parameter in mixed precision (bf16 weights, fp32 master copy and AdamW), P parameters, T of them trained, N ranks:

    weights      2 P          ZeRO-3: 2 P / N (offloaded: 0)
    gradients    2 T + 4 T    bf16, and their fp32 sum over micro-batches; ZeRO-2, 3: 4 T / N (optimizer offloaded: 0)
    optimizer    12 T / N     master 4, first moment 4, second moment 4 (offloaded: 0); in 8 bits: 4 + 2 (1 + 4 / 256)
    reference    2 P          ZeRO-3: 2 P / N; with LoRA 0: the policy without its adapter
    buffers      gradient buckets; with ZeRO-3 the gathered embedding or two layers
    activations  see `activation_bytes`
    sampler      2 P / tp + key-value cache; asleep while the update runs, its weights in pinned host memory

T = P in full training. LoRA adds an adapter of T parameters to the model and trains nothing else.

A rank peaks either in the rollout (everything resident + sampler) or in the update (+ gradients, buffers, activations).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from writer_rl.model.shape import ModelShape
from writer_rl.train.sampler_share import sampler_share

GIB = 1024**3
BUCKET_ELEMENTS = 200_000_000  # reduce_bucket_size in configs/deepspeed/*.json
CONTEXT_BYTES = int(1.5 * GIB)  # CUDA context, NCCL and cuBLAS workspaces
USABLE = 0.92  # of the card: the allocator's fragmentation takes the rest


class PlanError(ValueError):
    """A setting that no run can have."""


@dataclass(frozen=True)
class RunShape:
    """What of a run decides its memory.

    Example (the paper's Writer on two 80 GiB GPUs with ZeRO-2):
        RunShape(gpus=2, zero=2, micro_tokens=16384, sequences=32, sequence_tokens=8192)
    """

    gpus: int = 1
    zero: int = 2
    offload_optimizer: bool = False
    offload_parameters: bool = False
    eight_bit: bool = False  # the optimizer's moments
    lora_rank: int = 0  # 0: full training
    checkpointing: bool = True
    micro_tokens: int = 16384  # prompt and completion tokens of one micro-batch on one rank
    logit_chunk: int = 1024  # tokens whose logits exist at one time
    sequences: int = 16  # sequences that the sampler of one rank holds at one time
    sequence_tokens: int = 8192  # prompt and completion of each
    tensor_parallel: int = 1  # GPUs per sampler
    sampler: bool = True  # colocated; False: it has its own GPUs
    sampler_sleeps: bool = True

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.tensor_parallel < 1:
            raise PlanError("gpus and tensor_parallel must be at least 1")
        if self.zero not in (1, 2, 3):
            raise PlanError(f"zero must be 1, 2 or 3, not {self.zero}")
        if self.offload_parameters and self.zero != 3:
            raise PlanError("offload_parameters needs zero 3")
        if self.lora_rank < 0:
            raise PlanError("lora_rank must be at least 0")
        if self.gpus % self.tensor_parallel:
            raise PlanError(f"tensor_parallel {self.tensor_parallel} does not divide {self.gpus} GPUs")
        if min(self.micro_tokens, self.logit_chunk, self.sequences, self.sequence_tokens) < 1:
            raise PlanError("micro_tokens, logit_chunk, sequences and sequence_tokens must be at least 1")


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on one GPU, and on the host for one rank."""

    weights: int
    gradients: int
    optimizer: int
    reference: int
    buffers: int
    activations: int
    sampler: int
    host: int
    rollout_peak: int
    update_peak: int

    @property
    def peak(self) -> int:
        """The most that one GPU holds at one time."""
        return max(self.rollout_peak, self.update_peak)

    def fits(self, gib: float) -> bool:
        """Whether the peak fits a GPU of `gib` GiB with room for fragmentation."""
        return self.peak <= gib * GIB * USABLE


def activation_bytes(model: ModelShape, run: RunShape) -> int:
    """Activations of one micro-batch, attention without the [tokens, tokens] matrix (flash or SDPA).

    Saved per token of one layer, bf16: the two residual inputs and normed inputs 4 h, query, key, value and the
    attention's output 2 (heads + kv_heads) d, gate, up, activation and product 4 i; a LoRA keeps its rank for each of
    7 matrices. With checkpointing only each layer's input (h) is kept, and one layer at a time is saved in full. Logits
    exist for `logit_chunk` tokens: bf16, fp32 and their gradient, 2 + 4 + 4 bytes.
    """
    attention = 2 * (model.heads + model.kv_heads) * model.head_dim
    layer = 2 * (4 * model.hidden + attention + 4 * model.intermediate + 7 * run.lora_rank)
    kept = model.layers * 2 * model.hidden + layer if run.checkpointing else model.layers * layer
    logits = min(run.logit_chunk, run.micro_tokens) * model.vocab * (2 + 4 + 4)
    return run.micro_tokens * kept + logits


def sampler_bytes(model: ModelShape, run: RunShape) -> int:
    """A colocated sampler on one GPU: bf16 weights and the key-value cache of its sequences, over tensor_parallel GPUs."""
    if not run.sampler:
        return 0
    # The sequences of all the ranks that share one sampler lie on its tensor_parallel GPUs, so the two factors cancel.
    share = sampler_share(model, run.sequences, run.sequence_tokens)
    return 2 * model.parameters // run.tensor_parallel + share.cache + share.overhead


def plan(model: ModelShape, run: RunShape) -> MemoryPlan:
    """The memory of one rank."""
    ranks = run.gpus
    adapter = model.adapter(run.lora_rank)
    parameters = model.parameters + adapter
    trained = adapter or parameters
    shard = ranks if run.zero == 3 else 1
    weights = 2 * parameters // shard
    gradients = 4 * trained // ranks if run.zero >= 2 else 6 * trained
    optimizer = trained * (4 * 256 + 2 * (256 + 4) if run.eight_bit else 12 * 256) // (256 * ranks)
    reference = 0 if adapter else 2 * parameters // shard
    buffers = 2 * 2 * min(BUCKET_ELEMENTS, trained)
    if run.zero == 3:
        buffers += 2 * max(model.embedding, 2 * model.layer)
    host = 0
    if run.offload_optimizer:
        host += optimizer + gradients
        optimizer = gradients = 0
    if run.offload_parameters:
        host += weights
        weights = 0
    activations = activation_bytes(model, run)
    sampler = sampler_bytes(model, run)
    if run.sampler and run.sampler_sleeps:
        host += 2 * model.parameters // run.tensor_parallel
    resident = CONTEXT_BYTES + weights + optimizer + reference
    update = resident + gradients + buffers + activations + (0 if run.sampler_sleeps else sampler)
    rollout = resident + sampler
    return MemoryPlan(weights, gradients, optimizer, reference, buffers, activations, sampler, host, rollout, update)


def fewest_gpus(model: ModelShape, run: RunShape, gib: float, choices: tuple[int, ...] = (1, 2, 4, 8, 16)) -> int | None:
    """The smallest number of `gib` GiB GPUs in `choices` on which `run` fits; None if none of them does."""
    for gpus in choices:
        if gpus % run.tensor_parallel == 0 and plan(model, replace(run, gpus=gpus)).fits(gib):
            return gpus
    return None
