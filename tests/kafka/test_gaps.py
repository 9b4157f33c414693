"""Retention takes records that are still needed, or that are not: `input.on_gap` decides where they are."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from olstream.config import parse
from olstream.errors import StateError
from olstream.io.client import Errors
from olstream.io.kafka_read import KafkaInputs
from olstream.journal import Line, Range
from tests.kafka.events import events
from tests.kafka.service import Service, ServiceFactory, Worker
from tests.kafka.straight import learnt_from
from tests.kafka.topics import Record, until

N = 100
MORE = 50
CUT = 40
END = N + 2 * MORE  # of what retention takes from under a worker
STREAM = events(N + MORE)


def killed(service: ServiceFactory, **settings: object) -> Service:
    """A service that has learnt and committed N records since its only checkpoint, and was killed."""
    made = service(checkpoint={"interval": "1h"}, **settings).make_topics()
    made.topics.produce(made.input, STREAM[:N])
    worker = made.start()
    made.until_committed(N, worker)
    worker.kill()
    return made


def go_on(made: Service, **settings: object) -> None:
    """The rest of the stream, in one life that ends well."""
    made.configure(**settings)
    made.topics.produce(made.input, STREAM[N:])
    made.run_to(N + MORE)


def learners(made: Service) -> dict[str, Any]:
    found: dict[str, Any] = made.inspect()["learners"]
    return found


def lost(worker: Worker) -> float:
    return worker.counted("olstream_offsets_lost_total")


def answered(made: Service) -> list[int]:
    return [p["offset"] for p in made.predicted()]


def ranges(made: Service) -> list[Range]:
    """What the journal says was learnt. Its lines are numbered without holes."""
    read = made.topics.read(f"{made.group}-journal")
    lines = [Line.from_bytes(message.value() or b"", message.offset() or 0) for message in read]
    learnt = [line for line in lines if line.ranges]
    assert [line.seq for line in learnt] == list(range(1, len(learnt) + 1))
    return [r for line in learnt for r in line.ranges]


def assert_refused(worker: Worker, *told: str) -> None:
    assert worker.wait(60) == 4, worker.said()
    said = worker.said().splitlines()[-1]
    assert [words for words in told if words not in said] == []
    assert "Traceback" not in worker.said()


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_what_cannot_be_learnt_again_is_a_question_and_skipping_it_is_remembered(
    service: ServiceFactory, guarantee: str
) -> None:
    made = killed(service, guarantee=guarantee)
    made.topics.delete_before(made.input, CUT)

    assert_refused(made.start(), "40 records", "(0 to 40)", "restore", "on_gap: skip", "on_missing: fresh")
    worker = made.start(input={"on_gap": "skip"}).until_ready()
    assert lost(worker) == CUT
    assert worker.counted("olstream_restores_total", result="restored") == 1
    worker.kill()
    after = learners(made)
    made.topics.delete_before(made.input, N)
    go_on(made, input={"on_gap": "fail"})

    assert after == learnt_from(made, STREAM[CUT:N])
    assert learners(made) == learnt_from(made, STREAM[CUT:])
    assert answered(made) == list(range(N + MORE))
    assert ranges(made)[-1].end == N + MORE
    made.verify()


def test_a_gap_in_a_topic_that_is_read_no_more_concerns_a_learner_that_is_no_more(service: ServiceFactory) -> None:
    """Both are learnt again first: the settings of the time hold until the next checkpoint."""
    learners = {"model": {"algorithm": "arow"}, "gone": {"algorithm": "pa"}}
    made = killed(service, learners=learners, routes=[{"when": {}, "shadows": ["gone"]}])
    made.topics.delete_before(made.input, CUT)
    made.topics.produce(made.input, STREAM[:1])
    before, after = made.input, made.topics.create(f"{made.input}-new")

    made.configure(learners={"model": learners["model"]}, routes=[], input={"topics": [after], "on_gap": "skip"})
    worker = made.start().until_ready()
    made.topics.produce(after, STREAM[N:])
    made.reads(after).until_committed(MORE, worker)
    worker.stop()

    assert made.inspect()["offsets"] == {before: {"0": N}, after: {"0": MORE}}
    assert made.inspect()["learners"] == learnt_from(made, STREAM[CUT:])


def test_a_lost_disk_and_a_cut_input_are_two_questions(service: ServiceFactory) -> None:
    made = killed(service)
    made.topics.delete_before(made.input, CUT)
    for checkpoint in made.state.glob("*/*/checkpoint-*"):
        checkpoint.rename(checkpoint.with_name("elsewhere"))

    assert_refused(made.start(), "on_missing: replay")
    assert_refused(made.start(checkpoint={"on_missing": "replay"}), "40 records", "on_gap: skip", "fresh")
    worker = made.start(input={"on_gap": "skip"}).until_ready()
    assert lost(worker) == CUT
    worker.kill()
    go_on(made, input={"on_gap": "fail"}, checkpoint={"on_missing": "fail"})

    assert learners(made) == learnt_from(made, STREAM[CUT:])
    assert answered(made) == list(range(N + MORE))


def test_records_that_nobody_needs_again_may_go(service: ServiceFactory) -> None:
    made = service().make_topics()
    made.topics.produce(made.input, STREAM[:N])
    made.run_to(N)
    made.topics.delete_before(made.input, N)

    go_on(made)

    assert learners(made) == learnt_from(made, STREAM)
    assert answered(made) == list(range(N + MORE))


def test_a_gap_that_was_skipped_once_is_no_question_any_more(service: ServiceFactory) -> None:
    """Even where no record has come since that could be learnt."""
    made = service().make_topics()
    made.topics.produce(made.input, STREAM[:N])
    made.run_to(N)
    made.topics.produce(made.input, STREAM[N:])
    made.topics.delete_before(made.input, N + MORE)

    worker = made.start(input={"on_gap": "skip"})
    made.until_committed(N + MORE, worker)
    assert lost(worker) == MORE
    worker.kill()
    worker = made.start(input={"on_gap": "fail"}).until_ready()
    made.topics.produce(made.input, STREAM[:1])
    made.until_committed(N + MORE + 1, worker)

    assert lost(worker) == 0
    assert answered(made) == [*range(N), N + MORE]
    worker.stop()


def overtaken(service: ServiceFactory, on_gap: str, **consumer: str) -> tuple[Service, Worker]:
    """A worker that has learnt N records, committed none of them, and stands still while retention takes what follows.

    The fetch that waits at the broker takes the first of these records along, and nothing of the second.
    """
    made = service(input={"on_gap": on_gap}, commit_interval="5s", checkpoint={"interval": "1h"}, consumer=consumer)
    made.make_topics()
    worker = made.start().until_ready()
    made.topics.produce(made.input, STREAM[:N])
    until(lambda: worker.counted("olstream_events_processed_total") == N, "all is learnt")
    assert made.committed() < N
    worker.send(signal.SIGSTOP)
    for end in (N + MORE, END):
        made.topics.produce(made.input, STREAM[N:])
        made.topics.delete_before(made.input, end)
    made.topics.produce(made.input, STREAM[:CUT])
    worker.send(signal.SIGCONT)
    return made, worker


def test_a_worker_that_retention_overtakes_commits_what_it_has_and_asks(service: ServiceFactory) -> None:
    made, worker = overtaken(service, "fail")

    assert_refused(worker, f"to {END})", "were not read yet", "on_gap: skip", "restore")
    got = made.committed()
    assert N <= got <= N + MORE
    assert f"took {END - got} records" in worker.said()
    assert answered(made) == list(range(got))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_worker_that_retention_overtakes_may_go_on(service: ServiceFactory, protocol: str) -> None:
    made, worker = overtaken(service, "skip", **{"group.protocol": protocol})

    made.until_committed(END + CUT, worker)
    got = END - int(lost(worker))
    assert N <= got <= N + MORE
    worker.kill()
    assert answered(made) == [*range(got), *range(END, END + CUT)]
    assert [(r.start, r.end) for r in ranges(made)] == [(0, got), (END, END + CUT)]

    worker = made.start().until_ready()
    assert lost(worker) == got  # what it had learnt before the gap is gone for learning again
    worker.kill()
    worker = made.start(input={"on_gap": "fail"}).until_ready()
    worker.stop()
    assert learners(made) == learnt_from(made, STREAM[:CUT])


def test_a_gap_in_one_partition_leaves_the_others_alone(service: ServiceFactory) -> None:
    made = service(input={"on_gap": "skip"}).make_topics(partitions=2)
    records = [Record(value, partition=i % 2) for i, value in enumerate(STREAM[:N])]
    half = N // 2  # of each partition's records all in all

    made.topics.produce(made.input, records[:20])
    worker = made.start()
    until(lambda: made.topics.committed(made.group, made.input) == {0: 10, 1: 10}, "the first are committed")
    worker.stop()
    made.topics.produce(made.input, records[20:])
    made.topics.delete_before(made.input, CUT)
    worker = made.start()
    until(lambda: made.topics.committed(made.group, made.input) == {0: half, 1: half}, "all is committed")

    assert lost(worker) == CUT - 10
    worker.stop()
    assert learners(made)["model"]["seen"] == N - (CUT - 10)
    assert sorted((p["partition"], p["offset"]) for p in made.predicted()) == [
        *((0, i) for i in range(half) if not 10 <= i < CUT),
        *((1, i) for i in range(half)),
    ]


@pytest.mark.parametrize("on_gap", ["fail", "skip"])
def test_retention_may_overtake_a_worker_that_learns_again(service: ServiceFactory, on_gap: str) -> None:
    """More records than a reader fetches ahead, and in the middle of them they go."""
    made = service(input={"on_gap": on_gap}).make_topics()
    size, n, cut = 2000, 30_000, 29_990
    made.topics.produce(made.input, [b"%d" % i + b" " * size for i in range(n)])
    gaps: list[tuple[str, int]] = []
    inputs = KafkaInputs(parse(json.dumps(made.config), "config", {}), Errors(), on_gap=lambda *gap: gaps.append(gap))
    reading = inputs.read(Range(made.input, 0, 0, n), 100)

    read = list(next(reading).offsets)
    made.topics.delete_before(made.input, cut)
    if on_gap == "fail":
        with pytest.raises(StateError, match=r"to 29990\).*on_gap: skip"):
            read += [offset for chunk in reading for offset in chunk.offsets]
        assert read == list(range(len(read)))
    else:
        read += [offset for chunk in reading for offset in chunk.offsets]
        assert (inputs.lost, gaps) == (n - len(read), [(made.input, n - len(read))])
        assert read == [*range(cut - inputs.lost), *range(cut, n)]
        assert inputs.lost > 0
    inputs.close()
