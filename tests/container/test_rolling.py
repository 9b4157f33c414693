"""From the Dockerfile to a rolling restart: two slots under load, and nothing is lost or done twice."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tests.container.engine import Engine
from tests.container.pod import place
from tests.kafka.broker import Kafka
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import (
    assert_answered,
    assert_counted,
    assert_journal_covers,
    assert_logs_are_clean,
    read_inputs,
)

MORE = 1500  # records between two events: more than a second of the flow


def test_a_rolling_restart_under_load_loses_nothing_and_repeats_nothing(
    engine: Engine, image: str, kafka: str, name: str, tmp_path: Path
) -> None:
    stage = Stage(cast(Kafka, SimpleNamespace(bootstrap=kafka)), name, tmp_path / "stage", seed=20, partitions=2)
    with ExitStack() as stack:
        places = [stack.enter_context(place(engine, image, stage.slot(slot))) for slot in (0, 1)]
        pods = [each.start() for each in places]
        for pod in pods:
            pod.until_ready()

        with stage.flow():
            stage.until_more(MORE, *pods)
            for slot, each in enumerate(places):
                pods[slot].stop()
                pods[slot] = each.start()
                pods[slot].until_ready()
                stage.until_more(MORE, *pods)
        stage.finish(*pods)

        inputs = read_inputs(stage)
        assert_answered(stage, inputs)
        assert_counted(stage, inputs)
        assert_journal_covers(stage, inputs)
        assert_logs_are_clean(stage)
        for each in places:
            assert each.service.inspect()["learners"]["model"]["seen"] > MORE / 2
            each.verify()
