"""What dual variables of all kinds share: warm starts, and the steps of a batch of samples.

The samples of a batch take their block steps in order, several sweeps, and each sees the exact effect of the others:
what a step adds to the score of a column for another sample is known from their inner product. The changes of a column
have a row of ``corrections``, from its first change on; ``row_of`` says which, −1 is none.

What a block does is in two functions, which numba picks by the type of the block's named tuple: so one loop serves
boxes, marginals and levels. (Planes have a kernel of their own, in :mod:`nhsvm.engine.dual.plane_step`: in this one
their sums would be rounded otherwise.)
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from nhsvm._jit import kernel
from nhsvm.columns import Columns
from nhsvm.engine.protocols import Weights
from nhsvm.engine.samples import Updates
from nhsvm.hierarchy.graph import Ragged
from nhsvm.threads import Team
from nhsvm.typing import Array, ByteArray, FloatArray, IntArray, PtrArray

_BOUND = 0.99  # of C_i: a sample that uses so much of it would use more


class Paths(NamedTuple):
    """The columns of every leaf, and their weights α, as kernels read them.

    The path of leaf l is ``idx[ptr[l] : ptr[l + 1]]``, itself last.
    """

    ptr: PtrArray
    idx: IntArray
    alpha: FloatArray
    nests: bool  # block steps over paths can be solved exactly, by elimination along a tree

    @property
    def longest(self) -> int:
        """Columns on the longest path."""
        return int(np.diff(self.ptr).max(initial=0))

    @classmethod
    def of(cls, columns: Columns, *, unscaled: bool = True) -> Paths:
        """Those of some columns; ``unscaled`` says that planes are not divided by their norms: κ = 1."""
        return cls(*columns.paths, columns.alpha, bool(columns.nests and unscaled))


def pointers(sizes: Array) -> PtrArray:
    """Where lists of these sizes begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def flat(start: PtrArray, count: IntArray) -> tuple[PtrArray, PtrArray]:
    """(indptr, positions) of the entries of lists that lie somewhere in a pool, list by list."""
    indptr = pointers(count)
    return indptr, np.arange(indptr[-1]) + np.repeat(start - indptr[:-1], count)


def warm_start_factors(used: FloatArray, before: FloatArray, now: FloatArray) -> FloatArray:
    """Factors that make the dual variables of every sample fit for other costs.

    A sample that uses all of its C_i is on the wrong side of its margin. With a larger C_i it will use more, but not
    all of it once it has its margin: its variables grow by the square root of what C_i does, a guess between the
    two. A sample that uses less has what it needs: its variables stay, unless the new C_i is too small for them.
    Scaling all of them, which is feasible too, makes weights that are about right for a large C far too long for a
    larger one.

    Parameters
    ----------
    used : array of n_samples
        Sum of the dual variables of a sample that are not its true label's, or a lower bound.
    before, now : arrays of n_samples
        C_i, old and new. A sample that had none has no variables.
    """
    ratio = np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    most = np.maximum(used, now)
    free = np.divide(now, most, out=np.zeros_like(now), where=most > 0)
    return np.where(used >= _BOUND * before, np.where(ratio > 1, np.sqrt(ratio), ratio), free)


# -- a batch -----------------------------------------------------------------------------------------------------------


class Sweeps(NamedTuple):
    """How often the samples of a batch are visited."""

    most: int
    slow: float = 0.0  # the last sweep is one that gains no more than this share of what all have; 0: none has changed


class Rounds(NamedTuple):
    """Working-set passes: each round is one over all samples, and then some over those with most of the gap."""

    most: int  # rounds
    enough: float  # gap that a pass over all observes, at which they end
    focused: int  # passes over the samples with most of the gap, at most
    left: float  # these end when no more of the gap over all is left


class Corrections(NamedTuple):
    """What the steps so far have added to scores."""

    row_of: IntArray  # by column
    values: Array  # (rows, samples of the batch)


def workspace_of(block: object) -> object:
    """(arrays of its own, columns, changes) for :func:`step`, the latter with room for what one step changes."""
    raise NotImplementedError


def step(block: object, t: int, sweep: int, corrections: Corrections, work: object) -> tuple[float, int]:
    """The block step of the t-th sample; (gain, how many columns change, which ``work`` then lists)."""
    raise NotImplementedError


@kernel
def batch_kernel(block, gram, values, n_columns, sweeps):
    """Block steps for the samples of a batch; returns the gain of the dual."""
    n_batch = gram.shape[0]
    corrections = Corrections(np.full(n_columns, -1, np.int32), values)
    row_of, n_rows = corrections.row_of, 0
    work = workspace_of(block)
    _, columns, changes = work
    total = 0.0
    for sweep in range(sweeps.most):
        changed, gained = False, 0.0
        last = sweep == sweeps.most - 1  # what it changes is for the samples after it only
        for t in range(n_batch):
            gain, n = step(block, t, sweep, corrections, work)
            if sweeps.slow > 0.0:
                gained += gain
            else:
                total += gain
            earliest = t + 1 if last else 0
            products = gram[t, earliest:]
            for k in range(n):
                changed = True
                if row_of[columns[k]] < 0:
                    row_of[columns[k]] = n_rows
                    values[n_rows, :] = 0.0
                    n_rows += 1
                row = values[row_of[columns[k]], earliest:]  # a loop from zero is one that LLVM vectorises
                c = gram.dtype.type(changes[k])
                for u in range(row.shape[0]):
                    row[u] += c * products[u]
        total += gained
        if not changed or (sweeps.slow > 0.0 and gained <= sweeps.slow * total):
            break
    return total


# -- label sets --------------------------------------------------------------------------------------------------------


class Layout(Protocol):
    """Dual variables of some samples, ready for steps. Nodes are numbered within a sample, its *local* nodes."""

    @property
    def n_local(self) -> IntArray: ...  # by sample
    @property
    def column(self) -> IntArray: ...  # by local node
    @property
    def own(self) -> ByteArray: ...  # a true label
    @property
    def gradient(self) -> FloatArray: ...
    @property
    def held(self) -> FloatArray: ...  # z, which steps change

    def sizes(self) -> tuple[Array, ...]:
        """Lengths of the other lists that are kept one after the other."""

    def block(self, steps: Steps, which: PtrArray, tolerance: float, gaps: FloatArray) -> object:
        """What :func:`batch_kernel` takes, for some of the samples; it fills their gaps, as they are first met."""


class Steps:
    """Block steps on a layout, which is changed.

    Parameters
    ----------
    layout : Layout
    costs, norms : arrays
        C and ‖x‖² of its samples.
    alpha : array of n_columns
    allow_empty : bool

    Attributes
    ----------
    ends : tuple of arrays
        Where the lists of local nodes, and the others of the layout, begin, and where the last one ends.
    part : int
        What a visit may change, where it need not be everything; see :mod:`nhsvm.engine.dual.level_step`.
    """

    part = 0

    def __init__(
        self, layout: Layout, costs: FloatArray, norms: FloatArray, alpha: FloatArray, allow_empty: bool
    ) -> None:
        self.layout, self.costs, self.norms, self.alpha, self.allow_empty = layout, costs, norms, alpha, allow_empty
        self.ends = tuple(map(pointers, (layout.n_local, *layout.sizes())))

    def run(self, which: PtrArray, gram: Array, tolerance: float, sweeps: int) -> tuple[Updates, FloatArray, float]:
        """Visit samples, by position, in order; returns the change of U, the gaps first met, the gain of the dual."""
        held = Ragged(self.ends[0], self.layout.column).rows(which)
        at = np.repeat(self.ends[0][which] - held.indptr[:-1], held.sizes()) + np.arange(len(held.indices))
        before, gaps = self.layout.held[at], np.empty(len(which))
        room = np.empty((min(len(self.alpha), len(at)), len(which)))
        block = self.layout.block(self, which, float(tolerance), gaps)
        gain = batch_kernel(block, gram.astype(np.float64, copy=False), room, len(self.alpha), Sweeps(sweeps))
        change = before - self.layout.held[at]
        changed = change != 0.0
        moved = held.indices[changed]
        return Updates(pointers(changed)[held.indptr], moved, self.alpha[moved] * change[changed]), gaps, float(gain)

    def score(self, which: PtrArray, samples: PtrArray, base: FloatArray, weights: Weights, team: Team) -> None:
        """The gradients of some samples with the weights as they are; ``base`` is what is added to the scores."""
        parts = samples, Ragged(self.ends[0], self.layout.column), base, self.layout.gradient
        team.split(len(which), lambda lo, hi: weights.column_scores(which[lo:hi], *parts))


def follow(layout: Layout, updates: Updates, products: Array, n_columns: int) -> None:
    """Bring gradients up to date with a change of U by other samples, with whom ``products`` are inner products."""
    _follow_kernel(pointers(layout.n_local), layout.column, layout.gradient, *updates, products, n_columns)


def loss_terms(beta: Updates, weights: FloatArray, offset: FloatArray) -> FloatArray:
    """What Σ_i Σ_y a_iy Δ(y, y_i) is the sum of, for Δ = Σ_n w_n 1[n in one of y, y_i] + o_n (1[n∈y] − 1[n∈y_i]).

    With z = C_i 1[n∈y_i] − β these are w_n |β_in| − o_n β_in: β is positive at true labels only, negative at others.
    """
    return weights[beta.columns] * np.abs(beta.values) - offset[beta.columns] * beta.values


@kernel
def _follow_kernel(local_ptr, column, gradient, indptr, columns, values, products, n_columns):
    first = np.zeros(n_columns + 1, np.int64)  # lists of the changes of every column
    for e in range(indptr[indptr.shape[0] - 1]):
        first[columns[e] + 1] += 1
    for c in range(n_columns):
        first[c + 1] += first[c]
    place, who, change = first.copy(), np.empty(first[n_columns], np.int64), np.empty(first[n_columns])
    for s in range(indptr.shape[0] - 1):
        for e in range(indptr[s], indptr[s + 1]):
            at = place[columns[e]]
            who[at], change[at] = s, values[e]
            place[columns[e]] = at + 1
    for t in range(local_ptr.shape[0] - 1):
        for j in range(local_ptr[t], local_ptr[t + 1]):
            for e in range(first[column[j]], first[column[j] + 1]):
                gradient[j] += change[e] * products[t, who[e]]
