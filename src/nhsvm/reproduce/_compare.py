"""Mean, deviation and paired differences of models on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtr, stdtr

LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """Of two models on the same data: mean, standard deviation, and p of a two-sided paired test."""

    mean: float
    deviation: float
    p: float

    @property
    def better(self) -> bool:
        """Whether the first is significantly better."""
        return self.mean > 0 and self.p < LEVEL

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.deviation:.2f} ({shown_p(self.p)})"


def shown_p(p: float) -> str:
    """A p-value as pages have it."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.4f}"


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


def mcnemar(right: Any, other: Any) -> float:
    """The p-value of the exact McNemar test of two models' right answers to the same questions.

    How likely is it, if both were equally good, that the samples on which exactly one is right fall so unevenly? With b
    and c of these for one and the other, it is min(1, 2 P(B ≤ min(b, c))) for a binomial B of b + c throws of a coin.

    Examples
    --------
    >>> mcnemar([True, True, True, True, True, False], [False, False, False, False, False, False])
    0.0625
    >>> mcnemar([True, False], [True, False])
    1.0
    """
    right, other = np.asarray(right, dtype=bool), np.asarray(other, dtype=bool)
    better, worse = int((right & ~other).sum()), int((other & ~right).sum())
    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5))) if better + worse else 1.0


def mean_and_deviation(values: Sequence[float]) -> str:
    """As the paper's table has it."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.2f}"
