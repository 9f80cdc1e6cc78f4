"""Which prompt file a Writer is asked with."""

from __future__ import annotations

from pathlib import Path

import yaml

from writer_rl.config import DEFAULT_PROMPT, EvaluationConfig, resolve


def prompt_path(config: EvaluationConfig, folder: Path | None = None) -> Path:
    """The Writer's prompt file: the configured one, else the one that an exported `folder` carries, else the one of the run that
    `folder` is a checkpoint of, else the built-in one."""
    if config.data.prompt:
        return resolve(config.data.prompt)
    carried = sorted(folder.glob("prompt.*")) if folder else []
    if carried:
        return carried[0]
    trained_with = _prompt_of_run(folder) if folder else None
    return resolve(trained_with) if trained_with else DEFAULT_PROMPT


def _prompt_of_run(folder: Path) -> str | None:
    """`data.prompt` of the run directory that RUN/checkpoints/STEP/model lies in."""
    for run in folder.resolve().parents[:3]:
        if (run / "config.yaml").is_file() and (run / "checkpoints").is_dir():
            return yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8")).get("data", {}).get("prompt")
    return None
