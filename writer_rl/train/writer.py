"""The Writer that a run trains, with its tokenizer and its prompt, and the backend that trains it."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.tokenizer import Tokenizer
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import TrainingConfig
from writer_rl.model.lora import add_adapter
from writer_rl.model.policy import Policy, load_policy, load_tokenizer
from writer_rl.train.backend import Backend
from writer_rl.train.deepspeed_config import zero_settings
from writer_rl.train.distributed import World
from writer_rl.train.optimizers import optimizer_factory
from writer_rl.train.prompt import allowed_context, build_prompt


@dataclass(frozen=True)
class LoadedWriter:
    """Policy, tokenizer and prompt that belong together.

    Example: ``loaded = load_writer(config); backend = build_backend(loaded.policy, config, world)``
    """

    policy: Policy
    tokenizer: Tokenizer
    prompt: WriterPrompt

    @property
    def vocabulary(self) -> int:
        """Rows of the output layer."""
        return self.policy.head.weight.shape[0]


def load_writer(config: TrainingConfig) -> LoadedWriter:
    """The configured Writer on the CPU, with an adapter where one is asked for; raises PolicyError, ConfigError, DataError."""
    model = config.model
    policy = add_adapter(load_policy(model, config.seed, config.trainer.logprob_chunk), model, config.seed)
    tokenizer = load_tokenizer(model, policy.head.weight.shape[0])
    context = allowed_context(policy.model.config.max_position_embeddings, config.rollout)
    prompt = build_prompt(config.data, tokenizer, context, config.rollout.max_new_tokens, model)
    return LoadedWriter(policy, tokenizer, prompt)


def build_backend(policy: Policy, config: TrainingConfig, world: World) -> Backend:
    """The policy under DeepSpeed with the configured optimizer, on `world.device`. Collective."""
    dtype = config.model.dtype
    stage, _ = zero_settings(config.trainer, dtype)
    return Backend(policy, config.trainer, world, optimizer_factory(config.trainer, stage, world.size), dtype=dtype)


def parameter_line(backend: Backend, adapter: bool) -> str:
    """How much is trained, as the console says it. Example: "1,036,032 parameters"."""
    sizes = [(getattr(p, "ds_numel", p.numel()), p.requires_grad) for p in backend.policy.parameters()]
    line = f"{sum(size for size, _ in sizes):,} parameters"
    return f"{line} ({sum(size for size, trained in sizes if trained):,} of an adapter are trained)" if adapter else line
