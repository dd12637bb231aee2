"""Sparse samples in training: batches of them with their inner products, and what steps add to U."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm._jit import inlined, kernel
from nhsvm.storage.samples import Entries
from nhsvm.typing import Array, DType, FloatArray, IntArray, Matrix, PtrArray

_LONG = 0.08  # share of a batch's samples above which a feature goes into the dense panel of the inner products


class Updates(NamedTuple):
    """Sample t adds ``values[k] · x_t`` to U of column ``columns[k]``, for ``indptr[t] <= k < indptr[t + 1]``."""

    indptr: PtrArray
    columns: IntArray
    values: FloatArray

    @classmethod
    def empty(cls, n: int, most: int) -> Updates:
        """Room for those of n samples, ``most`` in all."""
        return cls(np.zeros(n + 1, np.int64), np.empty(most, np.int32), np.empty(most))

    def first(self, n: int) -> Updates:
        """The first n of them, as views."""
        return Updates(self.indptr, self.columns[:n], self.values[:n])


class SparseSamples:
    """What storages of U know of sparse samples.

    Parameters
    ----------
    X : csr_array
        As :func:`nhsvm.engine.prepare` makes it.
    bias : float
        Value of the constant feature, 0 for none.
    """

    def __init__(self, X: sp.csr_array, bias: float) -> None:
        self.X, self.bias = X, float(bias)
        self.n_samples, self.n_features = X.shape

    def entries(self) -> Entries:
        """The samples, as kernels read them."""
        return Entries.of(self.X)

    @cached_property
    def squared_norms(self) -> FloatArray:
        """‖x_i‖² of every sample, the constant feature included."""
        return squared_norms(self.X, self.bias)

    @cached_property
    def scratch(self) -> IntArray:
        """A zero for every feature, for the lists of a batch."""
        return np.zeros(self.n_features, dtype=np.int32)


def squared_norms(X: Matrix, bias: float = 0.0) -> FloatArray:
    """‖x_i‖² of samples as :func:`~nhsvm.storage.samples.prepare` makes them, a constant feature included."""
    if not sp.issparse(X):
        squares: FloatArray = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return squares + bias**2
    out = np.empty(X.shape[0])
    _squared_norms_kernel(X.indptr, X.data, bias, out)
    return out


class FeatureLists(NamedTuple):
    """The samples of a batch that hold a feature, feature by feature: ``order[starts[k] : starts[k + 1]]``."""

    features: IntArray
    starts: IntArray
    order: IntArray
    value: Array


class SparseBatch:
    """Some samples, with lists of who holds a feature; the lists serve the inner products and the updates.

    A feature that many of the samples hold goes into a dense panel, whose products are fast; the pairs of the others
    are found in their lists.

    Parameters
    ----------
    samples : SparseSamples
    rows : array of sample numbers
    dtype : dtype
        To compute in.

    Attributes
    ----------
    gram : array of (n, n)
        Inner products of the samples.
    """

    def __init__(self, samples: SparseSamples, rows: PtrArray, dtype: DType) -> None:
        indptr, indices, data = samples.entries()
        n = len(rows)
        size = int((indptr[rows + 1] - indptr[rows]).sum())
        order, value = np.empty(size, dtype=np.int32), np.empty(size, dtype=dtype)
        begin, features, starts = (np.empty(size + 1, dtype=np.int32) for _ in range(3))
        n_lists, n_long = _invert_kernel(
            rows, indptr, indices, data, samples.scratch, _LONG * n, order, value, begin, features, starts
        )
        self.lists = FeatureLists(features[:n_lists], starts[: n_lists + 1], order, value)
        self.gram = np.empty((n, n), dtype=dtype)
        _gram_kernel(rows, n_long, samples.bias, indptr, data, order, value, begin, self.gram)


def add_to_constant(bias: float, updates: Updates, row: Array) -> None:
    """The same updates for the weights of the constant feature."""
    if bias:
        _sparse_bias_kernel(bias, *updates, row)


@inlined
def first_entry(indices, lo, hi, first):
    """Where, from ``lo`` to ``hi``, the features of a sample, ascending, are not before ``first``."""
    while lo < hi:
        mid = (lo + hi) // 2
        if indices[mid] < first:
            lo = mid + 1
        else:
            hi = mid
    return lo


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
