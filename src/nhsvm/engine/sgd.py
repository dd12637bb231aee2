"""Stochastic subgradient descent (Pegasos), the paper's method: for comparison, very large data, ``partial_fit``.

With W_n = U_n/√α_n and λ = 1/Σ_i C_i the problem of :mod:`nhsvm.objective`, divided by Σ_i C_i, is

    min_W  λ/2 ‖W‖² + Σ_i p_i ξ_i(W),    p_i = C_i / Σ_j C_j.

Step t draws a sample (or ``batch_size`` of them) with probabilities p_i, finds its most violating leaf l, and takes
W ← (1 − η_t λ) W − η_t ∂ξ_i: all of U shrinks, which is one number kept beside it, and U_n gains η_t κ α_n x_i on the
path of y_i and loses it on that of l. Costs decide how often a sample is drawn, not how far its steps go: no step is
then longer than without costs, and C_i = 2 is the same as listing the sample twice. The draws of a pass are systematic:
every sample comes ⌊N p_i⌋ or ⌈N p_i⌉ times, so with equal costs once.

U is a positive combination of planes, so it has dual variables. Their sum for each sample, their losses and ‖W‖² are
kept; shrunk until no sample has more than C_i, they are a point of the dual, whose value is a bound whatever the steps.

References
----------
S. Shalev-Shwartz, Y. Singer, N. Srebro (2007). Pegasos: primal estimated sub-gradient solver for SVM. ICML.
S. Lacoste-Julien, M. Schmidt, F. Bach (2012). A simpler approach to obtaining an O(1/t) convergence rate for the
projected stochastic subgradient method. arXiv:1212.2002 (average "linear").
A. Rakhlin, O. Shamir, K. Sridharan (2012). Making gradient descent optimal for strongly convex stochastic optimization.
ICML (average "suffix").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm._jit import inlined, kernel
from nhsvm.engine.certificate import UNIT, excess, gamma, largest_penalty, largest_primal, least_dual
from nhsvm.engine.problem import SingleLabelProblem, Solution, StreamingSolver
from nhsvm.engine.storage.table import TableWeights
from nhsvm.errors import OptionError
from nhsvm.objective import Certificate
from nhsvm.storage.samples import Entries
from nhsvm.threads import Team
from nhsvm.typing import Array, Callback, FloatArray, Floats, IntArray, PtrArray, Record

_NO_BALL = 1e300  # a squared radius; compiled code may not be given an infinity
_POWERS = {"pegasos": 1.0, "sqrt": 0.5, "constant": 0.0}
_AVERAGES = (None, "all", "linear", "suffix")
T, SCALE, CREDIT, COUNT, NORM, MASS, ERROR = range(7)  # places in SgdState.numbers
ROUNDED = 16 * UNIT  # a change of a weight, a product of a few numbers, is wrong by less of it


@dataclass(frozen=True)
class SgdTuning:
    """Constants of stochastic subgradient descent; set by trial, without a record."""

    losses: int = 2**22  # losses (samples × leaves) that one call of the kernel may need rows for
    small: float = 1e-3  # the factor of U is multiplied out below; small ones would cost digits of the average


@dataclass
class SgdState:
    """Everything that goes from one step to the next: a value, so learning can stop here and go on with other samples.

    U is ``scale · values``. The sum of all averaged U is ``credit · values + sums``: a step changes both in the few
    places it touches. ``total / n_samples`` is the cost that one draw stands for.
    """

    values: Array  # like the weights
    sums: Array  # the same, or of size 0
    total: float = 0.0  # Σ_i C_i = 1/λ of the samples that are meant; in :meth:`Sgd.partial`, of those seen
    n_samples: float = 0.0  # of these, with C_i > 0
    at_zero: float = 0.0  # objective at U = 0, the squared radius of the ball
    since: float = 0.0  # step at which the suffix begins
    # step t, scale, credit, weight of the average, Σ‖values_n‖²/α_n, Σ a Δ, bound on rounding errors; unscaled
    numbers: FloatArray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))

    def model(self, out: Array) -> None:
        """U, averaged if it is, into the ``values`` of weights."""
        _, scale, credit, count = self.numbers[:4]
        if count > 0 and self.sums.size:
            np.multiply(self.values, credit, out=out, casting="same_kind")
            out += self.sums
            out *= 1 / count
        else:
            np.multiply(self.values, scale, out=out, casting="same_kind")


@dataclass(frozen=True)
class Sgd(StreamingSolver):
    """Pegasos.

    Parameters
    ----------
    tol : float
        Stop when a pass changes the objective by less than this share of it, up or down. That proves nothing; the
        certificate does, and its gap is often much larger.
    max_iter : int
        Passes over the data, at most.
    step : {"pegasos", "sqrt", "constant"}
        η_t = 1/(λ (t + t0)); or η_1 √((1 + t0)/(t + t0)); or η_1. Never more than 1/λ, which shrinks U to zero.
    eta0 : float
        η_1 of the last two, in units of the mean cost.
    t0 : float
        Steps that count as taken at the start. Pegasos has 0, and its first steps are far too long.
    projection : bool
        Keep ‖W‖² ≤ P(0) = Σ_i C_i max_l Δ(l, y_i). The optimum W* is in this ball: along s·W* the objective is least at
        s = 1, so ‖W*‖² = Σ_i C_i (Δ(l_i, y_i) − ξ_i) ≤ P(0), with l_i the worst leaf.
    average : {None, "all", "linear", "suffix"}
        The model is the last U; the mean of all; the mean weighted by t, which has no need to know when it will end;
        the mean of a last part, begun anew with every pass that starts at twice the step or more (so it is the last
        half after 2, 4, 8, ... passes).
    batch_size : int
        Samples in a step.
    n_threads : int
        For measuring the objective; the steps are one after the other. Results do not depend on it.
    seed : int
        Of the draws.
    callback : callable, optional
        Called with the record of every pass; a true result ends the fit.
    """

    tol: float = 1e-3
    max_iter: int = 100
    step: str = "pegasos"
    eta0: float = 1.0
    t0: float = 0.0
    projection: bool = True
    average: str | None = "suffix"
    batch_size: int = 1
    n_threads: int = 1
    seed: int = 0
    callback: Callback | None = None

    tuning: ClassVar[SgdTuning] = SgdTuning()
    takes_sets = takes_rows = proves = False

    def __post_init__(self) -> None:
        if self.step not in _POWERS or self.average not in _AVERAGES:
            known = f"step must be one of {tuple(_POWERS)}, average one of {_AVERAGES}"
            raise OptionError(f"{known}; got step={self.step!r}, average={self.average!r}")
        if self.batch_size < 1 or not self.eta0 > 0 or not self.t0 >= 0:
            raise OptionError("batch_size must be at least 1, eta0 positive and t0 not negative")

    def begin(self, problem: SingleLabelProblem) -> SgdState:
        """U = 0, for samples with the features, labels and precision of these, and for this kind of average."""
        values = problem.table().values
        return SgdState(values, np.zeros_like(values) if self.average else np.zeros((0, 0), values.dtype))

    def solve(self, problem: SingleLabelProblem, start: SgdState | None = None) -> Solution:
        """Solve from the given state, which is changed, or from zero; only the latter gives a bound on the optimum."""
        weights, history, began = problem.table(), list[Record](), perf_counter()
        state = self.begin(problem) if start is None else start
        state.model(weights.values)
        shares = np.zeros(problem.n_samples)
        converged = interrupted = False
        drawn = 0.0
        with Team(self.n_threads) as team:
            state.at_zero = _measure(problem, None, team)[0]
            state.total, state.n_samples = float(problem.costs.sum()), float(np.count_nonzero(problem.costs > 0))
            value, bound = state.at_zero if start is None else _measure(problem, weights, team)[0], 0.0
            try:
                while len(history) < self.max_iter and not converged:
                    before = value
                    order = self.draw(problem, state)
                    drawn += len(order)
                    self.feed(problem, state, order, shares)
                    state.model(weights.values)
                    value, wrong = _measure(problem, weights, team)
                    if start is None:  # else U holds planes of which nothing is known here
                        bound = max(bound, _dual_bound(problem, state, shares, drawn))
                    converged = abs(before - value) <= self.tol * value
                    history.append(_record(len(history) + 1, perf_counter() - began, Certificate(value, bound), wrong))
                    if self.callback is not None and self.callback(history[-1]):
                        break
            except KeyboardInterrupt:
                interrupted = True
            if interrupted:  # perhaps in the middle of a pass
                state.model(weights.values)
                value = _measure(problem, weights, team)[0]
        return Solution(weights, Certificate(value, bound), history, converged, interrupted)

    def partial(self, problem: SingleLabelProblem, state: SgdState) -> None:
        """One pass over a batch of new samples, for ``partial_fit``; the state goes on from where it was.

        The objective meant is that of all samples seen so far: λ = 1/Σ C_i over them. So a stream aims at what a fit of
        as many samples with the same C aims at. Samples given twice count twice; for several passes over the same
        batches, or a known number of them, set ``total``, ``n_samples`` and ``at_zero`` and call :meth:`feed`.
        """
        at_zero = _measure(problem, None, Team(1))[0]  # before anything changes: it can fail
        state.at_zero += at_zero
        state.total += float(problem.costs.sum())
        state.n_samples += np.count_nonzero(problem.costs > 0)
        self.feed(problem, state, self.draw(problem, state))

    def draw(self, problem: SingleLabelProblem, state: SgdState) -> PtrArray:
        """Samples of one pass in random order, each C_i · ``n_samples``/``total`` times, rounded at random."""
        rng = np.random.default_rng((self.seed, int(state.numbers[T])))
        upto = np.cumsum(problem.costs)
        if not state.total > 0 or not upto[-1] > 0:
            return np.zeros(0, dtype=np.int64)
        apart = state.total / state.n_samples
        places = np.arange(rng.random(), upto[-1] / apart) * apart
        drawn = np.minimum(np.searchsorted(upto, places, side="right"), np.flatnonzero(problem.costs > 0)[-1])
        return rng.permutation(drawn).astype(np.int64)

    def feed(
        self, problem: SingleLabelProblem, state: SgdState, order: PtrArray, shares: FloatArray | None = None
    ) -> None:
        """Steps on the samples ``order``, in this order; ``shares`` gains what each has in U, in units of ``scale``."""
        if self.average == "suffix" and state.numbers[T] >= 2 * state.since:
            state.since = float(state.numbers[T])
            state.sums[:] = 0
            state.numbers[[CREDIT, COUNT]] = 0
        X, columns = problem.X, problem.columns
        samples = Entries.of(X)
        shares = np.zeros(problem.n_samples) if shares is None else shares
        lam = 1 / max(state.total, 1e-300)
        mean = state.total / max(state.n_samples, 1)
        first = 1 / (lam * (1 + self.t0)) if self.step == "pegasos" else self.eta0 * mean
        schedule = Schedule(
            self.batch_size, lam, first, float(self.t0), _POWERS[self.step], self.average == "linear",
            state.at_zero if self.projection else _NO_BALL, float(np.finfo(state.values.dtype).eps), self.tuning.small,
        )  # fmt: skip
        tree = Tree(columns.parent, columns.leaf_column, *columns.paths, columns.alpha)
        size = max(1, self.tuning.losses // (columns.n_leaves * self.batch_size)) * self.batch_size
        for lo in range(0, len(order), size):  # Ctrl-C is heard between two calls
            part = order[lo : lo + size]
            leaves = problem.leaves[part]
            losses = Losses(*problem.oracle.loss_rows(leaves), problem.oracle.normalized)
            steps_kernel(
                part, leaves, samples, float(problem.bias), state.values, state.sums, tree, losses, schedule, shares,
                state.numbers,
            )  # fmt: skip


def _record(iteration: int, seconds: float, values: Certificate, wrong: float) -> Record:
    parts = {"iteration": iteration, "seconds": seconds, "primal": values.primal, "dual": values.dual}
    return parts | {"gap": values.gap, "training_error": wrong, "planes": 0, "certified": True}


def _measure(problem: SingleLabelProblem, weights: TableWeights | None, team: Team) -> tuple[float, float]:
    """Objective and share of samples with a wrong leaf, in double precision; without weights, at U = 0."""
    slack, best = problem.slacks(weights, team)
    upper = 0.0
    if weights is not None:
        errors = problem.slack_errors(weights.squared_norms, weights.column_norms())
        upper = _penalty(problem, weights.values) + float(problem.costs @ errors) * (1.0 + gamma(len(errors) + 8.0))
    return largest_primal(upper, slack, problem.costs), float(np.mean(best != problem.leaves))


def _penalty(problem: SingleLabelProblem, values: Array) -> float:
    """½ Σ_n ‖U_n‖²/α_n, and no less than it is without rounding."""
    squares = "fn,fn->n" if sp.issparse(problem.X) else "nf,nf->n"
    norms = np.einsum(squares, values, values, dtype=np.float64)
    return largest_penalty(norms, problem.columns.alpha, problem.X.shape[1] + 1)


def _dual_bound(problem: SingleLabelProblem, state: SgdState, shares: FloatArray, drawn: float) -> float:
    """The dual at the variables behind U, scaled down to where they are feasible, or further if that is better.

    ``mass`` and ``shares`` are sums of numbers ≥ 0, one for each of the samples ``drawn``, that were multiplied by a
    factor now and then: never more often than there were steps.
    """
    sums = gamma(2.0 * drawn + 64.0)
    scale, mass = state.numbers[SCALE], state.numbers[MASS] * state.numbers[SCALE] * (1.0 - sums)
    norm = np.sqrt(2 * _penalty(problem, state.values)) + state.numbers[ERROR] * (1.0 + sums)
    squared = float(scale * norm) ** 2 * (1.0 + gamma(8.0))
    beyond = excess(scale * shares, problem.costs, 2.0 * drawn + 64.0)
    if squared > 0 and np.isfinite(beyond):
        beyond = max(beyond, squared / mass - 1.0 if mass > 0 else np.inf)
    return least_dual(0.5 * squared, float(mass), beyond)


class Schedule(NamedTuple):
    """How long the steps are, and what becomes of U."""

    batch: int  # samples in a step
    lam: float
    first: float  # η_1
    t0: float
    power: float  # of the fall of η
    linear: bool  # weights of the average grow with t
    radius: float  # squared, of the ball
    eps: float  # of the weights
    small: float  # U is multiplied out below this factor


class Tree(NamedTuple):
    """Columns: the parent of each on a tree, the column of every leaf there, paths and weights."""

    parent: IntArray
    leaf_column: IntArray
    ptr: PtrArray
    idx: IntArray
    alpha: FloatArray


class Losses(NamedTuple):
    """Δ of all leaves: ``rows[which[t]]`` for the t-th sample."""

    rows: Floats
    which: IntArray
    normalized: bool


@inlined
def _scores(i, indptr, indices, data, bias, values, scale, s):
    """Scores of all columns for sample i; which kind of samples it is, is settled when this is compiled."""
    factor = values.dtype.type(scale)
    if data.ndim == 1:
        last, constant = values[values.shape[0] - 1], values.dtype.type(bias)
        for n in range(s.shape[0]):
            s[n] = last[n] * constant
        j = indptr[i]
        while j + 3 < indptr[i + 1]:  # four rows at a time: a quarter of the loads and stores of s
            x0, x1 = values.dtype.type(data[j]), values.dtype.type(data[j + 1])
            x2, x3 = values.dtype.type(data[j + 2]), values.dtype.type(data[j + 3])
            r0, r1, r2, r3 = values[indices[j]], values[indices[j + 1]], values[indices[j + 2]], values[indices[j + 3]]
            for n in range(s.shape[0]):
                s[n] += x0 * r0[n] + x1 * r1[n] + x2 * r2[n] + x3 * r3[n]
            j += 4
        while j < indptr[i + 1]:
            r0 = values[indices[j]]
            for n in range(s.shape[0]):
                s[n] += values.dtype.type(data[j]) * r0[n]
            j += 1
        for n in range(s.shape[0]):
            s[n] *= factor
    else:
        x = data[i]
        for n in range(s.shape[0]):
            row = values[n]
            total = row[x.shape[0]] * values.dtype.type(bias)
            for f in range(x.shape[0]):
                total += values.dtype.type(x[f]) * row[f]
            s[n] = total * factor


@inlined
def _worst(s, y, parent, leaf_column, ptr, idx, delta, normalized, v):
    """(leaf, Δ, κ) of the most violating leaf, given the scores of columns; leaf −1 if no bracket is positive."""
    n_leaves = v.shape[0]
    if leaf_column.shape[0] > 0:  # a tree: sums from the root, in place
        for n in range(s.shape[0]):
            if parent[n] >= 0:
                s[n] += s[parent[n]]
        for k in range(n_leaves):
            v[k] = s[leaf_column[k]] if leaf_column[k] >= 0 else 0.0
    else:
        for k in range(n_leaves):
            v[k] = 0.0
            for e in range(ptr[k], ptr[k + 1]):
                v[k] += s[idx[e]]
    own = v[y]
    worst = -1
    top = 0.0
    for k in range(n_leaves):
        if k == y or (normalized and not delta[k] > 0):
            continue
        value = 1.0 + (v[k] - own) / delta[k] if normalized else delta[k] + (v[k] - own)
        if value > top:
            top = value
            worst = k
    if worst < 0:
        return -1, 0.0, 0.0
    return (worst, 1.0, 1.0 / delta[worst]) if normalized else (worst, delta[worst], 1.0)


@inlined
def _differing(y, other, ptr, idx, sign, columns):
    """Columns on one of two paths but not on both; returns how many. ``sign`` is +1 on that of y, −1 on the other."""
    n = 0
    for e in range(ptr[y], ptr[y + 1]):
        sign[idx[e]] = 1.0
    for e in range(ptr[other], ptr[other + 1]):
        sign[idx[e]] -= 1.0
        if sign[idx[e]] < 0:
            columns[n] = idx[e]
            n += 1
    for e in range(ptr[y], ptr[y + 1]):
        if sign[idx[e]] > 0:
            columns[n] = idx[e]
            n += 1
    return n


@inlined
def _touch(at, n, values, sums, change, credit, alpha):
    """Add to one weight and take from its sum.

    Returns what that means for Σ‖values‖²/α, the new square over α, and the square of the change over α.
    """
    old = np.float64(values[at, n])
    values[at, n] = old + change
    if sums.shape[0] > 0:
        sums[at, n] -= credit * change
    new = np.float64(values[at, n])
    return change * (old + old + change) / alpha, new * new / alpha, change * change / alpha


@inlined
def _add(i, indptr, indices, data, bias, values, sums, credit, n_differ, columns, step, alpha):
    """U_n += ``step[n]`` α_n x_i for the columns that differ; returns as :func:`_touch`, summed."""
    gain, square, moved = 0.0, 0.0, 0.0
    if data.ndim == 1:
        last = values.shape[0] - 1
        for j in range(indptr[i], indptr[i + 1] + 1):
            is_bias = j == indptr[i + 1]
            f = last if is_bias else indices[j]
            x = bias if is_bias else np.float64(data[j])
            for k in range(n_differ):
                n = columns[k]
                more, new, by = _touch(f, n, values, sums, step[n] * alpha[n] * x, credit, alpha[n])
                gain += more
                square += new
                moved += by
    else:
        last = data.shape[1]
        for k in range(n_differ):
            n = columns[k]
            for f in range(last + 1):
                x = bias if f == last else np.float64(data[i, f])
                more, new, by = _touch(n, f, values, sums, step[n] * alpha[n] * x, credit, alpha[n])
                gain += more
                square += new
                moved += by
    return gain, square, moved


@inlined
def _multiply_out(scale, credit, values, sums, shares):
    """Make the factor of U one, and the sum of all averaged U what ``sums`` holds."""
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            if sums.shape[0] > 0:
                sums[a, b] += credit * values[a, b]
            values[a, b] *= scale
    for i in range(shares.shape[0]):
        shares[i] *= scale


@kernel
def steps_kernel(order, leaves, samples, bias, values, sums, tree, losses, schedule, shares, numbers):
    """One step for every ``schedule.batch`` samples of ``order``."""
    indptr, indices, data = samples.indptr, samples.indices, samples.data
    parent, leaf_column, ptr, idx, alpha = tree
    loss, which, normalized = losses
    batch, lam, first, t0, power, linear, radius, eps, small = schedule
    t, scale, credit, count, norm, mass, error = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
    )  # fmt: skip
    s, v = np.empty(alpha.shape[0], values.dtype), np.empty(ptr.shape[0] - 1, values.dtype)
    step, columns = np.zeros(alpha.shape[0]), np.empty(alpha.shape[0], np.int32)
    leaf, delta, kappa = np.empty(batch, np.int64), np.empty(batch), np.empty(batch)
    for lo in range(0, order.shape[0], batch):
        size = min(batch, order.shape[0] - lo)
        for r in range(size):
            _scores(order[lo + r], indptr, indices, data, bias, values, scale, s)
            leaf[r], delta[r], kappa[r] = _worst(
                s, leaves[lo + r], parent, leaf_column, ptr, idx, loss[which[lo + r]], normalized, v
            )
        t += 1.0
        eta = min(first * ((1.0 + t0) / (t + t0)) ** power, 1.0 / lam)
        scale *= max(0.0, 1.0 - eta * lam)
        if scale < small:
            _multiply_out(scale, credit, values, sums, shares)
            norm *= scale * scale
            mass *= scale
            error = error * scale + eps * np.sqrt(norm)
            scale, credit = 1.0, 0.0
        share = eta / (size * scale)
        for r in range(size):
            if leaf[r] < 0:
                continue
            n_differ = _differing(leaves[lo + r], leaf[r], ptr, idx, step, columns)
            for k in range(n_differ):
                step[columns[k]] *= share * kappa[r]
            gain, square, moved = _add(
                order[lo + r], indptr, indices, data, bias, values, sums, credit, n_differ, columns, step, alpha
            )
            norm += gain
            error += eps * np.sqrt(square) + ROUNDED * np.sqrt(moved)
            mass += share * delta[r]
            shares[order[lo + r]] += share
            for k in range(n_differ):
                step[columns[k]] = 0.0
        if scale * scale * norm > radius:
            scale = np.sqrt(radius / norm)
        weight = t if linear else 1.0
        credit += weight * scale
        count += weight
    numbers[:] = (t, scale, credit, count, norm, mass, error)
