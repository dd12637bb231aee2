"""What dual variables of all kinds share: warm starts, and block steps of label sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.columns import Columns
from nhsvm.engine.samples import Updates
from nhsvm.hierarchy.graph import Ragged
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, IntArray, PtrArray

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


class Layout(Protocol):
    """Dual variables of some samples, ready for steps. Nodes are numbered within a sample, its *local* nodes."""

    @property
    def n_local(self) -> IntArray: ...  # by sample
    @property
    def column(self) -> IntArray: ...  # by local node
    @property
    def own(self) -> npt.NDArray[np.uint8]: ...  # a true label
    @property
    def gradient(self) -> FloatArray: ...
    @property
    def held(self) -> FloatArray: ...  # z, which steps change


def warm_start_factors(used: FloatArray, before: FloatArray, now: FloatArray) -> FloatArray:
    """Factors that make the dual variables of every sample fit for other costs.

    A sample that uses all of its C_i is on the wrong side of its margin. With a larger C_i it will use more, but not
    all of it once it has its margin: its variables grow by the square root of what C_i does, a guess between the
    two. A sample that uses less has what it needs: its variables
    stay, unless the new C_i is too small for them. Scaling all of them, which is feasible too, makes weights that are
    about right for a large C far too long for a larger one.

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


class Steps(ABC):
    """Block steps on a layout.

    Parameters
    ----------
    layout : Layout
        Changed.
    costs, norms : arrays
        C and ‖x‖² of its samples.
    alpha : array of n_columns
    allow_empty : bool

    Attributes
    ----------
    part : int
        What a visit may change, where it need not be everything; see :mod:`nhsvm.engine.dual.level_step`.
    """

    part = 0

    def __init__(self, layout: Any, costs: FloatArray, norms: FloatArray, alpha: FloatArray, allow_empty: bool) -> None:
        self.layout, self.costs, self.norms, self.alpha, self.allow_empty = layout, costs, norms, alpha, allow_empty
        self.local_ptr = pointers(layout.n_local)

    @abstractmethod
    def _visit(
        self, which: PtrArray, gram: FloatArray, room: FloatArray, tolerance: float, sweeps: int, gaps: FloatArray
    ) -> float:
        """Improve the layout; returns the gain of the dual, and fills the gaps first met."""

    def run(
        self, which: PtrArray, gram: npt.NDArray[Any], tolerance: float, sweeps: int
    ) -> tuple[Updates, FloatArray, float]:
        """Visit samples, by position, in order; returns the change of U, the gaps first met, the gain of the dual."""
        held = Ragged(self.local_ptr, self.layout.column).rows(which)
        at = np.repeat(self.local_ptr[which] - held.indptr[:-1], held.sizes()) + np.arange(len(held.indices))
        before, gaps = self.layout.held[at], np.empty(len(which))
        room = np.empty((min(len(self.alpha), len(at)), len(which)))
        gain = self._visit(which, gram.astype(np.float64, copy=False), room, tolerance, sweeps, gaps)
        change = before - self.layout.held[at]
        changed = change != 0.0
        indptr = np.concatenate([[0], np.cumsum(changed)])[held.indptr].astype(np.int64)
        moved = held.indices[changed]
        return Updates(indptr, moved, self.alpha[moved] * change[changed]), gaps, gain

    def score(self, which: PtrArray, samples: PtrArray, base: FloatArray, weights: Any, team: Team) -> None:
        """The gradients of some samples with the weights as they are; ``base`` is what is added to the scores."""
        parts = which, samples, Ragged(self.local_ptr, self.layout.column), base
        tail = *weights.entries(), weights.bias, weights.values, self.layout.gradient
        team.split(len(which), lambda lo, hi: _local_scores_kernel(lo, hi, *parts, *tail))


def follow(layout: Layout, updates: Updates, products: npt.NDArray[Any], n_columns: int) -> None:
    """Bring gradients up to date with a change of U by other samples, with whom ``products`` are inner products."""
    _follow_kernel(pointers(layout.n_local), layout.column, layout.gradient, *updates, products, n_columns)


def loss_terms(beta: Updates, weights: FloatArray, offset: FloatArray) -> FloatArray:
    """What Σ_i Σ_y a_iy Δ(y, y_i) is the sum of, for Δ = Σ_n w_n 1[n in one of y, y_i] + o_n (1[n∈y] − 1[n∈y_i]).

    With z = C_i 1[n∈y_i] − β these are w_n |β_in| − o_n β_in: β is positive at true labels only, negative at others.
    """
    return weights[beta.columns] * np.abs(beta.values) - offset[beta.columns] * beta.values


def pointers(sizes: npt.NDArray[Any]) -> PtrArray:
    """Where lists of these sizes begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


@kernel
def _local_scores_kernel(first, last, which, samples, local, base, indptr, indices, data, bias, values, out):
    """``base`` plus the scores of the local nodes of ``which[first:last]``, into ``out``.

    Dense samples have ``data`` of two dimensions and one row of weights a column; sparse ones have one row a feature.
    The choice is made when the kernel is compiled.
    """
    local_ptr, column = local
    x = np.empty(0 if data.ndim == 1 else data.shape[data.ndim - 1], values.dtype)
    for b in range(first, last):
        i = samples[which[b]]
        mine = column[local_ptr[which[b]] : local_ptr[which[b] + 1]]
        score = out[local_ptr[which[b]] : local_ptr[which[b] + 1]]
        if data.ndim == 1:
            constant = values[values.shape[0] - 1]
            for j in range(mine.shape[0]):
                score[j] = bias * constant[mine[j]]
            for e in range(indptr[i], indptr[i + 1]):
                row = values[indices[e]]
                for j in range(mine.shape[0]):
                    score[j] += data[e] * row[mine[j]]
        else:
            for f in range(x.shape[0]):
                x[f] = data[i, f]
            for j in range(mine.shape[0]):
                row = values[mine[j]]
                dot = bias * row[x.shape[0]]
                for f in range(x.shape[0]):
                    dot += row[f] * x[f]
                score[j] = dot
        added = base[local_ptr[which[b]] : local_ptr[which[b] + 1]]
        for j in range(mine.shape[0]):
            score[j] += added[j]


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
