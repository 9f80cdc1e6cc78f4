"""One program at a time writes a memory: the second says so before it pays a Writer for what it could not keep."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_env.datafile import DataError

WAIT_S = 10.0
_PAUSE_S = 0.05


@contextmanager
def writing(path: Path, wait_s: float | None = None) -> Iterator[None]:
    """Hold the right to write the memory `path`. DataError where another program holds it for longer than `wait_s` seconds (10).

    The lock is the kernel's, on `path`.lock, and ends with the process however that ends; the file is empty and removed again.
    """
    lock = path.with_name(f"{path.name}.lock")
    descriptor = _taken(lock, path, time.monotonic() + (WAIT_S if wait_s is None else wait_s))
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _taken(lock: Path, path: Path, end: float) -> int:
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise DataError(f"{path}: may only be read ({error.strerror}); change its folder's permissions, or copy it") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have removed this file: then the name leads to another, or to none.
            if os.path.exists(lock) and os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
            os.close(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() >= end:
                raise DataError(f"{path}: another program is writing to it; wait for it and run again") from None
            time.sleep(_PAUSE_S)
