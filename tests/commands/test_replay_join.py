"""`olstream replay` with labels that come by themselves, and where a pass is cut in two."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.commands.replayed import Replayed

CONFIG = """
input: {batch_max: BATCH}
join: {ttl: TTL, pending_max: MOST}
monitor: {on_drift: reset}
learners:
  a: {algorithm: arow}
  b: {algorithm: scw1, task: multiclass, multiclass: one_vs_rest}
  c: {algorithm: pa1, task: regression}
routes:
  - {when: {learner: c}, learner: c}
  - {learner: a, shadows: [b]}
"""
FIRST_MS = 1_764_460_800_000


def config(replay: Replayed, batch: int = 500, ttl: str = "1h", most: int = 1000) -> str:
    text = CONFIG.replace("BATCH", str(batch)).replace("TTL", ttl).replace("MOST", str(most))
    return replay.write(f"{batch}-{ttl}-{most}.yaml", text)


def stream(n: int, seed: int = 1) -> list[bytes]:
    """Rows, and their labels some rows later or earlier; a message each second, by its own time."""
    rng = random.Random(seed)
    told: list[tuple[float, dict[str, Any]]] = []
    for i in range(n):
        x = round(rng.gauss(0, 1), 3)
        number = {"learner": "c"} if i % 5 == 0 else {}
        label: Any = round(2 * x, 3) if number else "yes" if x + rng.gauss(0, 0.3) > 0 else "no"
        row = {"id": i, "features": {"x": x, "y": 1.0}} | number
        if rng.random() < 0.2:
            told.append((i, row | {"label": label}))
            continue
        told.append((i, row))
        if rng.random() < 0.9:
            told.append((i + rng.expovariate(0.05) - 5, {"id": i, "label": label} | number))
        if rng.random() < 0.1:
            told.append((i + 30, {"id": i, "label": label}))
    told.sort(key=lambda pair: pair[0])
    return [json.dumps(m | {"ts": FIRST_MS + int(1000 * at)}).encode() for at, m in told]


def test_the_summary_counts_labels_with_the_rows_that_they_were_for(replay: Replayed) -> None:
    events = replay.write(
        "e.ndjson",
        b'{"id":1,"features":{"x":1}}\n{"id":1,"label":"a"}\n{"id":1,"label":"b"}\n{"id":2,"label":"a"}\n'
        b'{"id":3,"features":{"x":1}}\n{"id":2,"features":{"x":1}}',
    )

    summary = json.loads(replay.run(config(replay), events, "--out", replay.path("out"), "--json"))
    said = replay.run(config(replay), events)

    assert (summary["rows"], summary["accepted"], summary["rejected"]) == (6, 6, {})
    a = summary["learners"]["a"]
    assert (a["seen"], a["labelled"], a["errors"], a["updates"]) == (3, 2, 1, 2)
    assert "3 of them a label alone: 1 joined with the features before" in " ".join(said.split())
    assert [(p["id"], p["prediction"], p["label"], p["offset"]) for p in replay.lines("out")] == [
        (1, None, None, 0), (3, "a", None, 4), (2, "a", "a", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(("ttl", "most"), [("1h", 1000), ("1h", 9), ("20s", 1000)])
@pytest.mark.parametrize("names", [("e.ndjson", "e.ndjson"), ("one.ndjson", "two.ndjson")])
def test_a_pass_that_goes_on_where_another_ended_comes_to_what_one_does(
    replay: Replayed, ttl: str, most: int, names: tuple[str, str]
) -> None:
    lines = stream(400)
    middle = len(lines) // 2 + 7
    whole = replay.write("whole.ndjson", b"\n".join(lines))
    replay.run(config(replay, 500, ttl, most), whole, "--state", replay.path("whole"))

    for name, part in zip(names, (lines[:middle], lines[middle:]), strict=True):
        file = replay.write(name, b"\n".join(part))
        replay.run(config(replay, 13, ttl, most), file, "--state", replay.path("parts"), "--out", replay.path("out"))

    assert replay.digests("parts") == replay.digests("whole")
    assert len(replay.lines("out")) > 100


def test_time_is_that_of_messages(replay: Replayed) -> None:
    lines = stream(400)

    labelled = []
    for ttl in ("1h", "20s", "1s"):
        file = replay.write("e.ndjson", b"\n".join(lines))
        labelled.append(json.loads(replay.run(config(replay, ttl=ttl), file, "--json"))["learners"]["a"]["labelled"])

    assert labelled == sorted(labelled, reverse=True) and len(set(labelled)) == 3


def test_records_without_a_time_wait_for_as_long_as_there_is_room(replay: Replayed) -> None:
    lines = [json.dumps({k: v for k, v in json.loads(line).items() if k != "ts"}).encode() for line in stream(200)]
    file = replay.write("e.ndjson", b"\n".join(lines))

    long, short = (
        json.loads(replay.run(config(replay, ttl=ttl), file, "--json"))["learners"]["a"]["labelled"]
        for ttl in ("1h", "1ms")
    )

    assert long == short > 100


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process."""

    def set_to(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_to
    monkeypatch.undo()
    time.tzset()


def test_no_time_depends_on_the_zone_of_the_machine(replay: Replayed, zone: Callable[[str], None]) -> None:
    times = ['"2026-11-30T10:00:00"', '"2026-11-30T10:00:00Z"', '"2026-11-30T19:00:00+09:00"', "1796032800000"]
    rows = [f'{{"id":{i},"features":{{"x":1}},"ts":{ts}}}' for i, ts in enumerate(times)]
    labels = [f'{{"id":{i},"label":"a","ts":"2026-11-30T20:00:00+09:00"}}' for i in range(1, 4)]
    events = replay.write("e.ndjson", "\n".join([*rows, *labels[:2]]))

    told = []
    for name in ("UTC", "Asia/Tokyo"):
        zone(name)
        out, letters, state = (f"{what} {name[:3]}" for what in ("out", "letters", "state"))
        files = ["--out", replay.path(out), "--dead-letters", replay.path(letters), "--state", replay.path(state)]
        replay.run(config(replay), events, *files)
        told.append((replay.lines(out), replay.lines(letters), replay.digests(state)))

    assert told[0] == told[1]
    assert [letter["reason"] for letter in told[0][1]] == ["bad_ts"]
    assert {prediction["ts"] for prediction in told[0][0]} == {1_796_032_800_000}
