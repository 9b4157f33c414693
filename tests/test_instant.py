"""RFC 3339 instants, against the calendar of the standard library and by hand at the edges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olstream.instant import rfc3339_ms

OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DATETIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS)


@given(DATETIMES)
def test_an_instant_is_that_of_the_calendar(instant: datetime) -> None:
    since_1970 = instant - datetime(1970, 1, 1, tzinfo=UTC)

    assert rfc3339_ms(instant.isoformat()) == since_1970 // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "ts_ms"),
    [
        ("2026-11-30T10:00:00Z", 1796032800000),
        ("2026-11-30T19:00:00+09:00", 1796032800000),
        ("2026-11-30 10:00:00-00:00", 1796032800000),
        ("2026-11-30t10:00:00.1239999999999999999z", 1796032800123),
        ("1969-12-31T23:59:59.9Z", -100),
        ("2016-12-31T23:59:60Z", 1483228800000),
        ("2017-01-01T08:59:60.5+09:00", 1483228800500),
        ("0000-02-29T00:00:00Z", -62162121600000),
        ("9999-12-31T23:59:59-23:59", 253402387139000),
    ],
)
def test_instants_at_the_edges(text: str, ts_ms: int) -> None:
    assert rfc3339_ms(text) == ts_ms


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T10:00:00",
        "2026-11-30",
        "2026-11-30T10:00Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-30T24:00:00Z",
        "2026-11-30T10:60:00Z",
        "2026-11-30T10:00:61Z",
        "2016-12-31T22:59:60Z",
        "2026-11-30T10:00:00+24:00",
        "2026-11-30T10:00:00+09:60",
        "2026-11-30T10:00:00.Z",
        "2026-11-30T10:00:00Z\n",
        "٢٠٢٦-11-30T10:00:00Z",
        "",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    assert rfc3339_ms(text) is None
