"""Files and folders that are there in full or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` so that a reader finds the old content or the new, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        # Half a surrogate pair, which a JSON escape can make, is written as that escape.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner reads; a new file should be like any other.
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
    filling = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield filling
        os.chmod(filling, 0o777 & ~_umask())
        if path.is_dir():
            path.rmdir()
        filling.rename(path)
    except BaseException:
        shutil.rmtree(filling, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
