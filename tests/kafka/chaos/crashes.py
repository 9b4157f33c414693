"""Death at every single step that leaves something behind, first and later passages."""

from __future__ import annotations

import signal
from typing import Final

from olstream import crash
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.chaos.verdict import assert_whole

PASSAGES: Final = (1, 2, 5)
ONCE_A_LIFE: Final = {"init", "journal", "join", "take", "revoke", "leave"}
AT_THE_END: Final = {"revoke", "leave"}  # passed when the worker is told to stop
ONLY: Final = {"exactly_once": {"init", "commit"}, "at_least_once": {"flush"}, "a rollback": {"aside"}}


@scenario(checkpoint={"interval": "100ms", "keep": 2})
def every_crash_point(stage: Stage) -> None:
    """One worker dies at each durable step in turn: at the first passage, the second, the fifth."""
    die_everywhere(stage, "exactly_once")


@scenario(bounded=False, checkpoint={"interval": "100ms", "keep": 2}, guarantee="at_least_once")
def every_crash_point_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    die_everywhere(stage, "at_least_once")


@scenario(bounded=False)
def every_crash_point_of_a_first_start(stage: Stage) -> None:
    """A slot that is new dies at each step of its first start and first records, and starts again."""
    others = set().union(*ONLY.values()) - ONLY["exactly_once"]
    for step in crash.STEPS.keys() - others - {"relearn"}:
        for side in ("before", "after"):
            new = Stage(stage.kafka, f"{stage.group}-{step}-{side}", stage.directory / f"{step}-{side}", stage.seed)
            with new.flow():
                die_at(new, step, f"{step}.{side}", 1)
            new.finish(new.service.start())
            assert_whole(new)
            new.end()
            stage.fault()


def die_everywhere(stage: Stage, guarantee: str) -> None:
    others = set().union(*ONLY.values()) - ONLY[guarantee]
    with stage.flow():
        stage.service.start().until_ready().kill()
        for step in crash.STEPS:
            if step in others:
                continue
            for side in ("before", "after"):
                for passage in PASSAGES[: 1 if step in ONCE_A_LIFE else None]:
                    if step == "relearn":
                        leave_lines_behind(stage)
                    die_at(stage, step, f"{step}.{side}", passage)
        worker = stage.service.start().until_ready()
    stage.finish(worker)
    assert_whole(stage)


def leave_lines_behind(stage: Stage) -> None:
    """A life that writes no checkpoint after its first commits, so that the next has something to learn again."""
    checkpoint = stage.service.config["checkpoint"]
    stage.service.environment = {crash.VARIABLE: "offsets.after:8"}
    stage.service.start(checkpoint={"interval": "1h"}).wait(PATIENCE_S)
    stage.service.configure(checkpoint=checkpoint)


def die_at(stage: Stage, step: str, point: str, passage: int) -> None:
    stage.service.environment = {crash.VARIABLE: f"{point}:{passage}"}
    worker = stage.service.start()
    if step in AT_THE_END:
        stage.until_more(1, worker)
        worker.send(signal.SIGTERM)
    code = worker.wait(PATIENCE_S)
    assert code == -signal.SIGKILL, f"exit {code} at {point}, passage {passage}: {worker.said()[-3000:]}"
    stage.service.environment = {}
    stage.fault()
