"""The Shared SVM (Eq. 14, Eq. 15): weights learned from the data."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.losses import Loss

_KEPT = 0.99  # of the weights of the fit before, in a warm start; the rest keeps all of them away from zero


class SSVM(HierarchicalSVM):
    """The Shared SVM (Eq. 14, Eq. 15): learns which nodes share, as weights α beside the vectors of nodes.

    min_{U, α} ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U), for α ≥ 0 that sum to one at most on every path. It is convex, and
    never above what any fixed weights of that kind reach. Nodes above every leaf get no weight.

    Parameters
    ----------
    hierarchy : Hierarchy or None
        None is the flat hierarchy over the labels seen.
    C : float
        Cost of errors; the paper's λ is 1/(2C).
    loss : {"auto", "zero_one", "hamming", "leaf_hamming"}, class or Loss
        The structural error Δ; "auto" is "zero_one"; of label sets always "leaf_hamming", and "hamming" is the other
        one they can have. "normalized" depends on α, and is refused.
    solver : "alternating" or instance
        Weights change between the passes of the dual method, until a gap of the joint problem is proved. An instance,
        such as ``nhsvm.solvers.Alternating(tol=1e-5)``, has its own tol, max_iter, certify, threads, seed and callback.
    oracle : {"auto", "single_label", "tree_multilabel", "dag_multilabel", "lp"}
        How the most violating label, or label set, is found in training. "auto" tries all labels; of label sets it
        takes the dynamic programme on trees and the search with bounds elsewhere. "lp" is the paper's way, in HiGHS:
        on a DAG, training (and ``objective_``) is that of a linear relaxation, and predictions take the integer program
        where they have to.
    fit_intercept : bool
        Add a constant feature, which is regularised like the others.
    intercept_scaling : float
        Its value. The larger, the less the intercept is regularised.
    class_weight : dict, "balanced" or None
        Factors of C by class; "balanced" makes every class count the same.
    probability : bool
        Learn probabilities for ``predict_proba``, ``node_proba`` and ``predict_partial`` from held-out folds, which
        takes ``cv`` more fits: a temperature for one label a sample, a curve for every node for label sets. Without it,
        these methods do not exist.
    cv : int, splitter or iterable of (train, test)
        The folds. A number deals the samples of every class in turn; the only sample of a class is never held out. The
        class of a label set is the rarest of its labels; samples that are alone in theirs are one class.
    allow_empty : bool
        Accept samples without a label, and predict empty sets where these are best. For label sets.
    leaf_offset : float
        Added to the score of every leaf, in training and prediction. For label sets. With −1 a label that is wrong for
        a sample starts out exactly at its margin, and weights stay sparse.
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
        α as learned, aligned with ``hierarchy_.nodes``.
    coef_, intercept_ : arrays of (n_nodes, n_features) and (n_nodes,)
        U: the score of a class is the sum of U_n·x + b_n over its node and everything above it.
    objective_, dual_objective_, gap_ : float
        Primal value, a lower bound of the optimum, and (primal − dual) / primal.
    n_iter_, history_ : int, list of dicts
        Passes, and the record of each: iteration, seconds, primal, dual, gap, training_error, planes, and certified,
        which says whether its values are exact or estimates made on the way; and fixed_primal and fixed_dual, the
        objectives for the weights of that pass.
    temperature_ : float
        T of P(l|x) = softmax(score / T); only with ``probability=True``.
    offsets_ : array of n_nodes
        Added to the scores of nodes when label sets are predicted; only with ``offsets``.

    Examples
    --------
    >>> from nhsvm import Hierarchy, SSVM
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.5, 1.0, 0.0], [0.4, 1.0, 0.1], [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]
    >>> y = ["dog", "dog", "cat", "cat", "oak", "oak"]
    >>> model = SSVM(h, C=10).fit(X, y)
    >>> model.predict([[1.0, 0.1, 0.0], [0.0, 0.1, 0.9]])
    array(['dog', 'oak'], dtype='<U3')
    >>> model.gap_ <= 1e-3
    True
    """

    _auto_loss = "zero_one"
    _scheme = "maxmin"  # to start from

    def __init__(
        self,
        hierarchy: Hierarchy | None = None,
        C: float = 1.0,
        *,
        loss: str | type[Loss] | Loss = "auto",
        solver: Any = "alternating",
        oracle: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        probability: bool = False,
        cv: Any = 5,
        allow_empty: bool = False,
        leaf_offset: float = 0.0,
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
        self.loss = loss
        self.solver = solver
        self.oracle = oracle
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.probability = probability
        self.cv = cv
        self.allow_empty = allow_empty
        self.leaf_offset = leaf_offset
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

    def start_from(self, model: HierarchicalSVM) -> SSVM:
        """Let the next fit go on from the dual variables of another model, such as an :class:`NHSVM`.

        Parameters
        ----------
        model : fitted estimator
            With ``warm_start=True``, of the same hierarchy, and of the samples and labels that this one will learn
            from. It is not changed.

        Returns
        -------
        self

        Raises
        ------
        OptionError
            If this estimator has not ``warm_start=True``, or the other has kept no dual variables.
        """
        if not self.warm_start:
            raise OptionError("start_from needs warm_start=True, which says that a fit goes on from what was before")
        if getattr(model, "_planes", None) is None:
            raise OptionError(
                f"this {type(model).__name__} has no dual variables to go on from: fit it with warm_start=True; a file "
                "does not hold them"
            )
        self._planes = deepcopy(model._planes)
        self._fitted_truth, self._fitted_costs = model._fitted_truth, model._fitted_costs
        return self

    def _solver(self, *, silent: bool = False) -> Any:
        from nhsvm.solvers import Alternating

        solver = super()._solver(silent=silent)
        if not isinstance(solver, Alternating):
            raise OptionError(f"SSVM learns weights, which takes solver='alternating', not {self.solver!r}")
        return solver

    def _loss(self, auto: str, hierarchy: Hierarchy, alpha: FloatArray) -> Loss:
        loss = super()._loss(auto, hierarchy, alpha)
        if loss.needs_weights:
            raise OptionError(f"loss {loss.name!r} depends on α, which SSVM learns; use another, such as 'zero_one'")
        return loss

    def _assembled(self, X: Any, targets: Any, weight: FloatArray) -> tuple[Any, FloatArray]:
        problem, alpha = super()._assembled(X, targets, weight)
        learned = getattr(self, "node_weights_", None)
        columns = problem.columns
        if self.warm_start and learned is not None and learned.shape == alpha.shape:
            start = _KEPT * learned[columns.nodes] + (1.0 - _KEPT) * columns.alpha
            columns = replace(columns, alpha=start)
        return replace(problem, columns=columns, graph=targets.hierarchy.graph), alpha

    def _store(self, problem: Any, targets: Any, alpha: FloatArray, solution: Any) -> None:
        learned = np.zeros(len(alpha))
        learned[problem.columns.nodes] = solution.alpha
        columns = replace(problem.columns, alpha=solution.alpha)
        super()._store(replace(problem, columns=columns), targets, learned, solution)
