"""Eq. 23-24 under its public name; the code is `writer_rl.grpo.advantages`."""

from writer_rl.grpo.advantages import position_advantages

__all__ = ["position_advantages"]
