"""The `trainer` sections: what SFT and GRPO share, and what each has of its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, field_validator, model_validator

from writer_rl.config.section import SettingsSection


class TrainerSection(SettingsSection):
    """What every trainer has: optimizer, DeepSpeed, batches, checkpoints."""

    lr: PositiveFloat
    """The peak learning rate."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the rate falls from `lr` to `lr_final` over the run."""
    lr_final: NonNegativeFloat = 0.0
    """The rate at the end of a linear or cosine schedule."""
    warmup_steps: NonNegativeInt = 0
    """Steps over which the rate first rises from 0."""
    optimizer: Literal["adamw", "adamw8bit", "muon"] = "adamw"
    """adamw8bit: moments in 8 bits (bitsandbytes); muon: float32 Muon on matrices (`matrix_lr`, zero_stage 0), else AdamW."""
    matrix_lr: PositiveFloat = 5e-3
    """Muon's rate for matrices."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay rates of the moments."""
    eps: PositiveFloat = 1e-8
    """AdamW's denominator offset."""
    max_grad_norm: PositiveFloat = 1.0
    """The gradient's norm is clipped to this."""
    packing: Literal["tree", "padded"] = "tree"
    """tree: what samples share at their beginnings is computed once, if the model allows; padded: each sample by itself."""
    micro_batch_tokens: PositiveInt | None = None
    """Tokens of one forward and backward pass (padding counts, what is shared counts once); null: 4,096 on CPU, 16,384 on GPU."""
    logprob_chunk: PositiveInt = 1024
    """Completion tokens whose logits over the vocabulary exist at one time."""
    zero_stage: Literal["auto", 0, 1, 2, 3] = "auto"
    """DeepSpeed's ZeRO stage; auto: the launcher's (accelerate --zero_stage), else 0."""
    offload: Literal["auto", "none", "cpu"] = "auto"
    """cpu: ZeRO keeps optimizer state in host memory; auto: the launcher's, else none."""
    deepspeed: str | None = None
    """A DeepSpeed file (configs/deepspeed/) with further ZeRO settings; null: the launcher's, if any."""
    max_consecutive_skips: PositiveInt = 10
    """The run stops with the reason after so many rounds (SFT: steps) in a row without an optimizer step."""
    threads: PositiveInt | None = None
    """CPU threads of torch; null: its default."""
    resume: str = "auto"
    """auto: go on from the run directory's last checkpoint if there is one; never: refuse a used one; or a checkpoint."""
    checkpoint_every: PositiveInt = 1
    """Rounds (SFT: steps) between checkpoints to go on from."""
    keep_checkpoints: PositiveInt = 2
    """Checkpoints to go on from that stay (weights, master copies and optimizer: 16 bytes a parameter in bfloat16)."""
    weights_every: PositiveInt | None = None
    """Rounds (SFT: steps) between light checkpoints, weights alone (2 bytes a parameter); null: only the best and at the end."""
    keep_weights: PositiveInt = 2
    """Light checkpoints that stay, beside the best."""

    @field_validator("betas")
    @classmethod
    def _betas_are_decay_rates(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in value):
            raise ValueError("each must be at least 0 and less than 1")
        return value

    @field_validator("zero_stage", mode="before")
    @classmethod
    def _stage_from_text(cls, value: object) -> object:
        return int(value) if isinstance(value, str) and value.isdigit() else value


class GRPOTrainer(TrainerSection):
    """Position-aligned GRPO (Eq. 23-27)."""

    lr: PositiveFloat = 1e-6
    """The peak learning rate."""
    steps: PositiveInt = 30
    """Rollout rounds, each followed by one policy update (the paper: every network twice, one a round)."""
    epochs: PositiveInt = 2
    """Passes over an update's samples, one optimizer step each."""
    clip: float = Field(default=0.2, gt=0, lt=1)
    """epsilon of Eq. 26: the token ratio's distance from 1 beyond which it has no gradient."""
    kl_coef: NonNegativeFloat = 0.1
    """beta of Eq. 26: the weight of the k3 KL against the reference policy."""
    kl_limit: NonNegativeFloat | None = 0.02
    """An update whose mean KL exceeds this is skipped; null: no limit."""
    min_abs_advantage: NonNegativeFloat = 0.0
    """Samples whose |advantage| is smaller take no part in the update; 0: only exact zeros."""
    importance_cap: float | None = Field(default=None, ge=1)
    """Weight tokens by min(trainer probability / sampler probability, cap); null: no correction (the paper's objective)."""
    ratio: Literal["policy", "sampler"] = "policy"
    """What Eq. 25's token ratio is taken between: policies at temperature 1 (policy, the paper), or policies at the sampler's
    temperature, renormalised over the nucleus that it drew from (sampler; docs/rollouts.md)."""
    credit: Literal["aligned", "trajectory", "difference", "local", "anchor"] = "aligned"
    """What is compared, among what (docs/training.md): returns of a position (aligned, the paper); mean returns of trajectories;
    returns with R_mem's gain over the position before (difference); returns of G completions that were written from one memory
    (local, no questions); returns of those that were written from equal memories (anchor)."""


class CurriculumStage(SettingsSection):
    """One stage of SFT: what is shown, and until when."""

    name: str
    """Shown in the log."""
    task: Literal["memory", "copy"] = "memory"
    """memory: write the teacher's actions; copy: repeat random token strings, so that copying is learnt first."""
    level: Literal[0, 1, 2] | None = None
    """New conversations of this level of the embedded corpus, as many as are needed; null: the networks of data.train."""
    language: Literal["home", "wide", "noisy"] = "home"
    """Of those conversations: that of corpus:train and corpus:heldout, or one of the base stage's two (docs/corpus.md)."""
    easier: float = Field(default=0.0, ge=0, lt=1)
    """The share of conversations from lower levels."""
    shape: dict[str, float | tuple[int, int]] = {}
    """How the level's conversations differ from its default, by the names in memory_env/corpus/shapes.py: {update_rate: 0.5}."""
    teacher: Literal["complete", "biased"] = "complete"
    """biased: one that leaves out much of what is not said about oneself (levels only)."""
    bias: dict[str, float] = {}
    """Rates of the biased teacher other than the default, by their names in memory_env/corpus/reference.py."""
    batch: PositiveInt = 8
    """Sequences per optimizer step."""
    max_steps: PositiveInt | None = None
    """At most so many optimizer steps; null: `epochs` passes over data.train."""
    until_accuracy: float | None = Field(default=None, gt=0, le=1)
    """The stage ends early at this token accuracy."""
    lr_factor: PositiveFloat = 1.0
    """Multiplies the learning rates in this stage."""
    lr_final_factor: NonNegativeFloat | None = None
    """What the factor falls to, linearly, by the last of `max_steps`; null: it stays."""

    @model_validator(mode="after")
    def _is_possible(self) -> CurriculumStage:
        if (self.level is not None or self.task == "copy") and self.max_steps is None:
            raise ValueError(f"stage {self.name!r} has no end: set max_steps")
        if self.teacher == "biased" and self.level is None:
            raise ValueError(f"stage {self.name!r}: only the embedded corpus has a biased teacher: set level")
        if self.lr_final_factor is not None and self.max_steps is None:
            raise ValueError(f"stage {self.name!r}: lr_final_factor needs max_steps")
        return self


class SFTTrainer(TrainerSection):
    """Supervised fine-tuning on teacher trajectories, loss on completion tokens only."""

    lr: PositiveFloat = 1e-5
    """The peak learning rate."""
    weight_decay: NonNegativeFloat = 0.01
    """Decoupled weight decay."""
    epochs: PositiveInt = 10
    """Passes over the training samples."""
    accumulation: PositiveInt = 8
    """Sequences per optimizer step."""
    curriculum: tuple[CurriculumStage, ...] = ()
    """Stages that replace the plain `epochs` passes; empty: none."""
    best_of: str | None = None
    """A GRPO run whose best completion of every position and round is learnt in place of the teacher's (rejection sampling)."""
    checkpoint_every: PositiveInt = 200
    """Optimizer steps between checkpoints to go on from."""
    log_every: PositiveInt = 1
    """Optimizer steps that one line of metrics.jsonl (and one on the console) sums up."""
