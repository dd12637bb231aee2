"""What all estimators do: validate, encode, assemble the problem, solve it, store the result."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from nhsvm.columns import make_columns
from nhsvm.errors import LabelError, OptionError
from nhsvm.estimators._calibration import hold_out, make_folds, temperature
from nhsvm.estimators._data import checked, checked_weights, class_factors, precise_enough
from nhsvm.estimators._options import check_options, n_threads, seed_of
from nhsvm.estimators._predict import Prediction
from nhsvm.estimators._probability import Probability
from nhsvm.estimators._progress import Progress
from nhsvm.estimators._rollback import unchanged_on_error
from nhsvm.estimators._stored import Stored, by_class
from nhsvm.estimators._stream import Stream
from nhsvm.estimators._targets import Targets, as_labels, encode
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.losses import make_loss
from nhsvm.weights import Scheme, node_weights

_SINGLE = 1e-4  # from this tolerance up, single precision is enough for the weights


class HierarchicalSVM(Prediction, Probability, Stream, Stored, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of FlatSVM, HSVM and NHSVM, which say what α, loss and margin are."""

    _scheme: str | Scheme
    _auto_loss: str
    _planes: Any
    _stream: Any
    _fitted_leaves: Any
    _fitted_costs: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from samples with one label each.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features)
        y : array-like of n_samples labels
            Nodes of the hierarchy: leaves, or inner nodes, which then become classes of their own.
        sample_weight : array-like of n_samples, optional
            C is multiplied by it.

        Returns
        -------
        self
        """
        check_options(self)
        with unchanged_on_error(self):
            targets = encode(y, self.hierarchy)
            X, weight = self._samples(X, targets, sample_weight, reset=True)
            folds = make_folds(self.cv, targets, weight, seed_of(self.random_state)) if self.probability else None
            oracle, alpha = self._oracle(targets.hierarchy)
            problem = self._problem(X, targets, weight, oracle)
            solution = self._solver().solve(problem, *self._start(problem))
            self._store(problem, targets, alpha, solution)
            if folds is not None and not solution.interrupted:
                self.temperature_ = temperature(hold_out(self._for_fold, X, targets, weight, folds))
        self._warn_unless_converged(solution)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of samples with the right label; labels may be of any type, such as tuples."""
        found = self.predict(X).astype(object)
        labels = as_labels(y).astype(object)
        _same_length(len(found), len(labels))
        right = np.fromiter((a == b for a, b in zip(found, labels, strict=True)), dtype=bool, count=len(found))
        return float(np.average(right, weights=checked_weights(sample_weight, len(right))))

    def _samples(self, X: Any, targets: Targets, sample_weight: Any, *, reset: bool) -> tuple[Any, FloatArray]:
        """Checked samples and weights."""
        X = checked(self, X, reset=reset)
        _same_length(X.shape[0], len(targets.codes))
        return X, checked_weights(sample_weight, X.shape[0])

    def _oracle(self, hierarchy: Hierarchy) -> tuple[Any, FloatArray]:
        """The oracle of a hierarchy, with columns and loss; and α."""
        from nhsvm.oracles.single_label import SingleLabel

        alpha = node_weights(hierarchy, self._scheme)
        normalized = getattr(self, "margin", "loss") == "normalized"
        auto = isinstance(self.loss, str) and self.loss == "auto"
        name = "normalized" if normalized else self._auto_loss if auto else self.loss
        columns = make_columns(hierarchy.graph, alpha)
        return SingleLabel(columns, make_loss(name, hierarchy, alpha), normalized), alpha

    def _problem(self, X: Any, targets: Targets, weight: FloatArray, oracle: Any) -> Any:
        """The learning problem; C_i = C · sample weight · class weight."""
        from nhsvm.solvers import Problem, prepare

        if self.class_weight is not None:
            weight = weight * class_factors(self.class_weight, targets, weight, self.hierarchy)[targets.codes]
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        single = self._tolerance() >= _SINGLE and precise_enough(X, bias)
        dtype = np.float32 if single else np.float64
        return Problem(prepare(X), targets.leaves, self.C * weight, oracle.columns, oracle, bias, dtype)

    def _solver(self) -> Any:
        from nhsvm.solvers import SOLVERS

        if not isinstance(self.solver, str):
            return self.solver
        return SOLVERS[self.solver](
            tol=self.tol,
            max_iter=self.max_iter,
            n_threads=n_threads(self.n_jobs),
            seed=seed_of(self.random_state),
            callback=Progress(self.verbose, self.callback),
        )

    def _tolerance(self) -> float:
        """That of the solver, which may be an instance with its own."""
        tol: Any = getattr(self.solver, "tol", self.tol)
        return float(tol)

    def _for_fold(self) -> Any:
        """An estimator like this one, for held-out scores."""
        other = {"probability": False, "warm_start": False, "callback": None, "verbose": 0}
        return type(self)(**self.get_params(deep=False) | other)

    def _start(self, problem: Any) -> tuple[Any, ...]:
        """Dual variables of the fit before, if they are to be used: scaled to the new costs."""
        planes = getattr(self, "_planes", None)
        if not self.warm_start or planes is None:
            return ()
        if not np.array_equal(self._fitted_leaves, problem.leaves):
            raise OptionError(
                "warm_start goes on from the dual variables of the last fit, so it needs the same samples and labels; "
                "set warm_start=False for other data"
            )
        self._planes = None  # the solver changes them, and may fail
        planes.describe(problem.leaves, problem.oracle)
        had = self._fitted_costs > 0
        planes.rescale(np.divide(problem.costs, self._fitted_costs, out=np.zeros(len(had)), where=had))
        return (planes,)

    def _store(self, problem: Any, targets: Targets, alpha: FloatArray, solution: Any) -> None:
        self.__dict__.pop("temperature_", None)
        self.hierarchy_, self.classes_, self.node_weights_ = targets.hierarchy, targets.classes, alpha
        self._class_leaves = targets.class_leaves
        self._columns = by_class(problem.columns, targets.class_leaves)
        self._values, self._by_feature = solution.weights.values, sp.issparse(problem.X)
        self._bias = problem.bias
        self.objective_, self.dual_objective_ = solution.certificate
        self.gap_ = solution.certificate.gap
        self.history_ = solution.history
        self.n_iter_ = max(1, len(solution.history))
        self._stream = None
        self._planes = solution.planes if self.warm_start else None
        self._fitted_leaves = problem.leaves if self.warm_start else None
        self._fitted_costs = problem.costs if self.warm_start else None

    def _warn_unless_converged(self, solution: Any) -> None:
        if solution.interrupted:
            text = f"interrupted after {self.n_iter_} passes; this model's certified gap is {self.gap_:.2e}"
        elif not solution.converged:
            text = (
                f"stopped after {self.n_iter_} passes at a gap of {self.gap_:.2e}, above tol={self._tolerance():g}; "
                "raise max_iter or tol, or scale the features"
            )
        else:
            return
        warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _same_length(n_samples: int, n_labels: int) -> None:
    if n_samples != n_labels:
        raise LabelError(f"inconsistent numbers of samples: X has {n_samples} rows, but y has {n_labels} labels")
