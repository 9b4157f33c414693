"""The worker reads its configuration again: all of it is taken, or nothing, and whoever looks can tell which."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from olstream.app import App
from olstream.config import Config
from olstream.errors import ConfigError
from olstream.ports import Lost
from tests.fakes import FakeCheckpoints, FakeSink, FakeSource, FakeStore
from tests.simulation.lives import begun, recovery, sink_of
from tests.simulation.test_crashes import config_of, world_of
from tests.simulation.upkeep import verify


def config(tmp_path: Path, **sections: Any) -> Config:
    said = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)
    return Config.model_validate(
        said | {"kafka": {"bootstrap.servers": "nowhere:1"}, "checkpoint": {"path": str(tmp_path / "state")}} | sections
    )


class Worker:
    """An App whose loop has learnt some records of a world, and a file that can change."""

    def __init__(self, tmp_path: Path) -> None:
        self.world = world_of(1)
        self.file: Config | ConfigError = config(tmp_path)
        self.app = App(self.file, self._read)
        self.app.store.open()
        self.sink, self.source = FakeSink(self.world, 0), FakeSource(self.world, 0)
        self.loop = begun(self.world, self.app.config, lambda: self.source, self.sink)
        assert isinstance(self.loop.checkpoints, FakeCheckpoints)
        self.checkpoints = self.loop.checkpoints
        while not self.loop.learnt:
            self.loop.step()

    def _read(self) -> Config:
        if isinstance(self.file, ConfigError):
            raise self.file
        return self.file

    def asked(self, file: Config | ConfigError) -> Worker:
        self.file = file
        self.app.asked.put(None)
        self.app.asked.put(None)  # once is enough
        self.app.reload(self.loop, self.checkpoints.facts)
        return self

    def counted(self, result: str) -> float:
        return self.app.metrics.families.reloads.at(result).value or 0.0


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


def promoted(tmp_path: Path, **sections: Any) -> Config:
    return config(tmp_path, routes=[{"when": {}, "learner": "second", "shadows": ["first"]}], **sections)


def test_all_of_it_is_in_force_at_once(worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = promoted(tmp_path, checkpoint={"path": str(tmp_path / "state"), "keep": 7}, log={"level": "debug"})

    worker.asked(now)

    assert worker.app.config is worker.loop.config is worker.checkpoints.config is worker.app.metrics.config is now
    assert worker.app.store.keep == 7
    assert logging.getLogger("olstream").level == logging.DEBUG
    assert (worker.counted("success"), worker.counted("failure")) == (1, 0)
    assert "was read again: checkpoint.keep: 3 -> 7, log.level:" in capsys.readouterr().err
    assert not worker.loop.learnt  # committed before


def test_a_file_that_says_the_same_changes_nothing(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    written = len(worker.world.checkpoints)

    worker.asked(worker.app.config)

    assert worker.counted("success") == 1
    assert "nothing has changed" in caplog.text
    assert len(worker.world.checkpoints) == written


@pytest.mark.parametrize("case", ["wrong", "fixed", "learner", "start"])
def test_what_cannot_be_taken_leaves_all_as_it_was(
    worker: Worker, tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    learners = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)["learners"]
    other = learners | {"first": {"algorithm": "cw"}}
    missing = learners | {"third": {"start_from": str(tmp_path / "none.json")}}
    files: dict[str, tuple[Config | ConfigError, str]] = {
        "wrong": (ConfigError("c.yaml, line 3: is no YAML"), "c.yaml, line 3: is no YAML"),
        "fixed": (promoted(tmp_path, group="another"), "group cannot change while the worker runs"),
        "learner": (promoted(tmp_path, learners=other), "learner first has learnt under other settings"),
        "start": (promoted(tmp_path, learners=missing), "none.json: cannot be read"),
    }
    before, pipeline, written = worker.app.config, worker.loop.pipeline, len(worker.world.checkpoints)
    file, why = files[case]

    worker.asked(file)

    assert worker.app.config is worker.loop.config is worker.app.metrics.config is before
    assert worker.loop.pipeline is pipeline
    assert len(worker.world.checkpoints) == written
    assert (worker.counted("success"), worker.counted("failure")) == (0, 1)
    assert "the configuration stays as it was" in caplog.text and why in caplog.text


def test_classes_that_no_longer_fit_are_refused(worker: Worker, tmp_path: Path) -> None:
    """They came with the stream: only the model knows how many there are."""
    learners = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)["learners"]
    now = config(tmp_path, learners=learners | {"second": learners["second"] | {"classes_max": 2}})
    classes = worker.loop.pipeline.models["second"].classes
    assert classes is not None
    for label in ("a", "b", "c"):
        classes.learn(label)

    worker.asked(now)

    assert worker.counted("failure") == 1
    assert worker.loop.config is not now


def test_a_place_that_was_lost_meanwhile_is_recovered_first_and_asked_again(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = worker.app.config
    worker.world.lose_at = worker.world.calls + 1

    with pytest.raises(Lost):
        worker.asked(promoted(tmp_path))

    assert worker.app.config is before
    assert not worker.app.asked.empty()
    assert (worker.counted("success"), worker.counted("failure")) == (0, 0)


@pytest.mark.parametrize("lands", [False, True])
def test_a_disk_that_fails_leaves_the_old_one_and_the_models_are_recovered(
    worker: Worker, tmp_path: Path, lands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint may be there all the same: only a start can tell, and it does."""
    save = FakeStore.save

    def full(store: FakeStore, checkpoint: Any) -> int:
        if lands:
            save(store, checkpoint)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FakeStore, "save", full)
    with pytest.raises(Lost):
        worker.asked(promoted(tmp_path))
    monkeypatch.setattr(FakeStore, "save", save)

    assert worker.app.asked.empty()
    assert worker.counted("failure") == 1
    old = worker.app.config
    recovered = recovery(worker.world, old, sink_of(worker.world, old)).recover()
    assert recovered.position.seq == worker.loop.position.seq
    assert worker.world.checkpoints[-1].settings["routes"][0]["learner"] == "first"
    assert [one.difference for one in verify(worker.world, old)] == [""] * len(worker.world.checkpoints)


def test_learners_that_are_gone_are_kept_aside(worker: Worker, tmp_path: Path) -> None:
    learners = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)["learners"]

    worker.asked(config(tmp_path, learners={"first": learners["first"]}, routes=[]))

    assert set(worker.loop.pipeline.models) == {"first"}
    (aside,) = worker.app.store.directory.glob("removed-*")
    assert [path.name for path in aside.glob("*.safetensors")] == ["second.safetensors"]


def test_nothing_is_taken_while_nobody_knows_where_the_slot_stands(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.source, "is_settled", lambda: False)
    worker.asked(promoted(tmp_path))
    assert worker.loop.config is not worker.file

    monkeypatch.undo()
    worker.app.reload(worker.loop, worker.checkpoints.facts)

    assert worker.loop.config is worker.file


def test_what_goes_on_shares_nothing_with_the_models_before(worker: Worker, tmp_path: Path) -> None:
    """A checkpoint of them may still be on its way to the disk."""
    before = {name: model.digest() for name, model in worker.loop.pipeline.models.items()}
    models = worker.loop.pipeline.models

    worker.asked(promoted(tmp_path))
    while worker.loop.position.seq < 5:
        worker.loop.step()

    assert {name: model.digest() for name, model in models.items()} == before
    assert {name: model.digest() for name, model in worker.loop.pipeline.models.items()} != before
