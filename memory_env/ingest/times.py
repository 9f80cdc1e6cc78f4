"""Times in chat exports: ISO 8601, epochs, and dates in numbers whose order of day and month a file leaves open."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from memory_env.datafile import DataError

# Half days as phones write them: Latin, Greek, Chinese, Japanese, Korean, then Arabic and Persian.
_MORNING = ("am", "πμ", "凌晨", "清晨", "早上", "上午", "午前", "오전", "\u0635", "\u0642\u0638")
_EVENING = ("pm", "μμ", "中午", "下午", "晚上", "午後", "오후", "\u0645", "\u0628\u0638")
_HALF = "|".join(r"\.?\s?".join(half) + r"\.?" for half in (*_MORNING, *_EVENING))
_NUMERIC = re.compile(
    r"(?P<a>\d{1,4})(?:[./-]|\. |年|년 )(?P<b>\d{1,2})(?:[./-]|\. |月|월 )(?P<c>\d{1,4})[.日일]?"
    r"[,\u060c]?\s+(?:(?:à|às|at|kl\.?|klo|um|в) )?"
    rf"(?P<before>{_HALF})?\s?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?\s?(?P<after>{_HALF})?",
    re.IGNORECASE,
)
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
        year = parts["y"] + 2000 if parts["y"] < 100 else parts["y"]
        try:
            moment = datetime(year, parts["m"], parts["d"], self.hour, self.minute, self.second)
        except ValueError as error:
            raise TimeError(str(error)) from None
        return moment.isoformat()


def parse_numeric(text: str) -> NumericTime | None:
    """The numbers of a date and time such as `31.12.24, 21:41` or `12/31/24, 9:41:03 PM`; None if it is none."""
    match = _NUMERIC.fullmatch(text.strip())
    if match is None:
        return None
    hour, half = int(match["hour"]), match["before"] or match["after"]
    if half:
        evening = "".join(filter(str.isalpha, half)).lower() in _EVENING
        hour = hour % 12 + (12 if evening else 0)
    return NumericTime(int(match["a"]), int(match["b"]), int(match["c"]), hour, int(match["minute"]), int(match["second"] or 0))


def settle_order(times: Sequence[NumericTime], wanted: str, where: str) -> tuple[str, str]:
    """(order, note) of the dates of one file; the note is "" unless the order had to be assumed.

    Numbers over 12 decide (a few of the other order may be quoted text); else the order under which time runs backwards
    less often; else day before month. DataError if the file contradicts itself.
    """
    if wanted != "auto":
        return wanted, ""
    kinds = Counter(
        "ymd" if time.a > 31 else "dmy" if time.a > 12 else "mdy" for time in times if time.a > 12 or time.b > 12
    )
    if kinds:
        order, many = kinds.most_common(1)[0]
        if (kinds.total() - many) * QUOTED > many:
            raise DataError(f"{where}: some dates are only possible as day/month and some only as month/day; is this one export?")
        return order, ""
    backwards = {order: _backwards(times, order) for order in ("dmy", "mdy")}
    if backwards["dmy"] != backwards["mdy"]:
        return min(backwards, key=backwards.get), ""
    order = "dmy"
    if times and any(time.a != time.b for time in times):
        return order, ("the dates could be day/month or month/day: assumed day/month; --date-order mdy reads them the other way")
    return order, ""


def _backwards(times: Sequence[NumericTime], order: str) -> int:
    moments = [time.iso(order) for time in times if time.fits(order)]
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


def instant(ts: str) -> float | None:
    """Seconds since 1970 for comparing; a time without a zone counts as UTC. None for what is no ISO 8601 time."""
    try:
        moment = datetime.fromisoformat(ts)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None
