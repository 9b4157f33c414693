"""What must be true after the worst, looked at from outside: topics, journal, state directories, logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from tests.kafka.chaos.flow import has_label, id_of, is_good
from tests.kafka.chaos.moved import assert_learnt_by_two_only_where_moved
from tests.kafka.chaos.stage import PATIENCE_S, SECRET, Stage
from tests.kafka.service import Service, Worker, inspect, olstream
from tests.kafka.topics import headers

Place: TypeAlias = tuple[int, int]  # partition and offset of an input record
Inputs: TypeAlias = Mapping[Place, bytes | None]


def assert_whole(stage: Stage) -> None:
    """Every record answered once, learnt once, and every model what its journal says."""
    inputs = read_inputs(stage)
    assert_answered(stage, inputs)
    if stage.exactly_once or len(stage.services) == 1:
        assert_counted(stage, inputs)
    else:
        assert_learnt_by_two_only_where_moved(stage, inputs)
    assert_journal_covers(stage, inputs)
    assert_verified(stage)
    if stage.partitions == 1 and len(stage.services) == 1:
        assert_as_if_undisturbed(stage, inputs)


def read_inputs(stage: Stage) -> dict[Place, bytes | None]:
    return {_place(message): message.value() for message in stage.topics.read(stage.input)}


def assert_answered(stage: Stage, inputs: Inputs) -> None:
    """A read_committed reader sees one prediction of each good message, one dead letter of each broken one."""
    service = stage.service
    answers = stage.topics.read(service.predictions)
    predictions = [json.loads(answer.value() or b"null") for answer in answers]
    good = {place for place, value in inputs.items() if is_good(value)}
    _assert_once(stage, service.predictions, _predicted, answers, good)
    wrong = [p for p in predictions if p["id"] != id_of(inputs[p["partition"], p["offset"]] or b"")]
    assert not wrong, f"predictions with the id of another record: {wrong[:3]}"

    letters = stage.topics.read(service.dead_letters)
    broken = {place for place, value in inputs.items() if value is not None and not is_good(value)}
    _assert_once(stage, service.dead_letters, _refused, letters, broken)
    changed = [_refused(letter) for letter in letters if letter.value() != inputs[_refused(letter)]]
    assert not changed, f"dead letters with other bytes than came: {changed[:3]}"


def _assert_once(
    stage: Stage, topic: str, place_of: Callable[[Any], Place], messages: list[Any], expected: set[Place]
) -> None:
    found = Counter(map(place_of, messages))
    missing, strange = expected - found.keys(), found.keys() - expected
    assert not missing, f"{len(missing)} are missing in {topic}: {traces(stage, topic, place_of, missing)}"
    assert not strange, f"{len(strange)} in {topic} of no such record, the first of {min(strange)}"
    twice = [place for place, n in found.items() if n > 1]
    assert not (twice and stage.exactly_once), f"{len(twice)} came twice in {topic}, the first of {min(twice)}"


def traces(stage: Stage, topic: str, place_of: Callable[[Any], Place], missing: set[Place]) -> str:
    """What there is to see of answers that are missing: nobody can look again at a broker that is gone."""
    partition, offset = first = min(missing)
    stored = {place_of(m): int(m.offset() or 0) for m in stage.topics.read(topic, "read_uncommitted")}
    at = sorted(stored[place] for place in missing & stored.keys())
    journal = f"{stage.group}-journal"
    committed = {message.offset() for message in stage.topics.read(journal)}
    lines = [
        f"{m.offset()} ({'committed' if m.offset() in committed else 'not committed'}) {(m.value() or b'').decode()}"
        for m in stage.topics.read(journal, "read_uncommitted")
        if any(p == partition and start <= offset < end for _, p, start, end in _ranges(m))
    ]
    said = [line[:250] for pod in stage.pods for line in _said(pod).splitlines() if "librdkafka: FAIL" not in line]
    return "\n".join(
        [
            f"{first} to {max(missing)}",
            f"{len(at)} of them were stored and are not committed, at {at[:1]} to {at[-1:]}",
            "journal lines of the first:",
            *lines,
            "the workers said:",
            *said[-40:],
        ]
    )


def assert_counted(stage: Stage, inputs: Inputs) -> None:
    """The models of all slots together have seen each good message once, and each label once."""
    models = [service.inspect()["learners"]["model"] for service in stage.services.values()]
    good = [value for value in inputs.values() if value is not None and is_good(value)]
    expected = len(good), sum(map(has_label, good))
    found = sum(m["seen"] for m in models), sum(m["labelled"] for m in models)
    assert found == expected, f"(seen, labelled) is {found} over all slots, of {expected} in the input"


def journal_lines(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(value or b"null") for value in stage.topics.values(f"{stage.group}-journal")]


def assert_journal_covers(stage: Stage, inputs: Inputs) -> None:
    """Each record stands in one range of all lines together, and no ranges overlap; each slot's seq has no hole."""
    lines = [line for line in journal_lines(stage) if "seq" in line]
    if not stage.exactly_once:  # a line may be there twice, and count once: that is what `state verify` looks at
        return
    ranges = sorted((partition, start, end) for line in lines for _, partition, start, end in line["ranges"])
    for partition in range(stage.partitions):
        ours = [(start, end) for p, start, end in ranges if p == partition]
        overlapping = [(one, next_one) for one, next_one in pairwise(ours) if next_one[0] < one[1]]
        assert not overlapping, f"ranges of the journal overlap in partition {partition}: {overlapping[:3]}"
        covered = {offset for start, end in ours for offset in range(start, end)}
        left_out = [offset for p, offset in inputs if p == partition and offset not in covered]
        assert not left_out, f"the journal names no line for offsets of partition {partition}: {left_out[:3]}"
    for slot in stage.services:
        numbers = [line["seq"] for line in lines if line["slot"] == slot]
        assert numbers == list(range(1, len(numbers) + 1)), f"the lines of slot {slot} are not numbered through"


def assert_verified(stage: Stage) -> None:
    """From the oldest checkpoint that is kept, and from the empty model."""
    for service in stage.services.values():
        service.verify()
        service.verify("--all")


def assert_as_if_undisturbed(stage: Stage, inputs: Inputs) -> None:
    """With one partition and one slot the model is, to the last bit, that of the same records from a file."""
    service = stage.service
    file, state = service.directory / "input.ndjson", service.directory / "replayed"
    file.write_bytes(b"".join((value or b"") + b"\n" for _, value in sorted(inputs.items()) if value is not None))
    arguments = ["replay", str(service.directory / "config.yaml"), str(file), "--state", str(state)]
    done = olstream(*arguments, deadline_s=PATIENCE_S)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    assert service.inspect()["digest"] == inspect(state)["digest"], "the digest is not that of an undisturbed run"


def assert_ended(worker: Worker, code: int, *words: str) -> None:
    """It ends with this exit code, and its last word is a sentence that says all of these."""
    found = worker.wait(PATIENCE_S)
    sentence = ([line for line in worker.said().splitlines() if line.startswith("olstream: ")] or [""])[-1]
    assert found == code, f"exit {found} instead of {code}: {worker.said()[-3000:]}"
    missing = [word for word in words if word not in sentence]
    assert not missing, f"{missing} is not in: {sentence}"


def assert_logs_are_clean(stage: Stage) -> None:
    """No traceback, no secret, and no line that the client's own thread failed in."""
    for service in stage.pods:
        said = _said(service)
        for unwanted in ("Traceback (most recent call last)", SECRET, "Exception ignored in"):
            assert unwanted not in said, (
                f"{unwanted!r} in the log of slot {service.config.get('slot', 0)}: {said[-3000:]}"
            )


def _place(message: Any) -> Place:
    return message.partition(), message.offset()


def _predicted(message: Any) -> Place:
    """The record that a prediction answers."""
    prediction = json.loads(message.value())
    return prediction["partition"], prediction["offset"]


def _refused(message: Any) -> Place:
    """The record that a dead letter answers."""
    told = dict(headers(message))
    return int(told["olstream.partition"] or b""), int(told["olstream.offset"] or b"")


def _ranges(message: Any) -> list[Any]:
    """Of a journal line."""
    return list(json.loads(message.value() or b"{}").get("ranges", []))


def _said(service: Service) -> str:
    """By all workers on this directory."""
    log = service.directory / "log"
    return log.read_text(errors="replace") if log.exists() else ""
