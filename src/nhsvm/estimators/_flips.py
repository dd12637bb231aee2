"""What a measure gains when one label is predicted for more samples, or for fewer: the best threshold of a leaf.

A *flip* is a sample and a leaf that is added to its label set, or taken out of it, all else being as it is. Its gain
says when it happens: under an offset o, the leaf is in the set if gain + o > 0. So the samples of one leaf, by falling
gain, have it up to some place; what that is worth is known for every place by cumulated sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.estimators._measures import Measure
from nhsvm.hierarchy.graph import BoolArray, FloatArray

SURE = 2.0  # standard errors by which a threshold must be better: the best of many places is so by chance, too


class Counts(NamedTuple):
    """|Y ∩ Ŷ|, |Y| and |Ŷ| of every sample, which change as labels are flipped; and its weight."""

    both: FloatArray
    true: FloatArray
    pred: FloatArray
    weight: FloatArray


class Flips(NamedTuple):
    """The samples that may gain or lose one leaf, by falling gain."""

    sample: npt.NDArray[np.int64]
    gain: FloatArray  # infinite where the leaf must stay
    inside: BoolArray  # whether the leaf is predicted
    right: BoolArray  # whether it is true
    both: FloatArray  # by how much |Y ∩ Ŷ| is larger with the leaf than without
    pred: FloatArray  # the same of |Ŷ|

    def part(self, some: BoolArray) -> Flips:
        """Those of some samples."""
        arrays: Any = (array[some] for array in self)
        return Flips(*arrays)


def threshold(measure: Measure, counts: Counts, flips: Flips) -> float:
    """The gain from which on a leaf is best predicted; 0, as it is, unless something else is surely better.

    Its place has the largest sum of worths of all flips on the way there, less :data:`SURE` standard errors of the sum.
    There is always a sample on either side, so that no leaf is silenced and none is given to all.
    """
    gain, worth = flips.gain, _worth(measure, counts, flips)
    now = int(np.count_nonzero(gain > 0))
    sums, squares = _cumulated(worth), _cumulated(worth**2)
    surely = sums - sums[now] - SURE * np.sqrt(np.abs(squares - squares[now]))
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
    best = float(measure.of(totals[0] + _cumulated(both), totals[1], totals[2] + _cumulated(pred)).max())
    return both - 0.5 * best * pred


def _cumulated(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])
