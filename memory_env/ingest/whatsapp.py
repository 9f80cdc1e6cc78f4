"""WhatsApp's "Export chat" text, of Android and iOS, as .txt or inside its .zip."""

from __future__ import annotations

import re
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions
from memory_env.ingest.sources import Folder, read_chat_text
from memory_env.ingest.times import NumericTime, TimeError, parse_numeric, settle_order

# Android: "31/12/24, 21:41 - Alice: text"; iOS: "[31/12/24, 9:41:03 PM] Alice: text". Marks of direction may precede.
_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?\s+\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s*[AaPp]\.?\s?[Mm]\.?)?"
_HEADER = re.compile(rf"^[\u200e\u200f\ufeff]*(?:\[({_DATE})\]\s?|({_DATE})\s+[-\u2013]\s)(.*)$", re.DOTALL)
_SYSTEM_NAME = re.compile(
    r" (changed the (subject|group)|created group|changed this group|changed their phone number|added |removed )|"
    r"^(Messages and calls are|Messages to this|You're now|This chat is)",
)
_JOINED = re.compile(r" (added|joined using|joined from|was added)\b|^You were added")
_LEFT = re.compile(r" left$| removed | was removed")
_DELETED = re.compile(r"^(This message was deleted|You deleted this message|This message was deleted by admin.*)\.?$")
_EDITED = "<This message was edited>"
_MEDIA = re.compile(
    r"^(<Media omitted>|(image|video|audio|sticker|GIF|document|Contact card) omitted|<attached: .+>|"
    r".+\.\w{2,5} \(file attached\)|null)$",
    re.IGNORECASE,
)
_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202c")


def recognises(head: str) -> bool:
    """Whether one of the first lines of a text is the start of a WhatsApp message."""
    return any(_HEADER.match(line) for line in head.split("\n")[:20])


def read(path: str | Path, options: ReadOptions) -> Chat:
    """Read an export. DataError with file and line."""
    path = Path(path)
    if path.suffix.lower() == ".zip":
        folder = Folder(path)
        texts = [name for name in folder.names() if name.lower().endswith(".txt")]
        if len(texts) != 1:
            raise DataError(f"{path}: holds {len(texts)} text files; a WhatsApp export holds one")
        return parse(folder.text(texts[0]), f"{path}/{texts[0]}", path.stem, options)
    return parse(read_chat_text(path), str(path), path.stem, options)


def parse(text: str, where: str, name: str, options: ReadOptions) -> Chat:
    """The chat of an export's text; `where` names it in errors."""
    chat = Chat(_chat_name(name))
    raw: list[tuple[NumericTime, str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        header = _HEADER.match(line)
        time = parse_numeric((header[1] or header[2]).replace("\u202f", " ")) if header else None
        if time is not None:
            raw.append((time, header[3].translate(_MARKS), number))
        elif raw:
            time, before, first = raw[-1]
            raw[-1] = (time, f"{before}\n{line.translate(_MARKS)}", first)
            chat.tally["continued lines"] += bool(line.strip())
        elif line.strip():
            raise DataError(f"{where}: line {number}: does not start with a date and time; is this a WhatsApp export?")
    if not raw:
        raise DataError(f"{where}: holds no message")
    order, note = settle_order([time for time, _, _ in raw], options.date_order, where)
    if note:
        chat.notes.append(note)
    for time, body, number in raw:
        try:
            ts = time.iso(order)
        except TimeError as error:
            shown = f"{time.a}/{time.b}/{time.c}"
            raise DataError(f"{where}: line {number}: {shown} is no date as {order} ({error}); try --date-order") from None
        _add(chat, ts, body.rstrip("\n"))
    return chat


def _add(chat: Chat, ts: str, body: str) -> None:
    speaker, colon, content = body.partition(": ")
    if not colon and body.endswith(":"):
        speaker, colon, content = body[:-1], ":", ""
    if not colon or "\n" in speaker or _SYSTEM_NAME.search(speaker):
        kind = "joins" if _JOINED.search(body) else "leaves" if _LEFT.search(body) else "system messages"
        chat.tally[kind] += 1
        return
    edited = content.endswith(_EDITED)
    if edited:
        content = content.removesuffix(_EDITED).rstrip()
        chat.tally["edited"] += 1
    if _DELETED.match(content.strip()):
        chat.tally["deleted"] += 1
        return
    lines = content.split("\n")
    for index, line in enumerate(lines):
        if _MEDIA.match(line.strip()):
            lines[index] = _placeholder(line.strip())
            chat.tally["media placeholders"] += 1
    content = "\n".join(lines).strip()
    if not content:
        chat.tally["empty messages"] += 1
        return
    # "~ Bob" marks a member who is not in the exporter's contacts.
    chat.messages.append(ChatMessage(speaker.removeprefix("~").strip() or "unnamed", content, ts, edited=edited))


def _placeholder(line: str) -> str:
    file = re.search(r"<attached: (.+)>|^(.+\.\w{2,5}) \(file attached\)", line)
    if file:
        return f"[{file[1] or file[2]}]"
    kind = line.removesuffix(" omitted").strip("<>").lower()
    return f"[{'media' if kind in ('null', 'media omitted') else kind}]"


def _chat_name(stem: str) -> str:
    return stem.removeprefix("WhatsApp Chat with ").removeprefix("WhatsApp Chat - ").removesuffix("_chat") or stem
