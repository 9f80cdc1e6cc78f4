"""Opening what a user hands in: encodings, archives that unpack to more than they should, JSON of any depth."""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError, Fields, parse_json

MOST_BYTES = 2 * 1024**3
"""No text member of an archive may be larger."""
MOST_RATIO = 200
"""Nor may it unpack to more than so many times its packed size, once it is over RATIO_FROM bytes."""
RATIO_FROM = 32 * 1024**2
MOST_MEMBERS = 200_000


def decode(data: bytes, where: str) -> str:
    """Text from UTF-8 or (with a byte order mark) UTF-16. DataError with the line of the first wrong byte."""
    if not data or data.isspace():
        raise DataError(f"{where}: is empty; export the chat again")
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{where}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8 "
            "(iconv -f WINDOWS-1252 -t UTF-8 converts the common case)"
        ) from None
    if "\x00" in text[:4096]:
        raise DataError(f"{where}: line 1: holds binary data, not text")
    return text


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file; DataError where it can't be read."""
    path = Path(path)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def read_chat_text(path: str | Path) -> str:
    """The text of a file, line ends made `\\n`."""
    return decode(read_bytes(path), str(path)).replace("\r\n", "\n").replace("\r", "\n")


def read_chat_json(path: str | Path, object_hook: Callable[[dict], Any] | None = None) -> Any:
    """The value of a JSON file, its objects passed through `object_hook`. DataError with line and column."""
    return parse_json(decode(read_bytes(path), str(path)), str(path), object_hook)


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line of a JSONL file. DataError with the line."""
    for number, line in enumerate(read_chat_text(path).split("\n"), 1):
        if line.strip():
            value = parse_json(line, f"{path}: line {number}")
            if not isinstance(value, dict):
                raise DataError(f"{path}: line {number}: is not an object; every line must be one JSON object")
            yield number, value


class Folder:
    """The files of a folder or of a zip archive, read alike.

    Example:
        Folder("export.zip").names() ; Folder("export.zip").text("general/2024-01-01.json")
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._archive = None
        if self.path.is_dir():
            return
        try:
            self._archive = zipfile.ZipFile(self.path)
            members = self._archive.infolist()
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such file or folder") from None
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise DataError(f"{self.path}: is no usable zip archive ({error}); export the chat again") from None
        if len(members) > MOST_MEMBERS:
            raise DataError(f"{self.path}: holds {len(members)} files; this is no chat export")

    def names(self) -> list[str]:
        """Relative file names, sorted."""
        if self._archive is not None:
            return sorted(info.filename for info in self._archive.infolist() if not info.is_dir())
        return sorted(str(file.relative_to(self.path)) for file in self.path.rglob("*") if file.is_file())

    def text(self, name: str) -> str:
        """The text of one file. DataError for an archive member that unpacks to too much."""
        where = f"{self.path}/{name}"
        if self._archive is None:
            return read_chat_text(self.path / name)
        info = self._archive.getinfo(name)
        if info.flag_bits & 1:
            raise DataError(f"{where}: is encrypted; unpack the archive first")
        limit = min(MOST_BYTES, max(RATIO_FROM, MOST_RATIO * info.compress_size))
        try:
            # The header's size may lie, so the limit is held while reading.
            with self._archive.open(info) as stream:
                data = stream.read(limit + 1)
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise DataError(f"{where}: cannot be unpacked ({error}); export the chat again") from None
        if len(data) > limit:
            raise DataError(f"{where}: unpacks to over {limit // 1024**2} MiB; unpack the archive by hand if you trust it")
        return decode(data, where).replace("\r\n", "\n").replace("\r", "\n")

    def json(self, name: str, object_hook: Callable[[dict], Any] | None = None) -> Any:
        """The value of one JSON file."""
        return parse_json(self.text(name), f"{self.path}/{name}", object_hook)


class Item(Fields):
    """`Fields` of other people's files, where ids and times may be numbers: `text` takes a number as its digits."""

    def text(self, key: str, default: str | None = None) -> str:
        """A string, or a number's digits; without a default it is required."""
        value = self.value.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        return self.get(key, str, default)

    def objects(self, key: str, default: list | None = None) -> Iterator[Item]:
        """The objects of a list."""
        for index, value in enumerate(self.get(key, list, default)):
            yield Item.of(value, self.where, f"{self.at(key)}[{index}]")
