"""CSV, TSV, JSONL and JSON lists with named columns: speaker, content, ts, and, if any, channel, id, reply_to, speaker_id."""

from __future__ import annotations

import csv
import itertools
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, NamesById, ReadOptions, settle_names
from memory_env.ingest.sources import read_chat_json, read_jsonl, read_pieces
from memory_env.ingest.text_stream import lines_of, well_formed
from memory_env.ingest.times import DateOrder, NumericTime, TimeError, parse_numeric, parse_time, settle_order

ALIASES = {
    "speaker": ("speaker", "sender", "author", "from", "user", "name", "username", "sender_name", "nickname",
                "absender", "autor", "remitente", "expéditeur", "auteur", "mittente", "afzender", "remetente"),
    "content": ("content", "text", "message", "body", "msg", "nachricht", "mensaje", "texto", "messaggio", "testo", "bericht",
                "mensagem", "texte"),
    "ts": ("ts", "time", "timestamp", "date", "datetime", "created_at", "sent_at", "created", "sent", "datum", "zeit",
           "zeitstempel", "fecha", "data", "ora", "hora", "heure"),
    "channel": ("channel", "group", "room", "conversation", "kanal", "gruppe", "canal", "grupo", "groupe", "gruppo"),
    "speaker_id": ("speaker_id", "sender_id", "author_id", "user_id", "from_id"),
    "id": ("id", "message_id", "msg_id"),
    "reply_to": ("reply_to", "reply_to_id", "in_reply_to", "parent_id"),
}  # fmt: skip
REQUIRED = ("speaker", "content", "ts")
_LONGEST_DATE = len(" 31.12.2024 ")


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read a table, one chat per channel. DataError with file and line."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        rows = _objects(read_jsonl(path), path, "line", options)
    elif suffix == ".json":
        rows = _objects(_listed(read_chat_json(path), path), path, "message", options)
    else:
        rows = _csv(path, options)
    unit = "message" if suffix == ".json" else "line"
    chats: dict[str, Chat] = {}
    names: dict[str, NamesById] = {}
    places: dict[str, array] = {}
    empty = True
    for line, row in rows:
        empty = False
        channel = sys.intern(row.get("channel", ""))
        if options.channel not in ("", channel):
            continue
        chat = chats.setdefault(channel, Chat(channel or path.stem))
        message = _message(row, channel, f"{path}: {unit} {line}")
        if message is None:
            chat.tally["empty messages"] += 1
            continue
        if message.speaker_id:
            names.setdefault(channel, NamesById()).saw(message.speaker_id, message.speaker)
        chat.messages.append(message)
        places.setdefault(channel, array("L")).append(line)
    if empty:
        raise DataError(f"{path}: holds no message")
    dates = _settle_times(chats, places, options, path, unit)
    for channel, chat in chats.items():
        settle_names(chat, names.get(channel, NamesById()))
        chat.dates = dates
        if dates is not None and dates.note:
            chat.notes.append(dates.note)
    if not chats:
        raise DataError(f"{path}: has no channel {options.channel!r}")
    return list(chats.values())


def _message(row: dict[str, str], channel: str, place: str) -> ChatMessage | None:
    """A row as a message, its time still as in the file; None without a text."""
    if not row["content"].strip():
        return None
    speaker = row["speaker"].strip()
    if not speaker:
        raise DataError(f"{place}: the speaker is empty; fill it in or remove the line")
    identity = sys.intern(row.get("speaker_id", ""))
    return ChatMessage(
        sys.intern(speaker), row["content"], row["ts"], identity, row.get("id", ""), channel, row.get("reply_to", "")
    )


def _settle_times(
    chats: dict[str, Chat], places: dict[str, array], options: ReadOptions, path: Path, unit: str
) -> DateOrder | None:
    """Make every time ISO 8601, in place; the order of numeric dates, where there are any."""
    every = (message for chat in chats.values() for message in chat.messages)
    numeric = [time for message in every if (time := _numeric(message.ts)) is not None]
    dates = settle_order(numeric, options.date_order, str(path)) if numeric else None
    order = "dmy" if dates is None else dates.order
    for channel, chat in chats.items():
        for index, message in enumerate(chat.messages):
            place = f"{path}: {unit} {places[channel][index]}"
            chat.messages[index] = replace(message, ts=_time(message.ts, order, place))
    return dates


def _numeric(text: str) -> NumericTime | None:
    """A date in numbers with its time, or alone, as spreadsheets have it."""
    return parse_numeric(text) or (parse_numeric(f"{text.strip()} 00:00") if len(text) <= _LONGEST_DATE else None)


def _time(text: str, order: str, place: str) -> str:
    try:
        numeric = _numeric(text)
        return parse_time(text) if numeric is None else numeric.iso(order)
    except TimeError as error:
        raise DataError(f"{place}: the time {text!r} can't be read ({error}); write ISO 8601, or use --date-order") from None


def _columns(available: list[str], options: ReadOptions, where: str) -> dict[str, str]:
    """Our column names to the file's; DataError that names the missing one."""
    unknown = sorted(set(options.columns) - ALIASES.keys())
    if unknown:
        raise DataError(f"--column {unknown[0]}: there is no such column; there are {', '.join(ALIASES)}")
    lowered = {name.strip().lower().replace(" ", "_"): name for name in available}
    chosen = {}
    for ours, aliases in ALIASES.items():
        named = options.columns.get(ours)
        if named is not None and named not in available:
            raise DataError(f"{where}: has no column {named!r} (for {ours}); it has {', '.join(available)}")
        theirs = named or next((lowered[alias] for alias in aliases if alias in lowered), None)
        if theirs is not None:
            chosen[ours] = theirs
        elif ours in REQUIRED:
            raise DataError(f"{where}: has no column for {ours}; it has {', '.join(available)}: name one, --column {ours}=NAME")
    return chosen


def _csv(path: Path, options: ReadOptions) -> Iterator[tuple[int, dict[str, str]]]:
    lines = lines_of(read_pieces(path))
    header, skipped = next(lines), 0
    delimiter = options.delimiter
    if header.lower().startswith("sep=") and len(header) == len("sep=;"):
        # Excel's own first line.
        delimiter, header, skipped = delimiter or header[-1], next(lines), 1
    delimiter = delimiter or max(",;\t|", key=header.count)
    reader = csv.reader((f"{line}\n" for line in itertools.chain([header], lines)), delimiter=delimiter, strict=True)
    names: list[str] = []
    columns: dict[str, int] = {}
    line = 1 + skipped
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1 + skipped
            if not cells:
                continue
            if not names:
                names = [cell.strip() for cell in cells]
                chosen = _columns(names, options, f"{path}: line {start}")
                columns = {ours: names.index(theirs) for ours, theirs in chosen.items()}
                continue
            if len(cells) != len(names):
                count = f"has {len(cells)} fields, the header {len(names)}"
                raise DataError(f"{path}: line {start}: {count}; quote fields that hold {delimiter!r}")
            yield start, {ours: cells[place] for ours, place in columns.items()}
    except csv.Error as error:
        raise DataError(f"{path}: line {line}: is no CSV ({error})") from None


def recognises(document: Any) -> bool:
    """Whether a JSON document is a list of messages, or an object that holds one as `messages`."""
    rows = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return False
    names = {str(name).strip().lower().replace(" ", "_") for name in rows[0]}
    return all(names.intersection(ALIASES[ours]) for ours in REQUIRED)


def _listed(document: Any, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise DataError(f"{path}: is no list of messages")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}: message {number}: is not an object")
        yield number, row


def _objects(
    rows: Iterable[tuple[int, dict[str, Any]]], path: Path, unit: str, options: ReadOptions
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of JSON objects, by our column names."""
    columns: dict[str, str] = {}
    for line, item in rows:
        if not columns:
            columns = _columns(list(item), options, f"{path}: {unit} {line}")
        row = {}
        for ours, theirs in columns.items():
            value = item.get(theirs)
            # A null text is a message without one, such as a picture.
            if value is None and ours in REQUIRED and not (ours == "content" and theirs in item):
                raise DataError(f"{path}: {unit} {line}: has no {theirs!r}")
            if isinstance(value, (dict, list, bool)):
                raise DataError(f"{path}: {unit} {line}: {theirs!r} must be a text or a number")
            row[ours] = _text(value)
        yield line, row


def _text(value: Any) -> str:
    return "" if value is None else well_formed(value) if isinstance(value, str) else str(value)
