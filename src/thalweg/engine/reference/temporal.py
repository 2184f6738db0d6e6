"""DATE, TIMESTAMP (naive, UTC) and INTERVAL (whole microseconds).

Dates and timestamps run from 0001-01-01 to the end of 9999-12-31; what falls outside is NULL.
"""

from __future__ import annotations

import calendar
import re
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta

from thalweg.engine.reference.numeric import fit_integer
from thalweg.plan.types import Kind

EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)


def add_interval(moment: datetime, microseconds: int) -> datetime | None:
    try:
        return moment + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def add_days(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def interval_between(later: datetime, earlier: datetime) -> int:
    return (later - earlier) // MICROSECOND


def add_months(moment: datetime, months: int) -> datetime | None:
    """The same day so many months on, or the last of that month where it has no such day."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        return None
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def extract(part: str, moment: datetime) -> int:
    """Weeks run from Sunday, 0, to Saturday, 6; EPOCH is the second that the moment is in."""
    match part.lower():
        case "year" | "month" | "day" | "hour" | "minute" | "second" as plain:
            return int(getattr(moment, plain))
        case "dow":
            return moment.isoweekday() % 7
        case "doy":
            return moment.timetuple().tm_yday
        case "epoch":
            return (moment - EPOCH) // timedelta(seconds=1)
        case _:
            raise ValueError(f"EXTRACT has no part {part}")


_INTERVAL_UNIT_US = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "epoch": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


def extract_of_interval(part: str, microseconds: int) -> int:
    """The interval's whole length in the unit, truncated towards zero."""
    whole = abs(microseconds) // _INTERVAL_UNIT_US[part.lower()]
    return whole if microseconds >= 0 else -whole


def date_trunc(part: str, moment: datetime) -> datetime | None:
    midnight = datetime.combine(moment.date(), time())
    match part.lower():
        case "year":
            return midnight.replace(month=1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":  # weeks start on Monday
            return add_interval(midnight, -moment.weekday() * _INTERVAL_UNIT_US["day"])
        case "day":
            return midnight
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "second":
            return moment.replace(microsecond=0)
        case _:
            raise ValueError(f"DATE_TRUNC has no part {part}")


def parse_date(text: str) -> date | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        return date(*(int(group) for group in found.groups()))
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    """A date alone is its midnight. With an offset it is the same moment in UTC."""
    day = parse_date(text[:10])
    if day is None:
        return None
    found = _TIME.fullmatch(text[10:] or " 00:00:00")
    if found is None:
        return None
    hour, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        clock = time(int(hour), int(minute), int(second), int((fraction or "").ljust(6, "0")))
        ahead = time(int(hours or 0), int(minutes or 0))  # no offset is a day or more
    except ValueError:
        return None
    ahead_us = (ahead.hour * 60 + ahead.minute) * _INTERVAL_UNIT_US["minute"]
    return add_interval(datetime.combine(day, clock), ahead_us if sign == "-" else -ahead_us)


def timestamp_text(moment: datetime) -> str:
    """The fraction of a second without trailing zeros, or without it where it is zero."""
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if moment.microsecond else text


def fit_interval(microseconds: int) -> int | None:
    return fit_integer(microseconds, Kind.BIGINT)
