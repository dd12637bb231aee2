"""Offsets of leaves that make label sets better by some measure, found on held-out samples.

Learning from a sum of errors over labels leads to sets that are too small where labels are rare, or for measures that
ask for something else. An offset b_n is added to the score of node n. First one offset for all leaves is chosen, by
predicting all held-out samples again and again; then one for every leaf that is not rare, by the thresholds of
:mod:`nhsvm.estimators._flips`, which take no prediction. So the number of predictions does not depend on the number of
leaves. Every step is a guess from noisy values, so it must prove itself: it is found on one half of the samples, and
counts on the other half, and the other way round; only if that is an improvement, what all samples say is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.estimators._flips import Counts, apply, threshold
from nhsvm.estimators._held_out import HeldOutSets
from nhsvm.estimators._label_sets import LabelSets, decode_sets
from nhsvm.estimators._measures import MEASURES, Measure
from nhsvm.estimators._options import n_threads
from nhsvm.estimators._replay import Replay
from nhsvm.estimators._sets import Inference, on_leaves
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import BoolArray, FloatArray, IntArray

_COMMON = 17  # offsets tried for all leaves at once, and then
_FINER = 6  # between the neighbours of the best
_FEWEST = 5  # held-out samples that have a leaf whose offset is tuned
_ROUNDS = 3  # over the leaves
_PARTS = (1.0, 0.5)  # of the steps: single steps that are good each may be too much together


def tuned_offsets(
    option: str | Callable[..., Any],
    sets: LabelSets,
    inference: Inference,
    held: HeldOutSets,
    base: FloatArray,
    n_jobs: int | None,
) -> FloatArray:
    """Offsets of all nodes.

    Parameters
    ----------
    option : str or callable
        A name in ``MEASURES``, or a function of (hierarchy, y_true, y_pred) with label sets in the form of ``sets``.
        A function decides about offsets that are proposed as for "example_jaccard".
    sets : LabelSets
        Of the fit.
    inference : Inference
    held : HeldOutSets
    base : array of n_nodes
        What is added to scores in any case.
    n_jobs : int or None
    """
    from nhsvm.threads import Team

    h = sets.hierarchy
    if isinstance(option, str):
        measure = MEASURES[option]

        def value(predicted: sp.csr_array, some: BoolArray) -> float:
            return measure.value(h, held.true[some], predicted[some], held.weight[some])
    else:
        measure = MEASURES["example_jaccard"]

        def value(predicted: sp.csr_array, some: BoolArray) -> float:
            y_true, y_pred = (decode_sets(sets, y.indptr, y.indices) for y in (held.true[some], predicted[some]))
            return _number(option(h, y_true, y_pred))

    with Team(n_threads(n_jobs)) as team:
        return Search(h, Replay(inference, held, base, team), measure, value).run()


def _number(found: Any) -> float:
    if not isinstance(found, Real) or not np.isfinite(float(found)):
        raise OptionError(f"offsets: the function must give a finite number, not {found!r}")
    return float(found)


class Search:
    """The search for offsets.

    Parameters
    ----------
    hierarchy : Hierarchy
    replay : Replay
    measure : Measure
        Proposes offsets of single leaves.
    value : callable
        Of predicted leaves, as a 0/1 matrix, for some of the samples: what is to become as large as possible.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        replay: Replay,
        measure: Measure,
        value: Callable[[sp.csr_array, BoolArray], float],
    ) -> None:
        self.graph, self.replay, self.measure, self.value = hierarchy.graph, replay, measure, value
        self.counted = measure.counted(hierarchy).astype(np.float64)
        n = len(replay.held.scores)
        self.all, self.odd = np.ones(n, dtype=bool), np.arange(n) % 2 == 1  # the order of samples is random

    def run(self) -> FloatArray:
        """Offsets of all nodes; 0 for inner ones."""
        offsets = np.zeros(self.graph.n_nodes)
        if len(self.all) < 2:
            return offsets
        offsets += on_leaves(self.graph, self._common())
        has = np.bincount(self.replay.held.true.indices, minlength=self.graph.n_leaves)
        often = np.flatnonzero(has >= _FEWEST)
        which = often[np.argsort(-has[often], kind="stable")].astype(np.int32)
        for _ in range(_ROUNDS if len(which) else 0):
            predicted = self.replay.predicted(offsets)
            every, by_odd, by_even = self._by_leaf(offsets, predicted, which)
            crossed = [
                self._crossed(*(self.replay.predicted(offsets + part * step) for step in (by_odd, by_even)))
                for part in _PARTS
            ]
            if not max(crossed) > self.value(predicted, self.all):
                break
            offsets += _PARTS[int(np.argmax(crossed))] * every
        return offsets

    def _crossed(self, by_odd: sp.csr_array, by_even: sp.csr_array) -> float:
        """The value when samples are predicted with what was found on the other half of them."""
        order = np.argsort(np.concatenate([np.flatnonzero(~self.odd), np.flatnonzero(self.odd)]))
        return self.value(sp.csr_array(sp.vstack([by_odd[~self.odd], by_even[self.odd]]))[order], self.all)

    def _common(self) -> float:
        """One offset for all leaves; candidates bring in some share of the true labels."""
        tried: dict[float, sp.csr_array] = {}
        self._try([0.0], tried)
        gains = self.replay.gains_of_true()
        if len(gains):
            self._try((-np.quantile(gains, np.linspace(0.02, 0.98, _COMMON))).tolist(), tried)
            ascending = sorted(tried)
            at = ascending.index(self._best_of(tried, self.all))
            low, high = ascending[max(at - 1, 0)], ascending[min(at + 1, len(ascending) - 1)]
            self._try(np.linspace(low, high, _FINER + 2)[1:-1].tolist(), tried)
        by_odd, by_even = (tried[self._best_of(tried, half)] for half in (self.odd, ~self.odd))
        improved = self._crossed(by_odd, by_even) > self.value(tried[0.0], self.all)
        return self._best_of(tried, self.all) if improved else 0.0

    def _try(self, candidates: list[float], tried: dict[float, sp.csr_array]) -> None:
        for candidate in candidates:
            if candidate not in tried:
                tried[candidate] = self.replay.predicted(on_leaves(self.graph, candidate))

    def _best_of(self, tried: dict[float, sp.csr_array], some: BoolArray) -> float:
        """The offset of the largest value for some samples; of equals, the smallest."""
        return min(tried, key=lambda offset: (-self.value(tried[offset], some), abs(offset), offset))

    def _by_leaf(self, offsets: FloatArray, predicted: sp.csr_array, which: IntArray) -> list[FloatArray]:
        """Steps from some offsets: found on all samples, on the odd ones, and on the even ones."""
        parts = [self.all, self.odd, ~self.odd]
        both, true, pred, weight = self.replay.counts(predicted, self.counted)
        counts = [Counts(both.copy(), true, pred.copy(), weight * part) for part in parts]
        found = [np.zeros(self.graph.n_nodes) for _ in parts]
        flips = self.replay.flips(offsets, predicted, which, self.counted)
        for leaf, every in zip(which.tolist(), flips, strict=True):
            for part, mine, step in zip(parts, counts, found, strict=True):
                some = every.part(part[every.sample])
                cut = threshold(self.measure, mine, some)
                apply(mine, some, cut)  # what follows sees what was decided
                step[self.graph.leaves[leaf]] = -cut
        return found
