"""What a healthy run of one worker does not show, on made-up series: trouble, late labels, a second worker."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.deploy.boards import NOT_LIVE, filled, marks, queries
from tests.deploy.prometheus import RULES, promtool

TWO_MINUTES = 120  # when the expressions are asked; a sample each 5 s
STEPS = 60

Series = dict[str, str]  # {series: values in promtool's notation}
Samples = dict[str, float]  # {labels: value}


def at(metric: str, **labels: str) -> str:
    own = {"job": "olstream", "instance": "a"} | labels
    matched = ",".join(f'{name}="{value}"' for name, value in own.items())
    return f"{metric}{{{matched}}}"


def rises_at_the_end(metric: str, **labels: str) -> Series:
    """A counter that was there at 0, and is 3 ten seconds before it is asked for."""
    return {at(metric, **labels): "0x21 3x30"}


def late_labels() -> Series:
    """Half of them after up to 5 s, half after up to 60 s."""
    half, all_ = (f"0+{n}x{STEPS}" for n in (5, 10))
    buckets = {"1": f"0x{STEPS}", "5": half, "60": all_, "+Inf": all_}
    name = "olstream_label_delay_seconds"
    return {
        at(f"{name}_count", learner="fraud"): all_,
        **{at(f"{name}_bucket", learner="fraud", le=le): values for le, values in buckets.items()},
    }


def a_new_champion() -> Series:
    """The workers start again a minute before; then the shadow is the champion."""
    return {
        at("olstream_learner_info", learner="old", role="champion"): "1x130 _x30",
        at("olstream_learner_info", learner="new", role="shadow"): "1x130 _x30",
        at("olstream_learner_info", learner="old", role="shadow"): "_x132 1x30",
        at("olstream_learner_info", learner="new", role="champion"): "_x132 1x30",
        # a service that is new altogether has no new champion
        at("olstream_learner_info", job="olstream-b", learner="first", role="champion"): "_x132 1x30",
    }


CASES: dict[str, tuple[Series, Samples]] = {
    "quality: Delay: A": (late_labels(), {'{learner="fraud"}': 5.0}),
    "quality: Delay: B": (late_labels(), {'{learner="fraud"}': 54.5}),
    "quality: Predictions that wait for a label: A": (
        {
            at("olstream_pending_predictions", learner="fraud"): f"7x{STEPS}",
            at("olstream_pending_predictions", learner="fraud", instance="b"): f"2x{STEPS}",
        },
        {'{learner="fraud"}': 9.0},
    ),
    "runtime: Errors by code: A": (
        rises_at_the_end("olstream_kafka_errors_total", code="_TRANSPORT")
        | {at("olstream_kafka_errors_total", code="_SSL"): f"0x{STEPS}"},
        {'{code="_TRANSPORT"}': 3.0},
    ),
    "runtime: Writes that failed: A": (
        rises_at_the_end("olstream_produce_failures_total", topic="predictions", reason="too_large"),
        {'{topic="predictions", reason="too_large"}': 3.0},
    ),
    "runtime: Writes that failed: B": (
        rises_at_the_end("olstream_checkpoint_failures_total", reason="no_space"),
        {'{reason="no_space"}': 3.0},
    ),
    "Reload": (
        rises_at_the_end("olstream_config_reloads_total", result="failure"),
        {'{instance="a", result="failure"}': 3.0},
    ),
    "Restore while running": (
        rises_at_the_end("olstream_restores_total", result="restored"),
        {'{instance="a", result="restored"}': 3.0},
    ),
}


def answers(expr: str, series: Series, expected: Samples, after_s: int, directory: Path) -> str:
    """What promtool has to say against it: nothing."""
    test = {
        "interval": "5s",
        "input_series": [{"series": of, "values": values} for of, values in series.items()],
        "promql_expr_test": [
            {
                "expr": filled(expr),
                "eval_time": f"{after_s}s",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in expected.items()],
            }
        ],
    }
    path = directory / "case.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "5s", "tests": [test]}))
    code, said = promtool("test", "rules", path)
    return "" if code == 0 else said


def test_all_that_a_healthy_run_does_not_show_is_shown_here() -> None:
    assert CASES.keys() | {"Champion"} >= NOT_LIVE.keys()


@pytest.mark.parametrize("where", CASES)
def test_trouble_is_seen(where: str, tmp_path: Path) -> None:
    series, expected = CASES[where]
    expr = {**queries(), **marks()}[where]

    assert answers(f"round({expr}, 0.5)", series, expected, TWO_MINUTES, tmp_path) == ""


@pytest.mark.parametrize("where", CASES)
def test_where_there_is_none_nothing_is_seen(where: str, tmp_path: Path) -> None:
    series, _ = CASES[where]
    quiet = dict.fromkeys(series, f"0x{STEPS}")
    expr = {**queries(), **marks()}[where]

    expected = {'{learner="fraud"}': 0.0} if "wait" in where else {}
    assert answers(expr, quiet, expected, TWO_MINUTES, tmp_path) == ""


def test_a_new_champion_is_marked_and_a_restart_is_not(tmp_path: Path) -> None:
    before_s, after_s = 600, 690

    assert answers(marks()["Champion"], a_new_champion(), {}, before_s, tmp_path) == ""
    expected = {'{job="olstream", learner="new"}': 1.0}
    assert answers(marks()["Champion"], a_new_champion(), expected, after_s, tmp_path) == ""


def shadows() -> Series:
    """Two workers, of which each has a shadow of its own, and a regression, whose errors are no ratios."""
    series = {}
    for instance, difference, mcnemar in (("a", -0.3, 20), ("b", 0.1, -4)):
        of = {"instance": instance, "learner": "next"}
        against = {**of, "champion": "now", "window": "fading"}
        series[at("olstream_windowed_error_ratio", **of, window="total")] = f"0.2x{STEPS}"
        series[at("olstream_windowed_error_ratio", **of, window="fading")] = f"0.2x{STEPS}"
        series[at("olstream_shadow_error_difference", **against)] = f"{difference}x{STEPS}"
        series[at("olstream_shadow_mcnemar", **against)] = f"{mcnemar}x{STEPS}"
        series[at("olstream_shadow_mcnemar", **{**against, "window": "total"})] = f"900x{STEPS}"
    price = {"learner": "price-next", "champion": "price", "window": "fading"}
    series[at("olstream_shadow_error_difference", **price)] = f"-250x{STEPS}"
    series[at("olstream_shadow_paired", **price)] = f"12x{STEPS}"
    return series


@pytest.mark.parametrize(
    ("letter", "expected"),
    [
        ("A", {'{learner="next", champion="now"}': -0.1}),
        ("B", {'{learner="next", champion="now"}': 8.0, '{learner="price-next", champion="price"}': 12.0}),
    ],
)
def test_shadows_are_held_against_the_champion_of_all_workers(letter: str, expected: Samples, tmp_path: Path) -> None:
    expr = queries()[f"quality: Shadows against the champion: {letter}"]

    assert answers(f"round({expr}, 0.001)", shadows(), expected, TWO_MINUTES, tmp_path) == ""
