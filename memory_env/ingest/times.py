"""Times in chat exports: ISO 8601, epochs, and dates in numbers whose order of day and month a file leaves open."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from datetime import time as clock

from memory_env.datafile import DataError
from memory_env.ingest.calendars import calendar_note, calendar_of, gregorian
from memory_env.ingest.half_days import half_day

_DATE = r"(?P<a>\d{1,4})(?:[./-]|\.\s|年\s?|년\s?)(?P<b>\d{1,2})(?:[./-]|\.\s|月\s?|월\s?)(?P<c>\d{1,4})[.日일]?"
_TIME = r"(?P<hour>\d{1,2})(?:[:.]|\s?h\s?)(?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
# What stands between and behind is looked up (half_days), as it differs from language to language.
_DATE_FIRST = re.compile(rf"{_DATE}(?P<between>\D{{1,20}}){_TIME}(?P<behind>\D{{0,20}})")
_TIME_FIRST = re.compile(rf"{_TIME}(?P<between>\D{{1,20}}){_DATE}(?P<behind>)")
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?=$|[T ])")
_WORDS = ("%I:%M %p on %d %B, %Y", "%d %B %Y, %H:%M", "%d %B, %Y", "%d %B %Y", "%B %d, %Y")


QUOTED = 20
"""A date order that so many times as many dates have is the file's; the others are taken for quoted text."""


class TimeError(ValueError):
    """A time that can't be read; readers turn it into a DataError with its place."""


@dataclass(frozen=True, slots=True)
class NumericTime:
    """A date in three numbers and a time, before the order of the date is known.

    Example:
        parse_numeric("3/4/25, 9:41 PM") == NumericTime(3, 4, 25, 21, 41, 0)
    """

    a: int
    b: int
    c: int
    hour: int
    minute: int
    second: int

    def fits(self, order: str) -> bool:
        """Whether the numbers can be a day and a month in `order`; a line of others is no date of this file."""
        parts = dict(zip(order, (self.a, self.b, self.c), strict=True))
        return 1 <= parts["m"] <= 12 and 1 <= parts["d"] <= 31

    def iso(self, order: str) -> str:
        """As ISO 8601, the date read in `order` (dmy, mdy or ymd). TimeError if that is no date."""
        parts = dict(zip(order, (self.a, self.b, self.c), strict=True))
        try:
            day = gregorian(parts["y"], parts["m"], parts["d"])
            return datetime.combine(day, clock(self.hour, self.minute, self.second)).isoformat()
        except ValueError as error:
            raise TimeError(str(error)) from None

    def year(self, order: str) -> int:
        """The year as it is written."""
        return dict(zip(order, (self.a, self.b, self.c), strict=True))["y"]


def parse_numeric(text: str) -> NumericTime | None:
    """The numbers of a date and time such as `31.12.24, 21:41` or `12/31/24, 9:41:03 PM`; None if it is none."""
    text = text.strip()
    match = _DATE_FIRST.fullmatch(text) or _TIME_FIRST.fullmatch(text)
    if match is None:
        return None
    halves = half_day(match["between"]), half_day(match["behind"])
    if None in halves:
        return None
    hour, half = int(match["hour"]), halves[0] or halves[1]
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return NumericTime(int(match["a"]), int(match["b"]), int(match["c"]), hour, int(match["minute"]), int(match["second"] or 0))


SAID, BY_NUMBERS, BY_TIME, ASSUMED = 3, 2, 1, 0


@dataclass(frozen=True, slots=True)
class DateOrder:
    """The order of day and month in one file's dates, and how sure that is: said by the user, seen from a number over 12,
    from time that runs forward, or only assumed.

    Example:
        DateOrder("mdy", BY_NUMBERS)
    """

    order: str
    certainty: int
    note: str = ""


def settle_order(times: Sequence[NumericTime], wanted: str, where: str) -> DateOrder:
    """The order of the dates of one file; its note is "" unless the order had to be assumed, or a calendar converted.

    Numbers over 12 decide (a few of the other order may be quoted text); else the order under which time runs backwards
    less often; else day before month. DataError if the file contradicts itself.
    """
    order, certainty = (wanted, SAID) if wanted != "auto" else _order(times, where)
    notes = [calendar_note(time.year(order) for time in times)]
    if certainty == ASSUMED and any(time.a != time.b for time in times):
        notes.append("the dates could be day/month or month/day: assumed day/month; --date-order mdy reads them the other way")
    return DateOrder(order, certainty, "; ".join(filter(None, notes)))


def _order(times: Sequence[NumericTime], where: str) -> tuple[str, int]:
    kinds = Counter(
        "ymd" if time.a > 31 else "dmy" if time.a > 12 else "mdy" for time in times if time.a > 12 or time.b > 12
    )
    if kinds:
        order, many = kinds.most_common(1)[0]
        if (kinds.total() - many) * QUOTED > many:
            raise DataError(f"{where}: some dates are only possible as day/month and some only as month/day; is this one export?")
        return order, BY_NUMBERS
    backwards = {order: _backwards(times, order) for order in ("dmy", "mdy")}
    if backwards["dmy"] != backwards["mdy"]:
        return min(backwards, key=lambda order: backwards[order]), BY_TIME
    return "dmy", ASSUMED


def _backwards(times: Sequence[NumericTime], order: str) -> int:
    place = [order.index(part) for part in "ymd"]
    moments = []
    for time in times:
        if time.fits(order):
            numbers = (time.a, time.b, time.c)
            moments.append((*(numbers[index] for index in place), time.hour, time.minute, time.second))
    return sum(after < before for before, after in itertools.pairwise(moments))


def from_epoch(seconds: float, offset_minutes: int = 0) -> str:
    """ISO 8601 of an epoch time, in the zone at `offset_minutes` from UTC. TimeError if it is out of range."""
    try:
        moment = datetime.fromtimestamp(seconds, timezone(timedelta(minutes=offset_minutes)))
    except (OverflowError, OSError, ValueError) as error:
        raise TimeError(f"{seconds} is no time ({error})") from None
    return moment.isoformat(timespec="seconds")


def parse_time(text: str) -> str:
    """ISO 8601 from ISO 8601, an epoch in seconds or milliseconds, or a date in English words. TimeError else."""
    stripped = text.strip()
    if stripped.endswith((" UTC", " GMT")):
        stripped = f"{stripped[:-4]}+00:00"
    if re.fullmatch(r"-?\d{9,10}(\.\d+)?", stripped):
        return from_epoch(float(stripped))
    if re.fullmatch(r"\d{13}", stripped):
        return from_epoch(int(stripped) / 1000)
    stripped = _in_our_calendar(stripped)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        pass
    else:
        return stripped if len(stripped) == 10 and "-" in stripped else moment.isoformat()
    for form in _WORDS:
        try:
            moment = datetime.strptime(stripped.replace(" am ", " AM ").replace(" pm ", " PM "), form)
        except ValueError:
            continue
        return moment.isoformat() if "%M" in form else moment.date().isoformat()
    raise TimeError(f"{text!r} is no time that can be read")


def _in_our_calendar(text: str) -> str:
    """An ISO 8601 time whose year is of another calendar, converted."""
    date_part = _ISO_DATE.match(text)
    if date_part is None or not calendar_of(int(date_part[1])):
        return text
    try:
        return gregorian(*map(int, date_part.groups())).isoformat() + text[date_part.end() :]
    except ValueError as error:
        raise TimeError(str(error)) from None


def instant(ts: str) -> float | None:
    """Seconds since 1970 for comparing; a time without a zone counts as UTC. None for what is no ISO 8601 time."""
    try:
        moment = datetime.fromisoformat(ts)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None
