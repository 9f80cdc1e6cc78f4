"""How a command starts and ends, for the scripts of a checkout and for `writer-rl`. Needs the standard library alone.

`exit_code` turns how a command ended into its exit code and, where it failed, one line on stderr (no traceback; with
WRITER_RL_DEBUG=1 the traceback too):

    0    it returned None or 0
    2    a bad argument or bad input: `UsageError`, `DataError`, any other ValueError subclass of this repository,
         a file that is missing or may not be read, or a package that this Python lacks
    1    anything else that was raised
    130  Ctrl-C          143  SIGTERM (raised inside the command as `Terminated`, so `finally` blocks run)
    141  nobody reads its output any more (`| head`); nothing is said
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import io
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

OUR_PACKAGES = ("memory_env", "rewards", "rollout", "writer_rl", "launch")
UNREADABLE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError)
MOST_LINES = 3
MEET_ONE_RANK = ("PromptDoesNotFit", "PromptTooLong")
"""Errors of a user's input that one process of a run on several GPUs may meet alone; every other one they all meet."""

Main = Callable[[list[str]], int | None]
"""What a command is: the arguments in, an exit code (None: 0) out."""


class UsageError(ValueError):
    """A bad argument: the message names it and says what to give instead."""


class Terminated(BaseException):
    """SIGTERM arrived; not an Exception, so that no broad handler swallows it."""


class OneLineParser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, and which knows no abbreviated options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n" if _is_first() else None)


def parser(doc: str | None, **options: Any) -> OneLineParser:
    """A parser whose --help shows `doc` (a module's docstring) as it is written."""
    options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
    options.setdefault("allow_abbrev", False)
    return OneLineParser(description=doc, **options)


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], str]:
    """An argument's `type` that takes the names given, which are looked up only when there is an argument to check."""

    def check(text: str) -> str:
        known = list(names())
        if text not in known:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(known)}")
        return text

    return check


def run(main: Main, argv: list[str] | None = None) -> NoReturn:
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


def exit_code(main: Main, argv: list[str]) -> int:
    """The exit code of `main(argv)`, after its error, if any, was written to stderr."""
    try:
        code = main(argv) or 0
        sys.stdout.flush()
        return code
    except (Exception, KeyboardInterrupt, Terminated) as error:
        if os.environ.get("WRITER_RL_DEBUG") == "1":
            traceback.print_exc()
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            return 141
        line = f"{Path(sys.argv[0]).name}: {_message(error)}"
        _tell_launcher(line)
        if _is_first() or not is_usage(error) or type(error).__name__ in MEET_ONE_RANK:
            print(line, file=sys.stderr)
        return _code(error)


def _is_first() -> bool:
    """Whether this is the process of its machine that speaks for all: what every rank meets alike is said once."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _tell_launcher(line: str) -> None:
    """torchrun and accelerate end with a summary of the first rank that failed: let it hold the reason.

    The file's form is that of torch.distributed.elastic.multiprocessing.errors.
    """
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path:
        with contextlib.suppress(OSError):
            message = {"message": line, "extraInfo": {"timestamp": str(int(time.time()))}}
            Path(path).write_text(json.dumps({"message": message}), encoding="utf-8")


def _nobody_reads() -> bool:
    """Whether stdout is a pipe whose reader has gone (`| head`); another connection may have broken as well."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(output, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    # Without this the interpreter complains on its way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True


def is_usage(error: BaseException) -> bool:
    """Whether the user's arguments, files or Python are at fault, not the run."""
    if isinstance(error, UNREADABLE) or _missing_package(error):
        return True
    ours = type(error).__module__.split(".")[0] in OUR_PACKAGES
    return isinstance(error, UsageError) or (ours and isinstance(error, ValueError))


def _missing_package(error: BaseException) -> str:
    """The package that an import did not find, unless it is one of ours; "" for any other error."""
    name = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return "" if name in OUR_PACKAGES else name


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
    if package := _missing_package(error):
        remedy = f"pip install {package}, or use the Python of `make setup` (.venv/bin/python)"
        return f"needs the package {package}, which {sys.executable} lacks; {remedy}"
    if isinstance(error, UNREADABLE) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = "\n".join([line for line in str(error).splitlines() if line.strip()][:MOST_LINES])
    if is_usage(error):
        return text or type(error).__name__
    return f"failed: {type(error).__name__}: {text}" if text else f"failed: {type(error).__name__}"


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    raise Terminated
