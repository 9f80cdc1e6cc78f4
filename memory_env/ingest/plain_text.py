"""A transcript of lines `Name: text`, without times. Other lines go on with the message before."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions
from memory_env.ingest.sources import read_pieces
from memory_env.ingest.text_stream import lines_of

# A name has letters, few words, and no sign that ends a sentence.
_NAMED = re.compile(r"(?P<name>[^\W\d_][^:\n!?;,/<>\[\]{}\"=]{0,39}):\s+(?P<words>\S.*)")
# A dot ends a sentence, unless what it ends is an initial or a title.
_SENTENCE = re.compile(r"(?:\w{4,}|\d)\.")
_MOST_WORDS = 4
_SHOWN = 12


def recognises(head: str) -> bool:
    """Whether the first lines of a text are `Name: text`, by speakers who come back."""
    lines = [line for line in head.split("\n")[:60] if line.strip()]
    names = [name for line in lines if (name := _name(line))]
    return len(names) >= 2 and _name(lines[0]) != "" and 2 * len(names) >= len(lines) and max(Counter(names).values()) > 1


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read a transcript. DataError with file and line."""
    path = Path(path)
    return [parse(lines_of(read_pieces(path)), str(path), path.stem)]


def parse(lines: Iterable[str], where: str, name: str) -> Chat:
    """The chat of a transcript's lines. Its notes say who was taken for a speaker: only the reader of the text can check."""
    chat = Chat(name)
    for number, line in enumerate(lines, 1):
        match = _NAMED.fullmatch(line.strip()) if _name(line) else None
        if match:
            chat.messages.append(ChatMessage(sys.intern(match["name"].strip()), match["words"], ""))
        elif chat.messages:
            last = chat.messages[-1]
            chat.messages[-1] = ChatMessage(last.speaker, f"{last.content}\n{line}".rstrip("\n"), "")
            chat.tally["continued lines"] += bool(line.strip())
        elif line.strip():
            raise DataError(f"{where}: line {number}: does not begin with a name and a colon")
    speakers = list(dict.fromkeys(message.speaker for message in chat.messages))
    shown = ", ".join(speakers[:_SHOWN]) + (f" and {len(speakers) - _SHOWN} more" if len(speakers) > _SHOWN else "")
    chat.notes.append(f"the text holds no times; its speakers are {shown}")
    return chat


def _name(line: str) -> str:
    match = _NAMED.match(line.strip())
    if match is None or len(match["name"].split()) > _MOST_WORDS or _SENTENCE.search(match["name"]):
        return ""
    return match["name"].strip()
