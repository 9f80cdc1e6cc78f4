"""JSON read from front to back: a list of any length is seen one element at a time and never held whole.

A layer over the standard decoder, so that what is read in pieces is what `json.loads` reads, and errors say the same
line and column. ijson was tried in its place: as fast, but its errors have no line, it turns half a surrogate pair
into "?" unsaid, and it refuses whole numbers of more than 64 bits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from memory_env.datafile import DataError, Fields, kind_of, too_deep

_NO_SPACE = re.compile(r"[^ \t\n\r]")
_DECODER = json.JSONDecoder()
_LONGEST_LITERAL = len("-Infinity")


class JsonCursor:
    """A place in a JSON text. Whoever steps into an object or a list must take or skip (`value()`) each of its values.

    Example:
        cursor = JsonCursor(['{"name": "x", "messages": [1, 2]}'], "result.json")
        for key in cursor.members():
            if key == "messages":
                numbers = [cursor.value() for _ in cursor.elements()]
            else:
                header = cursor.value()
        cursor.end()
    """

    def __init__(self, pieces: Iterable[str], where: str):
        """`pieces` of the text, in order; `where` names it in errors."""
        self.where = where
        self._pieces = iter(pieces)
        self._text, self._at = "", 0
        self._lines, self._column = 0, 0  # before `_text`: line ends, and characters after the last of them

    def value(self) -> Any:
        """The next value, whole. DataError where it is no JSON, or nested too deeply."""
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # Text that ends amid a value may go on in the next piece; an error before its end is one.
                amid = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_LITERAL
                if amid and self._more():
                    continue
                raise self._error(error.msg, error.pos) from None
            except RecursionError:
                raise too_deep(self.where, self._text, self._lines) from None
            except ValueError as error:
                raise DataError(f"{self.where}: not usable JSON ({str(error).partition(';')[0]})") from None
            # "1." or "1e-" at the end of a piece is not yet a number.
            if isinstance(value, (int, float)) and not self._text[end : end + 3].strip(".eE+-") and self._more():
                continue
            self._at = end
            return value

    def members(self, place: str = "") -> Iterator[str]:
        """The keys of the object that comes next. DataError unless it is one; `place` names it."""
        if self._peek() != "{":
            Fields.of(self.value(), self.where, place)
        self._at += 1
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            if self._peek() != '"':
                raise self._error("Expecting property name enclosed in double quotes", self._at)
            key = self.value()
            if self._peek() != ":":
                raise self._error("Expecting ':' delimiter", self._at)
            self._at += 1
            yield key
            if self._closed("}"):
                return

    def elements(self, place: str = "") -> Iterator[str]:
        """The places (`messages[7]`) of the list that comes next. DataError unless it is one."""
        if self._peek() != "[":
            raise DataError(f"{self.where}: {place or 'the file'} is {kind_of(self.value())}; it must be a list")
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        index = 0
        while True:
            yield f"{place}[{index}]"
            index += 1
            if self._closed("]"):
                return

    def end(self) -> None:
        """DataError if anything follows."""
        if self._peek():
            raise self._error("Extra data", self._at)

    def next_kind(self) -> str:
        """The first character of what comes next: `{`, `[`, `"`, of a number or literal; "" at the end."""
        return self._peek()

    def _closed(self, close: str) -> bool:
        following = self._peek()
        if following not in (",", close) or not following:
            raise self._error("Expecting ',' delimiter", self._at)
        self._at += 1
        return following == close

    def _peek(self) -> str:
        while True:
            following = _NO_SPACE.search(self._text, self._at)
            self._at = following.start() if following else len(self._text)
            if following:
                return following[0]
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Drop what was read and take in at least as much as is left, so that a long value is not decoded too often."""
        read, rest = self._text[: self._at], self._text[self._at :]
        parts, length = [], 0
        for piece in self._pieces:
            parts.append(piece)
            length += len(piece)
            if length >= len(rest):
                break
        if not length:
            return False
        self._lines += read.count("\n")
        self._column = len(read) - read.rfind("\n") - 1 + (0 if "\n" in read else self._column)
        self._text, self._at = "".join([rest, *parts]), 0
        return True

    def _error(self, message: str, at: int) -> DataError:
        before = self._text[:at]
        line = self._lines + before.count("\n") + 1
        column = at - before.rfind("\n") + (0 if "\n" in before else self._column)
        place = f"line {line} column {column}" if line > 1 else f"column {column}"
        cut = not self._text[at:].strip() or message.startswith("Unterminated string")
        remedy = "the file may be cut short" if cut else "mend the JSON there"
        return DataError(f"{self.where}: not valid JSON at {place} ({message}); {remedy}")
