"""Held-out samples, predicted again under other offsets, and the flips of single leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.estimators._flips import Counts, Flips
from nhsvm.estimators._held_out import HeldOutSets
from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.model.sets import Collected, Inference

_NEAR = 8  # samples looked at for a leaf, per sample that has it: more would be wrong for nearly all of them
_NUMBERS = 2**20  # scores of nodes at work at a time


class Replay:
    """Predictions for held-out samples.

    Parameters
    ----------
    inference : Inference
    held : HeldOutSets
    base : array of n_nodes
        What is added to scores in any case.
    team : Team
    """

    def __init__(self, inference: Inference, held: HeldOutSets, base: FloatArray, team: Any) -> None:
        self.inference, self.graph, self.held, self.base, self.team = inference, inference.graph, held, base, team
        self._step = max(1, _NUMBERS // self.graph.n_nodes)
        self._closures = self.graph.leaf_matrix()

    def predicted(self, offsets: FloatArray) -> sp.csr_array:
        """Leaves of the best label set of every sample, as a 0/1 matrix."""
        sets = Collected(len(self.held.scores))

        def use(rows: slice) -> None:
            sets.add(rows, *self.inference.leaves(self._best(rows, offsets)[1]))

        self._each(use)
        indptr, leaves = sets.all()
        return sp.csr_array((np.ones(len(leaves), np.int8), leaves, indptr), self.held.true.shape)

    def gains_of_true(self) -> FloatArray:
        """What the true labels of all samples add to the best label sets."""
        from nhsvm.oracles._gains import label_gains

        true = self.held.true
        gains = np.empty(true.nnz)

        def use(rows: slice) -> None:
            here = slice(true.indptr[rows.start], true.indptr[rows.stop])
            owner = np.repeat(np.arange(rows.stop - rows.start), np.diff(true.indptr[rows.start : rows.stop + 1]))
            found = label_gains(self.graph, *self._best(rows, np.zeros(self.graph.n_nodes)))
            gains[here] = found[owner, true.indices[here]]

        self._each(use)
        return gains

    def counts(self, predicted: sp.csr_array, counted: FloatArray) -> Counts:
        """Sizes of the sets of every sample; a node counts ``counted``, 0 or 1."""
        true, pred = (sp.csr_array(y @ self._closures) for y in (self.held.true, predicted))
        true.data[:] = pred.data[:] = 1.0
        both = sp.csr_array(true.multiply(pred))
        return Counts(both @ counted, true @ counted, pred @ counted, self.held.weight)

    def flips(
        self, offsets: FloatArray, predicted: sp.csr_array, which: IntArray, counted: FloatArray
    ) -> Iterator[Flips]:
        """Of every leaf in ``which``, the samples that have it, and those that are nearest to getting it."""
        from nhsvm.oracles._gains import label_gains

        n = len(self.held.scores)
        gains = np.empty((len(which), n), dtype=np.float32)

        def use(rows: slice) -> None:
            gains[:, rows] = label_gains(self.graph, *self._best(rows, offsets), which).T

        self._each(use)
        needed = np.full(n, not self.inference.allow_empty) & (np.diff(predicted.indptr) == 1)
        true, pred = self.held.true.tocsc(), predicted.tocsc()
        found = []
        for gain, leaf in zip(gains, which.tolist(), strict=True):
            right, inside = (y.indices[y.indptr[leaf] : y.indptr[leaf + 1]] for y in (true, pred))
            gain[inside[needed[inside] & (gain[inside] <= 0)]] = np.inf
            near = min(n, _NEAR * len(right) + 16)
            samples = np.union1d(np.union1d(right, inside), np.argpartition(-gain, near - 1)[:near])
            order = samples[np.argsort(-gain[samples], kind="stable")]
            found.append((order, gain[order].astype(np.float64), np.isin(order, inside), np.isin(order, right)))
        sizes = self._sizes(predicted, which, counted, [order for order, *_ in found])
        for one, size in zip(found, sizes, strict=True):
            yield Flips(*one, *size)

    def _sizes(
        self, predicted: sp.csr_array, which: IntArray, counted: FloatArray, samples: list[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """For every leaf and its samples, how many true nodes, and how many in all, come and go with it."""
        from nhsvm.oracles._gains import label_gains

        ends = np.cumsum([len(some) for some in samples])
        leaf = np.repeat(np.arange(len(which)), [len(some) for some in samples])
        sample = np.concatenate([*samples, np.zeros(0, np.int64)])
        order = np.argsort(sample, kind="stable")
        both, pred = np.empty(len(sample)), np.empty(len(sample))

        def use(rows: slice) -> None:
            here = order[slice(*np.searchsorted(sample[order], [rows.start, rows.stop]))]
            true, chosen = (sp.csr_array(y[rows] @ self._closures).toarray() > 0 for y in (self.held.true, predicted))
            for out, values in ((both, true * counted), (pred, np.tile(counted, (len(true), 1)))):
                changes = label_gains(self.graph, values, chosen.astype(np.uint8), which)
                out[here] = changes[sample[here] - rows.start, leaf[here]]

        self._each(use)
        return zip(np.split(both, ends[:-1]), np.split(pred, ends[:-1]), strict=True)

    def _best(self, rows: slice, offsets: FloatArray) -> tuple[FloatArray, npt.NDArray[np.uint8]]:
        return self.inference.best(self.held.scores[rows], self.base + offsets)

    def _each(self, use: Callable[[slice], None]) -> None:
        """``use`` for all samples, some at a time, on all threads."""
        n = len(self.held.scores)

        def work(lo: int, hi: int) -> None:
            for k in range(lo, hi):
                use(slice(k * self._step, min(n, (k + 1) * self._step)))

        self.team.split(-(-n // self._step), work)
