"""Opening what a user hands in: encodings, archives that unpack to more than they should, JSON of any depth."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError, Fields, parse_json
from memory_env.ingest.text_stream import PIECE, decoded, lines_of, well_formed

MOST_BYTES = 2 * 1024**3
"""No text member of an archive may be larger."""
MOST_RATIO = 200
"""Nor may it unpack to more than so many times its packed size, once it is over RATIO_FROM bytes."""
RATIO_FROM = 32 * 1024**2
MOST_MEMBERS = 200_000
_UTF8_NAME = 0x800


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with open(path, "rb") as stream:
            while data := stream.read(PIECE):
                yield data
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def read_pieces(path: str | Path) -> Iterator[str]:
    """The text of a file, piece by piece, line ends made `\\n`. DataError with the line of the first wrong byte."""
    return decoded(_chunks(Path(path)), str(path))


def read_chat_text(path: str | Path) -> str:
    """The whole text of a file, line ends made `\\n`."""
    return "".join(read_pieces(path))


def read_chat_json(path: str | Path) -> Any:
    """The value of a JSON file. DataError with line and column."""
    return parse_json(read_chat_text(path), str(path))


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line of a JSONL file. DataError with the line."""
    for number, line in enumerate(lines_of(read_pieces(path)), 1):
        if line.strip():
            value = parse_json(line, f"{path}: line {number}")
            if not isinstance(value, dict):
                raise DataError(f"{path}: line {number}: is not an object; every line must be one JSON object")
            yield number, value


def file_pieces(path: str | Path, member: str = "") -> tuple[Iterator[str], str]:
    """(the pieces of a text, its name for errors): of a file, or of `member` of a folder or zip archive."""
    path = Path(path)
    if path.is_dir() or path.suffix.lower() == ".zip":
        return Folder(path).pieces(member), f"{path}/{member}"
    return read_pieces(path), str(path)


class Folder:
    """The files of a folder or of a zip archive, read alike.

    Example:
        Folder("export.zip").names() ; Folder("export.zip").text("general/2024-01-01.json")
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._archive: zipfile.ZipFile | None = None
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
        self._members = {_member_name(info): info for info in members if not info.is_dir()}

    def names(self) -> list[str]:
        """Relative file names, sorted, without what macOS adds to archives."""
        if self._archive is not None:
            names = list(self._members)
        else:
            names = [str(file.relative_to(self.path)) for file in self.path.rglob("*") if file.is_file()]
        return sorted(name for name in names if not name.startswith("__MACOSX/") and not Path(name).name.startswith("._"))

    def pieces(self, name: str) -> Iterator[str]:
        """The text of one file, piece by piece. DataError for an archive member that unpacks to too much."""
        if self._archive is None:
            return read_pieces(self.path / name)
        return decoded(self._member(name, f"{self.path}/{name}"), f"{self.path}/{name}")

    def head(self, name: str) -> str:
        """The first piece of a file's text; "" for what is none."""
        try:
            return next(self.pieces(name), "")
        except DataError:
            return ""

    def text(self, name: str) -> str:
        """The whole text of one file."""
        return "".join(self.pieces(name))

    def json(self, name: str) -> Any:
        """The value of one JSON file."""
        return parse_json(self.text(name), f"{self.path}/{name}")

    def _member(self, name: str, where: str) -> Iterator[bytes]:
        try:
            info = self._members[name]
        except KeyError:
            raise DataError(f"{where}: no such file in the archive") from None
        if info.flag_bits & 1:
            raise DataError(f"{where}: is encrypted; unpack the archive first")
        limit = min(MOST_BYTES, max(RATIO_FROM, MOST_RATIO * info.compress_size))
        unpacked = 0
        try:
            assert self._archive is not None, "a member is known once the archive is open"
            with self._archive.open(info) as stream:
                while data := stream.read(PIECE):
                    # The header's size may lie, so the limit is held while reading.
                    unpacked += len(data)
                    if unpacked > limit:
                        raise DataError(f"{where}: unpacks to over {limit // 1024**2} MiB; unpack it by hand if you trust it")
                    yield data
        except DataError:
            raise
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise DataError(f"{where}: cannot be unpacked ({error}); export the chat again") from None


def _member_name(info: zipfile.ZipInfo) -> str:
    """The name of an archive's member. Many programs write UTF-8 without setting the flag that says so."""
    if not info.flag_bits & _UTF8_NAME:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


class ForeignFields(Fields):
    """`Fields` of other people's files, where ids and times may be numbers: `text` takes a number as its digits
    and mends what no file can hold."""

    def text(self, key: str, default: str | None = None) -> str:
        """A string, or a number's digits; without a default it is required."""
        value = self.value.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        return well_formed(self.get(key, str, default))
