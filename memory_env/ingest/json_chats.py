"""What the readers of JSON chats share: their documents, found beside each other in a folder or archive."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError, parse_json
from memory_env.ingest.sources import Folder, ForeignFields, read_pieces
from memory_env.ingest.times import TimeError, from_epoch, parse_time

_BLOCKS = frozenset(("p", "div", "br", "li", "tr", "blockquote"))


def documents(path: str | Path) -> Iterator[tuple[Any, str]]:
    """(value, where) of a JSON file, or of every JSON and JSONL file of a folder or archive that can be read, outermost first."""
    path = Path(path)
    if not (path.is_dir() or path.suffix.lower() == ".zip"):
        yield _value("".join(read_pieces(path)), str(path)), str(path)
        return
    folder = Folder(path)
    names = [name for name in folder.names() if name.lower().endswith((".json", ".jsonl"))]
    for name in sorted(names, key=lambda name: (name.count("/"), _natural(name))):
        try:
            yield _value(folder.text(name), f"{path}/{name}"), f"{path}/{name}"
        except DataError:
            # A file that was sent in a chat may be anything.
            continue


def _value(text: str, where: str) -> Any:
    """A JSON document; the lines of a JSONL file as a list."""
    if where.lower().endswith(".jsonl"):
        return [parse_json(line, f"{where}: line {n}") for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    return parse_json(text, where)


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def part(item: ForeignFields, key: str) -> ForeignFields:
    """An object inside of `item`; an empty one where it is missing or null."""
    return ForeignFields.of(item.get(key, dict, {}), item.where, item.at(key))


def time_of(item: ForeignFields, key: str, milliseconds: bool = False) -> str:
    """A time of `item` as ISO 8601: text, or an epoch in seconds or milliseconds. DataError with its place."""
    try:
        text = item.text(key)
        return from_epoch(int(float(text)) / 1000) if milliseconds else parse_time(text)
    except (TimeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise item.error(key, f"can't be read ({error})") from None


def html_text(text: str) -> str:
    """The words of a message that is written in HTML.

    Example:
        html_text("<p>see <at id='0'>Bo</at> &amp; me</p>") == "see Bo & me"
    """
    if "<" not in text:
        return html.unescape(text).strip()
    reader = _Words()
    reader.feed(text)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.words).split("\n"))
    return "\n".join(line for line in lines if line)


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Blocks begin lines; a picture is known by its description."""
        if tag in _BLOCKS:
            self.words.append("\n")
        if tag == "img":
            self.words.append(dict(attrs).get("alt") or "[image]")

    def handle_endtag(self, tag: str) -> None:
        """Blocks end lines."""
        if tag in _BLOCKS:
            self.words.append("\n")

    def handle_data(self, data: str) -> None:
        """Words."""
        self.words.append(data)
