"""What every script in `launch/` shares: a path to the code, a Python that can run it, and how it ends (writer_rl/command.py).

A script has this shape:

    \"\"\"Do the thing.  # the first paragraph is what --help shows
    \"\"\"
    from launch.cli import parser, run


    def main(argv: list[str]) -> int | None:
        arguments = parser(__doc__)
        arguments.add_argument("--network", required=True, help="a network file")
        chosen = arguments.parse_args(argv)
        from memory_env.network import load_network  # what is heavy is imported once the arguments are known
        ...


    if __name__ == "__main__":
        run(main)

A `main` that handles signals itself (training saves and stops) returns 130 or 143.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# `python launch/x.py` puts launch/ itself first on the path, where evaluate.py would shadow the package `evaluate`.
_SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _SCRIPT_FOLDER]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

OLDEST_PYTHON = (3, 11)
NEEDED = ("numpy", "scipy", "jinja2", "yaml", "tqdm", "rank_bm25", "cydifflib", "openai", "pydantic", "immutables")


def wrong_python() -> str:
    """What is wrong with the running interpreter and which one to use, in one line; "" if it can run the scripts."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if sys.version_info >= OLDEST_PYTHON and not missing:
        return ""
    version = ".".join(map(str, sys.version_info[:2]))
    lacks = f"lacks {', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}" if missing else "is too old"
    own = ROOT / ".venv" / "bin" / "python"
    remedy = f"run it with {own}" if own.is_file() else "run `make setup` once, then use .venv/bin/python"
    return f"{Path(sys.argv[0]).name}: {sys.executable} (Python {version}) {lacks}; {remedy}"


if _found := wrong_python():
    print(_found, file=sys.stderr)
    sys.exit(2)

from writer_rl.command import OneLineParser, Terminated, UsageError, exit_code, is_usage, parser, run  # noqa: E402


class _Settings(argparse.Action):
    """Prints every setting of a configuration and ends."""

    def __call__(self, options: argparse.ArgumentParser, *ignored: Any) -> None:
        from writer_rl.config import help_text

        print(help_text(self.const))
        options.exit()


def add_settings(options: argparse.ArgumentParser, kind: str) -> None:
    """--settings, which lists what --section.key may be; --help names it alone, since the list loads the configuration."""
    listing = "list every setting with its default and meaning; --section.key VALUE sets one"
    options.add_argument("--settings", action=_Settings, nargs=0, const=kind, help=listing)


def empty_output(path: str | Path, option: str = "--output") -> Path:
    """`path` as a folder that holds nothing yet; UsageError if it holds something or is a file."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option} {path}: is a file; name a new folder")
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"{option} {path}: is not empty; name a new folder, or remove this one first")
    return path


__all__ = [
    "ROOT",
    "OneLineParser",
    "Terminated",
    "UsageError",
    "add_settings",
    "empty_output",
    "exit_code",
    "is_usage",
    "parser",
    "run",
]
