"""HR-SVM: one hinge a leaf, and a vector of every node that is tied to its parent's (Gopal and Yang, 2013)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nhsvm.columns import make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.estimators._data import class_factors
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._targets import Targets
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray, Ragged
from nhsvm.weights import Uniform, node_weights


class HRSVM(HierarchicalSVM):
    """One-vs-rest SVMs of all leaves, with recursive regularisation: HR-SVM of Gopal and Yang (2013).

    min ½ Σ_n ‖w_n − w_parent(n)‖² + Σ_i C_i Σ_l max(0, 1 − y_il w_l·x_i), where y_il is 1 for the labels of sample i
    and −1 for all other leaves l, and the parent of a root is 0. In the terms of this library w_l is the sum of U_n
    over Ā(l), the leaf and everything above it, with U_n = w_n − w_parent(n) and α = 1 on all nodes; on a DAG the sum
    is over all ancestors.

    One label a sample: the leaf of the highest score is predicted. Label sets: all leaves with a positive score, and
    the leaf of the highest score if there is none.

    Parameters
    ----------
    hierarchy : Hierarchy or None
        None is the flat hierarchy over the labels seen: separate hinge SVMs.
    C : float
        Cost of errors.
    solver : "dual" or instance
        Exact, and proves it. An instance of ``nhsvm.solvers.Dual`` has its own tol, max_iter, certify, threads,
        seed and callback.
    fit_intercept : bool
        Add a constant feature, which is regularised like the others.
    intercept_scaling : float
        Its value. The larger, the less the intercept is regularised.
    class_weight : dict, "balanced" or None
        Factors of C_i by the class of sample i; "balanced" makes every class count the same. For one label a sample.
    probability : bool
        Learn probabilities for ``predict_proba``, ``node_proba`` and ``predict_partial`` from held-out folds, which
        takes ``cv`` more fits: a temperature for one label a sample, a curve for every node for label sets. Without it,
        these methods do not exist.
    cv : int, splitter or iterable of (train, test)
        The folds. A number deals the samples of every class in turn; the only sample of a class is never held out. The
        class of a label set is the rarest of its labels; samples that are alone in theirs are one class.
    allow_empty : bool
        Accept samples without a label, and predict empty sets where no leaf has a positive score. For label sets.
    offsets : str, callable or None
        For label sets: a measure, such as "example_jaccard", "f1_micro" or "hierarchical_f1", to tune ``offsets_`` for,
        on held-out folds, which takes ``cv`` more fits; or a function of (hierarchy, y_true, y_pred).
    tol : float
        Stop when (primal − dual) / primal is proved to be at most this. From 1e-4 up, weights are single precision.
    max_iter : int
        Passes over the data, at most.
    certify : bool
        Prove ``gap_`` where the fit ends before ``tol`` is reached, by ``max_iter`` or the callback; that takes about
        as long as another pass. Without it, ``gap_`` is then infinite, unless the last pass has tried to prove it, and
        ``history_`` has estimates.
    n_jobs : int or None
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.
    random_state : int, RandomState or None
        Order of the samples. None is a fixed seed.
    memory_limit : int, str or None
        Bytes that weights may take, or text such as "6 GB"; None is 60 % of what is free. Of sparse samples, weights
        that do not fit as a table are kept as rows as long as they need to be, and ``coef_`` is then sparse.
    verbose : int
        1 prints a line a pass.
    warm_start : bool
        Go on from the dual variables of the last fit on the same samples: for a path of C.
    callback : callable, optional
        Called with the record (a dict) of every pass, as kept in ``history_``; a true result ends the fit.

    Attributes
    ----------
    classes_ : array of n_classes
        The labels seen, sorted; the columns of an indicator as they stand.
    hierarchy_ : Hierarchy
        Restricted to these labels.
    node_weights_ : array of n_nodes
        α, aligned with ``hierarchy_.nodes``: 1 everywhere, also above all leaves, where nothing cancels here.
    coef_, intercept_ : arrays of (n_nodes, n_features) and (n_nodes,)
        U: the score of a class is the sum of U_n·x + b_n over its node and everything above it.
    objective_, dual_objective_, gap_ : float
        Primal value, a lower bound of the optimum, and (primal − dual) / primal.
    n_iter_, history_ : int, list of dicts
        Passes, and the record of each: iteration, seconds, primal, dual, gap, training_error, planes (dual variables
        above 0), and certified, which says whether its values are exact or estimates made on the way.
    temperature_ : float
        T of P(l|x) = softmax(score / T); only with ``probability=True``.
    offsets_ : array of n_nodes
        Added to the scores of leaves when label sets are predicted; only with ``offsets``.

    Examples
    --------
    >>> from nhsvm import Hierarchy, HRSVM
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.5, 1.0, 0.0], [0.4, 1.0, 0.1], [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]
    >>> y = ["dog", "dog", "cat", "cat", "oak", "oak"]
    >>> model = HRSVM(h, C=10).fit(X, y)
    >>> model.predict([[1.0, 0.1, 0.0], [0.0, 0.1, 0.9]])
    array(['dog', 'oak'], dtype='<U3')
    >>> model.gap_ <= 1e-3
    True
    """

    _scheme = Uniform(include_common=True)
    _independent = True
    loss, oracle, leaf_offset = "auto", "auto", 0.0  # options that there is no choice of here

    def __init__(
        self,
        hierarchy: Hierarchy | None = None,
        C: float = 1.0,
        *,
        solver: Any = "dual",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        probability: bool = False,
        cv: Any = 5,
        allow_empty: bool = False,
        offsets: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        certify: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        memory_limit: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        callback: Any = None,
    ) -> None:
        self.hierarchy = hierarchy
        self.C = C
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.probability = probability
        self.cv = cv
        self.allow_empty = allow_empty
        self.offsets = offsets
        self.tol = tol
        self.max_iter = max_iter
        self.certify = certify
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.warm_start = warm_start
        self.callback = callback

    def _solver(self, *, silent: bool = False) -> Any:
        from nhsvm.solvers import Dual
        from nhsvm.solvers._independent import IndependentDual

        solver = super()._solver(silent=silent)
        if type(solver) is not Dual:  # others learn weights, or have no such hinges
            raise OptionError(f"HRSVM takes solver='dual' or an instance of nhsvm.solvers.Dual, not {self.solver!r}")
        return IndependentDual.like(solver)

    def _assembled(self, X: Any, targets: Targets | LabelSets, weight: FloatArray) -> tuple[Any, FloatArray]:
        """The learning problem, with C_i = C · sample weight · class weight; and α."""
        from nhsvm.solvers import prepare
        from nhsvm.solvers._independent import Hinges, IndependentProblem

        self._solver(silent=True)  # before any work is done
        single = isinstance(targets, Targets)
        if isinstance(targets, LabelSets):
            truth = Ragged(targets.indptr, targets.indices)
        else:
            truth = Ragged(np.arange(targets.n_samples + 1, dtype=np.int64), targets.leaves)
            if self.class_weight is not None:
                weight = weight * class_factors(self.class_weight, targets, weight, self.hierarchy)[targets.codes]
        alpha = node_weights(targets.hierarchy, self._scheme)
        bias, dtype = self._precision(X)
        problem = IndependentProblem(
            X=prepare(X),
            truth=truth,
            costs=self.C * weight,
            columns=make_columns(targets.hierarchy.graph, alpha),
            oracle=Hinges(single, bool(self.allow_empty)),
            bias=bias,
            dtype=dtype,
            memory=allowed_bytes(self.memory_limit),
        )
        return problem, alpha
