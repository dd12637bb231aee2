"""From samples and labels to what the engine solves: checked and encoded once, and never changed.

:class:`LearningProblem` has two kinds, for one label a sample and for label sets. All that differs between these, from
the encoding of labels to what held-out folds teach, is said by the kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, validate_data

from nhsvm.columns import Columns, column_parents, make_columns
from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.estimators.calibration import (
    Fold,
    FoldModels,
    fit_curves,
    hold_out,
    hold_out_sets,
    make_folds,
    set_folds,
    strata,
    temperature,
)
from nhsvm.estimators.defaults import Chosen, auto_offset, choose
from nhsvm.estimators.labels import EncodedLabels, LabelSets, Targets, encode, encode_sets
from nhsvm.estimators.memory import allowed_bytes
from nhsvm.estimators.offsets import tuned_offsets
from nhsvm.estimators.options import check_single, n_threads, seed_of, why_no_sets
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Graph, Ragged
from nhsvm.losses import Loss
from nhsvm.model import Model, SetForm
from nhsvm.model.sets import gains_of_scores, node_margins, on_leaves
from nhsvm.oracles.choice import training_oracles
from nhsvm.storage.samples import LARGEST, check_indices, precise_enough, too_large, within
from nhsvm.typing import Estimator, FloatArray, LabelsLike, Matrix, MatrixLike, Options, PtrArray, SampleWeights
from nhsvm.weights import node_weights

if TYPE_CHECKING:  # the engine loads numba, which importing an estimator should not
    from nhsvm.engine import Problem
    from nhsvm.estimators.base import HierarchicalSVM
    from nhsvm.oracles.leaves import SingleLabel

X_CHECKS: Options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "accept_large_sparse": True}
_SINGLE = 1e-4  # from this tolerance up, single precision is enough for the weights


# -- checks of samples and of their weights; errors name the row -------------------------------------------------------


def checked(estimator: Estimator, X: MatrixLike, *, reset: bool = False, bounded: bool = True) -> Matrix:
    """Samples as a CSR matrix or an array of floats.

    ``reset`` takes the number and names of features from them. Without ``bounded``, dense samples may have values of
    any size: whoever scores them will notice, and for wide samples a look at all of them takes as long as scoring.
    """
    if sp.issparse(X):
        check_indices(X)
    try:
        X = validate_data(estimator, X, reset=reset, **X_CHECKS)
    except ValueError as error:
        text = str(error)
        if "contains NaN" in text or "contains infinity" in text:
            text = f"{text.splitlines()[0].rstrip('.')}: {_first_not_finite(X)}; drop or impute such samples"
        raise DataError(text) from error
    if (bounded or sp.issparse(X)) and not within(X, LARGEST):
        raise too_large(X)
    return X


def _first_not_finite(X: MatrixLike) -> str:
    """Where the first NaN or infinity is, in words."""
    found = check_array(X, ensure_all_finite=False, **X_CHECKS)
    names = getattr(X, "columns", None)
    if sp.issparse(found):
        bad = np.flatnonzero(~np.isfinite(found.data))[0]
        row, column = np.searchsorted(found.indptr, bad, side="right") - 1, found.indices[bad]
    else:
        row = np.flatnonzero(~np.isfinite(found).all(axis=1))[0]
        column = np.flatnonzero(~np.isfinite(found[row]))[0]
    return f"row {row}, column {column if names is None else repr(list(names)[column])}"


def same_length(n_samples: int, n_labels: int) -> None:
    """Raise unless X and y have the same number of samples."""
    if n_samples != n_labels:
        raise LabelError(f"inconsistent numbers of samples: X has {n_samples} rows, but y has {n_labels} labels")


def checked_weights(sample_weight: SampleWeights, n_samples: int) -> FloatArray:
    """Sample weights ≥ 0, not all zero; ones for None."""
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weight: FloatArray = _check_sample_weight(sample_weight, np.empty((n_samples, 0)), dtype=np.float64)
    except ValueError as error:
        raise DataError(str(error)) from error
    negative = np.flatnonzero(weight < 0)
    if len(negative):
        raise DataError(f"sample_weight must not be negative, but sample {negative[0]} has {weight[negative[0]]:g}")
    if not weight.any():  # scikit-learn before 1.9 lets it pass
        raise DataError("sample_weight is zero throughout: Sample weights must contain at least one non-zero number")
    return weight


# -- the learning problem ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearningProblem(ABC):
    """Samples, labels and weights of a fit; :meth:`make_problem` of an estimator makes it.

    Estimates of memory, held-out folds, paths of C and warm starts all take it.

    Attributes
    ----------
    labels : Targets or LabelSets
        Encoded, with the classes and the hierarchy restricted to them.
    weight : array of n_samples
        Sample weights.
    alpha : array of n_nodes
        Node weights α of that hierarchy.
    costs : array of n_samples
        C_i / C: sample weights times class weights.
    chosen : Chosen
        C and other options, as numbers.
    solved : Problem
        The same as a solver takes it.
    """

    labels: EncodedLabels
    weight: FloatArray
    alpha: FloatArray
    costs: FloatArray
    chosen: Chosen
    solved: Problem

    @property
    def C(self) -> float:
        return self.chosen.C

    def at(self, C: float | str) -> LearningProblem:
        """The same with another C."""
        chosen = self.chosen.at(C)
        if chosen.C == self.C:
            return self
        return replace(self, chosen=chosen, solved=replace(self.solved, costs=chosen.C * self.costs))

    def without(self, rows: PtrArray) -> LearningProblem:
        """The same where some samples cost nothing, and so teach nothing.

        They stay where they are, unlike those that :meth:`Problem.part` leaves out: dual variables that are found for
        the others are a warm start for all.
        """
        costs = self.costs.copy()
        costs[rows] = 0.0
        return replace(self, costs=costs, solved=replace(self.solved, costs=self.C * costs))

    @abstractmethod
    def under(self, svm: HierarchicalSVM) -> LearningProblem:
        """The same samples and labels under other options."""

    @abstractmethod
    def strata(self) -> PtrArray:
        """A class of every sample, by which folds are stratified."""

    @classmethod
    @abstractmethod
    def of(cls, svm: HierarchicalSVM, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights) -> LearningProblem:
        """What an estimator with these options learns from these samples."""

    @abstractmethod
    def folds(self, svm: HierarchicalSVM) -> list[Fold] | None:
        """Folds to hold out, if something is learned from them."""

    @abstractmethod
    def calibrated(self, svm: HierarchicalSVM, model: Model, made: FoldModels) -> Model:
        """The model with what held-out folds teach; a FoldInterruptedError if the user interrupts a fit."""

    @abstractmethod
    def form(self, svm: HierarchicalSVM) -> SetForm | None:
        """What label sets look like; None for one label a sample."""


def samples_of(
    svm: HierarchicalSVM, X: MatrixLike, labels: EncodedLabels, sample_weight: SampleWeights, *, reset: bool = True
) -> tuple[Matrix, FloatArray]:
    """Checked samples and weights."""
    X = checked(svm, X, reset=reset)
    same_length(X.shape[0], labels.n_samples)
    return X, checked_weights(sample_weight, X.shape[0])


def _shared(
    svm: HierarchicalSVM, X: Matrix, columns: Columns, costs: FloatArray, graph: Graph, chosen: Chosen
) -> Options:
    """What engine problems of all kinds have; C_i = C · costs."""
    from nhsvm.engine import prepare

    bias = chosen.intercept_scaling
    single = chosen.tol >= _SINGLE and precise_enough(X, bias)
    return {
        "X": prepare(X),
        "costs": chosen.C * costs,
        "columns": columns,
        "bias": bias,
        "dtype": np.float32 if single else np.float64,
        "graph": graph if svm._preset.learns_weights else None,
        "memory": allowed_bytes(svm.memory_limit),
    }


def _hinges(
    svm: HierarchicalSVM, X: Matrix, labels: EncodedLabels, costs: FloatArray, columns: Columns, chosen: Chosen
) -> Problem:
    """The problem of HR-SVM, whose leaves have their hinges by themselves."""
    from nhsvm.engine import HingeProblem, Hinges

    shared = _shared(svm, X, columns, costs, labels.hierarchy.graph, chosen)
    return HingeProblem(**shared, truth=labels.leaf_rows(), oracle=Hinges(not labels.multilabel, bool(svm.allow_empty)))


# -- one label a sample ------------------------------------------------------------------------------------------------


class KnownOracle(NamedTuple):
    """What ``partial_fit`` makes once."""

    oracle: SingleLabel
    columns: Columns
    alpha: FloatArray


@dataclass(frozen=True)
class SingleLabelLearning(LearningProblem):
    """Learning from one label a sample."""

    labels: Targets

    @classmethod
    def of(
        cls, svm: HierarchicalSVM, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights
    ) -> SingleLabelLearning:
        check_single(svm)
        labels = encode(y, svm.hierarchy)
        return cls._of(svm, *samples_of(svm, X, labels, sample_weight), labels)

    @classmethod
    def _of(cls, svm: HierarchicalSVM, X: Matrix, weight: FloatArray, labels: Targets) -> SingleLabelLearning:
        if not svm._preset.independent:
            return cls.posed(svm, X, labels, weight, single_label_oracle(svm, labels.hierarchy))
        alpha = node_weights(labels.hierarchy, svm.weights)
        columns, costs = make_columns(labels.hierarchy.graph, alpha), _relative_costs(svm, labels, weight)
        chosen = choose(svm, X, costs, columns.n_columns)
        return cls(labels, weight, alpha, costs, chosen, _hinges(svm, X, labels, costs, columns, chosen))

    def under(self, svm: HierarchicalSVM) -> SingleLabelLearning:
        return self._of(svm, self.solved.X, self.weight, self.labels)

    def strata(self) -> PtrArray:
        return self.labels.codes

    @classmethod
    def posed(
        cls, svm: HierarchicalSVM, X: Matrix, labels: Targets, weight: FloatArray, known: KnownOracle,
        chosen: Chosen | None = None,
    ) -> SingleLabelLearning:  # fmt: skip
        """The problem of checked samples and encoded labels; ``chosen`` if that was settled before."""
        from nhsvm.engine import SingleLabelProblem

        costs = _relative_costs(svm, labels, weight)
        if chosen is None:
            chosen = choose(svm, X, costs, known.columns.n_columns)
        shared = _shared(svm, X, known.columns, costs, labels.hierarchy.graph, chosen)
        solved = SingleLabelProblem(**shared, leaves=labels.leaves, oracle=known.oracle)
        return cls(labels, weight, known.alpha, costs, chosen, solved)

    def folds(self, svm: HierarchicalSVM) -> list[Fold] | None:
        if not svm.probability:
            return None
        return make_folds(svm.cv, self.labels, self.weight, seed_of(svm.random_state))

    def calibrated(self, svm: HierarchicalSVM, model: Model, made: FoldModels) -> Model:
        return replace(model, temperature=temperature(hold_out(self, self.labels, made, n_threads(svm.n_jobs))))

    def form(self, svm: HierarchicalSVM) -> None:
        return None


def single_label_oracle(svm: HierarchicalSVM, hierarchy: Hierarchy) -> KnownOracle:
    """The oracle of a hierarchy, with columns, loss and α."""
    from nhsvm.oracles.leaves import SingleLabel

    alpha = node_weights(hierarchy, svm.weights)
    normalized = svm.margin == "normalized"
    loss = svm._loss("normalized" if normalized else svm._preset.auto_loss, hierarchy, alpha)
    columns = make_columns(hierarchy.graph, alpha)
    return KnownOracle(SingleLabel(columns, loss, normalized), columns, alpha)


def _relative_costs(svm: HierarchicalSVM, labels: Targets, weight: FloatArray) -> FloatArray:
    """C_i / C = sample weight · class weight, which is None, "balanced" or a dict."""
    given, hierarchy, classes = svm.class_weight, svm.hierarchy, labels.classes.tolist()
    if given is None:
        return weight
    if isinstance(given, str):
        # as compute_class_weight, which divides by zero for a class whose samples all have weight zero
        total = np.bincount(labels.codes, weights=weight, minlength=len(classes))
        balanced = np.divide(total.sum() / len(total), total, out=np.zeros_like(total), where=total > 0)
        return np.asarray(weight * balanced[labels.codes], np.float64)
    known = set(classes)
    # a class may be missing from a fold of the data; a name that never was one is a mistake
    stray = [label for label in given if label not in (known if hierarchy is None else hierarchy)]
    if stray and (hierarchy is not None or not known <= given.keys()):
        raise OptionError(f"class_weight names {stray[0]!r}, which is not a class")
    factors = [given.get(label, 1.0) for label in classes]
    for label, factor in zip(classes, factors, strict=True):
        if isinstance(factor, str) or not 0 <= factor < np.inf:
            raise OptionError(f"class_weight must be finite and ≥ 0, but {label!r} has {factor!r}")
    return weight * np.array(factors, dtype=np.float64)[labels.codes]


# -- label sets --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSetLearning(LearningProblem):
    """Learning from a label set a sample."""

    labels: LabelSets

    @classmethod
    def of(cls, svm: HierarchicalSVM, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights) -> LabelSetLearning:
        reason = why_no_sets(svm)
        if reason is not None:
            raise OptionError(f"y has label sets, but {reason}")
        labels = encode_sets(y, svm.hierarchy, allow_empty=svm.allow_empty)
        return cls._of(svm, *samples_of(svm, X, labels, sample_weight), labels)

    @classmethod
    def _of(cls, svm: HierarchicalSVM, X: Matrix, weight: FloatArray, labels: LabelSets) -> LabelSetLearning:
        alpha = node_weights(labels.hierarchy, svm.weights)
        columns = make_columns(labels.hierarchy.graph, alpha)
        if svm._preset.independent:
            chosen = choose(svm, X, weight, columns.n_columns)
            return cls(labels, weight, alpha, weight, chosen, _hinges(svm, X, labels, weight, columns, chosen))
        loss = svm._loss("leaf_hamming", labels.hierarchy, alpha)
        losses = loss_weights(loss, labels.hierarchy, columns, bool(svm.allow_empty))
        of_leaves = float(losses[columns.paths.last()].mean())
        offset = auto_offset(of_leaves, labels.leaf_rows().sizes(), labels.hierarchy.n_leaves, weight)
        chosen = choose(svm, X, weight, columns.n_columns, offset)
        return cls(labels, weight, alpha, weight, chosen, _sets(svm, X, labels, weight, columns, losses, chosen))

    def under(self, svm: HierarchicalSVM) -> LabelSetLearning:
        return self._of(svm, self.solved.X, self.weight, self.labels)

    def strata(self) -> PtrArray:
        return strata(self.labels, self.weight)

    def folds(self, svm: HierarchicalSVM) -> list[Fold] | None:
        if not (svm.offsets or svm.probability):
            return None
        return set_folds(svm.cv, self.labels, self.weight, seed_of(svm.random_state))

    def calibrated(self, svm: HierarchicalSVM, model: Model, made: FoldModels) -> Model:
        threads = n_threads(svm.n_jobs)
        held = hold_out_sets(self, self.labels, made, model.columns.n_columns, threads)
        # without proofs: on a DAG they take most of the time, and seldom change a set
        inference = model.inference(exact=False)
        if svm.offsets is not None:
            offsets = tuned_offsets(svm.offsets, self.labels, inference, held, model.all_offsets(), threads)
            model = replace(model, offsets=offsets)
        if svm.probability:
            graph = self.labels.hierarchy.graph
            gains = gains_of_scores(inference, held.scores, model.all_offsets(), threads)
            true = (held.true @ graph.leaf_matrix()).toarray() > 0
            model = replace(model, curves=fit_curves(node_margins(graph, gains), true, held.weight, held.scores))
        return model

    def form(self, svm: HierarchicalSVM) -> SetForm:
        return SetForm(
            self.labels.form, bool(svm.allow_empty), self.chosen.leaf_offset, svm._preset.independent, svm.oracle
        )


def _sets(
    svm: HierarchicalSVM, X: Matrix, labels: LabelSets, weight: FloatArray, columns: Columns, losses: FloatArray,
    chosen: Chosen,
) -> Problem:  # fmt: skip
    """The problem of label sets as a solver takes it."""
    from nhsvm.engine.problem import LabelSetProblem

    h = labels.hierarchy
    oracle, answers = training_oracles(svm.oracle, h, bool(svm.allow_empty))
    return LabelSetProblem(
        **_shared(svm, X, columns, weight, h.graph, chosen),
        truth=_true_columns(labels, columns),
        above=column_parents(h.graph, columns),
        oracle=oracle,
        loss_weights=losses,
        n_nodes=h.n_nodes,
        offset=on_leaves(h.graph, chosen.leaf_offset)[columns.nodes],
        answers=answers,
    )


def _true_columns(labels: LabelSets, columns: Columns) -> Ragged:
    """Columns of the closure of every sample's labels, ascending."""
    closures = sp.csr_array(labels.matrix(np.int32) @ columns.path_matrix(np.int32))
    closures.sort_indices()
    return Ragged(closures.indptr.astype(np.int64), closures.indices.astype(np.int32))


def loss_weights(loss: Loss, hierarchy: Hierarchy, columns: Columns, allow_empty: bool) -> FloatArray:
    """The weights w of Δ(y, y') = Σ_n w_n 1[n in one of y, y'], one a column; an OptionError if there are none.

    The solver contracts nodes without weight α. That is exact as long as they do not count in the loss either, since
    whether such a node is in y is no linear function of the columns below it. A node above every leaf is in every label
    set but the empty one, and so counts in none.
    """
    graph, nodes = hierarchy.graph, columns.nodes
    has = np.zeros(graph.n_nodes, dtype=bool)
    has[nodes] = True
    for k in np.flatnonzero(~has[graph.leaves])[:1]:
        raise OptionError(f"label sets need a weight α above 0 for every class, but {hierarchy.leaves[k]!r} has 0")
    everything = np.arange(graph.n_nodes)
    weights = loss.per_node(everything[:0], multilabel=True).rewards
    if not np.array_equal(loss.per_node(everything, multilabel=True).rewards, -weights):
        raise OptionError(f"loss {loss.name!r} is no sum over the nodes in which two label sets differ")
    missed = (weights > 0) & ~has
    if not allow_empty:
        missed &= ~graph.is_common
    for node in np.flatnonzero(missed)[:1]:
        more = " (include_common=True)" if graph.is_common[node] else ""
        raise OptionError(
            f"loss {loss.name!r} counts the node {hierarchy.nodes[node]!r}, but its weight α is 0, so nothing is "
            f"learned of it; use loss='leaf_hamming', or weights above 0 there{more}"
        )
    return weights[nodes]
