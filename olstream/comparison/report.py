"""What a comparison came to: the table for people, the object for programs, the chart for both."""

from __future__ import annotations

from typing import Any, Final

from rich.table import Table

from olstream.comparison.chart import Chart, Line
from olstream.comparison.contest import Contest
from olstream.comparison.entrants import Entrant, Ours, Task
from olstream.comparison.score import Score

_DIM: Final = "dim"


def document(contest: Contest, task: Task) -> dict[str, Any]:
    """What `--json` prints: learners by rank, the best first."""
    refused = contest.rejected.total()
    return {
        "task": task,
        "rows": contest.rows,
        "accepted": contest.rows - refused,
        "rejected": {reason.value: n for reason, n in sorted(contest.rejected.items())},
        "labelled": contest.labelled,
        "learners": {entrant.name: {"rank": rank, **_of(entrant, task)} for rank, entrant in contest.ranked()},
        "baselines": {baseline.name.replace(" ", "_"): _errors(baseline.score, task) for baseline in contest.baselines},
    }


def _of(entrant: Entrant, task: Task) -> dict[str, Any]:
    score = entrant.score
    rate = score.rows_per_s
    return {
        "algorithm": entrant.model.config.algorithm if isinstance(entrant, Ours) else None,
        "params": dict(entrant.model.params) if isinstance(entrant, Ours) else None,
        "seen": score.rows,
        "labelled": score.labelled,
        **_errors(score, task),
        "loss_mean": score.loss_mean,
        "updates": score.updates,
        "rows_per_s": None if rate is None else round(rate, 1),
    }


def _errors(score: Score, task: Task) -> dict[str, Any]:
    if task == "regression":
        return {"mae": score.error_mean, "rmse": score.root_mean_squared_error}
    return {"errors": int(score.error_sum), "error_rate": score.error_mean}


def table(contest: Contest, task: Task) -> Table:
    shown = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("learner", overflow="fold")
    measures = ("mean abs. error", "RMSE") if task == "regression" else ("error",)
    for column in (*measures, "loss", "updates", "rows/s", "rank"):
        shown.add_column(column, justify="right", no_wrap=True)
    for rank, entrant in contest.ranked():
        shown.add_row(*_cells(entrant, task), "-" if rank is None else str(rank))
    shown.add_row()
    for baseline in contest.baselines:
        shown.add_row(baseline.name, *_measured(baseline.score, task), style=_DIM)
    return shown


def _cells(entrant: Entrant, task: Task) -> list[str]:
    score = entrant.score
    rate = score.rows_per_s
    return [
        entrant.name.replace("[", r"\["),  # which else would be a style
        *_measured(score, task),
        _number(score.loss_mean),
        "-" if score.updates is None else f"{score.updates:,}",
        "-" if rate is None else f"{rate:,.0f}",
    ]


def _measured(score: Score, task: Task) -> list[str]:
    mean = score.error_mean
    if task == "regression":
        return [_number(mean), _number(score.root_mean_squared_error)]
    return ["-" if mean is None else f"{mean:.2%}"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:#.4g}"


def chart(contest: Contest, task: Task, title: str, fading: float) -> Chart:
    """The fading error of everybody over the stream, the best first."""
    entrants = [entrant for _, entrant in contest.ranked()]
    lines = [Line(entrant.name, entrant.score.curve.to_the_end(), False) for entrant in entrants]
    lines += [Line(baseline.name, baseline.score.curve.to_the_end(), True) for baseline in contest.baselines]
    of = "absolute error" if task == "regression" else "error"
    recent = f", over the last {1 / (1 - fading):,.0f} rows or so" if fading < 1.0 else ""
    return Chart(title, f"mean {of}{recent}" if task == "regression" else f"{of}{recent}", task != "regression", lines)
