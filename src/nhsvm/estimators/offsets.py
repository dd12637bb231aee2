"""Offsets of leaves that make label sets better by some measure, found on held-out samples.

Learning from a sum of errors over labels leads to sets that are too small where labels are rare, or for measures that
ask for something else. An offset b_n is added to the score of node n. First one offset for all leaves is chosen, by
predicting all held-out samples again and again; then one for every leaf that is not rare, by :func:`threshold`, which
takes no prediction. So the number of predictions does not depend on the number of leaves. Every step is a guess from
noisy values, so it must prove itself: it is found on one half of the samples, and counts on the other half, and the
other way round; only if that is an improvement, what all samples say is taken.

A *flip* is a sample and a leaf that is added to its label set, or taken out of it, all else being as it is. Its gain
says when it happens: under an offset o, the leaf is in the set if gain + o > 0. So the samples of one leaf, by falling
gain, have it up to some place; what that is worth is known for every place by cumulated sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Real
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.estimators.calibration import HeldOutSets
from nhsvm.estimators.labels import LabelSets
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics.measures import MEASURES, Measure
from nhsvm.model.sets import Collected, Inference, on_leaves
from nhsvm.threads import Team
from nhsvm.typing import BoolArray, ByteArray, FloatArray, IntArray, PtrArray

Value: TypeAlias = Callable[[sp.csr_array, BoolArray], float]


class OffsetSettings(NamedTuple):
    """Constants of the search for offsets."""

    common: int = 17
    """Offsets tried for all leaves at once, and then"""
    finer: int = 6
    """so many between the neighbours of the best."""
    fewest: int = 5
    """Held-out samples that have a leaf whose offset is tuned."""
    rounds: int = 3
    """Over the leaves."""
    parts: tuple[float, ...] = (1.0, 0.5)
    """Of the steps: single steps that are good each may be too much together."""
    sure: float = 2.0
    """Standard errors by which a threshold must be better: the best of many places is so by chance, too."""
    near: int = 8
    """Samples looked at for a leaf, per sample that has it: more would be wrong for nearly all of them."""
    numbers: int = 2**20
    """Scores of nodes at work at a time."""


SEARCH = OffsetSettings()

# -- the search --------------------------------------------------------------------------------------------------------


def tuned_offsets(
    option: str | Callable[..., float],
    sets: LabelSets,
    inference: Inference,
    held: HeldOutSets,
    base: FloatArray,
    n_threads: int,
) -> FloatArray:
    """Offsets of all nodes, beside a ``base`` that is added to scores in any case.

    ``option`` is a name in ``MEASURES``, or a function of (hierarchy, y_true, y_pred) with label sets in the form of
    ``sets``. A function decides about offsets that are proposed as for "example_jaccard".
    """
    h = sets.hierarchy
    if isinstance(option, str):
        measure = MEASURES[option]

        def value(predicted: sp.csr_array, some: BoolArray) -> float:
            return measure.value(h, held.true[some], predicted[some], held.weight[some])
    else:
        measure = MEASURES["example_jaccard"]

        def value(predicted: sp.csr_array, some: BoolArray) -> float:
            y_true, y_pred = (sets.decoded(y.indptr, y.indices) for y in (held.true[some], predicted[some]))
            return _number(option(h, y_true, y_pred))

    with Team(n_threads) as team:
        return Search(h, Predictions(inference, held, base, team), measure, value).run()


def _number(found: object) -> float:
    if not isinstance(found, Real) or not np.isfinite(float(found)):
        raise OptionError(f"offsets: the function must give a finite number, not {found!r}")
    return float(found)


class Search:
    """The search for offsets: ``measure`` proposes them leaf by leaf, and the largest ``value`` decides.

    A value is one of predicted leaves, as a 0/1 matrix, for some of the samples.
    """

    def __init__(self, hierarchy: Hierarchy, predictions: Predictions, measure: Measure, value: Value) -> None:
        self.graph, self.predictions, self.measure, self.value = hierarchy.graph, predictions, measure, value
        self.counted = measure.counted(hierarchy).astype(np.float64)
        n = len(predictions.held.scores)
        self.all, self.odd = np.ones(n, dtype=bool), np.arange(n) % 2 == 1  # the order of samples is random

    def run(self) -> FloatArray:
        """Offsets of all nodes; 0 for inner ones."""
        offsets = np.zeros(self.graph.n_nodes)
        if len(self.all) < 2:
            return offsets
        offsets += on_leaves(self.graph, self._common())
        has = np.bincount(self.predictions.held.true.indices, minlength=self.graph.n_leaves)
        often = np.flatnonzero(has >= SEARCH.fewest)
        which = often[np.argsort(-has[often], kind="stable")].astype(np.int32)
        for _ in range(SEARCH.rounds if len(which) else 0):
            predicted = self.predictions.predicted(offsets)
            every, by_odd, by_even = self._by_leaf(offsets, predicted, which)
            crossed = [
                self._crossed(*(self.predictions.predicted(offsets + part * step) for step in (by_odd, by_even)))
                for part in SEARCH.parts
            ]
            if not max(crossed) > self.value(predicted, self.all):
                break
            offsets += SEARCH.parts[int(np.argmax(crossed))] * every
        return offsets

    def _crossed(self, by_odd: sp.csr_array, by_even: sp.csr_array) -> float:
        """The value when samples are predicted with what was found on the other half of them."""
        order = np.argsort(np.concatenate([np.flatnonzero(~self.odd), np.flatnonzero(self.odd)]))
        return self.value(sp.csr_array(sp.vstack([by_odd[~self.odd], by_even[self.odd]]))[order], self.all)

    def _common(self) -> float:
        """One offset for all leaves; candidates bring in some share of the true labels."""
        tried = {0.0: self.predictions.predicted(np.zeros(self.graph.n_nodes))}
        gains = self.predictions.gains_of_true()
        if len(gains):
            self._try((-np.quantile(gains, np.linspace(0.02, 0.98, SEARCH.common))).tolist(), tried)
            ascending = sorted(tried)
            at = ascending.index(self._best_of(tried, self.all))
            low, high = ascending[max(at - 1, 0)], ascending[min(at + 1, len(ascending) - 1)]
            self._try(np.linspace(low, high, SEARCH.finer + 2)[1:-1].tolist(), tried)
        by_odd, by_even = (tried[self._best_of(tried, half)] for half in (self.odd, ~self.odd))
        improved = self._crossed(by_odd, by_even) > self.value(tried[0.0], self.all)
        return self._best_of(tried, self.all) if improved else 0.0

    def _try(self, candidates: list[float], tried: dict[float, sp.csr_array]) -> None:
        for candidate in candidates:
            if candidate not in tried:
                tried[candidate] = self.predictions.predicted(on_leaves(self.graph, candidate))

    def _best_of(self, tried: dict[float, sp.csr_array], some: BoolArray) -> float:
        """The offset of the largest value for some samples; of equals, the smallest."""
        return min(tried, key=lambda offset: (-self.value(tried[offset], some), abs(offset), offset))

    def _by_leaf(self, offsets: FloatArray, predicted: sp.csr_array, which: IntArray) -> list[FloatArray]:
        """Steps from some offsets: found on all samples, on the odd ones, and on the even ones."""
        parts = [self.all, self.odd, ~self.odd]
        both, true, pred, weight = self.predictions.counts(predicted, self.counted)
        counts = [Counts(both.copy(), true, pred.copy(), weight * part) for part in parts]
        found = [np.zeros(self.graph.n_nodes) for _ in parts]
        flips = self.predictions.flips(offsets, predicted, which, self.counted)
        for leaf, every in zip(which.tolist(), flips, strict=True):
            for part, mine, step in zip(parts, counts, found, strict=True):
                some = every.part(part[every.sample])
                cut = threshold(self.measure, mine, some)
                apply(mine, some, cut)  # what follows sees what was decided
                step[self.graph.leaves[leaf]] = -cut
        return found


# -- flips of single leaves --------------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """|Y ∩ Ŷ|, |Y| and |Ŷ| of every sample, which change as labels are flipped; and its weight."""

    both: FloatArray
    true: FloatArray
    pred: FloatArray
    weight: FloatArray


class Flips(NamedTuple):
    """The samples that may gain or lose one leaf, by falling gain."""

    sample: PtrArray
    gain: FloatArray  # infinite where the leaf must stay
    inside: BoolArray  # whether the leaf is predicted
    right: BoolArray  # whether it is true
    both: FloatArray  # by how much |Y ∩ Ŷ| is larger with the leaf than without
    pred: FloatArray  # the same of |Ŷ|

    def part(self, some: BoolArray) -> Flips:
        """Those of some samples."""
        return Flips._make(array[some] for array in self)


def threshold(measure: Measure, counts: Counts, flips: Flips) -> float:
    """The gain from which on a leaf is best predicted; 0, as it is, unless something else is surely better.

    Its place has the largest sum of worths of all flips on the way there, less ``sure`` standard errors of the sum.
    There is always a sample on either side, so that no leaf is silenced and none is given to all.
    """
    gain, worth = flips.gain, _worth(measure, counts, flips)
    now = int(np.count_nonzero(gain > 0))
    sums, squares = _cumulated(worth), _cumulated(worth**2)
    surely = sums - sums[now] - SEARCH.sure * np.sqrt(np.abs(squares - squares[now]))
    place = np.flatnonzero((gain[:-1] > gain[1:]) & np.isfinite(gain[:-1])) + 1
    if not len(place) or not surely[place].max() > 0.0:
        return 0.0
    best = place[np.argmax(surely[place])]
    return float(0.5 * (gain[best - 1] + gain[best]))


def apply(counts: Counts, flips: Flips, cut: float) -> None:
    """Change the counts as if the leaf were predicted from that gain on."""
    change = (flips.gain > cut).astype(float) - flips.inside
    counts.both[flips.sample] += change * flips.both
    counts.pred[flips.sample] += change * flips.pred


def _worth(measure: Measure, counts: Counts, flips: Flips) -> FloatArray:
    """What the leaf is worth at each sample: how much larger the measure is with it, but for a positive factor.

    For means over samples, the difference. A ratio 2 Σ both / (Σ true + Σ pred) is at its largest value F where Σ both
    − F/2 Σ pred is at its largest, so there a leaf is worth both − F/2 pred.
    """
    w = counts.weight[flips.sample]
    if measure.average == "samples":
        true = counts.true[flips.sample]
        both = counts.both[flips.sample] - flips.inside * flips.both
        pred = counts.pred[flips.sample] - flips.inside * flips.pred
        without = measure.of(both, true, pred)
        found: FloatArray = w * (measure.of(both + flips.both, true, pred + flips.pred) - without)
        return found
    both, pred = w * flips.both, w * flips.pred
    if measure.average == "macro":
        both, pred = w * flips.right, w
        totals = (0.0, float(np.sum(both)), 0.0)
    else:
        now = [float(np.sum(counts.weight * count)) for count in counts[:3]]
        totals = (now[0] - float(np.sum(both[flips.inside])), now[1], now[2] - float(np.sum(pred[flips.inside])))
    best = float(np.max(measure.of(totals[0] + _cumulated(both), totals[1], totals[2] + _cumulated(pred))))
    return both - 0.5 * best * pred


def _cumulated(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


# -- held-out samples, predicted again ---------------------------------------------------------------------------------


class Predictions:
    """Predictions for held-out samples; ``base`` is added to the scores of nodes in any case."""

    def __init__(self, inference: Inference, held: HeldOutSets, base: FloatArray, team: Team) -> None:
        self.inference, self.graph, self.held, self.base, self.team = inference, inference.graph, held, base, team
        self._step = max(1, SEARCH.numbers // self.graph.n_nodes)
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
        true = self.held.true
        gains = np.empty(true.nnz)

        def use(rows: slice) -> None:
            here = slice(true.indptr[rows.start], true.indptr[rows.stop])
            owner = np.repeat(np.arange(rows.stop - rows.start), np.diff(true.indptr[rows.start : rows.stop + 1]))
            gains[here] = self._gains(rows, np.zeros(self.graph.n_nodes))[owner, true.indices[here]]

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
        n = len(self.held.scores)
        gains = np.empty((len(which), n), dtype=np.float32)

        def use(rows: slice) -> None:
            gains[:, rows] = self._gains(rows, offsets, which).T

        self._each(use)
        needed = np.full(n, not self.inference.allow_empty) & (np.diff(predicted.indptr) == 1)
        true, pred = self.held.true.tocsc(), predicted.tocsc()
        found = []
        for gain, leaf in zip(gains, which.tolist(), strict=True):
            right, inside = (y.indices[y.indptr[leaf] : y.indptr[leaf + 1]] for y in (true, pred))
            gain[inside[needed[inside] & (gain[inside] <= 0)]] = np.inf
            near = min(n, SEARCH.near * len(right) + 16)
            samples = np.union1d(np.union1d(right, inside), np.argpartition(-gain, near - 1)[:near])
            order = samples[np.argsort(-gain[samples], kind="stable")]
            found.append((order, gain[order].astype(np.float64), np.isin(order, inside), np.isin(order, right)))
        sizes = self._sizes(predicted, which, counted, [order for order, *_ in found])
        for one, size in zip(found, sizes, strict=True):
            yield Flips(*one, *size)

    def _sizes(
        self, predicted: sp.csr_array, which: IntArray, counted: FloatArray, samples: list[PtrArray]
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """For every leaf and its samples, how many true nodes, and how many in all, come and go with it."""
        from nhsvm.oracles.dag.primal import label_gains

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

    def _best(self, rows: slice, offsets: FloatArray) -> tuple[FloatArray, ByteArray]:
        return self.inference.best(self.held.scores[rows], self.base + offsets)

    def _gains(self, rows: slice, offsets: FloatArray, which: IntArray | None = None) -> FloatArray:
        """What leaves, all or those in ``which``, add to the best label sets of some samples."""
        from nhsvm.oracles.dag.primal import label_gains

        return label_gains(self.graph, *self._best(rows, offsets), which)

    def _each(self, use: Callable[[slice], None]) -> None:
        """``use`` for all samples, some at a time, on all threads."""
        n = len(self.held.scores)

        def work(lo: int, hi: int) -> None:
            for k in range(lo, hi):
                use(slice(k * self._step, min(n, (k + 1) * self._step)))

        self.team.split(-(-n // self._step), work)
