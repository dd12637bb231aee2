"""Probabilities, and how often what they speak of is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from nhsvm.report._record import Reliability


class Bins:
    """Decisions collected by their probability, some at a time.

    Parameters
    ----------
    of : str
        What is decided.
    n_bins : int
        Of equal width.

    Examples
    --------
    >>> bins = Bins("label", 2)
    >>> bins.add(np.array([0.2, 0.4, 0.9]), np.array([False, True, True]))
    >>> found = bins.result()
    >>> found.count, [round(p, 2) for p in found.confidence], found.observed, round(found.error, 3)
    ([2, 1], [0.3, 0.9], [0.5, 1.0], 0.167)
    """

    def __init__(self, of: str, n_bins: int) -> None:
        self._of = of
        self._count, self._sum, self._true = np.zeros(n_bins, dtype=np.int64), np.zeros(n_bins), np.zeros(n_bins)

    def add(self, probability: Any, true: Any) -> None:
        """Some more decisions."""
        n = len(self._count)
        place = np.clip((probability * n).astype(np.int64), 0, n - 1)
        self._count += np.bincount(place, minlength=n)
        self._sum += np.bincount(place, probability, n)
        self._true += np.bincount(place, true, n)

    def result(self) -> Reliability:
        """The bins that have decisions."""
        some = self._count > 0
        count = self._count[some]
        confidence, observed = self._sum[some] / count, self._true[some] / count
        error = float(np.average(np.abs(confidence - observed), weights=count))
        return Reliability(self._of, confidence.tolist(), observed.tolist(), count.tolist(), error)
