"""How the Writer learns: configuration, SFT and position-aligned GRPO, checkpoints.

Importing this package, `writer_rl.config` or `writer_rl.grpo.advantages` loads no torch.
"""

from typing import Any

__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    """`Memory` is loaded when first used."""
    if name == "Memory":
        from writer_rl.memory.memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
