"""`olstream replay`: the pipeline over files, as a user meets it."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from olstream.checkpoint import Checkpoint, Position, from_folder
from olstream.io.disk import Store, newest_first
from tests.commands.replayed import BINARY, Replayed

TWO = """
input: {batch_max: BATCH}
learners:
  first:
    algorithm: arow
    scale: standard
    features: {names_max: 30, overflow_buckets: 4, category: [code]}
  second: {algorithm: pa2, task: multiclass}
  third: {algorithm: pa1, task: binary, classes: ["no", "yes"]}
routes:
  - {when: {learner: second}, learner: second}
  - {when: {}, shadows: [second, third]}
"""


def stream(n: int) -> bytes:
    """Messages of several forms, some of them bad, most of one form so that the fast reader comes in."""
    rng = random.Random(5)
    lines = []
    for i in range(n):
        features: dict[str, Any] = {
            "x": rng.gauss(0, 1),
            "y": rng.gauss(5, 2),
            "color": rng.choice("rgb"),
            "code": i % 3,
        }
        message: dict[str, Any] = {"id": i, "features": features}
        if rng.random() < 0.8:
            message["label"] = "yes" if features["x"] + rng.gauss(0, 0.5) > 0 else "no"
        if rng.random() < 0.1:
            features[f"rare{rng.randrange(60)}"] = rng.random()
        if rng.random() < 0.05:
            message |= rng.choice([{"weight": 0}, {"weight": 2}, {"learner": "second"}, {"label": "maybe"}, {"ts": 5}])
        line = json.dumps(message).encode()
        lines.append(line if rng.random() < 0.97 else line[: rng.randrange(len(line))])
    return b"\n".join(lines)


def test_each_line_is_predicted_then_learnt_or_refused(replay: Replayed) -> None:
    config = replay.write("c.yaml", BINARY)
    events = replay.write(
        "events.ndjson",
        b'{"features":{"x":1},"label":"a"}\n\xff\n{"id":"i","features":{"x":1}}\n\n{"id":1,"label":"a"}\n',
    )

    out = replay.run(config, events, "--out", replay.path("out"), "--dead-letters", replay.path("dead"), "--json")

    summary = json.loads(out)
    rows_per_s = summary["learners"]["m"].pop("rows_per_s")
    assert rows_per_s > 0
    assert summary == {
        "rows": 5,
        "accepted": 3,
        "rejected": {"bad_encoding": 1, "empty": 1},
        "learners": {
            "m": {"seen": 2, "labelled": 1, "updates": 1, "errors": 1, "error_rate": 1.0, "loss_mean": 1.0},
        },
    }
    first, second = replay.lines("out")
    assert (first["offset"], second["offset"], second["prediction"], second["id"]) == (0, 2, "a", "i")
    assert (first["topic"], first["partition"], first["ts"]) == ("events.ndjson", 0, None)
    letters = replay.lines("dead")
    assert [(letter["line"], letter["reason"], b64decode(letter["value"])) for letter in letters] == [
        (2, "bad_encoding", b"\xff"),
        (4, "empty", b""),
    ]
    assert all(letter["detail"] for letter in letters)


def test_a_person_gets_a_table_with_the_baselines(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", stream(300))

    out = replay.run(config, events)

    assert "e.ndjson: 300 rows" in out and "bad_json; the first: " in out
    assert "majority" in out and "last label" in out


def test_batches_of_any_size_give_the_same_digest_and_bytes(replay: Replayed) -> None:
    events = replay.write("e.ndjson.gz", gzip.compress(stream(1200)))
    out, dead = replay.path("out"), replay.path("dead")
    seen = []

    for size in (1, 7, 500):
        config, state = replay.write("c.yaml", TWO.replace("BATCH", str(size))), f"s{size}"
        replay.run(config, events, "--state", replay.path(state), "--out", out, "--dead-letters", dead)
        seen.append((replay.digests(state), Path(out).read_bytes(), Path(dead).read_bytes()))

    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][1]) > 100_000


def test_going_on_from_a_state_is_as_if_nothing_had_ended(replay: Replayed) -> None:
    config = replay.write("c.yaml", TWO.replace("BATCH", "100"))
    lines = stream(600).split(b"\n")
    whole = replay.write("whole.ndjson", b"\n".join(lines))
    parts = [replay.write("one.ndjson", b"\n".join(lines[:250])), replay.write("two.ndjson", b"\n".join(lines[250:]))]

    replay.run(config, whole, "--state", replay.path("straight"))
    for part in parts:
        out = replay.run(config, part, "--state", replay.path("resumed"), "--json")

    checkpoint = from_folder(next(newest_first(replay.directory / "resumed")))
    assert replay.digests("resumed") == replay.digests("straight")
    assert checkpoint.position.offsets == {("one.ndjson", 0): 250, ("two.ndjson", 0): 350}
    assert json.loads(out)["rows"] == 350


def test_a_state_of_other_settings_is_refused(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", stream(50))
    replay.run(config, events, "--state", replay.path("s"))
    changed = replay.write("d.yaml", BINARY.replace("pa1", "pa2"))
    without = replay.write("f.yaml", BINARY.replace("  m:", "  n:"))

    assert 'algorithm: "pa1" -> "pa2"' in replay.run(changed, events, "--state", replay.path("s"), code=4)
    assert "learner m" in replay.run(without, events, "--state", replay.path("s"), code=4)


def test_the_state_of_a_worker_is_left_alone(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", stream(5))
    worker = Store(replay.directory / "s")
    worker.open()
    worker.save(Checkpoint({}, {}, Position("0123")))

    assert "holds" in replay.run(config, events, "--state", replay.path("s"), code=5)
    worker.close()
    assert "worker" in replay.run(config, events, "--state", replay.path("s"), code=4)


def test_csv_takes_the_whole_row_less_what_is_mapped(replay: Replayed) -> None:
    config = replay.write("c.yaml", "input: {fields: {label: sold, id: key}, exclude: [note]}\n" + BINARY)
    table = replay.write("t.csv", "key;x;note;sold;weight\nk;1;hello;yes;70\nl;;hello;;\nm;1;2\n")

    replay.run(config, table, "--out", replay.path("out"), "--dead-letters", replay.path("dead"))

    records, letters = replay.lines("out"), replay.lines("dead")
    assert [(record["id"], record["label"], record["offset"]) for record in records] == [
        ("k", "yes", 0),
        ("l", None, 1),
    ]
    assert [(letter["line"], letter["reason"]) for letter in letters] == [(3, "bad_features")]


def test_a_replay_learns_nothing_of_a_line_with_a_stray_quote(replay: Replayed) -> None:
    table = replay.write("t.csv", 'x,label\n1,a\n2,"b\n3,a\n1,a\n')

    summary = json.loads(replay.run(replay.write("c.yaml", BINARY), table, "--json", "--out", replay.path("out")))

    assert (summary["rows"], summary["rejected"]) == (4, {"bad_features": 1})
    assert summary["learners"]["m"]["labelled"] == 3
    assert [record["offset"] for record in replay.lines("out")] == [0, 2, 3]


def test_offsets_of_libsvm_count_the_comments_too(replay: Replayed) -> None:
    events = replay.write("f.libsvm", "# notes\n1 3:1\n\n-1 4:x\n1 3:1\n# end\n")

    out = replay.run(
        replay.write("c.yaml", BINARY), events, "--json",
        "--out", replay.path("out"), "--dead-letters", replay.path("dead"), "--state", replay.path("s"),
    )  # fmt: skip

    checkpoint = from_folder(next(newest_first(replay.directory / "s")))
    assert json.loads(out)["rows"] == 3
    assert [record["offset"] for record in replay.lines("out")] == [1, 4]
    assert [letter["line"] for letter in replay.lines("dead")] == [4]
    assert checkpoint.position.offsets == {("f.libsvm", 0): 5}


def test_libsvm_needs_no_mapping(replay: Replayed) -> None:
    config = replay.write("c.yaml", "input: {fields: {label: cnt, features: .}}\n" + BINARY)

    out = replay.run(config, replay.write("f.libsvm", "1 3:1\n-1 4:1\n1 3:1\n"), "--json")

    assert json.loads(out)["learners"]["m"]["labelled"] == 3


def test_rows_that_are_too_large_are_refused_in_every_form(replay: Replayed) -> None:
    config = replay.write("c.yaml", "input: {max_message_bytes: 50}\n" + BINARY)

    for name, data in (
        ("f.libsvm", "1 3:1\n1 " + " ".join(f"{i}:1" for i in range(50))),
        ("f.csv", "x\n1\n" + "y" * 60),
    ):
        assert json.loads(replay.run(config, replay.write(name, data), "--json"))["rejected"] == {"too_large": 1}


def test_a_regression_tells_its_mean_absolute_error(replay: Replayed) -> None:
    config = replay.write("c.yaml", BINARY.replace("binary", "regression"))
    events = replay.write("e.ndjson", '{"features":{"x":1},"label":3}\n{"features":{"x":0},"label":1}\n')

    assert json.loads(replay.run(config, events, "--json"))["learners"]["m"]["mae"] == 2.0
    assert "mean abs. error" in replay.run(config, events)


def test_routes_by_a_field_of_the_message_work_on_files(replay: Replayed) -> None:
    routes = "routes: [{when: {field.meta.kind: card}, learner: b}]\n"
    config = replay.write("c.yaml", "learners:\n  a: {algorithm: pa1}\n  b: {algorithm: pa1}\n" + routes)
    events = replay.write("e.ndjson", '{"features":{"x":1},"meta":{"kind":"card"}}\n{"features":{"x":1}}\n')

    replay.run(config, events, "--out", replay.path("out"))

    assert [record["learner"] for record in replay.lines("out")] == ["b", "a"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{c}", "none.ndjson"], "none.ndjson"),
        (["none.yaml", "{e}"], "none.yaml"),
        (["{c}", "{e}", "--out", "none/out"], "none/out"),
        (["{c}", "{c}"], "--format"),
        (["{c}", "{e}", "--format", "xml"], "xml"),
        (["{c}"], "FILE"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(replay: Replayed, arguments: list[str], told: str) -> None:
    paths = {"c": replay.write("c.yaml", BINARY), "e": replay.write("e.ndjson", "")}

    said = replay.run(*[argument.format(**paths) for argument in arguments], code=2)

    assert told in said and said.count("\n") == 1


def test_standard_input_and_output_are_dashes(replay: Replayed) -> None:
    config = replay.write("c.yaml", BINARY)
    command = [sys.executable, "-m", "olstream", "replay", config, "-", "--out", "-", "--json"]

    done = subprocess.run(command, input=b'{"features":{"x":1}}\n', capture_output=True, check=True)

    assert json.loads(done.stdout)["topic"] == "stdin"
    assert json.loads(done.stderr)["rows"] == 1


def test_an_empty_file_is_no_error(replay: Replayed) -> None:
    config, nothing = replay.write("c.yaml", BINARY), replay.write("e.ndjson", "")

    assert json.loads(replay.run(config, nothing, "--json"))["rows"] == 0
    assert "0 rows" in replay.run(config, nothing)


A9A = "learners:\n  pa1: {algorithm: pa1}\n  arow: {algorithm: arow}\nroutes: [{when: {}, shadows: [arow]}]\n"
ELECTRICITY = "input: {fields: {label: class}}\nlearners:\n  pa1: {algorithm: pa1, scale: standard}\n"
BIKES = """
input: {fields: {label: cnt}, exclude: [instant, dteday, casual, registered]}
learners:
  pa2:
    algorithm: pa2
    task: regression
    scale: standard
    features: {category: [season, yr, mnth, hr, holiday, weekday, workingday, weathersit]}
"""


@pytest.mark.parametrize(
    ("text", "file", "expected"),
    [
        (A9A, "a9a.libsvm.gz", {"pa1": ("error_rate", 0.206, 0.212), "arow": ("error_rate", 0.153, 0.159)}),
        (ELECTRICITY, "electricity.csv.gz", {"pa1": ("error_rate", 0.074, 0.080)}),
        (BIKES, "bike-sharing-hour.csv.gz", {"pa2": ("mae", 40.0, 53.0)}),
    ],
)
def test_real_data_comes_to_what_is_known_of_it(
    replay: Replayed, data_dir: Path, text: str, file: str, expected: dict[str, tuple[str, float, float]]
) -> None:
    summary = json.loads(replay.run(replay.write("c.yaml", text), str(data_dir / file), "--json"))

    assert summary["rejected"] == {}
    for learner, (measure, low, high) in expected.items():
        assert low <= summary["learners"][learner][measure] <= high
