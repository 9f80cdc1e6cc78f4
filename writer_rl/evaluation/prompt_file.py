"""Which prompt file a Writer is asked with."""

from __future__ import annotations

from pathlib import Path

from writer_rl.config import DEFAULT_PROMPT, EvaluationConfig, resolve
from writer_rl.evaluation.run_settings import run_settings


def prompt_path(config: EvaluationConfig, folder: Path | None = None) -> Path:
    """The Writer's prompt file: the configured one, else the one that an exported `folder` carries, else the one of the run that
    `folder` is a checkpoint of, else the built-in one."""
    if config.data.prompt:
        return resolve(config.data.prompt)
    carried = sorted(folder.glob("prompt.*")) if folder else []
    if carried:
        return carried[0]
    data = (run_settings(folder) or {}).get("data") if folder else None
    trained_with = data.get("prompt") if isinstance(data, dict) else None
    return resolve(trained_with) if trained_with else DEFAULT_PROMPT
