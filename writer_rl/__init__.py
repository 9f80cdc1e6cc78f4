"""How the Writer learns: configuration, SFT and position-aligned GRPO, checkpoints.

Importing this package, `writer_rl.config` or `writer_rl.advantages` loads no torch.
"""
