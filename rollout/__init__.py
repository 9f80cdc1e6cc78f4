"""Who writes: engines that sample the Writer, prompts as token ids, and the lockstep sampler.

Importing this package loads neither transformers' models nor vLLM; an engine module is imported by whoever builds it.
"""

from rollout.engine import (
    Engine,
    EngineDied,
    EngineError,
    EngineStateError,
    Generation,
    GenerationRequest,
    PromptTooLong,
    RolloutInputError,
    SamplingParams,
)
from rollout.seeds import request_seed

__all__ = [
    "Engine",
    "EngineDied",
    "EngineError",
    "EngineStateError",
    "Generation",
    "GenerationRequest",
    "PromptTooLong",
    "RolloutInputError",
    "SamplingParams",
    "request_seed",
]
