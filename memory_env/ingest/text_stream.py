"""Text read piece by piece, so that a file of any size costs the memory of one piece."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator

from memory_env.datafile import DataError

PIECE = 1 << 18
"""Bytes read at a time."""


def decoded(chunks: Iterable[bytes], where: str) -> Iterator[str]:
    """The text of UTF-8 or (with a byte order mark) UTF-16 bytes, line ends made `\\n`.

    DataError with the line of the first wrong byte, and for bytes that are empty or no text. The first chunk must hold
    the byte order mark whole.
    """
    chunks = iter(chunks)
    data = next(chunks, b"")
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    lines, blank, first = 1, True, True
    while True:
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise _undecodable(error, where, encoding, lines) from None
        if first and "\x00" in text[:4096]:
            raise DataError(f"{where}: line 1: holds binary data, not text (UTF-16 needs its byte order mark)")
        first, blank = False, blank and (not text or text.isspace())
        lines += text.count("\n")
        if text:
            yield text
        if not data:
            break
        data = next(chunks, b"")
    if blank:
        raise DataError(f"{where}: is empty; export the chat again")


def _undecodable(error: UnicodeDecodeError, where: str, encoding: str, lines: int) -> DataError:
    if encoding == "utf-16":
        return DataError(f"{where}: is not UTF-16 after line {lines}, though it begins so; the file may be cut short")
    line = lines + error.object.count(b"\n", 0, error.start)
    return DataError(
        f"{where}: line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8 "
        "(iconv -f WINDOWS-1252 -t UTF-8 converts the common case)"
    )


def lines_of(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text that comes in pieces, without their ends; after a last `\\n` comes an empty one."""
    begun: list[str] = []
    for piece in pieces:
        *whole, rest = piece.split("\n")
        if whole:
            whole[0] = "".join([*begun, whole[0]])
            begun = []
            yield from whole
        begun.append(rest)
    yield "".join(begun)


def well_formed(text: str) -> str:
    """`text` with surrogates that stand alone (half an emoji, cut by some app) replaced by U+FFFD: no file can hold them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
