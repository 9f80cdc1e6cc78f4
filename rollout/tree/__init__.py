"""Sequences that share beginnings: their prefix tree, and attention over it. For prefill and for training alike."""
