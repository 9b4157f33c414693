"""A shadow against a champion: the definitions over everything that came, figures by hand, and what a state may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from olstream.versus import AHEAD, ERROR_MINE, LOSS_MINE, ONLY_MINE, SIGNIFICANT, SPANS, SQUARES, N, Span, Versus
from tests.references.versus import Versus as SlowVersus

Columns = tuple[Any, ...]


def columns(n: int, seed: int = 1, better: float = 0.1) -> Columns:
    """measured, correct, loss, correct, loss, absolute, absolute: the shadow's before the champion's."""
    rng = np.random.default_rng(seed)
    mine, theirs = (
        np.where(rng.random(n) < 0.1, -1, rng.random(n) < right).astype(np.int8) for right in (0.6 + better, 0.6)
    )
    losses, absolutes = rng.exponential(size=(2, n)), rng.exponential(size=(2, n))
    measured = (rng.random(n) < 0.8).astype(np.uint8)
    measured[:1] = 1
    return measured, mine, losses[0], theirs, losses[1], absolutes[0] * (1.0 - better), absolutes[1]


def told(given: Columns, classify: bool = True, size: int = 10_000, fading: float = 0.97) -> Versus:
    versus = Versus(classify, fading)
    go_on(versus, given, 0, size)
    return versus


def go_on(versus: Versus, given: Columns, start: int, size: int = 10_000) -> None:
    for at in range(start, given[0].size, size):
        versus.add(*(column[at : at + size] for column in given))


def slow(given: Columns, classify: bool, a: float) -> SlowVersus:
    found = SlowVersus(a)
    for measured, mine, mine_loss, theirs, theirs_loss, mine_off, theirs_off in zip(*given, strict=True):
        if measured:
            found.mine.append(float(mine != 1) if classify else float(mine_off))
            found.theirs.append(float(theirs != 1) if classify else float(theirs_off))
            found.mine_losses.append(float(mine_loss))
            found.theirs_losses.append(float(theirs_loss))
    return found


def answers(pairs: str) -> Columns:
    """Rows of one letter each: (m)ine alone was right, (t)heirs alone, (b)oth, (n)either. All losses are 1."""
    mine, theirs = (np.array([letter in which for letter in pairs], np.int8) for which in ("mb", "tb"))
    n = len(pairs)
    return np.ones(n, np.uint8), mine, np.ones(n), theirs, np.ones(n), np.zeros(0), np.zeros(0)


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("classify", [True, False])
@pytest.mark.parametrize("n", [30, 400])
def test_every_figure_follows_its_definition(n: int, classify: bool, span: Span) -> None:
    given = columns(n)

    versus = told(given, classify)

    wanted = slow(given, classify, 1.0 if span == "total" else 0.97)
    assert versus.rows == len(wanted.mine)
    assert versus.difference(span) == pytest.approx(wanted.difference(), abs=1e-12)
    assert versus.q(span) == pytest.approx(wanted.q(), abs=1e-12)
    assert versus.mcnemar(span) == (pytest.approx(wanted.mcnemar(), rel=1e-9) if classify else None)
    assert versus.paired(span) == (None if classify else pytest.approx(wanted.paired(), rel=1e-9))


def test_the_figures_of_a_few_rows_by_hand() -> None:
    versus = Versus(True, 0.5)
    loss = np.array([1.0, 0.0, 2.0, 4.0])

    versus.add(
        np.ones(4, np.uint8), np.array([1, 0, 1, -1], np.int8), loss, np.array([0, 0, 1, 1], np.int8), loss[::-1],
        np.zeros(0), np.zeros(0),
    )  # fmt: skip

    assert versus.errors() == (0.5, 0.5) and versus.difference() == 0.0
    assert versus.errors("fading") == (1.25 / 1.875, 0.375 / 1.875)
    assert versus.mcnemar() == 0.0
    assert versus.mcnemar("fading") == pytest.approx(-(0.875**2) / 1.125)
    assert versus.q() == 0.0
    assert versus.q("fading") == pytest.approx(math.log((1.0 + 0.0 + 0.5 + 0.5) / (4.0 + 1.0 + 0.0 + 0.125)))


@pytest.mark.parametrize(("pairs", "verdict"), [
    ("m" * 7, "better"), ("t" * 7, "worse"), ("m" * 6, "no difference"), ("mt" * 50, "no difference"),
    ("bn" * 50, "no difference"), ("bn" * 20 + "m" * 20 + "t" * 5, "better"), ("", None),
])  # fmt: skip
def test_the_verdict_needs_more_than_what_comes_once_in_a_hundred(pairs: str, verdict: str | None) -> None:
    versus = told(answers(pairs), fading=1.0)

    assert versus.verdict == verdict


def test_the_verdict_is_of_late_and_the_total_of_the_whole_life() -> None:
    versus = told(answers("t" * 400 + "m" * 100), fading=0.9)

    assert versus.verdict == "better"
    assert (versus.mcnemar() or 0.0) < -SIGNIFICANT


@pytest.mark.parametrize(("better", "verdict"), [(0.5, "better"), (-0.5, "worse"), (0.0, "no difference")])
def test_in_regression_the_verdict_is_of_the_differences_of_absolute_errors(better: float, verdict: str) -> None:
    versus = told(columns(2000, better=better), classify=False, fading=0.999)

    assert versus.verdict == verdict
    assert versus.mcnemar() is None and versus.mcnemar("fading") is None


def test_equally_far_off_is_no_difference() -> None:
    off = np.full(50, 2.0)
    versus = Versus(False, 0.9)

    versus.add(np.ones(50, np.uint8), np.ones(50, np.int8), off, np.ones(50, np.int8), off, off, off)

    assert (versus.difference(), versus.paired(), versus.verdict) == (0.0, None, "no difference")


@pytest.mark.parametrize("span", SPANS)
def test_a_large_error_that_both_have_hides_no_small_difference_and_makes_none(span: Span) -> None:
    rng = np.random.default_rng(2)
    n = 1000
    off, ones, right = np.full(n, 1e6), np.ones(n, np.uint8), np.ones(n, np.int8)
    given = ones, right, off, right, off, off + rng.normal(size=n) * 1e-9, off

    versus = told(given, classify=False)

    wanted = slow(given, False, 1.0 if span == "total" else 0.97)
    assert versus.paired(span) == pytest.approx(wanted.paired(), rel=1e-6)
    assert versus.verdict == "no difference"


def test_two_equal_shadows_err_towards_no_difference() -> None:
    """Of late and of all of their lives: no more than one in a hundred is told apart, of as many as there are here."""
    rng = np.random.default_rng(5)
    apart = {span: 0 for span in SPANS}

    for _ in range(400):
        versus = told(answers("".join(rng.choice(list("mtbn"), 300))), fading=0.98)
        for span in SPANS:
            apart[span] += abs(versus.mcnemar(span) or 0.0) > SIGNIFICANT

    assert apart["fading"] <= 4 and apart["total"] <= 10


def test_nothing_is_known_before_the_first_measured_row() -> None:
    given = columns(5)
    versus = told((np.zeros(5, np.uint8), *given[1:]))

    assert (versus.rows, versus.verdict, versus.errors(), versus.difference("fading")) == (0, None, None, None)
    assert (versus.q(), versus.mcnemar("fading"), versus.paired()) == (None, None, None)


def test_without_any_loss_there_is_no_q() -> None:
    measured, mine, _, theirs, loss, *absolute = answers("mtb")
    versus = told((measured, mine, np.zeros(3), theirs, loss, *absolute))

    assert versus.q() is None and versus.q("fading") is None


@pytest.mark.parametrize("classify", [True, False])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_splitting_the_rows_changes_no_bit(size: int, classify: bool) -> None:
    given = columns(200)

    assert np.array_equal(told(given, classify, size).sums, told(given, classify).sums)


def test_the_bits_are_those_of_plain_numbers_added_row_by_row() -> None:
    given = columns(300)
    wanted = slow(given, True, 0.97)
    loss = rows = alone = 0.0

    versus = told(given)

    for mine, theirs, mine_loss in zip(wanted.mine, wanted.theirs, wanted.mine_losses, strict=True):
        rows, loss = 1.0 + 0.97 * rows, mine_loss + 0.97 * loss
        alone = float(mine < theirs) + 0.97 * alone
    assert versus.sums[1, [N, LOSS_MINE, ONLY_MINE]].tolist() == [rows, loss, alone]


@pytest.mark.parametrize("classify", [True, False])
@pytest.mark.parametrize("cut", [0, 1, 133])
def test_a_saved_comparison_goes_on_as_if_nothing_had_been(cut: int, classify: bool) -> None:
    given = columns(200)
    first = told(tuple(column[:cut] for column in given), classify)

    second = Versus(classify, 0.97)
    second.restore(first.state())
    go_on(second, given, cut)

    assert np.array_equal(second.sums, told(given, classify).sums)


def test_a_state_is_a_copy_both_ways() -> None:
    given = columns(50)
    versus, other = told(given), Versus(True, 0.97)
    state = versus.state()
    before = {name: array.copy() for name, array in state.items()}

    other.restore(state)
    go_on(versus, given, 0)
    go_on(other, given, 0)

    assert all(np.array_equal(state[name], before[name]) for name in before)


@pytest.mark.parametrize(("place", "number"), [
    ((0, N), 10.5), ((0, N), 2.0**60), ((1, N), 11.0), ((1, SQUARES), -1.0), ((0, ERROR_MINE), 11.0),
    ((0, ONLY_MINE), 9.0), ((0, N), 0.0), ((0, N), math.nan), ((0, AHEAD), 9.0), ((1, AHEAD), -9.0),
])  # fmt: skip
def test_a_state_that_no_rows_can_have_led_to_is_refused(place: tuple[int, int], number: float) -> None:
    state = told(answers("mmtbnbnbnb")).state()
    state["sums"][place] = number
    versus = Versus(True, 0.97)

    with pytest.raises(ValueError):
        versus.restore(state)

    assert not versus.sums.any()


@pytest.mark.parametrize("sums", [None, np.zeros((2, 8)), np.zeros((2, 9), np.float32), np.zeros(18)])
def test_a_state_of_another_form_is_refused(sums: Any) -> None:
    with pytest.raises(ValueError):
        Versus(True, 0.97).restore({} if sums is None else {"sums": sums})


@pytest.mark.parametrize("classify", [True, False])
def test_sums_stay_finite_and_so_does_what_is_made_of_them(classify: bool) -> None:
    huge, nobody = np.full(4, 1.7e308), np.zeros(4, np.int8)
    versus = Versus(classify, 0.9)

    versus.add(np.ones(4, np.uint8), nobody, huge, nobody, huge, huge / 3, huge)

    assert np.isfinite(versus.sums).all()
    figures = [of(span) for span in SPANS for of in (versus.difference, versus.q, versus.mcnemar, versus.paired)]
    assert all(figure is None or math.isfinite(figure) for figure in figures)
    second = Versus(classify, 0.9)
    second.restore(versus.state())
