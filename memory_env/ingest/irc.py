"""Logs of IRC programs: irssi, WeeChat, HexChat, ZNC and the like. One line a message: a time, <nick>, the words."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest.chat import Chat, ChatMessage, ReadOptions
from memory_env.ingest.sources import read_pieces
from memory_env.ingest.text_stream import lines_of

_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
_LINE = re.compile(
    rf"\[?(?:(?P<day>\d{{4}}-\d\d-\d\d)[T ]|(?P<month>[A-Z][a-z]{{2}}) (?P<of_month>\d\d?) )?{_CLOCK}"
    r"(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]+(?P<rest>.*)"
)
_SAID = re.compile(r"<[ @+%&~!]?(?P<nick>[^<>\s]+)>\s?(?P<words>.*)")
_WEECHAT = re.compile(r"[@+%&~!]?(?P<nick>[^\s<>*\-=]\S*)\t(?P<words>.*)")
_EVENT = re.compile(r"\*\s+\S+ (?:has (?:joined|left|quit|set topic)|is now known as|was kicked|sets mode|gives |removes )")
_ACTION = re.compile(r"\*\s+[@+%&~!]?(?P<nick>[^\s*]+)\s(?P<words>.*)")
_OPENED = re.compile(r"(?:---|\*\*\*\*) (?:Log opened|Day changed|BEGIN LOGGING AT) (?P<text>.+)", re.IGNORECASE)
_DATED_NAME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")
_FORMS = ("%a %b %d %H:%M:%S %Y", "%a %b %d %Y")


def recognises(head: str) -> bool:
    """Whether the first lines of a text are those of an IRC log."""
    lines = [line for line in head.split("\n")[:40] if line.strip()]
    if not lines:
        return False
    said = sum(_says(line) for line in lines)
    return said > 0 and 2 * sum(bool(_LINE.match(line) or _OPENED.match(line)) for line in lines) >= len(lines)


def _says(line: str) -> bool:
    match = _LINE.match(line)
    # WeeChat sets nicks between tabs, behind a full date.
    return match is not None and bool(_SAID.match(match["rest"]) or (match["day"] and _WEECHAT.match(match["rest"])))


def read(path: str | Path, options: ReadOptions) -> list[Chat]:
    """Read a log. DataError with file and line."""
    path = Path(path)
    return [parse(lines_of(read_pieces(path)), str(path), path.stem)]


def parse(lines: Iterable[str], where: str, name: str) -> Chat:
    """The chat of a log's lines. A log that does not say when days change is dated by times that run backwards."""
    chat = Chat(name)
    named = _DATED_NAME.search(name)
    day = date(*map(int, named.groups())) if named else None
    before: datetime | None = None
    told = False
    for number, line in enumerate(lines, 1):
        opened = _OPENED.match(line)
        if opened:
            day, before = _opened(opened["text"]) or day, None
            continue
        match = _LINE.match(line)
        if match is None:
            chat.tally["system messages"] += bool(line.strip())
            continue
        day = _day_of(match, day)
        if day is None:
            raise DataError(f"{where}: line {number}: no line says which day it is; {CONVERT}")
        hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
        if not (hour < 24 and minute < 60 and second < 60):
            raise DataError(f"{where}: line {number}: {line[:20]!r} is no time")
        now = datetime(day.year, day.month, day.day, hour, minute, second)
        if before is not None and now < before and not match["day"] and not match["month"]:
            day, now, told = day + timedelta(days=1), now + timedelta(days=1), True
        before = now
        spoken = _spoken(match["rest"])
        if spoken is None:
            rest = match["rest"]
            chat.tally["joins" if "has joined" in rest else "leaves" if _leaves(rest) else "system messages"] += 1
        else:
            chat.messages.append(ChatMessage(sys.intern(spoken[0]), spoken[1], now.isoformat()))
    if told:
        chat.notes.append("the log does not say when days change: where its time runs backwards the next day is assumed")
    return chat


CONVERT = "convert it to CSV with the columns ts, speaker, content"


def _spoken(rest: str) -> tuple[str, str] | None:
    """(nick, words) of a line after its time; None for what the program says."""
    if _EVENT.match(rest):
        return None
    for pattern in (_SAID, _ACTION, _WEECHAT):
        match = pattern.match(rest)
        if match and match["words"].strip():
            return match["nick"], f"* {match['words']}" if pattern is _ACTION else match["words"]
    return None


def _leaves(rest: str) -> bool:
    return any(words in rest for words in ("has left", "has quit", "was kicked"))


def _opened(text: str) -> date | None:
    for form in _FORMS:
        try:
            return datetime.strptime(" ".join(text.split()), form).date()
        except ValueError:
            continue
    return None


def _day_of(match: re.Match[str], day: date | None) -> date | None:
    """The day of a line: its own, or the one that is going on. A month without a year takes the year going on."""
    if match["day"]:
        return date.fromisoformat(match["day"])
    if match["month"] and day is not None:
        try:
            return datetime.strptime(f"{day.year} {match['month']} {match['of_month']}", "%Y %b %d").date()
        except ValueError:
            return day
    return day
