"""Mean, deviation and paired differences of accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """Of two models on the same data sets: mean, standard deviation, and p of a two-sided paired t-test."""

    mean: float
    deviation: float
    p: float

    @property
    def better(self) -> bool:
        """Whether the first is significantly better."""
        return self.mean > 0 and self.p < LEVEL

    def __str__(self) -> str:
        p = "p < 0.0001" if self.p < 1e-4 else f"p = {self.p:.4f}"
        return f"{self.mean:+.2f} ± {self.deviation:.2f} ({p})"


def paired(first: Sequence[float], second: Sequence[float]) -> Difference:
    """The paired t-test: t = mean / (deviation / √n) with n − 1 degrees of freedom.

    Examples
    --------
    >>> print(paired([2.0, 3.0, 4.5], [1.0, 2.5, 3.0]))
    +1.00 ± 0.50 (p = 0.0742)
    """
    difference = np.subtract(first, second)
    n, mean, deviation = len(difference), float(difference.mean()), float(difference.std(ddof=1))
    if deviation == 0:
        return Difference(mean, 0.0, 1.0 if mean == 0 else 0.0)
    return Difference(mean, deviation, 2 * float(stdtr(n - 1, -abs(mean) / (deviation / np.sqrt(n)))))


def mean_and_deviation(values: Sequence[float]) -> str:
    """As the paper's table has it."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.2f}"
