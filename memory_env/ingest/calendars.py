"""Dates of calendars that phones write without saying so: recognised by a year that no chat can have in ours.

Buddhist years (2567) are ours plus 543, month and day alike. Persian years (1403) begin in March. Islamic lunar years
(1446) depend on where the moon was seen, so they are refused. Chats began late in the last century, which keeps these
ranges apart from each other and from our own years.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

BUDDHIST = range(2500, 2700)
PERSIAN = range(1360, 1430)
ISLAMIC = range(1430, 1480)

_BUDDHIST_OFFSET = 543
# Two digits from 52 on would be a year to come: Thai phones write 2567 as 67.
_FIRST_SHORT_BUDDHIST = 52
# The leap years of the 33-year cycle, which is exact for the Persian years 1178 to 1633.
_PERSIAN_LEAPS = frozenset((1, 5, 9, 13, 17, 22, 26, 30))
_PERSIAN_START = (1403, date(2024, 3, 20))


class CalendarError(ValueError):
    """A date that no calendar known here can turn into one of ours."""


def calendar_of(year: int) -> str:
    """The calendar that a year is written in: "" for ours.

    Example:
        calendar_of(2567) == "Buddhist"; calendar_of(1403) == "Persian"; calendar_of(2024) == ""
    """
    if year in BUDDHIST or _FIRST_SHORT_BUDDHIST <= year < 100:
        return "Buddhist"
    return "Persian" if year in PERSIAN else "Islamic" if year in ISLAMIC else ""


def gregorian(year: int, month: int, day: int) -> date:
    """The day in our calendar; a year of two digits is of this century. CalendarError for what is no day, or is lunar.

    Example:
        gregorian(2567, 1, 5) == date(2024, 1, 5); gregorian(1403, 10, 16) == date(2025, 1, 5)
    """
    calendar = calendar_of(year)
    if calendar == "Islamic":
        raise CalendarError(f"the year {year} is of the Islamic calendar, which is not converted: export with other settings")
    if calendar == "Persian":
        return _from_persian(year, month, day)
    if calendar == "Buddhist":
        year = (year + 2500 if year < 100 else year) - _BUDDHIST_OFFSET
    try:
        return date(year + 2000 if year < 100 else year, month, day)
    except ValueError as error:
        raise CalendarError(str(error)) from None


def calendar_note(years: Iterable[int]) -> str:
    """What to tell about a file with these years: which other calendar was converted; "" if none was."""
    found = sorted({(calendar, year) for year in years if (calendar := calendar_of(year))})
    if not found:
        return ""
    calendar, year = found[0]
    return f"the dates are of the {calendar} calendar (year {year}): converted to ours"


def _from_persian(year: int, month: int, day: int) -> date:
    leap = year % 33 in _PERSIAN_LEAPS
    length = 31 if month <= 6 else 30 if month <= 11 or leap else 29
    if not (1 <= month <= 12 and 1 <= day <= length):
        raise CalendarError(f"{year}-{month}-{day} is no day of the Persian calendar")
    known, start = _PERSIAN_START
    first, last = sorted((known, year))
    days = sum(366 if between % 33 in _PERSIAN_LEAPS else 365 for between in range(first, last))
    months = 31 * min(month - 1, 6) + 30 * max(month - 7, 0)
    return start + timedelta(days=(days if year >= known else -days) + months + day - 1)
