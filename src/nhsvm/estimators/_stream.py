"""Learning from one part of the data after the other; a mixin."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from nhsvm.errors import LabelError, OptionError
from nhsvm.estimators._options import check_options, check_single, streams
from nhsvm.estimators._rollback import unchanged_on_error
from nhsvm.estimators._targets import Targets, as_labels, encode, unique, within


def _by_parts(estimator: Any) -> bool:
    if not streams(estimator):
        raise AttributeError(f"partial_fit needs {type(estimator).__name__}(solver='sgd')")
    return True


class Stream:
    """``partial_fit``, for solvers that can stop and go on."""

    @available_if(_by_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """One pass over some more samples. Needs ``solver="sgd"``.

        It aims at the objective of all samples given so far. That is not measured: ``objective_`` and
        ``dual_objective_`` are NaN, and ``gap_`` is infinite.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features)
        y : array-like of n_samples labels
        classes : array-like of labels
            All that will ever be met; needed in the first call.
        sample_weight : array-like of n_samples, optional

        Returns
        -------
        self
        """
        check_options(self)
        check_single(self)
        if self.probability or (isinstance(self.class_weight, str) and self.class_weight == "balanced"):
            raise OptionError(
                "partial_fit sees a part of the data at a time, so it has neither probability=True nor "
                "class_weight='balanced'; use fit, or a dict of class weights"
            )
        with unchanged_on_error(self):
            begun = getattr(self, "_stream", None)
            targets = _first_targets(self, y, classes) if begun is None else _more_targets(self, y, classes)
            X, weight = self._samples(X, targets, sample_weight, reset=begun is None)
            if begun is None:
                oracle, alpha = self._oracle(targets.hierarchy)
            else:
                state, oracle, alpha = begun
                X = sp.csr_array(X) if self.model_.weights.by_feature else X.toarray() if sp.issparse(X) else X
            problem, solver = self._problem(X, targets, self._relative_costs(targets, weight), oracle), self._solver()
            if begun is None:
                state = solver.begin(problem)
            self._stream = None  # the solver changes it, and may be interrupted half-way
            solver.partial(problem, state)
            self._store(problem, targets, alpha, _solution(problem, state))
            self._stream = state, oracle, alpha
        return self


def _solution(problem: Any, state: Any) -> Any:
    """The model so far; what it is worth, nobody has measured."""
    from nhsvm.engine import Solution
    from nhsvm.objective import Certificate

    weights = problem.table()
    state.model(weights.values)
    return Solution(weights, Certificate(np.nan, np.nan))


def _first_targets(estimator: Any, y: Any, classes: Any) -> Targets:
    if hasattr(estimator, "classes_"):
        raise OptionError(
            "partial_fit goes on from a completed partial_fit only, not from fit, a file, or a call that was "
            "broken off; clone the estimator and begin again"
        )
    if classes is None:
        raise LabelError("classes must be given in the first call of partial_fit: all labels that will ever be met")
    return encode(y, estimator.hierarchy, classes)


def _more_targets(estimator: Any, y: Any, classes: Any) -> Targets:
    known = estimator.classes_
    if classes is not None and unique(as_labels(classes))[0].tolist() != known.tolist():
        raise LabelError("classes are not those of the first call of partial_fit")
    codes = within(*unique(as_labels(y)), known)
    return Targets(estimator.hierarchy_, known, estimator.model_.class_leaves, codes)
