"""`olstream inspect`: what it says of a state directory, without touching it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from olstream.__main__ import main
from olstream.checkpoint import Checkpoint, Position
from olstream.config import Config, parse
from olstream.io.disk import Store
from olstream.messages import Example
from olstream.model import Model
from olstream.settings import settings

CONFIG = """
learners:
  late: {algorithm: arow, classes: [no, yes]}
  kind: {algorithm: pa1, task: multiclass}
  delay: {algorithm: pa2, task: regression}
"""
COVARIANCES = """
learners:
  one: {algorithm: arow, classes: [no, yes], params: {covariance: full}}
  each: {algorithm: arow, task: multiclass, params: {covariance: full}}
  shared: {algorithm: arow, task: multiclass, params: {covariance: shared}}
"""


@pytest.fixture(scope="module")
def config() -> Config:
    return parse(CONFIG, "config.yaml", {})


@pytest.fixture(scope="module")
def models(config: Config) -> dict[str, Model]:
    models = {name: Model(name, learner, config.monitor) for name, learner in config.learners.items()}
    labels: dict[str, Iterable[Any]] = {"late": ["no", "yes"] * 10, "kind": [1, "b", True] * 7, "delay": range(20)}
    for name, given in labels.items():
        models[name].predict_then_update(
            [
                Example(features={"wind": i % 3 - 1.0, "day": "mo" if i % 2 else "tu"}, label=y)
                for i, y in enumerate(given)
            ]
        )
    return models


def save(directory: Path, config: Config, models: dict[str, Model], slot: int = 0, seq: int = 1) -> Path:
    store = Store(directory / "flights" / str(slot))
    store.open()
    store.save(
        Checkpoint(
            {name: model.state() for name, model in models.items()},
            {name: model.digest() for name, model in models.items()},
            Position("lineage-1", seq, 9, {("flights", 0): 120, ("flights", 1): 80}),
            settings(config),
            {"group": "flights", "slot": slot},
        )
    )
    store.close()
    return store.directory


def inspected(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["inspect", *map(str, arguments), "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def test_one_slot_is_one_object(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    slot = save(tmp_path, config, models)

    shown = inspected(capsys, tmp_path)

    assert shown == inspected(capsys, slot)
    assert list(shown) == ["learners", "offsets", "slot", "lineage", "seq", "digest"]
    assert shown["offsets"] == {"flights": {"0": 120, "1": 80}}
    assert (shown["slot"], shown["lineage"], shown["seq"]) == (0, "lineage-1", 1)
    digests = sorted((name, model.digest()) for name, model in models.items())
    assert shown["digest"] == hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def test_a_learner_is_told_with_its_counters(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, config, models)

    learners = inspected(capsys, tmp_path)["learners"]

    tally = models["late"].tally
    assert learners["late"] == {
        "algorithm": "arow",
        "task": "binary",
        "params": models["late"].params,
        "classes": ["no", "yes"],
        "seen": 20,
        "labelled": 20,
        "updates": tally.updates,
        "errors": tally.errors,
        "loss_sum": tally.loss_sum,
        "digest": models["late"].digest(),
    }
    assert learners["kind"]["classes"] == [1, "b", True]
    assert learners["delay"]["classes"] is None


def test_weights_are_told_by_feature_name_and_class(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, config, models)

    learners = inspected(capsys, tmp_path, "--weights")["learners"]

    assert learners["late"]["weights"] == models["late"].weights()
    assert learners["late"]["variances"].keys() == {"wind", "day=mo", "day=tu"}
    assert learners["late"]["bias"] == models["late"].bias()
    assert learners["kind"]["weights"].keys() == {"1", "b", "true"} == learners["kind"]["bias"].keys()
    assert "variances" not in learners["delay"]


def test_a_full_covariance_is_told_by_feature_name_and_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = parse(COVARIANCES, "config.yaml", {})
    models = {name: Model(name, learner, config.monitor) for name, learner in config.learners.items()}
    for name, labels in {"one": ["no", "yes"], "each": ["a", "b"], "shared": ["a", "b"]}.items():
        rows = [{"wind": 2.0, "day": "mo"}, {"wind": -1.0}]
        models[name].predict_then_update([Example(features=x, label=y) for x, y in zip(rows, labels, strict=True)])
    save(tmp_path, config, models)

    learners = inspected(capsys, tmp_path, "--weights")["learners"]

    one, each, shared = (learners[name]["covariance"] for name in ("one", "each", "shared"))
    assert each.keys() == {"a", "b"} == learners["each"]["variances"].keys()
    for told, variances in (
        (one, learners["one"]["variances"]),
        (each["b"], learners["each"]["variances"]["b"]),
        (shared, learners["shared"]["variances"]["a"]),
    ):
        assert told.keys() == {"features", "rows"}
        diagonal = [row[i] for i, row in enumerate(told["rows"])]
        assert dict(zip(told["features"], diagonal, strict=True)) == pytest.approx(variances)
    assert {*one["features"]} == {"wind", "day=mo"} == {*shared["features"]}
    assert one["rows"][0][1] == one["rows"][1][0] < 0  # a sum of both was learnt
    assert "covariance" not in inspected(capsys, tmp_path)["learners"]["one"]


def test_several_slots_are_several_objects(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, config, models, slot=0)
    save(tmp_path, config, models, slot=1)

    assert [slot["slot"] for slot in inspected(capsys, tmp_path)["slots"]] == [0, 1]


def test_the_newest_whole_checkpoint_is_shown_and_the_damaged_one_left_in_place(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, config, models, seq=1)
    slot = save(tmp_path, config, models, seq=2)
    newest = max(slot.glob("checkpoint-*"))
    (newest / "manifest.json").write_bytes(b"{")
    before = sorted(os.listdir(slot))

    assert inspected(capsys, tmp_path)["seq"] == 1
    assert sorted(os.listdir(slot)) == before


def break_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"{")


def lose_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def cut_learner(folder: Path) -> None:
    path = folder / "late.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def change_learner(folder: Path) -> None:
    path = folder / "late.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x77")


def lose_everything(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize("damage", [break_manifest, lose_manifest, cut_learner, change_learner, lose_everything])
def test_a_damaged_checkpoint_is_told_and_the_next_older_one_shown(
    tmp_path: Path,
    config: Config,
    models: dict[str, Model],
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
) -> None:
    save(tmp_path, config, models, seq=1)
    slot = save(tmp_path, config, models, seq=2)
    newest = max(slot.glob("checkpoint-*"))
    damage(newest)

    assert main(["inspect", str(tmp_path), "--json"]) == 0

    shown = capsys.readouterr()
    assert json.loads(shown.out)["seq"] == 1
    assert shown.err.count("\n") == 1
    assert f"{newest.name} is damaged" in shown.err
    assert main(["inspect", str(newest)]) != 0
    damage(min(slot.glob("checkpoint-*")))
    assert main(["inspect", str(tmp_path)]) == 4
    assert "holds no whole checkpoint" in capsys.readouterr().err


def test_checkpoints_that_were_kept_aside_as_damaged_are_told(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    slot = save(tmp_path, config, models)
    (only,) = slot.glob("checkpoint-*")
    only.rename(slot / f"damaged-{only.name}")

    for directory in (tmp_path, tmp_path / "flights", slot):
        assert main(["inspect", str(directory)]) == 4
        assert "holds no whole checkpoint" in capsys.readouterr().err


def test_a_slot_that_is_locked_by_its_worker_can_be_looked_at(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    worker = Store(save(tmp_path, config, models))
    worker.open()

    assert inspected(capsys, tmp_path)["seq"] == 1
    worker.close()


def test_people_see_the_largest_weights_by_name(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, config, models)

    assert main(["inspect", str(tmp_path)]) == 0

    shown = capsys.readouterr().out
    assert "slot 0 of group flights, checkpoint 1" in shown
    assert "flights[1] learnt up to offset 80" in shown
    assert 'weights toward "yes"' in shown
    assert "weights of class true" in shown
    assert "mean absolute error" in shown
    assert shown.count("day=mo") == 5  # one learner, three classes, one learner


def test_only_the_learner_that_was_asked_for_is_shown(
    tmp_path: Path, config: Config, models: dict[str, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, config, models)

    assert list(inspected(capsys, tmp_path, "--learner", "delay")["learners"]) == ["delay"]
    assert main(["inspect", str(tmp_path), "--learner", "lat"]) == 2
    assert "no learner 'lat'" in capsys.readouterr().err


def test_a_directory_without_a_checkpoint_is_an_error_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path)]) == 2
    assert "holds no checkpoint" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "nowhere")]) == 2
    assert "is no directory" in capsys.readouterr().err
