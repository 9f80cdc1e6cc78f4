"""Reading JSON data files: typed access whose errors name the file, the place in it, and the remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


class DataError(ValueError):
    """Bad input data; the message is one line that names the file, the place in it, and the remedy."""


def read_text(path: str | Path) -> str:
    """The UTF-8 text of a file (a byte order mark is dropped). Raises DataError where it can't be read."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def parse_json(text: str, where: str, object_hook: Callable[[dict], Any] | None = None) -> Any:
    """The value of a JSON text; `where` names it in errors ("file" or "file, line 3"). Raises DataError."""
    try:
        return json.loads(text, object_hook=object_hook)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        remedy = "the file may be cut short" if cut else "mend the JSON there"
        raise DataError(f"{where}: not valid JSON at {place} ({error.msg}); {remedy}") from None
    except RecursionError:
        raise too_deep(where, text) from None
    except ValueError as error:
        raise DataError(f"{where}: not usable JSON ({str(error).partition(';')[0]})") from None


def too_deep(where: str, text: str, lines: int = 0) -> DataError:
    """The error about JSON whose nesting no program can follow, with its line; `lines` came before `text`."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.group(), 0)
        if depth > 200:
            lines += text.count("\n", 0, token.start())
            break
    return DataError(f"{where}: line {lines + 1}: is nested over 200 deep; this is no data that any program writes")


def read_json(path: str | Path) -> Any:
    """The value of a JSON file. Raises DataError."""
    return parse_json(read_text(path), str(path))


_NAMES = {str: "a string", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class Fields:
    """One JSON object of a file, with typed access to its keys.

    Example:
        Fields(value, "chat.json", "sessions[1]").text("ts")   # DataError: "chat.json: sessions[1].ts is ..."
    """

    value: dict[str, Any]
    where: str
    place: str = ""

    @classmethod
    def of(cls, value: object, where: str, place: str = "") -> Self:
        """Wrap `value`; raises DataError unless it is an object."""
        if not isinstance(value, dict):
            raise DataError(f"{where}: {place or 'the file'} is {kind_of(value)}; it must be an object")
        return cls(value, where, place)

    def at(self, key: str) -> str:
        """The place of `key` as errors print it."""
        return f"{self.place}.{key}" if self.place else key

    def error(self, key: str, problem: str) -> DataError:
        """A DataError about `key`."""
        return DataError(f"{self.where}: {self.at(key)} {problem}")

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        """The value of `key`, of type `kind`. Without a default the key is required; null counts as missing."""
        value = self.value.get(key)
        if value is None:
            if default is None:
                raise self.error(key, f"is missing; it must be {_NAMES[kind]}")
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"is {kind_of(value)}; it must be {_NAMES[kind]}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string; without a default it is required."""
        return self.get(key, str, default)

    def objects(self, key: str, default: list | None = None) -> Iterator[Self]:
        """The objects of a list."""
        for index, item in enumerate(self.get(key, list, default)):
            yield self.of(item, self.where, f"{self.at(key)}[{index}]")

    def rest(self, known: tuple[str, ...]) -> dict[str, Any]:
        """The keys that are not in `known`."""
        return {key: value for key, value in self.value.items() if key not in known}


def kind_of(value: object) -> str:
    """What JSON calls a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return _NAMES.get(type(value), "a number")
