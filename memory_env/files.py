"""Files and folders that are there in full or not at all, whatever ends the process or the machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_text(path: str | Path, text: str, *, private: bool = False) -> None:
    """Write `text` to `path` so that a reader finds the old content or the new, never a part.

    `private`: only its owner may read the file, at no moment anybody else.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # Half a surrogate pair, which a JSON escape can make, is written as that escape.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if not private:  # mkstemp makes files that only their owner reads
            os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A folder to fill, which becomes `path` when the block ends without an error. `path` may exist only if empty."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield draft
        os.chmod(draft, 0o777 & ~_umask())
        if path.is_dir():
            path.rmdir()
        publish(draft, path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def publish(draft: Path, path: Path) -> None:
    """Give a filled folder its name, once all of it is on the disk; what had the name before is removed."""
    for part in (draft, *draft.rglob("*")):
        _sync(part)
    shutil.rmtree(path, ignore_errors=True)
    draft.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
