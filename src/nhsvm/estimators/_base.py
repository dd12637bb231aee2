"""What all estimators do: validate, encode, assemble the problem, solve it, store the result."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from nhsvm.columns import make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators._answers import Answering
from nhsvm.estimators._calibration import hold_out, make_folds, temperature
from nhsvm.estimators._data import checked, checked_weights, class_factors, same_length
from nhsvm.estimators._estimate import warn_if_tight
from nhsvm.estimators._held_out import set_folds
from nhsvm.estimators._label_sets import LabelSets, encode_sets, is_multilabel
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._options import check_options, check_single, n_threads, seed_of, streams, why_no_sets
from nhsvm.estimators._progress import Progress
from nhsvm.estimators._rollback import unchanged_on_error
from nhsvm.estimators._set_fit import SetFit
from nhsvm.estimators._stream import Stream
from nhsvm.estimators._targets import Targets, encode
from nhsvm.estimators._warm import WarmStart
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.losses import Loss, make_loss
from nhsvm.model import Model, Training
from nhsvm.model.model import by_class
from nhsvm.storage.samples import precise_enough
from nhsvm.weights import Scheme, node_weights

_SINGLE = 1e-4  # from this tolerance up, single precision is enough for the weights


class HierarchicalSVM(Answering, SetFit, WarmStart, Stream, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of FlatSVM, HSVM and NHSVM, which say what α, loss and margin are."""

    _scheme: str | Scheme
    _auto_loss: str
    _stream: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from samples with one label each, or with a set of labels each.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features)
        y : array-like of n_samples labels or label sets, or indicator
            Labels are nodes of the hierarchy: leaves, or inner nodes, which then become classes of their own. A label
            set is a list, tuple, set or frozenset of labels; what is above a label is understood and need not be there.
            An indicator is a matrix of 0 and 1, dense, sparse or a DataFrame, whose columns are named, or else the
            leaves of the hierarchy.
        sample_weight : array-like of n_samples, optional
            C is multiplied by it.

        Returns
        -------
        self
        """
        check_options(self)
        with unchanged_on_error(self):
            targets = self._encoded(y)
            X, weight = self._samples(X, targets, sample_weight, reset=True)
            folds = self._folds(targets, weight)
            problem, alpha = self._assembled(X, targets, weight)
            if not streams(self):
                warn_if_tight(problem)
            solution = self._solver().solve(problem, *self._start(problem))
            self._store(problem, targets, alpha, solution)
            if folds is not None and not solution.interrupted:
                if isinstance(targets, LabelSets):
                    self._learn_from_folds(problem, targets, weight, folds)
                else:
                    found = temperature(hold_out(self._for_fold, X, targets, weight, folds))
                    self.model_ = replace(self.model_, temperature=found)
        self._warn_unless_converged(solution)
        return self

    def _encoded(self, y: Any) -> Targets | LabelSets:
        """Labels or label sets, after a check that the options are for them."""
        if not is_multilabel(y, self.hierarchy):
            check_single(self)
            return encode(y, self.hierarchy)
        reason = why_no_sets(self)
        if reason is not None:
            raise OptionError(f"y has label sets, but {reason}")
        return encode_sets(y, self.hierarchy, allow_empty=self.allow_empty)

    def _folds(self, targets: Targets | LabelSets, weight: FloatArray) -> Any:
        """Folds to hold out, if something is learned from them."""
        seed = seed_of(self.random_state)
        if isinstance(targets, LabelSets):
            return set_folds(self.cv, targets, weight, seed) if self.offsets or self.probability else None
        return make_folds(self.cv, targets, weight, seed) if self.probability else None

    def _samples(
        self, X: Any, targets: Targets | LabelSets, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, FloatArray]:
        """Checked samples and weights."""
        X = checked(self, X, reset=reset)
        same_length(X.shape[0], targets.n_samples)
        return X, checked_weights(sample_weight, X.shape[0])

    def _assembled(self, X: Any, targets: Targets | LabelSets, weight: FloatArray) -> tuple[Any, FloatArray]:
        """The learning problem, and α."""
        if isinstance(targets, LabelSets):
            return self._set_problem(X, targets, weight)
        oracle, alpha = self._oracle(targets.hierarchy)
        return self._problem(X, targets, weight, oracle), alpha

    def _oracle(self, hierarchy: Hierarchy) -> tuple[Any, FloatArray]:
        """The oracle of a hierarchy, with columns and loss; and α."""
        from nhsvm.oracles.single_label import SingleLabel

        alpha = node_weights(hierarchy, self._scheme)
        normalized = getattr(self, "margin", "loss") == "normalized"
        loss = self._loss("normalized" if normalized else self._auto_loss, hierarchy, alpha)
        return SingleLabel(make_columns(hierarchy.graph, alpha), loss, normalized), alpha

    def _loss(self, auto: str, hierarchy: Hierarchy, alpha: FloatArray) -> Loss:
        name = auto if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        return make_loss(name, hierarchy, alpha)

    def _problem(self, X: Any, targets: Targets, weight: FloatArray, oracle: Any) -> Any:
        """The learning problem; C_i = C · sample weight · class weight."""
        from nhsvm.solvers import Problem, prepare

        if self.class_weight is not None:
            weight = weight * class_factors(self.class_weight, targets, weight, self.hierarchy)[targets.codes]
        bias, dtype = self._precision(X)
        costs, memory = self.C * weight, allowed_bytes(self.memory_limit)
        return Problem(prepare(X), targets.leaves, costs, oracle.columns, oracle, bias, dtype, memory=memory)

    def _precision(self, X: Any) -> tuple[float, Any]:
        """(value of the constant feature, type of the weights)."""
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        single = self._tolerance() >= _SINGLE and precise_enough(X, bias)
        return bias, np.float32 if single else np.float64

    def _solver(self, *, silent: bool = False) -> Any:
        from nhsvm.solvers import SOLVERS

        if not isinstance(self.solver, str):
            return self.solver
        more = {} if self.certify else {"certify": False}  # which not every solver can leave out
        return SOLVERS[self.solver](
            tol=self.tol,
            max_iter=self.max_iter,
            n_threads=n_threads(self.n_jobs),
            seed=seed_of(self.random_state),
            callback=None if silent else Progress(self.verbose, self.callback),
            **more,
        )

    def _tolerance(self) -> float:
        """That of the solver, which may be an instance with its own."""
        tol: Any = getattr(self.solver, "tol", self.tol)
        return float(tol)

    def _for_fold(self) -> Any:
        """An estimator like this one, for held-out scores."""
        other = {"probability": False, "warm_start": False, "callback": None, "verbose": 0}
        return type(self)(**self.get_params(deep=False) | other)

    def _store(self, problem: Any, targets: Targets | LabelSets, alpha: FloatArray, solution: Any) -> None:
        (primal, dual), gap, history = solution.certificate, solution.certificate.gap, solution.history
        self.model_ = Model(
            hierarchy=targets.hierarchy,
            classes=targets.classes,
            class_leaves=targets.class_leaves,
            node_weights=alpha,
            columns=by_class(problem.columns, targets.class_leaves),
            weights=solution.weights.learned(),
            bias=problem.bias,
            training=Training(primal, dual, gap, max(1, len(history)), history),
            sets=self._set_form(targets.form) if isinstance(targets, LabelSets) else None,
            feature_names=getattr(self, "feature_names_in_", None),
        )
        self._interrupted = solution.interrupted
        self._stream = None
        self._keep_state(problem, solution)

    def _warn_unless_converged(self, solution: Any) -> None:
        if solution.interrupted:
            text = f"interrupted after {_passes(self.n_iter_)}; this model's certified gap is {self.gap_:.2e}"
        elif solution.converged:
            return
        elif not np.isfinite(self.gap_) and not getattr(self.solver, "certify", self.certify):
            about = f"about {self.history_[-1]['gap']:.2g}, it seemed" if self.history_ else "none was estimated"
            text = f"stopped after {_passes(self.n_iter_)}; certify=False, so no gap is proved: {about}"
        else:
            text = (
                f"stopped after {_passes(self.n_iter_)} at a gap of {self.gap_:.2e}, above tol={self._tolerance():g}; "
                "raise max_iter or tol, or scale the features"
            )
        warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = why_no_sets(self) is None
        return tags


def _passes(number: int) -> str:
    return f"{number} pass{'' if number == 1 else 'es'}"
