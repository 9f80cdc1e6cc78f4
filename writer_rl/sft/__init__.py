"""Supervised fine-tuning. Read `run.py` first."""
