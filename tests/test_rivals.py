"""A shadow is compared with its champion on the records that both measured, and on no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream.pipeline import Pipeline, Processed
from olstream.versus import SPANS
from tests.references.versus import Versus as SlowVersus
from tests.test_pipeline import chunk_of, pipeline_of

THREE = {"a": {"algorithm": "pa1"}, "b": {"algorithm": "arow"}, "c": {"algorithm": "perceptron"}}
ROUTES: list[dict[str, Any]] = [
    {"when": {"field.from": "web"}, "learner": "a", "shadows": ["b", "c"]},
    {"when": {"field.from": "shop"}, "learner": "c", "shadows": ["b"]},
    {"learner": "b"},
]
FADING = 0.97


def messages(n: int, late: bool, seed: int = 4) -> list[object]:
    """Rows of three origins, some without a label, some refused; `late`: whose labels come some records after."""
    rng = np.random.default_rng(seed)
    made: list[object] = []
    for i in range(n):
        x = rng.normal(size=2).round(3).tolist()
        label = "no such class" if rng.random() < 0.05 else int(x[0] - x[1] + rng.normal() > 0)
        origin = str(rng.choice(["web", "web", "shop", "else"]))
        row = {"id": i, "features": {"x": x[0], "y": x[1]}, "from": origin, "weight": float(rng.random() < 0.9)}
        kind = rng.random()
        if kind < 0.5:
            made.append(row | {"label": label})
        else:
            made.append(row)
            if late and kind < 0.9:
                made.append({"id": i, "label": label, "from": origin})
    if late:  # some labels wait longer, and some come before their rows
        some = rng.permutation(len(made))[: n // 4]
        moved = [made[i] for i in some]
        made = [one for i, one in enumerate(made) if i not in set(some.tolist())] + moved
    return made


def by_record(done: Processed) -> dict[str, dict[int, tuple[bool, bool, float, float]]]:
    """{learner: {place of the record: measured, wrong, loss, how far off}}"""
    found: dict[str, dict[int, tuple[bool, bool, float, float]]] = {}
    for result in done.results:
        rows = result.rows
        for k, position in enumerate(result.positions):
            off = float(abs(rows.target[k] - rows.score[k])) if rows.task == "regression" else 0.0
            of_row = bool(rows.measured[k]), bool(rows.correct[k] != 1), float(rows.loss[k]), off
            found.setdefault(result.model.name, {})[position] = of_row
    return found


def fed(pipeline: Pipeline, told: list[object], size: int) -> list[dict[str, dict[int, Any]]]:
    return [by_record(pipeline.process(chunk_of(*told[at : at + size]))) for at in range(0, len(told), size)]


def made(learners: dict[str, Any], routes: list[dict[str, Any]]) -> Pipeline:
    return pipeline_of(learners, routes=routes, monitor={"fading": FADING})


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("span", SPANS)
def test_a_pair_is_compared_by_what_both_said_of_the_same_records(span: Any, late: bool) -> None:
    told = messages(400, late)
    pipeline = made(THREE, ROUTES)

    chunks = fed(pipeline, told, 40)

    routed = {"web": "a", "shop": "c"}
    for shadow, champion in (("b", "a"), ("c", "a"), ("b", "c")):
        wanted = SlowVersus(1.0 if span == "total" else FADING)
        for number, chunk in enumerate(chunks):
            for place in sorted(chunk.get(champion, {}).keys() & chunk.get(shadow, {}).keys()):
                record: Any = told[40 * number + place]
                mine, theirs = chunk[shadow][place], chunk[champion][place]
                if routed.get(record["from"]) == champion and mine[0] and theirs[0]:
                    wanted.mine.append(float(mine[1]))
                    wanted.theirs.append(float(theirs[1]))
                    wanted.mine_losses.append(mine[2])
                    wanted.theirs_losses.append(theirs[2])
        versus = pipeline.models[shadow].versus[champion]
        assert versus.rows == len(wanted.mine) > 30
        assert versus.difference(span) == pytest.approx(wanted.difference(), abs=1e-9)
        assert versus.mcnemar(span) == pytest.approx(wanted.mcnemar(), rel=1e-9)
        assert versus.q(span) == pytest.approx(wanted.q(), abs=1e-9)
    assert {name: set(model.versus) for name, model in pipeline.models.items()} == {
        "a": set(), "b": {"a", "c"}, "c": {"a"},
    }  # fmt: skip


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("size", [1, 7])
def test_a_comparison_does_not_know_how_records_were_cut_into_chunks(size: int, late: bool) -> None:
    told = messages(150, late)
    whole, parts = made(THREE, ROUTES), made(THREE, ROUTES)

    fed(whole, told, len(told))
    fed(parts, told, size)

    for name, model in whole.models.items():
        for champion, versus in model.versus.items():
            assert np.array_equal(parts.models[name].versus[champion].sums, versus.sums), (name, champion)


def test_in_regression_absolute_errors_are_compared() -> None:
    rng = np.random.default_rng(1)
    told: list[object] = [
        {"features": {"x": x}, "label": 3.0 * x} for x in rng.normal(size=300).round(3).tolist()
    ]  # fmt: skip
    learners = {"slow": {"task": "regression", "algorithm": "pa1", "params": {"C": 0.001}}}
    learners["fast"] = {"task": "regression", "algorithm": "pa2"}
    pipeline = made(learners, [{"learner": "slow", "shadows": ["fast"]}])

    chunks = fed(pipeline, told, 50)

    off = {name: [chunk[name][place][3] for chunk in chunks for place in range(50)] for name in learners}
    versus = pipeline.models["fast"].versus["slow"]
    assert versus.errors() == pytest.approx((np.mean(off["fast"]), np.mean(off["slow"])))
    assert (versus.verdict, versus.mcnemar()) == ("better", None)
