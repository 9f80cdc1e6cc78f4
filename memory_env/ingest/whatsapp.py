"""WhatsApp's "Export chat" text, of Android and iOS in any language, as .txt or inside its .zip."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions
from memory_env.ingest.placeholders import media, poll
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

# iOS: "[31/12/24, 9:41:03 PM] Alice: text"; Android: "31/12/24, 21:41 - Alice: text"; iOS before 2016:
# "31/12/14, 9:41:03 PM: Alice: text". Marks of direction may precede.
_HEADER = re.compile(
    r"[\u200e\u200f\ufeff]*(?:\[(?P<ios>[^\]\n]{10,40})\]\s?|(?P<android>\d[^\n]{9,36}?)\s[-\u2013]\s"
    r"|(?P<old_ios>\d[^\n]{9,36}?\d\d(?:\s?[^\W\d]\.?\s?[^\W\d]\.?)?):\s)"
)
_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069")
# iOS sets it before every text of its own; Android before the name of an attached file.
_OWN = "\u200e"

# "POLL:", the question, and "OPTION: a (2 votes)" for each option, in any language.
_POLL = re.compile(
    r"(?P<poll>[^\W\d_]+):\n(?P<question>.+?)(?P<options>(?:\n[^\W\d_]+: [^\n]+ \(\d+ [^()\n]+\))+)", re.DOTALL
)
_OPTION = re.compile(r"\n([^\W\d_]+): (.+)")
_CHAT_FILES = re.compile(r"_chat\.txt|.*whatsapp.*\.txt", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:WhatsApp Chat (?:with|mit|-)|Chat de WhatsApp con|Conversa do WhatsApp com|Discussion WhatsApp avec"
    r"|Chat WhatsApp (?:con|dengan)|WhatsApp-chat met|Чат WhatsApp с|WhatsApp Sohbeti -|WhatsApp Chat -) (?P<name>.+)"
)
# A browser numbers the second file of one name.
_COPY = re.compile(r" ?\(\d+\)$")
_LONGEST_PLACEHOLDER = 3

_Line = tuple[NumericTime, str, int, int]
"""A line that begins a message: its time, itself, where its time ends, and its number in the file."""


def recognises(head: str) -> bool:
    """Whether one of the first lines of a text is the start of a WhatsApp message."""
    return any(_header(line) for line in head.split("\n")[:20])


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read an export, or every export of a folder or archive. DataError with file and line."""
    path = Path(path)
    if not (path.is_dir() or path.suffix.lower() == ".zip"):
        # iOS calls every chat's file _chat.txt, in an archive that bears the chat's name.
        name = path.parent.name if path.stem == "_chat" and _NAMED.match(path.parent.name) else path.stem
        return [parse(lines_of(read_pieces(path)), str(path), name, options)]
    folder = Folder(path)
    members = find_members(folder)
    if not members:
        raise DataError(f"{path}: holds no text that is a WhatsApp export")
    return [
        parse(lines_of(folder.pieces(name)), f"{path}/{name}", path.stem if len(members) == 1 else Path(name).stem, options)
        for name in members
    ]


def find_members(folder: Folder) -> list[str]:
    """The chats of a folder or archive. Other texts may lie beside a chat, as files that were sent in it."""
    texts = [name for name in folder.names() if name.lower().endswith(".txt")]
    chats = [name for name in texts if recognises(folder.head(name))]
    named = [name for name in chats if _CHAT_FILES.fullmatch(Path(name).name)]
    chats = named or chats
    outermost = min((name.count("/") for name in chats), default=0)
    return [name for name in chats if name.count("/") == outermost]


def parse(lines: Iterable[str], where: str, name: str, options: ReadOptions) -> Chat:
    """The chat of an export's lines; `where` names it in errors."""
    chat = Chat(_chat_name(name), named=name != "_chat")
    begun = list(_begun(lines, where))
    chat.dates = dates = settle_order([time for time, *_ in begun], options.date_order, where)
    order = dates.order
    if dates.note:
        chat.notes.append(dates.note)
    strange = sum(not time.fits(order) for time, *_ in begun)
    quotes = strange * QUOTED <= len(begun)
    begun.reverse()
    reader = _Reader(chat, {speaker for _, text, start, _ in begun if (speaker := _speaker(text[start:])[0])})
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
        reader.add(ts, "\n".join(more)[start:].rstrip("\n"))
    reader.finish()
    return chat


def _begun(lines: Iterable[str], where: str) -> Iterator[_Line]:
    """The lines that begin a message, each with the lines that go on with it."""
    first: _Line | None = None
    style = ""
    more: list[str] = []
    for number, line in enumerate(lines, 1):
        header = _header(line, style)
        if header is not None:
            if first is not None:
                yield _joined(first, more)
            style = header[2]
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


def _header(line: str, style: str = "") -> tuple[NumericTime, int, str] | None:
    """(time, where it ends, style) of a line that begins a message. A line of another style than the file's is quoted."""
    match = _HEADER.match(line)
    if match is None or match.lastgroup is None or style not in ("", match.lastgroup):
        return None
    time = parse_numeric(match[match.lastgroup].translate(_MARKS))
    return None if time is None else (time, match.end(), match.lastgroup)


def _speaker(body: str) -> tuple[str, str]:
    """(speaker, text) of an entry; the speaker is "" where the app speaks."""
    speaker, colon, content = body.partition(": ")
    if not colon and body.endswith(":"):
        speaker, colon, content = body[:-1], ":", ""
    speaker = speaker.translate(_MARKS)
    if not colon or "\n" in speaker or SYSTEM.search(speaker) or _cuts_a_quote(speaker):
        return "", body
    # "~ Bob" marks a member who is not in the exporter's contacts.
    return speaker.removeprefix("~").strip() or "unnamed", content


class _Reader:
    """Adds entries to a chat. `names` are all that stand where a speaker does; some may be the group's own."""

    def __init__(self, chat: Chat, names: set[str]):
        self._chat, self._names = chat, names
        self._spoke: set[str] = set()

    def add(self, ts: str, body: str) -> None:
        """Add what one entry says."""
        tally = self._chat.tally
        tally["continued lines"] += sum(bool(line.strip()) for line in body.split("\n")[1:])
        speaker, content = _speaker(body)
        if not speaker:
            _count_event(self._chat, content.translate(_MARKS))
            return
        speaker = sys.intern(speaker)
        marked = content.startswith(_OWN)
        structured = _poll(content)
        content, files = (structured, 0) if structured else _placeholders(content)
        if not marked or files or structured or "://" in content:
            self._spoke.add(speaker)
        if DELETED.fullmatch(content.rstrip(".")):
            self._spoke.add(speaker)
            tally["deleted"] += 1
            return
        edit = EDITED.search(content)
        if edit:
            content = content[: edit.start()]
            tally["edited"] += 1
        if marked and not (files or structured or "://" in content):
            # The app's own line, in a member's or the group's name: an event, or a file in a language not known here.
            if EVENT.search(content) or not self._chat.messages or not self._is_file(content):
                _count_event(self._chat, content)
                return
            content, files = media(None), 1
        tally["media placeholders"] += files
        if not content:
            tally["empty messages"] += 1
        else:
            self._chat.messages.append(ChatMessage(speaker, content, ts, edited=edit is not None))

    def _is_file(self, content: str) -> bool:
        """Whether an unknown line of the app's is short and names nobody, as "image omitted" does in every language."""
        words = content.split()
        return len(words) <= _LONGEST_PLACEHOLDER and not any(name in content for name in self._names)

    def finish(self) -> None:
        """iOS signs its own texts with the group's name, which is no member."""
        kept = [message for message in self._chat.messages if message.speaker in self._spoke]
        self._chat.tally["system messages"] += len(self._chat.messages) - len(kept)
        self._chat.messages = kept


def _poll(content: str) -> str:
    """A poll as a line of text; "" for what is none."""
    match = _POLL.fullmatch(content.translate(_MARKS).strip()) if ":\n" in content else None
    if match is None or not match["poll"].isupper():
        return ""
    options = _OPTION.findall(match["options"])
    if len({word for word, _ in options}) != 1 or not options[0][0].isupper():
        return ""
    return poll(match["question"], [option for _, option in options])


def _cuts_a_quote(speaker: str) -> bool:
    """Whether the ": " stands inside the quoted name of a group, so that this is no speaker."""
    opened, closed = ("„", "“") if "„" in speaker else ("“", "”")
    pairs = ((opened, closed), ("«", "»"))
    return speaker.count('"') % 2 == 1 or any(speaker.count(a) != speaker.count(b) for a, b in pairs)


def _count_event(chat: Chat, text: str) -> None:
    chat.tally["joins" if JOINED.search(text) else "leaves" if LEFT.search(text) else "system messages"] += 1


def _placeholders(content: str) -> tuple[str, int]:
    """The text without marks, its omitted and attached files as placeholders, and their number."""
    lines, files = content.split("\n"), 0
    for index, line in enumerate(lines):
        shown = _placeholder(line.translate(_MARKS).strip(), _OWN in line)
        files += bool(shown)
        lines[index] = shown or line.translate(_MARKS)
    return "\n".join(lines).strip(), files


def _placeholder(line: str, marked: bool) -> str:
    """What stands for a line that names a file, shown or omitted; "" for any other line."""
    file = ATTACHED.fullmatch(line)
    if file:
        return f"[{file['ios'] or file['android']}]"
    omitted = MEDIA.fullmatch(line)
    if omitted:
        return media(omitted["kind"])
    named = MARKED_FILE.fullmatch(line) if marked else None
    if named:
        return f"[{named['name']}]"
    omitted = MARKED_MEDIA.fullmatch(line) if marked else None
    return media(omitted["kind"]) if omitted else ""


def _chat_name(stem: str) -> str:
    stem = _COPY.sub("", stem) or stem
    named = _NAMED.fullmatch(stem)
    return named["name"] if named else stem.removesuffix("_chat") or stem
