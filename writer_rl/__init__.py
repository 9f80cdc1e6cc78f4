"""How the Writer learns: configuration, SFT and position-aligned GRPO, checkpoints.

Importing this package, `writer_rl.config` or `writer_rl.grpo.advantages` loads no torch.
"""

from typing import Any

__all__ = ["AsyncMemory", "Memory"]


def __getattr__(name: str) -> Any:
    """`Memory` and `AsyncMemory` are loaded when first used."""
    if name == "AsyncMemory":
        from writer_rl.memory.async_memory import AsyncMemory

        return AsyncMemory
    if name == "Memory":
        from writer_rl.memory.memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
