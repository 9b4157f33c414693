"""The configuration: defaults, every refusal in one sentence that names the key, and what may be left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olstream.config import CheckpointConfig, Config, LearnerConfig, load, parse
from olstream.errors import ConfigError
from olstream.inert import inert

LEARNER = "learners:\n  fraud:\n    algorithm: pa1\n"
EVERY_KEY = """
kafka: {bootstrap.servers: "localhost:9092", security.protocol: sasl_ssl}
consumer: {fetch.max.bytes: 1000000}
producer: {compression.type: zstd, transaction.timeout.ms: 20000}
kafka_wait: 2m
group: fraud
slot: 3
guarantee: at_least_once
input:
  topics: [events, labels]
  fields: {features: ., id: meta.id, ts: at}
  exclude: [meta]
  max_message_bytes: 2MiB
  batch_max: 100
  start: latest
  on_gap: skip
output:
  {predictions: p, dead_letters: d, journal: j, outcomes: o, shadows: s, scores: true, copy_headers: [trace]}
commit_interval: 50ms
learners:
  first:
    algorithm: pa2
    task: multiclass
    params: {C: 1e-3}
    classes: [1, two, true]
    classes_max: 10
    multiclass: direct
    class_weights: {1: 2, two: 0.5}
    bias: false
    scale: standard
    learn: false
    start_from: weights.json
    features: {names_max: 10, overflow_buckets: 5, category: [hour], text: {title: words, body: {n: [1, 2]}}}
  second: {algorithm: pa, task: regression}
routes:
  - {when: {topic: events, field.kind: [a, 1]}, learner: first, shadows: []}
  - {}
join: {ttl: 2h, pending_max: 5, pending_bytes_max: 1000, allow_partition_mismatch: true}
checkpoint: {path: /var/state, interval: 1m, keep: 2, on_missing: replay}
monitor:
  {window: 10, fading: 0.5, drift: [adwin, {ddm: {warning: 2}}], on_drift: {widen: 0.25}, hindsight: {C: 2}}
http: {host: 0.0.0.0, port: 80, token: secret}
log: {level: debug, format: json}
"""


def read(text: str, **environ: str) -> Config:
    return parse(text, "config.yaml", environ)


def refusal(text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, **environ)
    return str(caught.value)


def test_a_learner_is_all_that_a_configuration_needs() -> None:
    config = read("learners: {fraud: }")

    assert config.learners == {"fraud": LearnerConfig()}
    assert config.commit_interval_s == 0.2
    assert config.checkpoint == CheckpointConfig(path=Path("state"), interval_s=30.0, keep=3, on_missing="fail")
    assert config.journal_topic == "olstream-journal"


def test_every_key_is_read_in_its_own_words() -> None:
    config = read(EVERY_KEY)

    assert (config.kafka_wait_s, config.commit_interval_s, config.join.ttl_s) == (120.0, 0.05, 7200.0)
    assert config.input.max_message_bytes == 2 * 1024 * 1024
    assert config.input.fields.model_fields_set == {"features", "id", "ts"}
    assert config.learners["first"].classes == [1, "two", True]
    assert config.learners["first"].class_weights == {"1": 2.0, "two": 0.5}
    assert config.learners["first"].features.text["body"].n == [1, 2]
    assert config.routes[0].when == {"topic": ["events"], "field.kind": ["a", 1]}
    assert config.routes[1].learner is None
    assert config.monitor.drift == {"adwin": {}, "ddm": {"warning": 2}}
    assert (config.monitor.on_drift.action, config.monitor.on_drift.widen) == ("widen", 0.25)


@pytest.mark.parametrize(
    ("text", "key", "near"),
    [
        ("checkpont: {interval_s: 5}", "checkpont", "checkpoint"),
        ("checkpoint: {interval_s: 5s}", "checkpoint.interval_s", "interval"),
        ("batch_max: 5", "batch_max", "input.batch_max"),
        ("http: {prt: 1}", "http.prt", "port"),
        ("kafka: {bootstrap.server: a}", "kafka.bootstrap.server", "bootstrap.servers"),
        ("consumer: {fetch.max.byte: 1}", "consumer.fetch.max.byte", "fetch.max.bytes"),
        ("monitor: {drift: [adwim]}", "monitor.drift.adwim", "adwin"),
        ("log: {level: inof}", "log.level", "info"),
        ("routes: [{learner: frod}]", "routes.0.learner", "fraud"),
    ],
)
def test_an_unknown_word_is_refused_with_its_key_and_the_nearest_known_one(text: str, key: str, near: str) -> None:
    said = refusal(LEARNER + text)

    assert f"line 4: {key}: " in said
    assert near in said


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        ("algorithm: par", "learners.a.algorithm 'par' is not known (nearest: pa)"),
        ("{algorithm: pa1, params: {epsilon: 0.1}}", "learners.a.params.epsilon: pa1 (binary) has no such parameter"),
        ("{algorithm: pa1, task: regression, params: {epsilon: 0.1}}", "(nearest: eps)"),
        ('{algorithm: pa1, params: {C: "0.5"}}', "learners.a.params.C must be a number"),
        ("{algorithm: pa1, params: {C: -1}}", "learners.a.params.C must be a finite number > 0"),
        ("{classes: [a]}", "learners.a.classes: a binary task has two"),
        ('{algorithm: pa, task: multiclass, classes: [1, "1"]}', "learners.a.classes: names a class twice"),
        ("{classes: [a, b], class_weights: {c: 1}}", "learners.a.class_weights: 'c' is none of the classes a, b"),
        ("{class_weights: {1: 2, 1.0: 3}}", "learners.a.class_weights: names a class twice"),
        ("{class_weights: {c: -1}}", "learners.a.class_weights.c: must be at least 0, not -1"),
        ("{algorithm: pa, task: regression, classes: [a, b]}", "learners.a.classes: a regression has no classes"),
        ("{algorithm: pa, task: multiclass, threshold: 1.0}", "learners.a.threshold: is for a binary task"),
        ("{algorithm: pa, task: multiclass, multiclass: one_vs_one}", "multiclass: one_vs_one is not in this version"),
        ("{threshold: .nan}", "learners.a.threshold: must be a finite number"),
        ("{bias: yes}", "learners.a.bias: must be true or false, not 'yes'"),
        ("{bias: 1}", "learners.a.bias: must be true or false, not 1"),
    ],
)
def test_a_learner_that_cannot_be_is_refused(learner: str, expected: str) -> None:
    said = refusal(f"learners:\n  a: {learner}" if learner.startswith("{") else f"learners:\n  a:\n    {learner}")

    assert expected in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("commit_interval: 200", "commit_interval: must be a duration with its unit, such as 200ms"),
        ("commit_interval: 200 parsecs", "commit_interval: must be a duration with its unit"),
        ("commit_interval: 0s", "commit_interval: must be above 0"),
        ("commit_interval: 8s", "commit_interval: 8 s and 5 s more do not fit into transactions of 10 s"),
        ("input: {max_message_bytes: big}", "input.max_message_bytes: must be a number of bytes, or text with a unit"),
        ("input: {topics: [a, a]}", "input.topics: names a topic twice"),
        ("input: {topics: ['^a.*']}", "input.topics.0: '^a.*' is no topic name"),
        ("input: {fields: {label: a..b}}", "input.fields.label: 'a..b' is no path"),
        ("output: {outcomes: in}\ninput: {topics: [in]}", "output.outcomes: 'in' is an input topic too"),
        ("output: {journal: p, predictions: p}", "output.predictions: 'p' is the journal's topic"),
        ("output: {dead_letters: predictions}", "output.dead_letters: must not be the topic of the predictions"),
        (
            "output: {dead_letters: d, outcomes: d}",
            "output.dead_letters: must not be the topic of the predictions, outc",
        ),
        (
            "output: {dead_letters: d, shadows: d}",
            "output.dead_letters: must not be the topic of the predictions, outc",
        ),
        ("output: {dead_letters: d}\ninput: {topics: [d]}", "output.dead_letters: 'd' is an input topic too"),
        ("output: {predictions: null}", "output.predictions: must be text"),
        ("slot: -1", "slot: must be at least 0, not -1"),
        ("monitor: {window: 9223372036854775808}", "monitor.window: must be below 2.14748e+09"),
        ("slot: 1.5", "slot: must be a whole number, not 1.5"),
        ("slot: true", "slot: must be a whole number, not True"),
        ("group: a/b", "group: must be 1 to 200"),
        ("group: ../b", "group: must be 1 to 200"),
        ("group: ..", "group: must be 1 to 200"),
        ("group: 7", "group: must be text; put it in quotes"),
        ("routes: [{learner: b}]", "routes.0.learner: 'b' is no configured learner"),
        ("routes: [{learner: fraud, shadows: [fraud]}]", "routes.0.shadows: a learner is its own shadow"),
        ("routes: [{when: {topics: x}}]", "routes.0.when.topics: is no condition"),
        ("routes: [{when: {header.a: 5}}]", "routes.0.when.header.a: must be text"),
        ("monitor: {on_drift: sometimes}", "monitor.on_drift.action: must be one of none, widen, reset"),
        ("http: {port: 70000}", "http.port: must be at most 65535"),
        ("http: [1]", "http: must be a mapping of keys to values"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_key(text: str, expected: str) -> None:
    assert f"config.yaml, line 4: {expected}" in refusal(LEARNER + text)


def test_a_learners_name_is_letters_digits_and_three_signs() -> None:
    assert "learners.a b: is no learner's name" in refusal("learners: {a b: }")
    assert "learners: must not be empty" in refusal("learners: {}")
    assert list(read("learners: {A.b_c-1: , 2: }").learners) == ["A.b_c-1", "2"]


def test_a_file_without_learners_says_what_is_missing() -> None:
    assert refusal("") == "config.yaml: learners: is missing, and it has no default"
    assert "must be a mapping" in refusal("[a, b]")


def test_several_mistakes_are_one_line_each() -> None:
    said = refusal(LEARNER + "slot: x\nhttp: {port: y}\ncheckpont: {}")

    assert said.splitlines() == [
        "config.yaml has 3 mistakes:",
        "  config.yaml, line 4: slot: must be a whole number, not 'x'",
        "  config.yaml, line 5: http.port: must be a whole number, not 'y'",
        "  config.yaml, line 6: checkpont: unknown key; did you mean 'checkpoint'?",
    ]


def test_a_long_list_of_mistakes_is_cut() -> None:
    said = refusal(LEARNER + "".join(f"strange{i}: 1\n" for i in range(9)))

    assert len(said.splitlines()) == 7
    assert said.endswith("and 4 more")


def test_a_number_may_stand_in_quotes() -> None:
    config = read(LEARNER + 'http: {port: "${PORT}"}\njoin: {pending_max: 1e3}', PORT="80")

    assert (config.http.port, config.join.pending_max) == (80, 1000)


def test_a_file_that_cannot_be_read_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"learners: {\xe9: }")

    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="is no UTF-8 text"):
        load(tmp_path / "latin.yaml")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "marked.yaml").write_bytes(b"\xef\xbb\xbf" + LEARNER.encode())

    assert list(load(tmp_path / "marked.yaml", {}).learners) == ["fraud"]


def test_commands_with_kafka_need_a_broker_and_a_topic() -> None:
    with pytest.raises(ConfigError, match=r"input\.topics is missing"):
        read(LEARNER).needs_kafka()
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        read(LEARNER + "input: {topics: [a]}").needs_kafka()
    read(LEARNER + "input: {topics: [a]}\nkafka: {metadata.broker.list: a}").needs_kafka()


def test_nothing_in_a_configuration_changes() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(LEARNER).slot = 5


@given(st.text(max_size=200))
def test_no_text_is_more_than_a_configuration_error(text: str) -> None:
    try:
        parse(text, "config.yaml", {})
    except ConfigError as error:
        assert "\n\n" not in str(error)


def test_keys_that_do_nothing_are_told() -> None:
    text = LEARNER + "    multiclass: one_vs_one\ninput: {topics: [a]}\nroutes: [{when: {topic: b}}]"

    told = [sentence.split(":")[0] for sentence in inert(read(text))]

    assert told == ["routes.0", "learners.fraud.multiclass"]
    assert inert(read(LEARNER)) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("monitor: {on_drift: {widen: 0.5}}", "pa1 has no variances that could be widened"),
        ("    on_drift: reset\nmonitor: {drift: []}", "nothing watches it for drift"),
        ("    learn: false\nmonitor: {on_drift: reset}", "it is frozen"),
    ],
)
def test_an_answer_to_drift_that_cannot_come_is_told(text: str, told: str) -> None:
    (sentence,) = inert(read(LEARNER + text))

    assert sentence.startswith("learners.fraud: ")
    assert told in sentence


def test_no_detectors_may_be_said_in_words() -> None:
    assert read(LEARNER + "monitor: {drift: none}").monitor.drift == {}


def test_a_detector_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="names adwin twice"):
        read(LEARNER + "monitor: {drift: [adwin, {adwin: {signal: loss}}]}")


def test_detectors_of_errors_on_a_regression_are_told() -> None:
    told = inert(read(LEARNER + "    task: regression\nmonitor: {drift: [ddm, {adwin: {signal: error}}]}"))

    assert [sentence.split(": ", 1)[1][:25] for sentence in told] == [
        "ddm watches errors of 0 a",
        "a regression has no error",
    ]


@pytest.mark.parametrize(
    ("drift", "told"),
    [
        ("{adwin: {delta: 2}}", "delta"),
        ("{adwin: {detla: 0.1}}", "delta"),
        ("{adwin: {signal: margin}}", "must be error or loss, not 'margin'"),
        ("{ddm: {signal: loss}}", "must be error, not 'loss'"),
        ("{hddm_a: {drift: .nan}}", "drift"),
    ],
)
def test_a_detector_says_which_of_its_parameters_is_wrong(drift: str, told: str) -> None:
    name = drift[1:].split(":")[0]

    with pytest.raises(ConfigError, match=f"monitor.drift.{name}") as refused:
        read(LEARNER + f"monitor: {{drift: {drift}}}")

    assert told in str(refused.value)
