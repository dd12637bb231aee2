"""The normalised hierarchical SVM (Eq. 10 to 13)."""

from __future__ import annotations

from typing import Any

from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss
from nhsvm.weights import Scheme


class NHSVM(HierarchicalSVM):
    """The normalised hierarchical SVM (Eq. 10, Eq. 11, Eq. 12): weights α that sum to one on every path.

    Parameters
    ----------
    hierarchy : Hierarchy or None
        None is the flat hierarchy over the labels seen.
    C : float
        Cost of errors; the paper's λ is 1/(2C).
    weights : str or scheme
        α: "maxmin" (Eq. 7), "power" (Eq. 6), "uniform", "flat", or an instance such as
        ``nhsvm.weights.Power(rho=2, directional=True)``.
    margin : {"loss", "normalized"}
        Ask of every pair of labels a margin of its loss (Eq. 10), or divide their difference by its norm and ask for a
        margin of 1 (Eq. 13).
    loss : {"auto", "zero_one", "hamming", "normalized", "leaf_hamming"}, class or Loss
        The structural error Δ; "auto" is "normalized" (Eq. 9); of label
        sets always "leaf_hamming", and "hamming" is the other one they can have.
    solver : {"dual", "sgd"} or instance
        ``"dual"`` is exact and proves it; ``"sgd"`` is the paper's stochastic method, with ``partial_fit``. An
        instance, such as ``nhsvm.solvers.Sgd(step="sqrt")``, has its own tol, max_iter, threads, seed and callback (and
        ``nhsvm.solvers.Dual`` its own certify).
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
        Go on from the dual variables of the last fit on the same samples: for a path of C. With solver="dual" only.
    callback : callable, optional
        Called with the record (a dict) of every pass, as kept in ``history_``; a true result ends the fit.

    Attributes
    ----------
    classes_ : array of n_classes
        The labels seen, sorted; the columns of an indicator as they stand.
    hierarchy_ : Hierarchy
        Restricted to these labels.
    node_weights_ : array of n_nodes
        α, aligned with ``hierarchy_.nodes``.
    coef_, intercept_ : arrays of (n_nodes, n_features) and (n_nodes,)
        U: the score of a class is the sum of U_n·x + b_n over its node and everything above it.
    objective_, dual_objective_, gap_ : float
        Primal value, a lower bound of the optimum, and (primal − dual) / primal.
    n_iter_, history_ : int, list of dicts
        Passes, and the record of each: iteration, seconds, primal, dual, gap, training_error, planes, and certified,
        which says whether its values are exact or estimates made on the way.
    temperature_ : float
        T of P(l|x) = softmax(score / T); only with ``probability=True``.
    offsets_ : array of n_nodes
        Added to the scores of nodes when label sets are predicted; only with ``offsets``.

    Examples
    --------
    >>> from nhsvm import Hierarchy, NHSVM
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.5, 1.0, 0.0], [0.4, 1.0, 0.1], [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]
    >>> y = ["dog", "dog", "cat", "cat", "oak", "oak"]
    >>> model = NHSVM(h, C=10).fit(X, y)
    >>> model.predict([[1.0, 0.1, 0.0], [0.0, 0.1, 0.9]])
    array(['dog', 'oak'], dtype='<U3')
    >>> model.gap_ <= 1e-3
    True
    """

    _auto_loss = "normalized"

    def __init__(
        self,
        hierarchy: Hierarchy | None = None,
        C: float = 1.0,
        *,
        weights: str | Scheme = "maxmin",
        margin: str = "loss",
        loss: str | type[Loss] | Loss = "auto",
        solver: Any = "dual",
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
        self.weights = weights
        self.margin = margin
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

    @property
    def _scheme(self) -> str | Scheme:  # type: ignore[override]
        return self.weights
