"""The most violating labels of a sample with one label (Eq. 18 over Y_s): every leaf, exactly.

Without the loss, the best leaf; and on trees too large for all scores, a beam search for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch, widened
from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import Ragged
from nhsvm.losses import Loss, LossRows, whole_rows
from nhsvm.typing import FloatArray, Floats, IntArray, PtrArray

_AHEAD = 8  # features that a beam search asks for beforehand


class ColumnPaths(NamedTuple):
    """What kernels read of :class:`nhsvm.columns.Columns`: the columns that make the score of every leaf."""

    parent: IntArray  # on a tree
    leaf_column: IntArray  # on a tree
    paths: Ragged


class Planes(NamedTuple):
    """Planes of samples: those of sample t are ``leaf[start[t] : start[t] + size[t]]``."""

    start: PtrArray
    size: IntArray
    leaf: IntArray
    weight: FloatArray  # dual variables


class Proposals(NamedTuple):
    """What the oracle says of a batch: for every sample, the planes it has and the most violating others."""

    leaf: IntArray  # (batch, width)
    weight: FloatArray  # dual variable of each, 0 for a new plane
    value: FloatArray  # Δ + score difference (scaled, for Eq. 13): the slack this label asks for
    loss: FloatArray  # Δ; 1 for Eq. 13
    scale: FloatArray  # κ: 1, or 1/norm for Eq. 13
    size: IntArray  # (batch,) planes in use
    slack: FloatArray  # (batch,) the largest value, or 0
    best: IntArray  # (batch,) leaf of the highest score, without the loss

    def part(self, which: slice) -> Proposals:
        """The same of some of the samples, as views."""
        return Proposals._make(array[which] for array in self)

    @classmethod
    def empty(cls, n: int, width: int) -> Proposals:
        """Room for n samples of up to ``width`` planes."""
        leaf = np.empty((n, width), np.int32)
        weight, value, loss, scale = np.empty((4, n, width))
        return cls(leaf, weight, value, loss, scale, np.empty(n, np.int32), np.empty(n), np.empty(n, np.int32))


TABLE = 2**24  # numbers in the table of all losses, 128 MB: 4,096 leaves; beyond, rows are made batch by batch


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
        self._paths = column_paths(columns)
        n = columns.n_leaves
        self._table: Floats | None = loss.to_leaves(np.arange(n)) if n * n <= TABLE else None

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
        _slacks_kernel(node_scores, self._paths, leaves, self.losses(leaves), self.normalized, slack, best)

    def propose(
        self,
        node_scores: Floats,
        leaves: IntArray,
        costs: FloatArray,
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
        planes : (start, size, leaf, weight)
            See :class:`Planes`.
        n_new : int
        out : Proposals
            Filled.
        """
        losses, given = self.losses(leaves), Planes(*planes)
        _propose_kernel(node_scores, self._paths, leaves, costs, losses, self.normalized, given, n_new, tolerance, out)


def column_paths(columns: Columns) -> ColumnPaths:
    """For kernels."""
    return ColumnPaths(columns.parent, columns.leaf_column, columns.paths)


def leaf_scores(columns: Columns, node_scores: Floats, out: Floats) -> None:
    """γ(x, l) = Σ_{n∈Ā(l)} U_n·x for every sample (row) and every leaf l (Eq. 1), from the scores of the columns."""
    _leaf_scores_kernel(node_scores, column_paths(columns), out)


def best_leaves(columns: Columns, node_scores: Floats, out: IntArray) -> None:
    """The leaf with the highest score of every sample; the first of equals."""
    if columns.flat:
        out[:] = node_scores.argmax(axis=1)
    else:
        _best_leaves_kernel(node_scores, column_paths(columns), out)


@inlined
def _copy(source, target):
    """Between arrays of one length. ``target[:] = source`` takes the compiler half a second, for its error message."""
    for k in range(target.shape[0]):
        target[k] = source[k]


@inlined
def _leaf_sums(s, columns, v):
    """Scores of all leaves from those of all columns; on a tree ``s`` is overwritten by the sums from the root."""
    parent, leaf_column = columns.parent, columns.leaf_column
    ptr, idx = columns.paths
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
def _one_column_each(columns):
    """Whether leaf k has column k and no other: its score is the leaf's."""
    parent, leaf_column = columns.parent, columns.leaf_column
    alone = 0 < leaf_column.shape[0] == parent.shape[0]  # both are empty for DAGs
    for k in range(leaf_column.shape[0]):
        alone = alone and leaf_column[k] == k and parent[k] < 0
    return alone


@kernel
def _leaf_scores_kernel(scores, columns, out):
    s = np.empty(scores.shape[1], scores.dtype)
    for t in range(scores.shape[0]):
        _copy(scores[t], s)
        _leaf_sums(s, columns, out[t])


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
def _best_leaves_kernel(scores, columns, out):
    s = np.empty(scores.shape[1], scores.dtype)
    v = np.empty(columns.paths.indptr.shape[0] - 1, scores.dtype)
    for t in range(scores.shape[0]):
        _copy(scores[t], s)
        _leaf_sums(s, columns, v)
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
def _losses(t, losses, room):
    """The losses of all leaves to sample t: a row as it is, or in ``room`` with what is other than it says."""
    row, begin, end = losses.rows[losses.which[t]], losses.indptr[t], losses.indptr[t + 1]
    if begin == end:
        return row
    _copy(row, room)
    for e in range(begin, end):
        room[losses.leaves[e]] = losses.values[e]
    return room


@kernel
def _slacks_kernel(scores, columns, leaves, losses, normalized, slack, best):
    s = np.empty(scores.shape[1])
    v, room = np.empty(columns.paths.indptr.shape[0] - 1), np.empty(columns.paths.indptr.shape[0] - 1)
    for t in range(scores.shape[0]):
        _copy(scores[t], s)
        _leaf_sums(s, columns, v)
        best[t] = _values(v, leaves[t], _losses(t, losses, room), normalized)
        top = 0.0
        for k in range(v.shape[0]):
            top = max(top, v[k])
        slack[t] = top


@kernel
def _propose_kernel(scores, columns, leaves, costs, losses, normalized, planes, n_new, tolerance, out):
    leaf, weight, value, delta, scale, size, slack, best = out
    v, room = np.empty(columns.paths.indptr.shape[0] - 1, scores.dtype), np.empty(columns.paths.indptr.shape[0] - 1)
    n = v.shape[0]
    direct = _one_column_each(columns)
    for t in range(scores.shape[0]):
        if direct:
            _copy(scores[t], v)
        else:
            _leaf_sums(scores[t], columns, v)
        y = leaves[t]
        own = _losses(t, losses, room)
        best[t] = _values(v, y, own, normalized)
        m = planes.size[t]
        mean = 0.0
        for k in range(m):
            at = planes.start[t] + k
            leaf[t, k] = planes.leaf[at]
            weight[t, k] = planes.weight[at]
            value[t, k] = v[planes.leaf[at]]
            mean += planes.weight[at] * value[t, k]
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
            d = own[leaf[t, k]]
            delta[t, k] = 1.0 if normalized else d
            scale[t, k] = 1.0 / d if normalized else 1.0
        size[t] = end
        slack[t] = top


# -- a search down a tree that keeps the best nodes of every level ---------------------------------------------------


class ColumnTree(NamedTuple):
    """The tree of columns, top down; what is below no column comes last, as below a column more."""

    child_ptr: IntArray  # columns next below every column
    child: IntArray
    label_ptr: IntArray  # labels that end at every column
    label: IntArray


def column_tree(columns: Columns) -> ColumnTree:
    """The tree for a beam search."""
    n = columns.n_columns
    return ColumnTree(*_lists(columns.parent, n), *_lists(columns.leaf_column, n))


def _lists(above: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """What is below every column, ascending, in CSR form; what is below none, −1, comes last."""
    order = np.argsort(np.where(above < 0, n, above), kind="stable")
    counts = np.bincount(np.where(above < 0, n, above), minlength=n + 1)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), order.astype(np.int32)


@kernel
def beam_kernel(first, last, samples, rows, bias, tree, width, short, out):
    """The best leaf below one of the ``width`` best nodes of every level.

    ``short`` is zero: room for the sums of rows that are not full.
    """
    indptr, indices, data = samples
    start, size, index, value, full, constant = rows
    child_ptr, child, label_ptr, label = tree
    n_columns = constant.shape[0]
    front, above = np.empty(n_columns, np.int32), np.empty(n_columns, short.dtype)
    x = np.empty(n_columns, short.dtype)
    run = np.empty(n_columns + 1, np.int32)  # where runs of neighbours begin in ``front``: siblings are, mostly
    flat, line = full.reshape(-1), 64 // full.itemsize
    kept, sums = np.empty(width, np.int32), np.empty(width, short.dtype)
    for t in range(first, last):
        begin, end = indptr[t], indptr[t + 1]
        for j in range(begin, end):
            f = indices[j]
            v = short.dtype.type(data[j])
            for e in range(start[f], start[f] + size[f]):
                short[index[e]] += v * widened(value[e])
        best, most = -1, short.dtype.type(-np.inf)
        if label_ptr[n_columns] < label_ptr[n_columns + 1]:  # labels without any weight
            best, most = label[label_ptr[n_columns]], short.dtype.type(0.0)
        n = 0
        for e in range(child_ptr[n_columns], child_ptr[n_columns + 1]):
            front[n] = child[e]
            above[n] = 0.0
            n += 1
        while n > 0:
            for e in range(n):
                x[e] = above[e] + bias * widened(constant[front[e]]) + short[front[e]]
            n_runs = 0
            for e in range(n):
                if e == 0 or front[e] != front[e - 1] + 1:
                    run[n_runs] = e
                    n_runs += 1
            run[n_runs] = n
            for j in range(begin, end):
                if j + _AHEAD < end and size[indices[j + _AHEAD]] < 0:  # rows are far apart: ask for them beforehand
                    base = start[indices[j + _AHEAD]] * n_columns
                    for q in range(n_runs):
                        for e in range(0, run[q + 1] - run[q], line):
                            prefetch(flat, base + front[run[q]] + e)
                if size[indices[j]] < 0:
                    v = short.dtype.type(data[j])
                    row = full[start[indices[j]]]
                    for q in range(n_runs):
                        at, c = run[q], front[run[q]]
                        for e in range(run[q + 1] - at):
                            x[at + e] += v * widened(row[c + e])
            n_kept = 0
            for e in range(n):
                c = front[e]
                if label_ptr[c] < label_ptr[c + 1]:  # of labels with the same nodes, the first
                    k = label[label_ptr[c]]
                    if x[e] > most or (x[e] == most and k < best):
                        best, most = k, x[e]
                if child_ptr[c] == child_ptr[c + 1] or (n_kept == width and x[e] <= sums[width - 1]):
                    continue
                at = n_kept if n_kept < width else width - 1
                n_kept = min(width, n_kept + 1)
                while at > 0 and sums[at - 1] < x[e]:
                    kept[at], sums[at] = kept[at - 1], sums[at - 1]
                    at -= 1
                kept[at], sums[at] = c, x[e]
            n = 0
            for k in range(n_kept):
                for e in range(child_ptr[kept[k]], child_ptr[kept[k] + 1]):
                    front[n] = child[e]
                    above[n] = sums[k]
                    n += 1
        out[t] = best
        for j in range(begin, end):
            f = indices[j]
            for e in range(start[f], start[f] + size[f]):
                short[index[e]] = 0.0
