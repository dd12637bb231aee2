"""What options stand for that are "auto": numbers worked out from the data, once a fit.

C and the constant feature follow the size of samples, m = mean ‖x‖², so that a model does not depend on the unit of its
features; the offset of leaves follows the loss and the number of labels, and where to stop the size of the problem. The
constants were chosen on real data: see ``docs/decisions/080-defaults.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nhsvm.estimators.options import solver_of
from nhsvm.options import AUTO, DEFAULTS
from nhsvm.typing import FloatArray, Matrix, PtrArray

if TYPE_CHECKING:
    from nhsvm.estimators.base import HierarchicalSVM


class Chosen(NamedTuple):
    """The options of a fit, none of which is "auto" any more."""

    C: float
    intercept_scaling: float
    """Value of the constant feature, 0 for none."""
    leaf_offset: float
    tol: float
    certify: bool
    mean_square: float
    """m, by which "auto" scales."""

    def at(self, C: float | str) -> Chosen:
        """The same with another C."""
        return self._replace(C=auto_cost(self.mean_square) if isinstance(C, str) else float(C))


def choose(svm: HierarchicalSVM, X: Matrix, weight: FloatArray, n_columns: int, offset: float = 0.0) -> Chosen:
    """What the options of an estimator stand for.

    Parameters
    ----------
    svm : estimator
    X : checked samples
    weight : array of n_samples
        C_i / C, of sample and class weights: a sample counts as often as it weighs.
    n_columns : int
        Nodes with weights.
    offset : float
        What ``leaf_offset="auto"`` is; 0 for one label a sample.
    """
    m = mean_square(X, weight)
    intercept = rounded(DEFAULTS.intercept * m**0.5) if _auto(svm.intercept_scaling) else float(svm.intercept_scaling)
    offset = offset if _auto(svm.leaf_offset) else float(svm.leaf_offset)
    small, proves = X.shape[0] * n_columns <= DEFAULTS.small, solver_of(svm).proves
    tol = svm._of_solver("tol")
    certify = svm._of_solver("certify")
    if _auto(certify):
        certify = not _auto(tol) or not proves or (small and not svm.early_stopping)
    if _auto(tol):
        tol = DEFAULTS.small_tol if small or svm.early_stopping or not proves else DEFAULTS.tol
    cost = auto_cost(m) if _auto(svm.C) else float(svm.C)
    return Chosen(cost, intercept if svm.fit_intercept else 0.0, offset, float(tol), bool(certify), m)


def _auto(value: object) -> bool:
    return isinstance(value, str) and value == AUTO


def auto_cost(mean_square: float) -> float:
    """C for samples of this mean ‖x‖²."""
    return rounded(DEFAULTS.cost / mean_square)


def auto_offset(leaf_loss: float, n_labels: PtrArray, n_leaves: int, weight: FloatArray) -> float:
    """The offset of leaves in label sets, for what a wrong leaf costs and how many leaves every sample has."""
    share = float(weight @ n_labels) / (float(weight.sum()) * n_leaves)
    return rounded(DEFAULTS.offset * leaf_loss * max(0.0, 1.0 - 2.0 * share))


def mean_square(X: Matrix, weight: FloatArray) -> float:
    """The mean ‖x‖² of samples that weigh something; 1 if all of these are zero."""
    from nhsvm.engine import prepare
    from nhsvm.engine.samples import squared_norms

    total = float(weight.sum())
    found = float(weight @ squared_norms(prepare(X))) / total if total > 0 else 0.0
    return found if 0.0 < found < np.inf else 1.0


def rounded(value: float) -> float:
    """With three digits: easy to read, and the same for data that are the same up to rounding."""
    return float(f"{value:.2e}")
