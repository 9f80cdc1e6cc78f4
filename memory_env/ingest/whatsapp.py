"""WhatsApp's "Export chat" text, of Android and iOS in any language, as .txt or inside its .zip."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions
from memory_env.ingest.sources import Folder, read_pieces
from memory_env.ingest.text_stream import lines_of
from memory_env.ingest.times import QUOTED, NumericTime, TimeError, parse_numeric, settle_order
from memory_env.ingest.whatsapp_phrases import (
    ATTACHED,
    DELETED,
    EDITED,
    EVENT,
    JOINED,
    LEFT,
    MARKED_FILE,
    MARKED_MEDIA,
    MEDIA,
    SYSTEM,
)

# Android: "31/12/24, 21:41 - Alice: text"; iOS: "[31/12/24, 9:41:03 PM] Alice: text". Marks of direction may precede.
_HEADER = re.compile(r"[\u200e\u200f\ufeff]*(?:\[([^\]\n]{10,40})\]\s?|(\d[^\n]{9,36}?)\s[-\u2013]\s)", re.DOTALL)
_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069")
# iOS sets it before every text of its own; Android before the name of an attached file.
_OWN = "\u200e"

_Line = tuple[NumericTime, str, int, int]
"""A line that begins a message: its time, itself, where its time ends, and its number in the file."""


def recognises(head: str) -> bool:
    """Whether one of the first lines of a text is the start of a WhatsApp message."""
    return any(_header(line) for line in head.split("\n")[:20])


def read(path: str | Path, options: ReadOptions) -> Chat:
    """Read an export. DataError with file and line."""
    path = Path(path)
    if path.suffix.lower() == ".zip":
        folder = Folder(path)
        texts = [name for name in folder.names() if name.lower().endswith(".txt")]
        if len(texts) != 1:
            raise DataError(f"{path}: holds {len(texts)} text files; a WhatsApp export holds one")
        return parse(lines_of(folder.pieces(texts[0])), f"{path}/{texts[0]}", path.stem, options)
    return parse(lines_of(read_pieces(path)), str(path), path.stem, options)


def parse(lines: Iterable[str], where: str, name: str, options: ReadOptions) -> Chat:
    """The chat of an export's lines; `where` names it in errors."""
    chat = Chat(_chat_name(name))
    begun = list(_begun(lines, where))
    order, note = settle_order([time for time, *_ in begun], options.date_order, where)
    if note:
        chat.notes.append(note)
    strange = sum(not time.fits(order) for time, *_ in begun)
    quotes = strange * QUOTED <= len(begun)
    begun.reverse()
    spoke: set[str] = set()
    # Lines are let go one by one, so that a long chat is not held twice.
    while begun:
        time, text, start, number = begun.pop()
        more = [text]
        # A few lines with a date of another order are quoted text; many are a wrong --date-order.
        while quotes and begun and not begun[-1][0].fits(order):
            more.append(begun.pop()[1])
        try:
            ts = time.iso(order)
        except TimeError as error:
            shown = f"{time.a}/{time.b}/{time.c}"
            raise DataError(f"{where}: line {number}: {shown} is no date as {order} ({error}); try --date-order") from None
        _add(chat, spoke, ts, "\n".join(more)[start:].rstrip("\n"))
    # iOS signs its own texts with the group's name, which is no member.
    kept = [message for message in chat.messages if message.speaker in spoke]
    chat.tally["system messages"] += len(chat.messages) - len(kept)
    chat.messages = kept
    return chat


def _begun(lines: Iterable[str], where: str) -> Iterator[_Line]:
    """The lines that begin a message, each with the lines that go on with it."""
    first: _Line | None = None
    more: list[str] = []
    for number, line in enumerate(lines, 1):
        header = _header(line)
        if header is not None:
            if first is not None:
                yield _joined(first, more)
            first, more = (header[0], line, header[1], number), []
        elif first is not None:
            more.append(line)
        elif line.strip():
            raise DataError(f"{where}: line {number}: does not start with a date and time; is this a WhatsApp export?")
    if first is None:
        raise DataError(f"{where}: holds no message")
    yield _joined(first, more)


def _joined(first: _Line, more: list[str]) -> _Line:
    time, line, start, number = first
    return time, "\n".join([line, *more]) if more else line, start, number


def _header(line: str) -> tuple[NumericTime, int] | None:
    match = _HEADER.match(line)
    time = parse_numeric((match[1] or match[2]).translate(_MARKS)) if match else None
    return None if time is None else (time, match.end())


def _add(chat: Chat, spoke: set[str], ts: str, body: str) -> None:
    """Add what one entry says to `chat`, and who said it to `spoke` unless the app may have said it for them."""
    chat.tally["continued lines"] += sum(bool(line.strip()) for line in body.split("\n")[1:])
    speaker, colon, content = body.partition(": ")
    if not colon and body.endswith(":"):
        speaker, colon, content = body[:-1], ":", ""
    speaker = speaker.translate(_MARKS)
    if not colon or "\n" in speaker or SYSTEM.search(speaker) or _cuts_a_quote(speaker):
        _count_event(chat, body.translate(_MARKS))
        return
    # "~ Bob" marks a member who is not in the exporter's contacts.
    speaker = sys.intern(speaker.removeprefix("~").strip() or "unnamed")
    marked = content.startswith(_OWN)
    content, media = _placeholders(content)
    if not marked or media or "://" in content:
        spoke.add(speaker)
    if DELETED.fullmatch(content.rstrip(".")):
        spoke.add(speaker)
        chat.tally["deleted"] += 1
        return
    edit = EDITED.search(content)
    if edit:
        content = content[: edit.start()]
        chat.tally["edited"] += 1
    chat.tally["media placeholders"] += media
    if marked and not media and (EVENT.search(content) or not chat.messages):
        _count_event(chat, content)
    elif not content:
        chat.tally["empty messages"] += 1
    else:
        chat.messages.append(ChatMessage(speaker, content, ts, edited=edit is not None))


def _cuts_a_quote(speaker: str) -> bool:
    """Whether the ": " stands inside the quoted name of a group, so that this is no speaker."""
    opened, closed = ("„", "“") if "„" in speaker else ("“", "”")
    pairs = ((opened, closed), ("«", "»"))
    return speaker.count('"') % 2 == 1 or any(speaker.count(a) != speaker.count(b) for a, b in pairs)


def _count_event(chat: Chat, text: str) -> None:
    chat.tally["joins" if JOINED.search(text) else "leaves" if LEFT.search(text) else "system messages"] += 1


def _placeholders(content: str) -> tuple[str, int]:
    """The text without marks, its omitted and attached files as placeholders, and their number."""
    lines, media = content.split("\n"), 0
    for index, line in enumerate(lines):
        shown = _placeholder(line.translate(_MARKS).strip(), _OWN in line)
        media += bool(shown)
        lines[index] = shown or line.translate(_MARKS)
    return "\n".join(lines).strip(), media


def _placeholder(line: str, marked: bool) -> str:
    """What stands for a line that names a file, shown or omitted; "" for any other line."""
    file = ATTACHED.fullmatch(line)
    if file:
        return f"[{file['ios'] or file['android']}]"
    omitted = MEDIA.fullmatch(line)
    if omitted:
        return f"[{(omitted['kind'] or 'media').lower()}]"
    if marked and MARKED_FILE.fullmatch(line):
        return f"[{MARKED_FILE.fullmatch(line)['name']}]"
    omitted = MARKED_MEDIA.fullmatch(line) if marked else None
    return f"[{(omitted['kind'] or 'media').lower()}]" if omitted else ""


def _chat_name(stem: str) -> str:
    return stem.removeprefix("WhatsApp Chat with ").removeprefix("WhatsApp Chat - ").removesuffix("_chat") or stem
