"""`start_from`: what a learner begins with, in `replay`, and what `check` says of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from olstream import Learner
from olstream.__main__ import main
from tests.commands.replayed import Replayed

BINARY = "{algorithm: arow, classes: [no, yes], scale: standard}"
MULTICLASS = "{algorithm: pa1, task: multiclass, classes: [a, b, c]}"
REGRESSION = "{algorithm: pa2, task: regression}"
LABELS: dict[str, list[Any]] = {BINARY: ["no", "yes"], MULTICLASS: ["a", "b", "c"], REGRESSION: [0.5, -2.0, 7.25]}


def learner(settings: str, start_from: str = "", name: str = "m") -> str:
    extra = f", start_from: {json.dumps(start_from)}" if start_from else ""
    return f"learners:\n  {name}: {settings[:-1]}{extra}}}\n"


def events(seed: int, labels: list[Any]) -> list[str]:
    rng = random.Random(seed)
    return [
        json.dumps(
            {
                "features": {"x": rng.gauss(0, 1), "y=\\": rng.gauss(3, 2), "kind": rng.choice(["a=b", "\\", ""])},
                "label": rng.choice(labels),
            }
        )
        for _ in range(60)
    ]


def text(lines: list[str]) -> str:
    return "\n".join(lines)


@pytest.mark.parametrize("settings", [BINARY, MULTICLASS, REGRESSION])
def test_a_learner_goes_on_from_the_state_of_another_as_if_it_had_learnt_its_rows(
    replay: Replayed, settings: str
) -> None:
    before, after = events(1, LABELS[settings]), events(2, LABELS[settings])
    first, second = replay.write("1.ndjson", text(before)), replay.write("2.ndjson", text(after))
    plain = replay.write("plain.yaml", learner(settings, name="trained"))
    replay.run(plain, replay.write("all.ndjson", text(before + after)), "--state", replay.path("all"))

    replay.run(plain, first, "--state", replay.path("history"))
    going_on = replay.write("c.yaml", learner(settings, f"{replay.path('history')}#trained"))
    replay.run(going_on, second, "--state", replay.path("live"))

    assert replay.digests("live")["m"] == replay.digests("all")["trained"]


@pytest.mark.parametrize("settings", [BINARY.replace("standard", "none"), MULTICLASS, REGRESSION])
@pytest.mark.parametrize("bias", ["true", "false"])
def test_what_inspect_prints_of_a_learner_gives_its_scores_again(replay: Replayed, settings: str, bias: str) -> None:
    labels = LABELS.get(settings, LABELS[BINARY])
    settings = f"{settings[:-1]}, bias: {bias}}}"
    plain = replay.write("plain.yaml", learner(settings))
    replay.run(plain, replay.write("1.ndjson", text(events(1, labels))), "--state", replay.path("trained"))
    assert main(["inspect", replay.path("trained"), "--weights", "--json"]) == 0
    printed = json.loads(replay.capsys.readouterr().out)["learners"]["m"]
    again = replay.write("c.yaml", learner(settings, replay.write("w.json", json.dumps(printed))))
    asked = replay.write("2.ndjson", text([line.replace('"label"', '"other"') for line in events(2, labels)]))

    replay.run(plain, asked, "--state", replay.path("trained"), "--out", replay.path("trained.ndjson"))
    replay.run(again, asked, "--out", replay.path("again.ndjson"))

    found, expected = replay.lines("again.ndjson"), replay.lines("trained.ndjson")
    assert [p["score"] for p in found] == [p["score"] for p in expected]
    assert [p["prediction"] for p in found] == [p["prediction"] for p in expected]
    assert len({p["score"] for p in found}) > 10


def test_bare_weights_leave_the_bias_at_zero(replay: Replayed) -> None:
    weights = replay.write("w.json", '{"x": 2, "kind=a\\\\=b": -0.5}')
    config = replay.write("c.yaml", learner(BINARY.replace("standard", "none"), weights))
    asked = replay.write("e.ndjson", '{"features": {"x": 3, "kind": "a=b", "new": 9}}\n{"features": {}}')

    replay.run(config, asked, "--out", replay.path("out"))

    assert [p["score"] for p in replay.lines("out")] == [5.5, 0.0]


def test_a_learner_that_is_in_the_state_already_goes_on_from_there(replay: Replayed) -> None:
    weights = replay.write("w.json", '{"x": 2}')
    config = replay.write("c.yaml", learner(REGRESSION, weights))
    file = replay.write("e.ndjson", text(events(1, LABELS[REGRESSION])))
    replay.run(config, file, "--state", replay.path("state"))
    Path(weights).unlink()

    replay.run(config, file, "--state", replay.path("state"))

    assert replay.run(config, file, "--state", replay.path("elsewhere"), code=2).count("\n") == 1


def test_a_new_learner_beside_others_begins_where_it_should(replay: Replayed) -> None:
    plain = replay.write("plain.yaml", learner(REGRESSION))
    file = replay.write("e.ndjson", text(events(1, LABELS[REGRESSION])))
    replay.run(plain, file, "--state", replay.path("state"))
    state = f"{replay.path('state')}#m"
    both = replay.write(
        "c.yaml", f"{learner(REGRESSION, state)}  twin: {REGRESSION[:-1]}, start_from: {json.dumps(state)}}}\n"
    )

    replay.run(both, replay.write("none.ndjson", ""), "--state", replay.path("state"))

    digests = replay.digests("state")
    assert digests["twin"] == digests["m"]


def test_one_configuration_serves_to_train_and_to_go_on(replay: Replayed) -> None:
    """The directory that start_from names is made by the first command."""
    config = replay.write("c.yaml", learner(REGRESSION, f"{replay.path('state')}#m"))
    plain = replay.write("plain.yaml", learner(REGRESSION))
    file = replay.write("e.ndjson", text(events(1, LABELS[REGRESSION])))

    replay.run(config, file, "--state", replay.path("state"))
    replay.run(plain, file, "--state", replay.path("plain"))

    assert replay.digests("state") == replay.digests("plain")


def test_what_a_notebook_has_saved_can_be_begun_from(replay: Replayed) -> None:
    m = Learner("pa2", task="regression")
    m.learn({"x": 1.0}, 2.0)
    m.save(replay.path("saved"))
    config = replay.write("c.yaml", learner(REGRESSION, f"{replay.path('saved')}#learner"))

    replay.run(config, replay.write("none.ndjson", ""), "--state", replay.path("state"))

    assert replay.digests("state")["m"] == m.digest()


@pytest.mark.parametrize(("settings", "content", "told"), [
    (BINARY, None, "No such file"),
    (BINARY, b"{", "no JSON"),
    (BINARY, b'{"x": 1, "x": 2}', "twice"),
    (BINARY, b'{"x": 1e999}', "double"),
    (BINARY, b'{"x": NaN}', "NaN"),
    (BINARY, b'{"x": "1"}', "'x'"),
    (BINARY, b'{"a=b=c": 1}', "'a=b=c'"),
    (BINARY, b'{"yes": {"x": 1}}', "'yes'"),
    (BINARY, b"[1]", "{feature: weight}"),
    ("{bias: false}", b'{"weights": {}, "bias": 1}', "bias"),
    ("{features: {names_max: 1}}", b'{"x": 1, "y": 1}', "names_max"),
    (MULTICLASS, b'{"x": 1}', "{feature: weight}"),
    (MULTICLASS, b'{"d": {"x": 1}}', "'d'"),
    ("{task: multiclass, algorithm: pa, classes_max: 2}", b'{"a": {}, "b": {}, "c": {}}', "classes_max"),
])  # fmt: skip
def test_weights_that_cannot_be_taken_are_told_by_every_command(
    replay: Replayed, settings: str, content: bytes | None, told: str
) -> None:
    weights = replay.path("w.json") if content is None else replay.write("w.json", content)
    config = replay.write("c.yaml", learner(settings, weights))

    said = replay.run(config, replay.write("none.ndjson", ""), code=2)
    checked = main(["check", config, "--offline"])

    found = replay.capsys.readouterr().out
    assert said.startswith(f"olstream: learners.m.start_from: {weights}: ")
    assert told in said
    assert said.count("\n") == 1
    assert checked == 2
    assert f"FAIL  {said.removeprefix('olstream: ')}" in found


def test_a_state_that_cannot_be_taken_is_told_with_what_to_do(replay: Replayed) -> None:
    plain = replay.write("plain.yaml", learner(BINARY))
    none = replay.write("none.ndjson", "")
    for slot in ("0", "1"):
        (replay.directory / "group").mkdir(exist_ok=True)
        replay.run(plain, none, "--state", replay.path(f"group/{slot}"))
    group = replay.path("group")

    def said(start_from: str, settings: str = BINARY) -> str:
        return replay.run(replay.write("c.yaml", learner(settings, start_from)), none, code=2)

    assert f"{group}/0#NAME, {group}/1#NAME" in said(f"{group}#m")
    assert "did you mean 'm'" in said(f"{group}/0#mm")
    assert "#NAME" in said(group)
    assert "no checkpoint" in said(f"{none}#m")
    assert 'scale: "standard" -> "none"' in said(f"{group}/0#m", BINARY.replace("standard", "none"))
    next((replay.directory / "group/0").glob("checkpoint-*/m.safetensors")).unlink()
    assert "damaged" in said(f"{group}/0#m")


def test_check_says_what_a_new_learner_would_begin_with(replay: Replayed) -> None:
    file = replay.write("e.ndjson", text(events(1, LABELS[REGRESSION])))
    replay.run(replay.write("plain.yaml", learner(REGRESSION)), file, "--state", replay.path("state"))
    config = replay.write("c.yaml", learner(REGRESSION, f"{replay.path('state')}#m"))

    assert main(["check", config, "--offline"]) == 0

    line = f"ok    learners.m.start_from: a new one begins from {replay.path('state')}#m, 60 rows seen"
    assert line in replay.capsys.readouterr().out.splitlines()
