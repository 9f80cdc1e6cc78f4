"""The time that a question is asked as of."""

from __future__ import annotations

from datetime import date, timedelta

from memory_env.datafile import DataError
from memory_env.ingest.times import TimeError, instant, parse_time


def moment(text: str | date) -> float:
    """Seconds since 1970 of a time; a date alone means its end. DataError for what is no time."""
    if isinstance(text, date):
        text = text.isoformat()
    if not isinstance(text, str):
        raise DataError(f"as_of: must be a datetime or text, not {type(text).__name__}")
    try:
        ts = parse_time(text)
    except TimeError as error:
        raise DataError(f"--as-of {text}: {error}; write it like 2025-03-01 or 2025-03-01T18:30") from None
    seconds = instant(ts)
    if seconds is None:
        raise DataError(f"--as-of {text}: can't be read; write it like 2025-03-01 or 2025-03-01T18:30")
    if len(ts) == len("2025-03-01"):
        # The last microsecond of the day; a day's end is a number even where no next day is a date.
        seconds += timedelta(days=1).total_seconds() - 1e-6
    return seconds
