"""The best fixed linear model of given rows: SVC and SVR with absolute loss, to any accuracy.

Yan, Li. An efficient augmented Lagrangian method for support vector machine.
Optimization Methods and Software 35, 2020.

    min over w of  1/2 ||w||² + Σ c_i ℓ(s_i),  s = B w + d          c_i = C h_i
    SVC  B = -diag(y) X,  d = 1,   ℓ(s) = max(0, s)
    SVR  B = X,           d = -t,  ℓ(s) = max(0, |s| - ε)

    z(w) = B w + d + λ/σ                                 λ (m,) multipliers, from 0
    λ⁺(z) = σ clip(z, 0, c/σ)                            SVC: 0 ≤ λ ≤ c, always
    λ⁺(z) = σ sign(z) clip(|z| - ε, 0, c/σ)              SVR: |λ| ≤ c, always
    φ(w) = 1/2 ||w||² + envelope of ℓ at z(w),   ∇φ = w + Bᵀ λ⁺
    V = I + σ B_Jᵀ B_J                                   J = {i: 0 < |λ⁺_i| < c_i}
    inner: w ← w - t V⁻¹ ∇φ until ∇φ is small;   outer: λ ← λ⁺, σ grows

    solution  w = -Bᵀ λ, objective P(w); D(λ) = d·λ - ε ||λ||₁ - 1/2 ||Bᵀ λ||² ≤ optimum ≤ P(w)

Departures from the paper: all is scaled to rows of norm at most 1 and targets of at most 1; σ starts at 5 C
in these units, where the flat part of the prox is about as wide as a margin; the step t is where φ stops
falling along the direction, which spares most Newton steps where C is large; the gap P - D has to be small
too, which bounds the distance to the optimum where residuals do not; and w is that of the last Newton step
where -Bᵀ λ costs more, because its terms cancel: with columns of very different size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from olstream.learners._jit import F64
from olstream.matrix import Entries, Rows, dot, doubles, entries_of

SIGMA_GROWTH: Final = 5.0
SIGMA_FIRST: Final = 5.0  # times C
SIGMA_FIRST_C_MAX: Final = 1e3
SIGMA_MAX: Final = 1e31
NEWTON_STEPS_MAX: Final = 200
HALVINGS_MAX: Final = 60
SLOPE_LEFT: Final = 0.1
STALLED: Final = 15  # iterations after which a smaller gap is not to be expected: doubles have no better
# C in units of the rows. Beyond the first the margin is taken for hard, which is exact where no multiplier comes near
# it; where one does, the classes overlap, and that beyond the second rounding decides.
HARD: Final = (1e8, 1e30)
TOO_FAR_APART: Final = "C and the sizes of the numbers are too far apart for doubles: a smaller C, or scaled rows"
FLOAT_MAX: Final = float(np.finfo(np.float64).max)
SOFTEST_EXPONENT: Final = -400  # of 2; there w is too small to change a margin by a bit


@dataclass(frozen=True, slots=True)
class Solution:
    """What was found. Both `w` and `lam` are finite, and 0 <= lam <= C h (SVR: |lam| <= C h), converged or not.

    w: weights (n,). lam: multipliers (m,), a row each: 0 where the loss is 0 and flat, C h where it is positive.
    objective: 1/2 ||w||^2 + sum of C h times the losses. gap: how far above the optimum that can be, as a share.
    residual: largest relative KKT residual. iterations, newton_steps: outer and inner.
    """

    w: F64
    lam: F64
    objective: float
    gap: float
    residual: float
    iterations: int
    newton_steps: int
    converged: bool


def svm(
    X: Any,
    y: ArrayLike,
    C: float = 1.0,
    eps: float | None = None,
    weight: ArrayLike | None = None,
    tol: float = 1e-6,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    iterations_max: int = 200,
    columns: int | None = None,
) -> Solution:
    """The SVC or, with `eps`, the SVR of the rows X (m, n): the exact minimum, the same bits for the same input.

    X: an array, or anything in CSR form with `indptr`, `indices` and `data`; `columns` is n where that does
    not know it. A bias is a constant column. y: -1 or +1; with `eps` >= 0 numbers, and errors up to eps are none.
    C > 0: cost of a loss. weight: importance h (m,) >= 0 of each row. tol: for KKT residuals and for the gap.
    start: (w, lam) of an earlier solution, lam aligned to these rows, 0 for new ones; brought within bounds.

    ValueError where an argument is out of range, not finite, or where C and the sizes of the numbers lie too
    far apart for doubles. A solution that has `converged` False took `iterations_max` outer iterations, or
    rounding keeps it from `tol`.
    """
    entries = entries_of(X, columns)
    (m, n), is_svc = entries.shape, eps is None
    targets, h = _vector("y", y, m), np.ones(m) if weight is None else _vector("weight", weight, m)
    _check(targets, h, C, eps, tol, iterations_max)
    unit = _unit(entries, targets, C * float(h.max(initial=0.0)), is_svc)
    w, lam = np.zeros(entries.used.size), np.zeros(m)
    if start is not None:
        w = unit.w_in(_vector("the w of start", start[0], n)[entries.used])
        lam = unit.lam_in(_vector("the lam of start", start[1], m))
    for hardest in HARD:
        problem = _problem(entries, targets, C * h, eps, unit, hardest)
        found = _outer(problem, *problem.nearer(w, lam), tol, iterations_max)
        is_clipped = unit.cost_in(C * h) > hardest
        if not np.any(is_clipped) or (found.converged and np.all(np.abs(found.lam[is_clipped]) < 0.999 * hardest)):
            return _in_given_units(found, entries, unit)
        w, lam = found.w, found.lam
    raise ValueError(TOO_FAR_APART)


def _check(y: F64, h: F64, C: float, eps: float | None, tol: float, iterations_max: int) -> None:
    if not isinstance(iterations_max, int | np.integer) or iterations_max < 1:
        raise ValueError(f"iterations_max must be a whole number >= 1, not {iterations_max!r}")
    for name, value, least in (("C", C, 0.0), ("tol", tol, 0.0), ("eps", 1.0 if eps is None else eps, -1.0)):
        is_number = isinstance(value, int | float | np.integer | np.floating) and abs(value) <= FLOAT_MAX
        if not is_number or not value > least or value < 0.0:
            raise ValueError(f"{name} must be a finite number {'>=' if name == 'eps' else '>'} 0, not {value!r}")
    if eps is None and not np.all(np.abs(y) == 1.0):
        raise ValueError(f"without eps y is -1 or +1, not {float(y[np.abs(y) != 1.0][0])!r}")
    if h.min(initial=0.0) < 0.0:
        raise ValueError(f"a weight is at least 0, not {float(h.min())!r}")
    if not math.isfinite(C * float(h.max(initial=0.0))):
        raise ValueError("C times the largest weight is too large for a double")


def _vector(name: str, given: ArrayLike, size: int) -> F64:
    vector = doubles(name, given)
    if vector.shape != (size,):
        raise ValueError(f"{name} has shape {vector.shape} and needs ({size},)")
    if not np.all(np.isfinite(vector)):
        raise ValueError(f"{name} has a number that is not finite")
    return vector


class _Unit(NamedTuple):
    """Powers of two, so that they round nothing: rows are in units of 2^a, targets of 2^b.

    A C that is tiny in these units is 2^e times larger inside: there w and lam are proportional to it.
    """

    a: int
    b: int
    e: int

    def cost_in(self, c: F64) -> F64:
        with np.errstate(over="ignore"):  # beyond every limit is as good as infinite
            return np.ldexp(c, 2 * self.a - self.b + self.e)

    def lam_in(self, lam: F64) -> F64:
        return self.cost_in(lam)

    def lam_out(self, lam: F64) -> F64:
        return np.ldexp(lam, self.b - 2 * self.a - self.e)

    def w_in(self, w: F64) -> F64:
        with np.errstate(over="ignore"):
            return np.ldexp(w, self.a - self.b + self.e)

    def w_out(self, w: F64) -> F64:
        return np.ldexp(w, self.b - self.a - self.e)

    def objective_out(self, objective: float) -> float:
        return float(np.ldexp(objective, 2 * (self.b - self.a) - self.e))


def _unit(entries: Entries, y: F64, cost: float, is_svc: bool) -> _Unit:
    a = entries.size_exponent()
    b = 0 if is_svc else math.frexp(float(np.abs(y).max(initial=0.0)))[1]
    _, exponent = math.frexp(cost)
    e = max(0, SOFTEST_EXPONENT - (exponent + 2 * a - b)) if cost > 0.0 else 0
    return _Unit(a, b, e)


@dataclass(frozen=True, slots=True)
class _Problem:
    """B, d, c and eps (None: SVC) in units of the rows."""

    B: Rows
    d: F64
    cap: F64
    eps: float | None

    def excess(self, s: F64) -> F64:
        """Of which the loss is the positive part."""
        return s if self.eps is None else np.abs(s) - self.eps

    def multipliers(self, z: F64, sigma: float) -> F64:
        """sigma (z - prox(z)): never out of bounds."""
        size = np.minimum(sigma * np.maximum(self.excess(z), 0.0), self.cap)
        return size if self.eps is None else np.copysign(size, z)

    def nearer(self, w: F64, lam: F64) -> tuple[F64, F64]:
        """Where to start: lam within bounds, and w or what belongs to that lam, whichever costs less."""
        lam = np.clip(lam, 0.0 if self.eps is None else -self.cap, self.cap)
        u = -self.B.transposed(lam)
        with np.errstate(over="ignore", invalid="ignore"):
            return (w if self.primal(w) < self.primal(u) else u), lam

    def primal(self, w: F64) -> float:
        losses = np.maximum(self.excess(self.B.times(w) + self.d), 0.0)
        return 0.5 * dot(w, w) + dot(self.cap, losses)

    def dual(self, lam: F64, w: F64) -> float:
        """Where w = -B^T lam."""
        tube = 0.0 if self.eps is None else self.eps * float(np.abs(lam).sum())
        return dot(self.d, lam) - tube - 0.5 * dot(w, w)


def _problem(entries: Entries, y: F64, cost: F64, eps: float | None, unit: _Unit, hardest: float) -> _Problem:
    cap = np.minimum(unit.cost_in(cost), hardest)
    if eps is None:
        return _Problem(entries.rows(-y, unit.a), np.ones(y.size), cap, None)
    scaled_eps = float(np.ldexp(eps, -unit.b))
    return _Problem(entries.rows(np.ones(y.size), unit.a), np.ldexp(-y, -unit.b), cap, scaled_eps)


class _Found(NamedTuple):
    w: F64
    lam: F64
    objective: float
    gap: float
    residual: float
    iterations: int
    newton_steps: int
    converged: bool


def _outer(problem: _Problem, w: F64, lam: F64, tol: float, iterations_max: int) -> _Found:
    """The method of multipliers: each round solves for w with lam fixed, then takes the new lam."""
    B, d, cap = problem.B, problem.d, problem.cap
    sigma = SIGMA_FIRST * min(max(1.0, float(cap.max(initial=0.0))), SIGMA_FIRST_C_MAX)
    if np.any(lam):
        sigma *= SIGMA_GROWTH  # near the solution fewer, longer rounds are less work
    floor, d_size = 1e-9 * float(cap.sum()), 1.0 + _norm(d)
    rp_before, steps, best = math.inf, 0, None
    for k in range(iterations_max):
        accuracy = max(1e-13, min(0.01, 0.1 ** (k + 1)))
        inner = _inner(problem, w, lam, sigma, accuracy)
        w, lam, steps = inner.w, inner.lam, steps + inner.steps
        s = inner.z - lam / sigma
        u = -B.transposed(lam)
        rp = _norm(s - inner.Bw - d) / d_size
        rd = _norm(w - u) / (1.0 + _norm(w))
        rc = _norm(lam - problem.multipliers(s + lam, 1.0)) / (1.0 + _norm(s))
        primal, dual, chosen = problem.primal(u), problem.dual(lam, u), u
        if (other := problem.primal(w)) < primal - 0.1 * tol * abs(primal):  # u is a sum that cancels
            primal, chosen = other, w
        gap = max(0.0, primal - dual) / max(primal + abs(dual), floor, 1e-300)
        residual = max(rp, rd, rc)
        done = max(residual, gap) <= tol
        if best is None or done or gap < best.gap:
            best = _Found(chosen, lam, primal, gap, residual, k + 1, steps, done)
        if done or k + 1 - best.iterations == STALLED:
            break
        if rp > max(0.5 * rp_before, 0.1 * tol):
            sigma = min(sigma * SIGMA_GROWTH, SIGMA_MAX)
        elif rp < min(tol, rd):  # what is left is rounding, which grows with sigma
            sigma /= SIGMA_GROWTH
        rp_before = rp
    assert best is not None
    return best._replace(iterations=k + 1, newton_steps=steps)


class _Inner(NamedTuple):
    w: F64
    Bw: F64
    z: F64
    lam: F64
    steps: int


def _inner(problem: _Problem, w: F64, lam: F64, sigma: float, accuracy: float) -> _Inner:
    """The least phi: a semismooth Newton step, then as far along it as phi falls, until the gradient is small."""
    B, cap = problem.B, problem.cap
    Bw, shift = B.times(w), problem.d + lam / sigma
    active_before, left_before, is_whole = np.zeros(problem.d.size, np.bool_), math.inf, False
    for step in range(NEWTON_STEPS_MAX + 1):
        z = Bw + shift
        new = problem.multipliers(z, sigma)
        u = -B.transposed(new)
        g = w - u
        enough = accuracy * max(_norm(w), _norm(u), 1e-9 * float(np.abs(new).sum()))
        size = np.abs(new)
        active = (size > 0.0) & (size < cap)
        left = _norm(g)
        # a whole step over which phi stayed the same parabola ends in its minimum: what is left is rounding
        is_least = is_whole and left > 0.1 * left_before and np.array_equal(active, active_before)
        if left <= enough or is_least or step == NEWTON_STEPS_MAX:
            break
        direction, exact = B.newton(active, sigma, g, max(1e-3 * left, 0.1 * enough))
        along = B.times(direction)
        t = _step(problem, sigma, z, along, dot(w, direction), dot(direction, direction))
        if t == 0.0:
            break
        w, Bw = w + t * direction, Bw + t * along
        active_before, left_before, is_whole = active, left, exact and t == 1.0
    return _Inner(w, Bw, z, new, step)


def _step(problem: _Problem, sigma: float, z: F64, along: F64, wd: float, dd: float) -> float:
    """The t in (0, 1] up to where phi falls along a direction: its slope there is still negative, or small."""

    def slope(t: float) -> float:
        return wd + t * dd + dot(problem.multipliers(z + t * along, sigma), along)

    steepest = slope(0.0)
    if not steepest < 0.0:
        return 0.0
    if slope(1.0) <= -SLOPE_LEFT * steepest:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS_MAX):
        t = 0.5 * (low + high)
        now = slope(t)
        if SLOPE_LEFT * steepest <= now <= 0.0:
            return t
        low, high = (t, high) if now < 0.0 else (low, t)
    return low


def _norm(vector: F64) -> float:
    return math.sqrt(dot(vector, vector))


def _in_given_units(found: _Found, entries: Entries, unit: _Unit) -> Solution:
    w = np.zeros(entries.shape[1])
    with np.errstate(over="ignore"):
        w[entries.used] = unit.w_out(found.w)
        lam, objective = unit.lam_out(found.lam), unit.objective_out(found.objective)
    if not (math.isfinite(objective) and np.all(np.isfinite(w)) and np.all(np.isfinite(lam))):
        raise ValueError(TOO_FAR_APART)
    return Solution(w, lam, objective, *found[3:])
