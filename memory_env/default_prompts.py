"""Where the prompt files that ship with the code lie, in a checkout and in an installed package alike."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def prompt_folder(package: Path = _HERE) -> Path:
    """configs/prompts of a checkout; in an installed `package`, where the wheel has put the same files."""
    installed = package / "prompt_files"
    return installed if installed.is_dir() else package.parent / "configs" / "prompts"


PROMPTS = prompt_folder()
"""The folder of the shipped prompts, e.g. ``PROMPTS / "writer.jinja"``."""
