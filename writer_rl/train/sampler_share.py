"""What a colocated vLLM takes of a card: the number that the plan counts is the number that the engine is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from writer_rl.model.shape import ModelShape, ShapeError

if TYPE_CHECKING:
    from writer_rl.config import RolloutSection

GIB = 1024**3
OVERHEAD = GIB
"""vLLM's CUDA graphs and activation workspace."""


@dataclass(frozen=True)
class SamplerShare:
    """Bytes of one engine: bf16 weights, key-value cache, and the rest.

    Example (Qwen2.5-3B, 8 sequences of 8,192 tokens): SamplerShare(6_171_877_376, 2_415_919_104, 1_073_741_824)
    """

    weights: int
    cache: int
    overhead: int = OVERHEAD

    def of_card(self, card: int) -> float:
        """vLLM's `gpu_memory_utilization` on a card of so many bytes; at most 0.95."""
        return min(0.95, (self.weights + self.cache + self.overhead) / card)


def sampler_share(model: ModelShape, sequences: int, sequence_tokens: int) -> SamplerShare:
    """One engine that holds so many sequences of so many tokens at one time; keys and values in bf16."""
    return SamplerShare(2 * model.parameters, sequences * sequence_tokens * model.kv_elements * 2)


def configured_share(model_config: dict, settings: RolloutSection, ranks: int) -> SamplerShare | None:
    """The share of the engine of one rank: its part of a round's trajectories, each as long as the context allows.

    model_config: what `config.json` says. None for a model whose shape is not counted here (writer_rl.model.shape).
    """
    try:
        model = ModelShape.from_config(model_config)
    except ShapeError:
        return None
    context = settings.max_model_len or int(model_config.get("max_position_embeddings", 0))
    return sampler_share(model, sequences_of_rank(settings, ranks), context) if context else None


def sequences_of_rank(settings: RolloutSection, ranks: int) -> int:
    """Trajectories that one rank's engine writes at one time."""
    return -(-settings.group_size * settings.networks_per_round // ranks)
