"""The search down a tree that keeps a few nodes a level: a kernel. See :meth:`nhsvm.model.Model.predict`."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel, prefetch, widened
from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import IntArray

_AHEAD = 8  # features


def column_tree(columns: Columns) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(pointers, columns) of what is next below every column, and the same of the labels that end there.

    What is below no column comes last.
    """
    n = columns.n_columns
    return *_lists(columns.parent, n), *_lists(columns.leaf_column, n)


def _lists(above: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """What is below every column, ascending, in CSR form; what is below none, −1, comes last."""
    order = np.argsort(np.where(above < 0, n, above), kind="stable")
    counts = np.bincount(np.where(above < 0, n, above), minlength=n + 1)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), order.astype(np.int32)


@kernel
def beam_kernel(
    first, last, indptr, indices, data, start, size, index, value, full, constant, bias, child_ptr, child, label_ptr,
    label, width, short, out,
):  # fmt: skip
    """``short`` is zero: room for the sums of rows that are not full."""
    n_columns = constant.shape[0]
    look, above = np.empty(n_columns, np.int32), np.empty(n_columns, short.dtype)
    x = np.empty(n_columns, short.dtype)
    run = np.empty(n_columns + 1, np.int32)  # where runs of neighbours begin in ``look``: siblings are, mostly
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
            look[n] = child[e]
            above[n] = 0.0
            n += 1
        while n > 0:
            for e in range(n):
                x[e] = above[e] + bias * widened(constant[look[e]]) + short[look[e]]
            n_runs = 0
            for e in range(n):
                if e == 0 or look[e] != look[e - 1] + 1:
                    run[n_runs] = e
                    n_runs += 1
            run[n_runs] = n
            for j in range(begin, end):
                if j + _AHEAD < end and size[indices[j + _AHEAD]] < 0:  # rows are far apart: ask for them beforehand
                    base = start[indices[j + _AHEAD]] * n_columns
                    for q in range(n_runs):
                        for e in range(0, run[q + 1] - run[q], line):
                            prefetch(flat, base + look[run[q]] + e)
                if size[indices[j]] < 0:
                    v = short.dtype.type(data[j])
                    row = full[start[indices[j]]]
                    for q in range(n_runs):
                        at, c = run[q], look[run[q]]
                        for e in range(run[q + 1] - at):
                            x[at + e] += v * widened(row[c + e])
            n_kept = 0
            for e in range(n):
                c = look[e]
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
                    look[n] = child[e]
                    above[n] = sums[k]
                    n += 1
        out[t] = best
        for j in range(begin, end):
            f = indices[j]
            for e in range(start[f], start[f] + size[f]):
                short[index[e]] = 0.0
