"""Samples as kernels read them, batches of them with their inner products, and what steps add to U."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.typing import FloatArray, IntArray, PtrArray

_LONG = 0.08  # share of a batch's samples above which a feature goes into the dense panel of the inner products
Scorer = Callable[[int, int, Any], None]


class Samples(NamedTuple):
    """Samples as kernels read them; dense ones have ``data`` of two dimensions and no lists of features.

    Which of the two it is, is settled when a kernel is compiled.
    """

    indptr: PtrArray
    indices: IntArray
    data: npt.NDArray[Any]


class Updates(NamedTuple):
    """Sample t adds ``values[k] · x_t`` to U of column ``columns[k]``, for ``indptr[t] <= k < indptr[t + 1]``."""

    indptr: PtrArray
    columns: IntArray
    values: FloatArray


def squared_norms(indptr: npt.NDArray[Any], data: npt.NDArray[Any], bias: float) -> FloatArray:
    """‖x_i‖² of every sample, with a constant feature."""
    out = np.empty(len(indptr) - 1)
    _squared_norms_kernel(indptr, data, bias, out)
    return out


class SparseBatch:
    """Some samples, with lists of who holds a feature; the lists serve the inner products and the updates.

    A feature that many of the samples hold goes into a dense panel, whose products are fast; the pairs of the others
    are found in their lists.

    Parameters
    ----------
    weights : SparseWeights
    rows : array of sample numbers

    Attributes
    ----------
    gram : array of (n, n)
        Inner products of the samples.
    """

    weights: Any  # a SparseWeights; what has its samples will do

    def __init__(self, weights: Any, rows: npt.NDArray[np.int64]) -> None:
        self.weights = w = weights
        n = len(rows)
        size = int((w.indptr[rows + 1] - w.indptr[rows]).sum())
        order, value = np.empty(size, dtype=np.int32), np.empty(size, dtype=w.dtype)
        begin, features, starts = (np.empty(size + 1, dtype=np.int32) for _ in range(3))
        n_lists, n_long = _invert_kernel(
            rows, w.indptr, w.indices, w.data, w.scratch, _LONG * n, order, value, begin, features, starts
        )
        self._lists = (features[:n_lists], starts[: n_lists + 1], order, value)
        self.gram = np.empty((n, n), dtype=w.dtype)
        _gram_kernel(rows, n_long, w.bias, w.indptr, w.data, order, value, begin, self.gram)

    def _apply_bias(self, updates: Updates, row: npt.NDArray[Any]) -> None:
        _sparse_bias_kernel(self.weights.bias, *updates, row)


def unsigned(indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same indices as unsigned numbers, which kernels need not test for counting from the end."""
    return indices.view(f"u{indices.itemsize}")


@kernel
def _squared_norms_kernel(indptr, data, bias, out):
    for i in range(out.shape[0]):
        total = bias * bias
        for j in range(indptr[i], indptr[i + 1]):
            v = np.float64(data[j])
            total += v * v
        out[i] = total


@kernel
def _invert_kernel(rows, indptr, indices, data, place, many, order, value, begin, features, starts):
    """Lists, feature by feature, of the samples that hold it, ascending; ``place`` is zero before and after.

    ``begin[e]`` is, for entry e of the batch, where the list of its feature begins, or −1 − k if that is the k-th list
    with more than ``many`` samples. Returns the numbers of lists and of long ones.
    """
    for t in range(rows.shape[0]):
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            place[indices[j]] += 1
    filled = np.empty(order.shape[0], np.int32)
    long = np.empty(order.shape[0], np.int32)  # which of the long lists it is, or −1
    n_lists, n_long = 0, 0
    top = 0
    e = 0
    for t in range(rows.shape[0]):
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            f = indices[j]
            if place[f] > 0:  # first met: its count becomes minus the number of its list
                features[n_lists] = f
                starts[n_lists] = top
                filled[n_lists] = top
                long[n_lists] = -1
                if place[f] > many:
                    long[n_lists] = n_long
                    n_long += 1
                top += place[f]
                n_lists += 1
                place[f] = -n_lists
            k = -place[f] - 1
            order[filled[k]] = t
            value[filled[k]] = data[j]
            filled[k] += 1
            begin[e] = starts[k] if long[k] < 0 else -1 - long[k]
            e += 1
    starts[n_lists] = top
    for k in range(n_lists):
        place[features[k]] = 0
    return n_lists, n_long


@kernel
def _gram_kernel(rows, n_long, bias, indptr, data, order, value, begin, out):
    n = rows.shape[0]
    panel = np.zeros((n_long, n), out.dtype)  # a feature's values side by side: a sample adds up rows of it
    e = 0
    for t in range(n):
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            if begin[e] < 0:
                panel[-1 - begin[e], t] = data[j]
            e += 1
    e = 0
    for t in range(n):
        row = out[t]
        row[: t + 1] = bias * bias
        held = row[:t]
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            at = begin[e]
            e += 1
            v = out.dtype.type(data[j])
            if at < 0:
                others = panel[-1 - at, :t]
                for u in range(held.shape[0]):
                    held[u] += v * others[u]
            else:
                while order[at] < t:  # a list holds each sample once, and this one ends the walk
                    row[order[at]] += v * value[at]
                    at += 1
            row[t] += v * v
        for u in range(t):
            out[u, t] = row[u]


@kernel
def _sparse_bias_kernel(bias, ptr, columns, coefficients, row):
    for i in range(ptr[ptr.shape[0] - 1]):
        row[columns[i]] += bias * coefficients[i]
