"""Frozen query and answer: Project, two retrieval tracks, Compose, and the backends that answer and judge."""
