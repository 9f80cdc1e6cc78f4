from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.ingest.calendars import CalendarError, calendar_of, gregorian
from memory_env.ingest.times import TimeError, parse_time

# First days of Persian years as published, leap years (1387, 1391, 1395, 1399, 1403, 1408) among them.
NEW_YEARS = {
    1387: date(2008, 3, 20), 1388: date(2009, 3, 21), 1391: date(2012, 3, 20), 1392: date(2013, 3, 21), 1395: date(2016, 3, 20),
    1396: date(2017, 3, 21), 1399: date(2020, 3, 20), 1400: date(2021, 3, 21), 1403: date(2024, 3, 20), 1404: date(2025, 3, 21),
    1408: date(2029, 3, 20), 1409: date(2030, 3, 21),
}  # fmt: skip


@pytest.mark.parametrize(("year", "day"), NEW_YEARS.items())
def test_persian_years_begin_when_they_do(year, day):
    assert gregorian(year, 1, 1) == day


@given(st.dates(date(1985, 3, 21), date(2045, 1, 1)))
def test_persian_days_follow_each_other(day):
    year = day.year - 621 if day >= gregorian(day.year - 621, 1, 1) else day.year - 622
    days = [(month, number) for month in range(1, 13) for number in range(1, (32 if month <= 6 else 31))]
    place = (day - gregorian(year, 1, 1)).days
    assert gregorian(year, *days[place]) == day


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_our_days_and_buddhist_ones(day):
    assert calendar_of(day.year) == "" and gregorian(day.year, day.month, day.day) == day
    assert gregorian(day.year + 543, day.month, day.day) == day


@pytest.mark.parametrize(("year", "month", "day"), [(1402, 12, 30), (1403, 13, 1), (1403, 7, 31), (1446, 1, 1), (2566, 2, 29)])
def test_days_that_are_none(year, month, day):
    with pytest.raises(CalendarError):
        gregorian(year, month, day)


def test_every_reader_that_reads_iso_times_knows_the_calendars():
    assert parse_time("2567-02-29T10:15:00+07:00") == "2024-02-29T10:15:00+07:00"
    assert parse_time("1404-02-31") == (gregorian(1404, 1, 1) + timedelta(days=61)).isoformat()
    with pytest.raises(TimeError, match="Islamic"):
        parse_time("1446-01-01T10:00:00")
