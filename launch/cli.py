"""How every script in `launch/` starts and ends.

A script has this shape (the three lines before the import make `python launch/thing.py` work from any folder):

    \"\"\"Do the thing.  # the first paragraph is what --help shows
    \"\"\"
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

    from launch.cli import parser, run


    def main(argv: list[str]) -> int | None:
        arguments = parser(__doc__)
        arguments.add_argument("--network", required=True, help="a network file")
        chosen = arguments.parse_args(argv)
        ...


    if __name__ == "__main__":
        run(main)

`run` turns how `main` ended into the exit code and, where it failed, one line on stderr (no traceback; with
WRITER_RL_DEBUG=1 the traceback too):

    0    `main` returned None or 0
    2    a bad argument or bad input: `UsageError`, `DataError`, any other ValueError subclass of this repository,
         or a file that is missing or may not be read
    1    anything else that was raised
    130  Ctrl-C          143  SIGTERM (raised inside `main` as `Terminated`, so `finally` blocks run)

A `main` that handles signals itself (training saves and stops) returns 130 or 143.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]

# `python launch/x.py` puts launch/ itself first on the path, where evaluate.py would shadow the package `evaluate`.
_SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _SCRIPT_FOLDER]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

OUR_PACKAGES = ("memory_env", "rewards", "rollout", "writer_rl", "launch")
UNREADABLE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError)
MOST_LINES = 3
SAME_ON_EVERY_RANK = ("ConfigError", "RunError", "DataError")
"""Errors that each process of a run on several GPUs meets alike: one of a machine says it."""


class UsageError(ValueError):
    """A bad argument: the message names it and says what to give instead."""


class Terminated(BaseException):
    """SIGTERM arrived; not an Exception, so that no broad handler swallows it."""


class OneLineParser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, and which knows no abbreviated options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser(doc: str | None, **kwargs) -> OneLineParser:
    """A parser whose --help shows `doc` (the script's docstring) as it is written."""
    kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
    kwargs.setdefault("allow_abbrev", False)
    return OneLineParser(description=doc, **kwargs)


def empty_output(path: str | Path, option: str = "--output") -> Path:
    """`path` as a folder that holds nothing yet; UsageError if it holds something or is a file."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option} {path}: is a file; name a new folder")
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"{option} {path}: is not empty; name a new folder, or remove this one first")
    return path


def run(main: Callable[[list[str]], int | None], argv: list[str] | None = None) -> NoReturn:
    """Call `main(argv)` and leave the process with the exit code in the table above."""
    signal.signal(signal.SIGTERM, _terminate)
    # A file's name may be no Unicode, and a terminal may lack a character of a chat.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    _leave(exit_code(main, sys.argv[1:] if argv is None else argv))


def _leave(code: int) -> NoReturn:
    """End the process.

    One of several ranks leaves without the interpreter's teardown: threads of the process groups that libraries still hold
    now and then abort there, and the launcher would take a finished run for a failed one.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def exit_code(main: Callable[[list[str]], int | None], argv: list[str]) -> int:
    """The exit code of `main(argv)`, after its error, if any, was written to stderr."""
    try:
        code = main(argv) or 0
        sys.stdout.flush()
        return code
    except (Exception, KeyboardInterrupt, Terminated) as error:
        if os.environ.get("WRITER_RL_DEBUG") == "1":
            traceback.print_exc()
        if isinstance(error, BrokenPipeError):
            # Nobody reads stdout any more; without this the interpreter complains again on its way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if type(error).__name__ not in SAME_ON_EVERY_RANK or os.environ.get("LOCAL_RANK", "0") == "0":
            print(f"{Path(sys.argv[0]).name}: {_message(error)}", file=sys.stderr)
        return _code(error)


def is_usage(error: BaseException) -> bool:
    """Whether the user's arguments or files are at fault, not the run."""
    if isinstance(error, UNREADABLE):
        return True
    ours = type(error).__module__.split(".")[0] in OUR_PACKAGES
    return isinstance(error, UsageError) or (ours and isinstance(error, ValueError))


def _code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, Terminated):
        return 143
    return 2 if is_usage(error) else 1


def _message(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, Terminated):
        return "terminated"
    if isinstance(error, UNREADABLE) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = "\n".join([line for line in str(error).splitlines() if line.strip()][:MOST_LINES])
    if is_usage(error):
        return text or type(error).__name__
    return f"failed: {type(error).__name__}: {text}" if text else f"failed: {type(error).__name__}"


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


__all__ = [
    "ROOT",
    "OneLineParser",
    "Terminated",
    "UsageError",
    "empty_output",
    "exit_code",
    "is_usage",
    "parser",
    "run",
]
