"""The shell of all estimators: options, the way from ``fit`` through the engine to ``model_``, ``partial_fit``.

``fit`` is :meth:`~HierarchicalSVM.make_problem`, which checks and encodes what it is given, and
:meth:`~HierarchicalSVM.fit_problem`: a solver of :mod:`nhsvm.engine` learns from the problem, and what it has learned
becomes a :class:`~nhsvm.model.Model`, with offsets and probabilities from held-out folds if these are asked for.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, Unpack

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from nhsvm.compilation import COMPILATIONS
from nhsvm.errors import LabelError, OptionError
from nhsvm.estimators.answers import Answering
from nhsvm.estimators.calibration import Fold, FoldInterruptedError, FoldModels
from nhsvm.estimators.defaults import Chosen
from nhsvm.estimators.early_stopping import Validation
from nhsvm.estimators.labels import Targets, as_labels, encode, is_multilabel, unique, within
from nhsvm.estimators.memory import warn_if_tight
from nhsvm.estimators.options import (
    Progress,
    check_options,
    check_single,
    n_threads,
    seed_of,
    solver_of,
    why_no_sets,
)
from nhsvm.estimators.problem import (
    KnownOracle,
    LabelSetLearning,
    LearningProblem,
    SingleLabelLearning,
    samples_of,
    single_label_oracle,
)
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss, make_loss
from nhsvm.model import Model, Training
from nhsvm.model.model import by_class
from nhsvm.objective import Certificate
from nhsvm.options import AUTO, Options, Preset
from nhsvm.typing import FloatArray, LabelsLike, MatrixLike, Record, SampleWeights

if TYPE_CHECKING:  # the engine loads numba, which importing an estimator should not
    from sklearn.utils import Tags

    from nhsvm.engine import Problem, Solution, Solver
    from nhsvm.engine.protocols import DualBlock
    from nhsvm.engine.sgd import SgdState


class WarmStart(NamedTuple):
    """What a fit with ``warm_start`` leaves for the next one."""

    dual: DualBlock
    """Dual variables."""
    about: tuple[npt.ArrayLike, ...]
    """What they are about, as the problem says."""
    costs: FloatArray
    """The costs that they belong to."""

    def fits(self, problem: Problem) -> bool:
        """Whether a fit of this problem can go on from them."""
        about = problem.about()
        return len(about) == len(self.about) and all(map(np.array_equal, about, self.about))

    def copied(self) -> WarmStart:
        """The same for one fit more: a fit changes what it goes on from."""
        return self._replace(dual=deepcopy(self.dual))


class Stream(NamedTuple):
    """What ``partial_fit`` goes on from."""

    state: SgdState
    known: KnownOracle
    chosen: Chosen


def _by_parts(estimator: HierarchicalSVM) -> bool:
    if not solver_of(estimator).streams:
        raise AttributeError(f"partial_fit needs {type(estimator).__name__}(solver='sgd')")
    return True


class HierarchicalSVM(Answering, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators, which are presets of it: see :class:`nhsvm.options.Preset`."""

    _preset: ClassVar[Preset]
    interrupted_: bool
    _dual: WarmStart | None = None
    _stream: Stream | None = None

    def __init__(self, hierarchy: Hierarchy | None = None, C: float | str = AUTO, **options: Unpack[Options]) -> None:
        taken = self._preset.options() | {"C": C}
        unknown = options.keys() - taken.keys()
        if unknown:
            name = min(unknown)
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}")
        self.hierarchy = hierarchy
        for name, value in (taken | options).items():
            setattr(self, name, value)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        preset = vars(cls).get("_preset")
        if preset is None:
            return
        for name, value in preset.settled.items():
            setattr(cls, name, value)

        def __init__(  # noqa: N807
            self: HierarchicalSVM, hierarchy: Hierarchy | None = None, C: float | str = AUTO, **options: Unpack[Options]
        ) -> None:
            HierarchicalSVM.__init__(self, hierarchy, C, **options)

        __init__.__signature__ = preset.signature()  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[method-assign]
        cls.__doc__ = preset.documented(cls.__name__, cls.__doc__ or "")

    # -- learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights = None) -> Self:
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
            solution = self._learn(problem)
        self._warn_unless_converged(solution, problem)
        return self

    def make_problem(self, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights = None) -> LearningProblem:
        """What :meth:`fit` learns from, checked and encoded, for :meth:`fit_problem`: for several fits, or an estimate.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        """
        check_options(self)
        kind = LabelSetLearning if is_multilabel(y, self.hierarchy) else SingleLabelLearning
        with unchanged_on_error(self):
            return kind.of(self, X, y, sample_weight)

    def fit_problem(self, problem: LearningProblem) -> Self:
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
            solution = self._learn(problem)
        self._warn_unless_converged(solution, problem)
        return self

    def _learn(self, problem: LearningProblem) -> Solution:
        """Solve the problem, make ``model_`` of the solution, and calibrate it."""
        folds = problem.folds(self)
        whole = self._continued(problem)
        if solver_of(self).takes_rows:
            warn_if_tight(whole.solved)
        solver = self._solver(whole.chosen)
        if self.early_stopping:
            validation = Validation.of(self, whole)
            solver, whole = solver.watched(validation), whole.without(validation.rows)
        start = self._dual_start(whole.solved)
        if self.verbose:
            self._tell(whole.solved)
        with COMPILATIONS.told(COMPILATIONS.say) if self.verbose else nullcontext():
            solution = solver.solve(whole.solved, *start)
        self._store(whole, solution)
        if folds is not None and not solution.interrupted:
            self._calibrate(problem, folds)
        return solution

    def _tell(self, problem: Problem) -> None:
        """Say beforehand what may make a fit slow."""
        found = self._about_scales(problem)
        if found:
            print(found, file=sys.stderr, flush=True)

    def _calibrate(self, problem: LearningProblem, folds: list[Fold]) -> None:
        """Add to the model what held-out folds teach."""
        try:
            made = FoldModels.learned(problem, self.model_, folds, self._solver(problem.chosen, silent=True))
            self.model_ = problem.calibrated(self, self.model_, made)
        except FoldInterruptedError:
            self.interrupted_ = True
            text = "interrupted while folds were held out: this model has neither offsets nor probabilities"
            warnings.warn(text, ConvergenceWarning, stacklevel=4)

    def _store(self, problem: LearningProblem, solution: Solution) -> None:
        """What was learned, as ``model_``, and what is left to go on from."""
        labels, solved, history = problem.labels, problem.solved, solution.history
        alpha, columns = problem.alpha, solved.columns
        if solution.alpha is not None:  # learned, and not given
            alpha, columns = np.zeros(len(alpha)), replace(columns, alpha=solution.alpha)
            alpha[columns.nodes] = solution.alpha
        primal, dual, gap = map(float, (*solution.certificate, solution.certificate.gap))
        certified = solution.certified and isfinite(gap)
        self.model_ = Model(
            hierarchy=labels.hierarchy,
            classes=labels.classes,
            class_leaves=labels.class_leaves,
            node_weights=alpha,
            columns=by_class(columns, labels.class_leaves),
            weights=solution.weights.learned(),
            bias=solved.bias,
            training=Training(
                primal, dual, gap, max(1, len(history)), history, certified, problem.C, problem.chosen.tol
            ),
            sets=problem.form(self),
            feature_names=vars(self).get("feature_names_in_"),
        )
        self.interrupted_ = solution.interrupted
        self._stream = None
        kept = solution.dual if self.warm_start else None
        self._dual = None if kept is None else WarmStart(kept, solved.about(), solved.costs)

    # -- going on ------------------------------------------------------------------------------------------------------

    def _continued(self, problem: LearningProblem) -> LearningProblem:
        """The problem as a warm start needs it."""
        return problem

    def _dual_start(self, problem: Problem) -> tuple[DualBlock, ...]:
        """Dual variables of the fit before, made fit for the new costs, if they are to be used."""
        kept = self._dual
        if not self.warm_start or kept is None:
            return ()
        if not kept.fits(problem):
            raise OptionError(
                "warm_start goes on from the dual variables of the last fit, so it needs the same samples and labels "
                "(and with label sets the same nodes with weight, the same allow_empty unless this is HRSVM, and on a "
                "DAG oracle='lp' in both or in neither); set warm_start=False for other data"
            )
        self._dual = None  # the solver changes them, and may fail
        problem.resume(kept.dual, kept.costs)
        return (kept.dual,)

    @available_if(_by_parts)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: MatrixLike, y: LabelsLike, classes: LabelsLike = None, sample_weight: SampleWeights = None
    ) -> Self:
        """One pass over some more samples. Needs ``solver="sgd"``.

        It aims at the objective of all samples given so far. That is not measured: ``objective_`` and
        ``dual_objective_`` are NaN, and ``gap_`` is infinite. Options that are "auto" are settled by the first part.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features)
        y : array-like of n_samples labels
        classes : array-like of labels
            All classes that any part will have; needed in the first call.
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
        from nhsvm.engine import Solution, StreamingSolver

        with unchanged_on_error(self):
            begun = self._stream
            labels = self._streamed(y, classes)
            X, weight = samples_of(self, X, labels, sample_weight, reset=begun is None)
            if begun is None:
                known = single_label_oracle(self, labels.hierarchy)
            else:
                known = begun.known
                X = sp.csr_array(X) if self.model_.weights.by_feature else X.toarray() if sp.issparse(X) else X
            problem = SingleLabelLearning.posed(self, X, labels, weight, known, begun and begun.chosen)
            solver = self._solver(problem.chosen)
            assert isinstance(solver, StreamingSolver)  # else there is no partial_fit
            state = solver.begin(problem.solved) if begun is None else begun.state
            self._stream = None  # the solver changes it, and may be interrupted half-way
            solver.partial(problem.solved, state)
            weights = problem.solved.table()
            state.model(weights.values)
            self._store(
                problem, Solution(weights, Certificate(np.nan, np.nan), certified=False)
            )  # what it is worth was not measured
            self._stream = Stream(state, known, problem.chosen)
        return self

    def _streamed(self, y: LabelsLike, classes: LabelsLike) -> Targets:
        """The labels of one more part; classes are those of the first one."""
        if self._stream is None:
            if self._is_fitted:
                raise OptionError(
                    "partial_fit goes on from a completed partial_fit only, not from fit, a file, or a call that was "
                    "broken off; clone the estimator and begin again"
                )
            if classes is None:
                raise LabelError(
                    "classes must be given in the first call of partial_fit: all labels that will ever be met"
                )
            return encode(y, self.hierarchy, classes)
        known = self.classes_
        if classes is not None and unique(as_labels(classes))[0].tolist() != known.tolist():
            raise LabelError("classes are not those of the first call of partial_fit")
        codes = within(*unique(as_labels(y)), known)
        return Targets(self.hierarchy_, known, self.model_.class_leaves, codes)

    # -- models from elsewhere -----------------------------------------------------------------------------------------

    def _adopt(self, model: Model) -> None:
        """Check the options, and be fitted with this model."""
        check_options(self)
        self.model_, self.n_features_in_, self.interrupted_ = model, model.n_features, False
        if model.feature_names is not None:
            self.feature_names_in_ = model.feature_names
        self._dual = self._stream = None

    def _with_model(self, model: Model) -> Self:
        """A copy that has another model, and nothing to go on from."""
        other = copy(self)  # a fit replaces attributes, and does not change what they hold
        other.model_, other._dual, other._stream = model, None, None
        return other

    # -- what options stand for ----------------------------------------------------------------------------------------

    def _loss(self, auto: str, hierarchy: Hierarchy, alpha: FloatArray) -> Loss:
        name = auto if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        return make_loss(name, hierarchy, alpha)

    def _solver(self, chosen: Chosen | None = None, *, silent: bool = False) -> Solver:
        """The solver, for options that are settled; without them it is made only to be refused."""
        from nhsvm.engine import SOLVERS

        if not isinstance(self.solver, str):
            solver: Solver = self.solver
            return solver
        more: Record = {} if chosen is None else {"tol": chosen.tol}
        if chosen is not None and not chosen.certify:  # which not every solver can leave out
            more["certify"] = False
        return SOLVERS[self.solver](
            max_iter=self.max_iter,
            n_threads=n_threads(self.n_jobs),
            seed=seed_of(self.random_state),
            callback=None if silent else Progress(self.verbose, self.callback),
            **more,
        )

    def _of_solver(self, option: str) -> float | str:
        """The value of an option; that of the solver, if it is an instance with its own."""
        value: float | str = getattr(self.solver, option, getattr(self, option))
        return value

    # -- warnings and conventions --------------------------------------------------------------------------------------

    def _warn_unless_converged(self, solution: Solution, learned: LearningProblem) -> None:
        passes, tol = f"{self.n_iter_} pass{'' if self.n_iter_ == 1 else 'es'}", learned.chosen.tol
        problem = learned.solved
        if solution.interrupted:
            text = f"interrupted after {passes}; this model's certified gap is {self.gap_:.2e}"
        elif solution.converged or solution.stopped:
            return
        elif solution.rounding > tol:
            used = problem.costs[problem.costs > 0]
            text = (
                f"stopped after {passes} at a gap of {self.gap_:.2e}: rounding alone may be {solution.rounding:.1e} of "
                f"the objective, above tol={tol:g}, so more passes do not help. C times sample and class weight goes "
                f"from {used.min(initial=np.inf):.1e} to {used.max(initial=0.0):.1e}; bring the largest weights of "
                "samples nearer to the others, or raise tol"
            )
        else:
            found = self._about_scales(problem)
            gap = f"a gap of {self.gap_:.2e}" if solution.certified else f"an estimated gap of {self.gap_:.2g}"
            text = f"stopped after {passes} at {gap}, above tol={tol:g}"
            if solution.stagnant:
                text += f", since further passes hardly help; {found or 'scale the features, lower C, or raise tol'}"
            elif found:
                text += f"; {found}, or raise max_iter or tol"
            else:
                text += "; raise max_iter or tol, or scale the features"
        warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def _about_scales(self, problem: Problem) -> str | None:
        """What there is to say of the scales of features."""
        from nhsvm.estimators.scales import about_scales

        return about_scales(problem, vars(self).get("feature_names_in_"))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = why_no_sets(self) is None
        return tags


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Put all attributes back if an error comes: the model of the fit before stays usable."""
    attributes = estimator.__dict__
    before = dict(attributes)
    try:
        yield
    except BaseException:
        for name in before.keys() & {"_dual", "_stream"}:  # what a solver had in its hands is gone
            before[name] = attributes[name]
        attributes.clear()
        attributes.update(before)
        raise
