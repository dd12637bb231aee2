"""The most violating labels of a sample with one label (Eq. 18 over Y_s): every leaf, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, IntArray, PtrArray
from nhsvm.losses import Loss, LossRows, whole_rows
from nhsvm.oracles._proposals import Proposals

Floats = npt.NDArray[Any]
_TABLE = 2**24  # numbers in the table of all losses, 128 MB: 4,096 leaves; beyond, rows are made batch by batch


class SingleLabel:
    """Loss-augmented argmax over the leaves (Eq. 18), for trees and DAGs and any loss.

    Parameters
    ----------
    columns : Columns
    loss : Loss
        Δ. With ``normalized``, the norm ‖∧̃(y) − ∧̃(y_i)‖ that differences are divided by (Eq. 13).
    normalized : bool
        Eq. 13 instead of Eq. 10.

    Notes
    -----
    On a tree the scores of all leaves are one top-down pass, O(M); on a DAG a sum over each leaf's ancestors.
    """

    def __init__(self, columns: Columns, loss: Loss, normalized: bool = False) -> None:
        self.columns = columns
        self.loss = loss
        self.normalized = normalized
        n = columns.n_leaves
        self._table: Floats | None = loss.to_leaves(np.arange(n)) if n * n <= _TABLE else None

    def loss_rows(self, leaves: IntArray) -> tuple[Floats, IntArray]:
        """Rows of losses and, for each of ``leaves``, which row is Δ(·, leaf)."""
        if self._table is not None:
            return self._table, leaves
        distinct, row = np.unique(leaves, return_inverse=True)
        return self.loss.to_leaves(distinct), row.astype(np.int32)

    def losses(self, leaves: IntArray) -> LossRows:
        """Losses of all leaves against each of ``leaves``, in as little memory as there is a way to."""
        return self.loss.by_rows(leaves) if self._table is None else whole_rows(self._table, leaves)

    def slacks(self, node_scores: Floats, leaves: IntArray, slack: FloatArray, best: IntArray) -> None:
        """max_y of the loss-augmented difference to the true leaf, and the leaf with the highest score."""
        c = self.columns
        _slacks_kernel(
            node_scores, c.parent, c.leaf_column, *c.paths, leaves, *self.losses(leaves), self.normalized, slack, best
        )

    def propose(
        self,
        node_scores: Floats,
        leaves: IntArray,
        costs: FloatArray,
        losses: LossRows,
        planes: tuple[PtrArray, IntArray, IntArray, FloatArray],
        n_new: int,
        tolerance: float,
        out: Proposals,
    ) -> None:
        """The planes each sample has, followed by up to ``n_new`` others that are more violating than its least one.

        Parameters
        ----------
        node_scores : array of (batch, n_columns)
        leaves, costs : arrays of batch
            True leaf and C_i.
        losses : see :meth:`losses`
        planes : (start, count, leaf, weight)
            The planes of sample t are ``leaf[start[t]:start[t] + count[t]]``, with dual variables ``weight``.
        n_new : int
        out : Proposals
            Filled.
        """
        c = self.columns
        _propose_kernel(
            node_scores, c.parent, c.leaf_column, *c.paths, leaves, costs, *losses, self.normalized, *planes,
            n_new, tolerance, *out,
        )  # fmt: skip


def leaf_scores(columns: Columns, node_scores: Floats, out: Floats) -> None:
    """γ(x, l) = Σ_{n∈Ā(l)} U_n·x for every sample (row) and every leaf l (Eq. 1), from the scores of the columns."""
    _leaf_scores_kernel(node_scores, columns.parent, columns.leaf_column, *columns.paths, out)


def best_leaves(columns: Columns, node_scores: Floats, out: IntArray) -> None:
    """The leaf with the highest score of every sample; the first of equals."""
    if columns.flat:
        out[:] = node_scores.argmax(axis=1)
    else:
        _best_leaves_kernel(node_scores, columns.parent, columns.leaf_column, *columns.paths, out)


@inlined
def _leaf_sums(s, parent, leaf_column, ptr, idx, v):
    """Scores of all leaves from those of all columns; on a tree ``s`` is overwritten by the sums from the root."""
    n_leaves = v.shape[0]
    if leaf_column.shape[0] > 0:
        for n in range(s.shape[0]):
            p = parent[n]
            if p >= 0:
                s[n] += s[p]
        for k in range(n_leaves):
            v[k] = s[leaf_column[k]] if leaf_column[k] >= 0 else 0.0
    else:
        for k in range(n_leaves):
            total = s.dtype.type(0)
            for e in range(ptr[k], ptr[k + 1]):
                total += s[idx[e]]
            v[k] = total


@inlined
def _one_column_each(parent, leaf_column):
    """Whether leaf k has column k and no other: its score is the leaf's."""
    alone = 0 < leaf_column.shape[0] == parent.shape[0]  # both are empty for DAGs
    for k in range(leaf_column.shape[0]):
        alone = alone and leaf_column[k] == k and parent[k] < 0
    return alone


@kernel
def _leaf_scores_kernel(scores, parent, leaf_column, ptr, idx, out):
    s = np.empty(scores.shape[1], scores.dtype)
    for t in range(scores.shape[0]):
        s[:] = scores[t]
        _leaf_sums(s, parent, leaf_column, ptr, idx, out[t])


@inlined
def _first_of_best(v):
    """The first of the largest values: a maximum and a search are faster than to remember where it was."""
    most, other, third, fourth = v[0], v[0], v[0], v[0]  # four at a time: a maximum waits for the one before it
    whole = v.shape[0] - v.shape[0] % 4
    for k in range(0, whole, 4):
        most, other = max(most, v[k]), max(other, v[k + 1])
        third, fourth = max(third, v[k + 2]), max(fourth, v[k + 3])
    for k in range(whole, v.shape[0]):
        most = max(most, v[k])
    most = max(max(most, other), max(third, fourth))
    best = 0
    while best + 16 <= v.shape[0]:  # the block that holds it, then its place there
        found = 0
        for k in range(16):
            found += v[best + k] >= most
        if found > 0:
            break
        best += 16
    while best < v.shape[0] - 1 and v[best] < most:
        best += 1
    return best


@kernel
def _best_leaves_kernel(scores, parent, leaf_column, ptr, idx, out):
    s = np.empty(scores.shape[1], scores.dtype)
    v = np.empty(ptr.shape[0] - 1, scores.dtype)
    for t in range(scores.shape[0]):
        s[:] = scores[t]
        _leaf_sums(s, parent, leaf_column, ptr, idx, v)
        out[t] = _first_of_best(v)


@inlined
def _values(v, y, delta, normalized):
    """Turn leaf scores into loss-augmented differences, in place; 0 for the true leaf. Returns the best-scored leaf."""
    n = v.shape[0]
    best = _first_of_best(v)
    own = v[y]
    if normalized:
        for k in range(n):
            if delta[k] > 0:
                v[k] = 1.0 + (v[k] - own) / delta[k]
            else:  # the same vector as the true label: no direction to separate them, no margin to ask for, no plane
                v[k] = -1e30
    else:
        for k in range(n):
            v[k] += delta[k] - own
    v[y] = 0.0
    return best


@inlined
def _losses(t, loss, which, other_ptr, other, value, room):
    """The losses of all leaves to sample t: a row as it is, or in ``room`` with what is other than it says."""
    row = loss[which[t]]
    if other_ptr[t] == other_ptr[t + 1]:
        return row
    room[:] = row
    for e in range(other_ptr[t], other_ptr[t + 1]):
        room[other[e]] = value[e]
    return room


@kernel
def _slacks_kernel(
    scores, parent, leaf_column, ptr, idx, leaves, loss, which, other_ptr, other, other_value, normalized, slack, best
):  # fmt: skip
    s = np.empty(scores.shape[1])
    v, room = np.empty(ptr.shape[0] - 1), np.empty(ptr.shape[0] - 1)
    for t in range(scores.shape[0]):
        s[:] = scores[t]
        _leaf_sums(s, parent, leaf_column, ptr, idx, v)
        best[t] = _values(v, leaves[t], _losses(t, loss, which, other_ptr, other, other_value, room), normalized)
        top = 0.0
        for k in range(v.shape[0]):
            top = max(top, v[k])
        slack[t] = top


@kernel
def _propose_kernel(
    scores, parent, leaf_column, ptr, idx, leaves, costs, loss, which, other_ptr, other, other_value, normalized,
    start, count, plane_leaf, plane_weight, n_new, tolerance, leaf, weight, value, delta, scale, size, slack, best,
):  # fmt: skip
    v, room = np.empty(ptr.shape[0] - 1, scores.dtype), np.empty(ptr.shape[0] - 1)
    n = v.shape[0]
    direct = _one_column_each(parent, leaf_column)
    for t in range(scores.shape[0]):
        if direct:
            v[:] = scores[t]
        else:
            _leaf_sums(scores[t], parent, leaf_column, ptr, idx, v)
        y = leaves[t]
        losses = _losses(t, loss, which, other_ptr, other, other_value, room)
        best[t] = _values(v, y, losses, normalized)
        m = count[t]
        mean = 0.0
        for k in range(m):
            at = start[t] + k
            leaf[t, k] = plane_leaf[at]
            weight[t, k] = plane_weight[at]
            value[t, k] = v[plane_leaf[at]]
            mean += plane_weight[at] * value[t, k]
        top = 0.0
        for k in range(m):
            top = max(top, value[t, k])
            v[leaf[t, k]] = -1e30  # not new
        v[y] = -1e30
        # the n_new largest values above the mean of those in use, which the step is about to make equal; sorted, and
        # equal values keep the order of the leaves
        end = m
        bar = v.dtype.type(mean / costs[t] + tolerance)
        n_above = 0  # mostly none: this loop LLVM vectorises
        for k in range(n):
            n_above += v[k] > bar
        for k in range(n if n_above > 0 else 0):
            if v[k] > bar:
                x = v[k]
                at = end if end < m + n_new else end - 1
                while at > m and value[t, at - 1] < x:
                    value[t, at] = value[t, at - 1]
                    leaf[t, at] = leaf[t, at - 1]
                    at -= 1
                value[t, at] = x
                leaf[t, at] = k
                if end < m + n_new:
                    end += 1
                if end == m + n_new:
                    bar = v.dtype.type(value[t, end - 1])
        for k in range(m, end):
            weight[t, k] = 0.0
            top = max(top, value[t, k])
        for k in range(end):
            d = losses[leaf[t, k]]
            delta[t, k] = 1.0 if normalized else d
            scale[t, k] = 1.0 / d if normalized else 1.0
        size[t] = end
        slack[t] = top
