"""What all estimators do: validate, encode, assemble the problem, solve it, store the result."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from nhsvm.columns import make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators._answers import Answering
from nhsvm.estimators._calibration import Fold, hold_out, make_folds, temperature
from nhsvm.estimators._data import checked, checked_weights, class_factors, same_length
from nhsvm.estimators._estimate import warn_if_tight
from nhsvm.estimators._held_out import hold_out_sets, set_folds
from nhsvm.estimators._label_sets import LabelSets, encode_sets, is_multilabel
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._options import check_options, check_single, n_threads, seed_of, streams, why_no_sets
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._progress import Progress
from nhsvm.estimators._rollback import unchanged_on_error
from nhsvm.estimators._set_fit import SetFit
from nhsvm.estimators._stream import Stream
from nhsvm.estimators._targets import Targets, encode
from nhsvm.estimators._warm import WarmStart
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss, make_loss
from nhsvm.model import Model, Training
from nhsvm.model.model import by_class
from nhsvm.options import Options, Preset
from nhsvm.storage.samples import precise_enough
from nhsvm.typing import FloatArray
from nhsvm.weights import node_weights

_SINGLE = 1e-4  # from this tolerance up, single precision is enough for the weights


class HierarchicalSVM(Answering, SetFit, WarmStart, Stream, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators, which are presets of it: see :class:`nhsvm.options.Preset`."""

    _preset: Preset
    _stream: Any

    def __init__(self, hierarchy: Hierarchy | None = None, C: float = 1.0, **options: Unpack[Options]) -> None:
        taken = self._preset.options() | {"C": C}
        unknown = options.keys() - taken.keys()
        if unknown:
            name = min(unknown)
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}")
        self.hierarchy = hierarchy
        for name, value in (taken | options).items():
            setattr(self, name, value)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        preset = vars(cls).get("_preset")
        if preset is None:
            return
        for name, value in preset.settled.items():
            setattr(cls, name, value)

        def __init__(self: Any, hierarchy: Any = None, C: Any = 1.0, **options: Any) -> None:  # noqa: N807
            HierarchicalSVM.__init__(self, hierarchy, C, **options)

        __init__.__signature__ = preset.signature()  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[method-assign]
        cls.__doc__ = preset.documented(cls.__name__, cls.__doc__ or "")

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
        with unchanged_on_error(self):
            problem = self.make_problem(X, y, sample_weight)
            solution = self._solve(problem)
        self._warn_unless_converged(solution, problem.solved.costs)
        return self

    def make_problem(self, X: Any, y: Any, sample_weight: Any = None) -> LearningProblem:
        """What :meth:`fit` learns from, checked and encoded, for :meth:`fit_problem`: for several fits, or an estimate.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        """
        check_options(self)
        with unchanged_on_error(self):
            labels = self._encoded(y)
            X, weight = self._samples(X, labels, sample_weight, reset=True)
            return self._assembled(X, labels, weight)

    def fit_problem(self, problem: LearningProblem) -> Any:
        """Learn from what :meth:`make_problem` of this estimator has made; its C may be another by now.

        Parameters
        ----------
        problem : LearningProblem

        Returns
        -------
        self
        """
        check_options(self)
        problem = problem.at(self.C)
        with unchanged_on_error(self):
            solution = self._solve(problem)
        self._warn_unless_converged(solution, problem.solved.costs)
        return self

    def _solve(self, problem: LearningProblem) -> Any:
        """Learn, and store what was learned; the solution."""
        folds = self._folds(problem.labels, problem.weight)
        whole = self._continued(problem)
        if not streams(self):
            warn_if_tight(whole.solved)
        solution = self._solver().solve(whole.solved, *self._start(whole.solved))
        self._store(whole.solved, whole.labels, whole.alpha, solution)
        if folds is not None and not solution.interrupted and not self._learn_from_folds(problem, folds):
            text = "interrupted while folds were held out: this model has neither offsets nor probabilities"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return solution

    def _learn_from_folds(self, problem: LearningProblem, folds: list[Fold]) -> bool:
        """Learn what takes held-out samples; whether that was not interrupted."""
        solver = self._solver(silent=True)
        if problem.has_sets:
            sets = hold_out_sets(problem, folds, solver, self.n_jobs)
            if sets is not None:
                self._learn_from_sets(problem, sets)
            return sets is not None
        found = hold_out(problem, self.model_, folds, solver, self.n_jobs)
        if found is not None:
            self.model_ = replace(self.model_, temperature=temperature(found))
        return found is not None

    def _continued(self, problem: LearningProblem) -> LearningProblem:
        """The problem as a warm start needs it."""
        return problem

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

    def _assembled(self, X: Any, labels: Targets | LabelSets, weight: FloatArray) -> LearningProblem:
        """The learning problem of checked samples and encoded labels."""
        if isinstance(labels, LabelSets):
            solved, alpha = self._set_problem(X, labels, weight)
            return LearningProblem(labels, weight, alpha, weight, self.C, solved)
        oracle, alpha = self._oracle(labels.hierarchy)
        costs = self._relative_costs(labels, weight)
        return LearningProblem(labels, weight, alpha, costs, self.C, self._problem(X, labels, costs, oracle))

    def _relative_costs(self, labels: Targets, weight: FloatArray) -> FloatArray:
        """C_i / C = sample weight · class weight."""
        if self.class_weight is None:
            return weight
        factors: FloatArray = class_factors(self.class_weight, labels, weight, self.hierarchy)[labels.codes]
        return weight * factors

    def _oracle(self, hierarchy: Hierarchy) -> tuple[Any, FloatArray]:
        """The oracle of a hierarchy, with columns and loss; and α."""
        from nhsvm.oracles.leaves import SingleLabel

        alpha = node_weights(hierarchy, self.weights)
        normalized = self.margin == "normalized"
        loss = self._loss("normalized" if normalized else self._preset.auto_loss, hierarchy, alpha)
        return SingleLabel(make_columns(hierarchy.graph, alpha), loss, normalized), alpha

    def _loss(self, auto: str, hierarchy: Hierarchy, alpha: FloatArray) -> Loss:
        name = auto if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        return make_loss(name, hierarchy, alpha)

    def _problem(self, X: Any, labels: Targets, costs: FloatArray, oracle: Any) -> Any:
        """What a solver takes; C_i = C · costs."""
        from nhsvm.engine import SingleLabelProblem, prepare

        bias, dtype = self._precision(X)
        memory = allowed_bytes(self.memory_limit)
        return SingleLabelProblem(
            X=prepare(X),
            leaves=labels.leaves,
            costs=self.C * costs,
            columns=oracle.columns,
            oracle=oracle,
            bias=bias,
            dtype=dtype,
            memory=memory,
        )

    def _precision(self, X: Any) -> tuple[float, Any]:
        """(value of the constant feature, type of the weights)."""
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        single = self._tolerance() >= _SINGLE and precise_enough(X, bias)
        return bias, np.float32 if single else np.float64

    def _solver(self, *, silent: bool = False) -> Any:
        from nhsvm.engine import SOLVERS

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

    def _store(self, problem: Any, targets: Targets | LabelSets, alpha: FloatArray, solution: Any) -> None:
        history = solution.history
        primal, dual, gap = map(float, (*solution.certificate, solution.certificate.gap))
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

    def _warn_unless_converged(self, solution: Any, costs: FloatArray) -> None:
        if solution.interrupted:
            text = f"interrupted after {_passes(self.n_iter_)}; this model's certified gap is {self.gap_:.2e}"
        elif solution.converged:
            return
        elif not np.isfinite(self.gap_) and not getattr(self.solver, "certify", self.certify):
            about = f"about {self.history_[-1]['gap']:.2g}, it seemed" if self.history_ else "none was estimated"
            text = f"stopped after {_passes(self.n_iter_)}; certify=False, so no gap is proved: {about}"
        elif solution.rounding > self._tolerance():
            text = (
                f"stopped after {_passes(self.n_iter_)} at a gap of {self.gap_:.2e}: rounding alone may be "
                f"{solution.rounding:.1e} of the objective, above tol={self._tolerance():g}, so more passes do not "
                f"help. {_range(costs)}; bring the largest weights of samples nearer to the others, or raise tol"
            )
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


def _range(costs: FloatArray) -> str:
    """What costs samples have, in words."""
    used = costs[costs > 0]
    return f"C times sample and class weight goes from {used.min(initial=np.inf):.1e} to {used.max(initial=0.0):.1e}"
