"""Eq. 25-27 under its public name; the code is `writer_rl.grpo.objective`."""

from writer_rl.grpo.objective import clipped_grpo

__all__ = ["clipped_grpo"]
