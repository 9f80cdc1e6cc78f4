"""The settings of the training run that a model folder lies in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def run_settings(folder: Path) -> dict[str, Any] | None:
    """config.yaml of the run directory that RUN/checkpoints/STEP/model (or RUN/final) lies in; None outside of one.

    Example: ``run_settings(Path("runs/demo/grpo/checkpoints/000020/model"))["trainer"]["lr"]``
    """
    for run in folder.resolve().parents[:3]:
        if (run / "config.yaml").is_file() and (run / "checkpoints").is_dir():
            settings = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
            return settings if isinstance(settings, dict) else None
    return None
