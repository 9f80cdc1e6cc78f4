"""Position-aligned GRPO (Eq. 23-27). Read `run.py` first."""
