"""The end game: an interior-point method for small problems with one label a sample, where passes hardly help.

Steps of one sample at a time are slow where a few columns of X are much wider than the others: samples are then all but
collinear, and a step for one undoes those for the rest. Newton's method does not mind how columns are scaled, and a
problem with few features and few labels has few numbers to find.

A score matters only where it differs from that of another label. So let F be a factor of the inner products of paths,
Σ_{n∈Ā(l)∩Ā(l')} α_n, less their means: q numbers for each of K labels, q < K. And let z_i be the r numbers of a sample,
with the constant feature (or its coordinates in a basis, if there are fewer samples than features). The problem is then

    min_{W, ξ}  ½‖W‖² + Σ_i C_i ξ_i    s.t.  t_il = ξ_i − Δ_il + κ_il (F_{y_i} − F_l)·Wᵀz_i ≥ 0   for every label l

over r·q numbers W, and its dual variables a_il ≥ 0, Σ_l a_il = C_i, are those of the block steps, those of the true
labels included. Points are feasible throughout, W = Σ_il a_il κ_il z_i (F_{y_i} − F_l)ᵀ, with a gap of Σ_il a_il t_il
at most. A Newton step goes to a_il t_il = μ. Without a and ξ, which are eliminated sample by sample, its system is

    (I + Σ_i B_i ⊗ z_i z_iᵀ) dW = right,    B_i = Σ_l d_il (v_il − v̄_i)(v_il − v̄_i)ᵀ,

with v_il = κ_il (F_{y_i} − F_l), d_il = a_il/t_il, and v̄_i their mean by these weights.

What is given back are dual variables. What they are worth is for the usual certificate to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.engine.problem import SingleLabelProblem
from nhsvm.oracles.leaves import Proposals
from nhsvm.typing import FloatArray, IntArray, PtrArray
from nhsvm.weights.interior import REFINEMENTS, Descent, dense_solver, descend, room

_ROUNDED = 1e-13  # of the largest direction in which labels differ: a smaller one is rounding


@dataclass(frozen=True)
class EndGame:
    """When it begins and how it goes; see docs/decisions/133. Times are rough, and only their ratios matter."""

    passes: int = 4  # before it begins, at least
    worth: float = 10.0  # times what it would take: so long would passes go on
    product: float = 5e-11  # seconds of a multiplication in a product of matrices
    entry: float = 5e-8  # of all that is done to a number of a sample and label in one step
    step: float = 1e-3  # of a step beside these
    steps: int = 40  # that it is expected to take
    visit: float = 3e-7  # seconds of a block step,
    feature: float = 6e-9  # of each feature in it,
    score: float = 2e-10  # and of a feature in the score of one column in a pass over all samples
    most_unknown: int = 4000  # numbers to find at once, whose squares take 128 MB
    most_numbers: int = 2**24  # samples × features, and samples × labels × labels
    aim: float = 0.1  # of the gap to reach
    most_steps: int = 100
    patience: int = 3  # steps without a smaller gap, once it is small; twenty times as many before


END_GAME = EndGame()


def expected(problem: SingleLabelProblem, how: EndGame) -> float:
    """Seconds that it takes; infinite if the problem is too large for it, or has nothing to decide."""
    columns = problem.columns
    n, width, n_labels = int((problem.costs > 0).sum()), problem.X.shape[1] + 1, columns.n_leaves
    r, q = min(n, width), min(n_labels - 1, columns.n_columns)
    unknown = r * q
    if not 0 < unknown <= how.most_unknown or max(n * width, n * n_labels * q) > how.most_numbers:
        return np.inf
    products = n * float(unknown) ** 2 + float(unknown) ** 3 / 3.0
    each = how.step + how.product * products + how.entry * n * n_labels
    return float(how.steps * each + how.product * n * r * width)


class Small(NamedTuple):
    """The problem above."""

    Z: FloatArray  # (samples, r)
    F: FloatArray  # (labels, q)
    leaves: IntArray  # y_i
    costs: FloatArray
    losses: FloatArray  # Δ_il
    scales: FloatArray  # κ_il

    @classmethod
    def of(cls, problem: SingleLabelProblem, samples: PtrArray) -> Small:
        """Some samples of a problem, all with costs."""
        leaves, columns = problem.leaves[samples], problem.columns
        rows, which = problem.oracle.loss_rows(leaves)
        losses = rows[which].astype(np.float64)
        scales = np.ones(losses.shape)
        if problem.oracle.normalized:  # labels that coincide with the true one ask for nothing
            scales = np.divide(1.0, losses, out=np.zeros(losses.shape), where=losses > 0)
            losses = np.where(losses > 0, 1.0, 0.0)
        return cls(_coordinates(problem, samples), _factor(columns), leaves, problem.costs[samples], losses, scales)

    def margins(self, W: FloatArray) -> FloatArray:
        """κ_il (F_{y_i} − F_l)·Wᵀz_i."""
        scores = (self.Z @ W) @ self.F.T
        own = np.take_along_axis(scores, self.leaves[:, None], axis=1)
        margins: FloatArray = self.scales * (own - scores)
        return margins

    def weights(self, a: FloatArray) -> FloatArray:
        """Σ_il a_il κ_il z_i (F_{y_i} − F_l)ᵀ."""
        amounts = -self.scales * a
        np.put_along_axis(amounts, self.leaves[:, None], 0.0, axis=1)
        np.put_along_axis(amounts, self.leaves[:, None], -amounts.sum(axis=1, keepdims=True), axis=1)
        made: FloatArray = self.Z.T @ (amounts @ self.F)
        return made

    def values(self, W: FloatArray, a: FloatArray) -> tuple[float, float]:
        """Primal and dual of dual variables and the weights that they make."""
        penalty = 0.5 * float(np.vdot(W, W))
        slacks = np.maximum((self.losses - self.margins(W)).max(axis=1), 0.0)
        return penalty + float(self.costs @ slacks), float(np.vdot(a, self.losses)) - penalty


def _coordinates(problem: SingleLabelProblem, samples: PtrArray) -> FloatArray:
    """Samples with the constant feature, or what has their inner products, if that has fewer columns."""
    X = problem.X[samples]
    X = X.toarray() if sp.issparse(X) else X
    Z = np.hstack([X.astype(np.float64, copy=False), np.full((len(samples), 1), problem.bias)])
    if Z.shape[0] >= Z.shape[1]:
        return Z
    (R,) = scipy.linalg.qr(Z.T, mode="r", overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(R[: len(samples)].T)


def _factor(columns: Columns) -> FloatArray:
    """F with F Fᵀ the inner products of paths, less their means."""
    paths = columns.path_matrix().toarray() * np.sqrt(columns.alpha)
    U, lengths, _ = np.linalg.svd(paths - paths.mean(axis=0), full_matrices=False)
    keep = lengths > _ROUNDED * lengths.max(initial=0.0)
    return np.ascontiguousarray(U[:, keep] * lengths[keep])


class Point(NamedTuple):
    """Where we are, or a step."""

    W: FloatArray
    slack: FloatArray  # ξ_i
    a: FloatArray
    room: FloatArray  # t_il


@dataclass(frozen=True)
class Path:
    """The problem as :func:`nhsvm.weights.interior.descend` sees it; the products are a_il t_il."""

    small: Small

    def start(self) -> Point:
        """Equal dual variables, and slacks with which all products are of one size."""
        small = self.small
        a = np.repeat(small.costs[:, None] / small.losses.shape[1], small.losses.shape[1], axis=1)
        W = small.weights(a)
        margins = small.margins(W)
        slack = 2.0 * (np.abs(margins).max(axis=1) + small.losses.max(axis=1)) + float(small.losses.max())
        return Point(W, slack, a, slack[:, None] - small.losses + margins)

    def gap(self, p: Point) -> tuple[float, float]:
        upper, lower = self.small.values(p.W, p.a)
        return upper - lower, upper

    def products(self, p: Point) -> FloatArray:
        return p.a * p.room

    def room(self, p: Point, by: Point) -> float:
        return min(room(p.a, by.a), room(p.room, by.room))

    def ahead(self, p: Point, length: float, by: Point) -> FloatArray | None:
        a, left = p.a + length * by.a, p.room + length * by.room
        return a * left if a.min() > 0 and left.min() > 0 else None

    def moved(self, p: Point, length: float, by: Point) -> Point:
        a = p.a + length * by.a
        return Point(self.small.weights(a), p.slack + length * by.slack, a, p.room + length * by.room)

    def second_order(self, p: Point, by: Point) -> FloatArray:
        return by.a * by.room

    def newton(self, p: Point, product: FloatArray) -> Callable[[float, FloatArray | float], Point]:
        small, d = self.small, p.a / p.room
        total = d.sum(axis=1)
        most = d.argmax(axis=1)[:, None]
        solve, shape = self._system(d, total), (small.F.shape[1], small.Z.shape[1])

        def balanced(change: FloatArray) -> FloatArray:
            """Changes of a sample add up to zero; the largest, which has lost its digits, is what the others leave."""
            np.put_along_axis(change, most, 0.0, axis=1)
            np.put_along_axis(change, most, -change.sum(axis=1, keepdims=True), axis=1)
            return change

        def solved(right: FloatArray) -> FloatArray:
            return solve(right.T.ravel()).reshape(shape).T

        def towards(mean: float, less: FloatArray | float) -> Point:
            wanted = (mean - less - product) / p.room
            price = wanted.sum(axis=1) / total
            fixed = balanced(wanted - d * price[:, None])
            dW = solved(small.weights(fixed))
            for k in range(REFINEMENTS + 1):
                margins = small.margins(dW)
                margins -= ((d * margins).sum(axis=1) / total)[:, None]
                da = balanced(fixed - d * margins)
                if k < REFINEMENTS:
                    dW = dW + solved(small.weights(da) - dW)
            raw = small.margins(dW)
            slack = price - (d * raw).sum(axis=1) / total
            return Point(dW, slack, da, slack[:, None] + raw)

        return towards

    def _system(self, d: FloatArray, total: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Solver of (I + Σ_i B_i ⊗ z_i z_iᵀ) x = b."""
        Z, F, leaves, _, _, scales = self.small
        (n, r), q = Z.shape, F.shape[1]
        v = scales[:, :, None] * (F[leaves][:, None, :] - F)
        v -= (np.einsum("il,ilk->ik", d, v) / total[:, None])[:, None, :]
        v *= np.sqrt(d)[:, :, None]
        B = np.matmul(v.transpose(0, 2, 1), v)
        H = np.zeros((q, r, q, r))
        for k in range(q):  # the upper half, in C order: LAPACK takes it for the lower one
            H[k, :, k:, :] = (Z.T @ (B[:, k, k:, None] * Z[:, None, :]).reshape(n, -1)).reshape(r, q - k, r)
        whole = H.reshape(q * r, q * r)
        whole[np.diag_indices(q * r)] += 1.0
        if not np.isfinite(whole).all():
            raise np.linalg.LinAlgError("numbers beyond double precision")
        return dense_solver(whole.diagonal().copy(), lambda: whole.T.copy(order="F"))


class Played(NamedTuple):
    """What was found: dual variables of samples with costs."""

    samples: PtrArray
    planes: Proposals  # their labels with a weight
    dual: float  # of these, in double precision, without bounds of its rounding


def play(problem: SingleLabelProblem, tol: float, how: EndGame) -> Played:
    """Dual variables of a small problem, with a relative gap of a part of ``tol``, or as near to it as rounding lets.

    Parameters
    ----------
    problem : SingleLabelProblem
        One with an :func:`expected` time.
    tol : float
    how : EndGame
    """
    samples = np.flatnonzero(problem.costs > 0)
    small = Small.of(problem, samples)
    path = Path(small)
    limits = Descent(aim=how.aim * tol, patience=how.patience, most_steps=how.most_steps)
    best, _, _ = descend(path, path.start(), limits)
    a = best.a * np.minimum(1.0, small.costs / best.a.sum(axis=1))[:, None]  # by rounding
    return Played(samples, _planes(small, a), small.values(small.weights(a), a)[1])


def _planes(small: Small, a: FloatArray) -> Proposals:
    """Dual variables as planes: of all labels with a weight but the true ones, and those that coincide with them."""
    used = (a > 0) & (small.scales > 0)
    np.put_along_axis(used, small.leaves[:, None], False, axis=1)
    leaf = np.argsort(~used, axis=1, kind="stable").astype(np.int32)
    weight, loss, scale = (np.take_along_axis(of, leaf, axis=1) for of in (a, small.losses, small.scales))
    size, nothing = used.sum(axis=1).astype(np.int32), np.zeros(len(a))
    return Proposals(leaf, weight, np.zeros(a.shape), loss, scale, size, nothing, small.leaves)
