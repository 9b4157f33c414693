"""RFC 3339 text -> epoch milliseconds."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAYS_IN_400_YEARS: Final = 146_097


def rfc3339_ms(text: str) -> int | None:
    """Milliseconds since 1970 in UTC, finer fractions cut off; None where the text is no instant.

    A leap second (23:59:60 in UTC) is the first instant of the next day, as in POSIX time.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    fraction, sign, offset_hour, offset_minute = match.group(7, 8, 9, 10)
    offset_s = (int(offset_hour) * 60 + int(offset_minute)) * 60 if sign else 0
    if hour > 23 or minute > 59 or second > 60 or offset_s >= 86_400 or (sign and int(offset_minute) > 59):
        return None
    days = _days(year, month, day)
    if days is None:
        return None
    seconds = days * 86_400 + (hour * 60 + minute) * 60 + second - (-offset_s if sign == "-" else offset_s)
    if second == 60 and seconds % 86_400 != 0:
        return None
    return seconds * 1000 + int((fraction or "0").ljust(3, "0")[:3])


def _days(year: int, month: int, day: int) -> int | None:
    """Days since 1970. The year 0, which `date` does not know, has the calendar of the year 400."""
    try:
        days = date(year or 400, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    return days if year else days - _DAYS_IN_400_YEARS
