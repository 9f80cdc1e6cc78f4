"""Files that a configuration names and that are not there yet, each with the command that makes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from memory_env.datafile import DataError
from writer_rl.config import DataSection, ModelSection, resolve

PARTS = ("train", "heldout", "networks")
"""What `launch/prepare.py read` calls the folders of networks in its output."""


def missing_networks(sources: Iterable[str]) -> list[str]:
    """One line for each file or folder of networks that is not there."""
    return [_networks_line(source) for source in sources if not source.startswith("corpus:") and not resolve(source).exists()]


def missing_trajectories(paths: Iterable[str], train: Iterable[str] = (), window: int | None = None) -> list[str]:
    """One line for each file or folder of teacher data that is not there; `train` and `window` are what it is about."""
    networks = next((source for source in train if not source.startswith("corpus:")), "NETWORKS")
    return [_teacher_line(path, networks, window) for path in paths if not resolve(path).exists()]


def missing_data(settings: DataSection) -> list[str]:
    """One line for each file or folder of a data section that is not there.

    Example: "missing: data/chats: make it with `python launch/prepare.py read SOURCE --output data/chats`"
    """
    lines = missing_networks((*settings.train, *settings.heldout, *settings.validation))
    lines += missing_trajectories(settings.trajectories, settings.train, settings.window)
    return list(dict.fromkeys(lines))


def missing_model(settings: ModelSection) -> list[str]:
    """The line for a Writer that is a training run's result, where that run is still to come."""
    path = PurePath(settings.path)
    if path.name != "final" or resolve(settings.path).exists():
        return []
    return [f"missing: {path}: make it with `python launch/sft.py` and the same --config (output_dir {path.parent})"]


def require_none(missing: Iterable[str]) -> None:
    """DataError with the first of such lines, if there is one."""
    for line in missing:
        raise DataError(line.removeprefix("missing: ").replace(": make it", ": no such file or folder; make it", 1))


def _networks_line(source: str) -> str:
    path = PurePath(source)
    if path.name not in PARTS:
        return f"missing: {path}: make it with `python launch/prepare.py read SOURCE --output {path}`"
    split = "" if path.name == "networks" else " --split paper"
    choice = " (or --heldout ID,ID instead of --split)" if split else ""
    return f"missing: {path}: make it with `python launch/prepare.py read SOURCE{split} --output {path.parent}`{choice}"


def _teacher_line(path: str, networks: str, window: int | None) -> str:
    folder = PurePath(path)
    output = folder.parent if folder.name == "trajectories" else folder
    of_window = f" --window {window}" if window else ""
    command = f"python launch/prepare.py teach {networks} --model MODEL --output {output}{of_window}"
    return f"missing: {folder}: make it with `{command}`"
