"""The sections that SFT, GRPO and evaluation share: model, data, rollout, reward, evaluation, tracking."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from writer_rl.config.asking import AskingSection
from writer_rl.config.section import Paths, SettingsSection, Sources, Text


class LoRASection(SettingsSection):
    """A low-rank adapter that is trained instead of the weights; switched off, it is the reference policy."""

    rank: NonNegativeInt = 0
    """Columns and rows of the two factors that are added to each matrix; 0: no adapter, all weights are trained."""
    alpha: PositiveFloat = 32.0
    """The factors' product is multiplied by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """SFT only: the share of an adapter's inputs that is dropped; GRPO compares log-probabilities and needs 0."""
    target_modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Linear layers that get an adapter, by the last part of their names."""


class ModelSection(SettingsSection):
    """The Writer."""

    path: Text = "Qwen/Qwen2.5-3B-Instruct"
    """A local directory (relative to the repository root) or a Hugging Face model id."""
    tokenizer: str | None = None
    """Where the tokenizer is, if not with the model."""
    init: Literal["pretrained", "random", "structured"] = "pretrained"
    """random: seeded random weights for the config.json at `path`; structured: random, but shaped for copying."""
    reference: str | None = None
    """The frozen reference policy of the KL term; null: the policy's own start, `path`."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of parameters and activations; bfloat16 keeps float32 master weights in the optimizer."""
    attn_implementation: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    """The attention kernel that transformers uses."""
    chat_template_kwargs: dict[str, Any] = {}
    """Further arguments of the tokenizer's chat template, e.g. {enable_thinking: false} for Qwen3."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    lora: LoRASection = LoRASection()
    """A low-rank adapter instead of full training."""


class DataSection(SettingsSection):
    """Which conversations, and how they are shown to the Writer."""

    train: Sources = ("corpus:train",)
    """Training networks: files, folders or corpus names."""
    heldout: Sources = ("corpus:heldout",)
    """Networks of the final evaluation; none may also be a training network."""
    validation: Sources = ("corpus:validation",)
    """Networks of the evaluation during training; none may also be a training network."""
    trajectories: Paths = ()
    """Teacher trajectories (files or folders) of networks from paths; the corpus brings its own."""
    window: PositiveInt | None = None
    """Messages per segment; null: one segment per session."""
    prompt: str | None = None
    """The Writer's prompt template (Jinja); null: the built-in one."""
    heads_per_owner: PositiveInt = 40
    """At most so many head records per owner in an observation."""
    max_chars: PositiveInt = 60_000
    """At most so many characters of head records in an observation."""
    strict: bool = False
    """Reject a whole output on any error (what the published training code does)."""


class RolloutSection(SettingsSection):
    """How completions are sampled."""

    engine: Literal["hf", "vllm"] = "hf"
    """hf: transformers, everywhere; vllm: fast, needs vLLM installed."""
    group_size: int = Field(default=8, ge=2)
    """G, the trajectories of one network that are compared with each other."""
    networks_per_round: PositiveInt = 1
    """Networks whose groups make one update."""
    temperature: PositiveFloat = 0.8
    """Divides the logits before sampling."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling: the mass of the most probable tokens that is kept."""
    max_new_tokens: PositiveInt = 2048
    """The length limit of a completion, in tokens."""
    max_model_len: PositiveInt | None = None
    """Tokens of a prompt and its completion together, where that is to be less than the model's context; null: the context."""
    max_batch_tokens: PositiveInt = 65_536
    """Tokens (prompts and new ones) in one batch of the hf engine; bounds its cache."""
    gpu_memory_utilization: float | None = Field(default=None, gt=0, lt=1)
    """vLLM's share of the device's memory; null: what the plan counts for it (launch/plan.py), 0.4 where it can't count."""
    tensor_parallel: PositiveInt = 1
    """GPUs that share one vLLM engine (evaluation; in training a sampler server has them: launch/sampler.py)."""
    server: Paths | None = None
    """vLLM in processes of its own: the state file of launch/sampler.py, or those of several; null: in every rank's process."""
    sync_folder: str | None = None
    """Where weights are put for those servers; null: shared memory of this machine. Another machine needs a path both see."""
    structured_output: bool = False
    """vLLM only: constrain decoding to the action schema. It biases training: docs/rollouts.md."""
    block_size: PositiveInt | None = None
    """vLLM's cache block in tokens; null: 32 on CPUs (vLLM's 128 there is too coarse for short prompts), its default on GPUs."""
    kv_cache_gib: PositiveFloat | None = None
    """vLLM's cache in GiB; null: on GPUs what the plan counts (a round's sequences at full length), on CPUs 1."""
    sync_bound: PositiveFloat | None = None
    """The run stops if engine and trainer differ by more (nats) on a probe after a weight sync; null: by precision."""

    mismatch_growth: float | None = Field(default=5.0, gt=1)
    """The run stops when sampler and trainer differ by more than so many times their first round's mean; null: never."""
    mismatch_floor: PositiveFloat | None = None
    """Nats a token below which that growth stops nothing; null: by precision, 1e-4 in float32 and 0.02 in bfloat16."""


class QASection(AskingSection):
    """The terminal QA gain (Eq. 8, 22), asked as an evaluation asks; `max_failure_rate` is of a round's questions, rounded up."""

    enabled: bool = True
    """false: R_QA is 0 everywhere and no question is asked."""
    max_questions: PositiveInt = 4
    """Questions per network, fixed for the whole run."""


class RewardSection(SettingsSection):
    """What a step is worth (Eq. 9)."""

    weights: dict[str, float] = {}
    """Weights and thresholds other than the paper's, by their names in rewards/weights.py, e.g. {qa: 0.0}."""
    tokenizer: Literal["paper", "unicode"] = "paper"
    """paper: [a-z0-9]+ and CJK characters; unicode: letters and digits of every script."""
    terms: dict[str, float] = {}
    """Weights of reward terms beside the paper's, by name (docs/extending.md)."""
    modules: tuple[str, ...] = ()
    """Python modules that register those terms."""
    qa: QASection = QASection()
    """The terminal QA gain."""


class EvaluationSection(AskingSection):
    """Evaluation: during training on validation networks, and `launch/evaluate.py` on held-out ones."""

    every: NonNegativeInt = 0
    """Evaluate during training every so many rounds; 0: never."""
    max_networks: PositiveInt | None = None
    """At most so many validation networks; null: all."""
    patience: PositiveInt | None = None
    """Stop early after so many evaluations without a better one; null: never."""
    metric: str = "evaluation/total"
    """What makes a checkpoint the best one: a key of the evaluation during training."""
    networks: Literal["heldout", "validation", "train"] = "heldout"
    """Which networks `launch/evaluate.py` uses."""


class TrackingSection(SettingsSection):
    """Where a run's figures go, beside its own metrics.jsonl."""

    wandb: Literal["off", "offline", "online"] = "offline"
    """Weights & Biases; offline writes to the run directory and never asks for a login."""
    project: str = "writer-rl"
    """The W&B project."""
    entity: str | None = None
    """The W&B user or team; null: the account's default."""
    name: str | None = None
    """The run's name; null: the run directory's."""
    progress: bool = True
    """A progress bar on stderr."""
    plot_every: NonNegativeInt = 10
    """Draw the reward curves every so many rounds and at the end (needs matplotlib); 0: never."""
