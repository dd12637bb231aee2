"""What the samples and the model say: true labels as nodes, and predictions, margins and probabilities of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from nhsvm.checks import a_hierarchy
from nhsvm.errors import DataError, LabelError, OptionError, UnknownLabelError
from nhsvm.estimators.answers import Answering
from nhsvm.estimators.labels import as_labels, is_multilabel, read, row_of, unique
from nhsvm.estimators.options import n_threads
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.drawing import summary
from nhsvm.metrics.inputs import closures, indicator
from nhsvm.model import Model
from nhsvm.model.sets import rows_of
from nhsvm.pipelines import pipeline_parts
from nhsvm.report.record import Counts, Reliability
from nhsvm.typing import Array, BoolArray, Estimator, FloatArray, IntArray, LabelsLike, MatrixLike, PtrArray, Record

_NUMBERS = 2**22  # scores at work at a time
_KEPT = 2**28  # scores of nodes that are kept for AU(PRC): 1 GiB
_OPTIONS = ("C", "weights", "loss", "margin", "solver", "tol", "class_weight", "leaf_offset", "offsets", "probability")
_LEARNED = {
    "gap": "gap_",
    "objective": "objective_",
    "dual_objective": "dual_objective_",
    "passes": "n_iter_",
    "temperature": "temperature_",
}

Scores = npt.NDArray[np.float32]


# -- the model ---------------------------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """A model taken apart; it may be of another library."""

    before: Estimator | None
    """What makes features, or None."""
    last: Estimator
    """The classifier."""
    names: tuple[str, ...]
    """Of all steps."""

    @property
    def ours(self) -> Answering | None:
        """The classifier, if it is one of this library."""
        return self.last if isinstance(self.last, Answering) else None

    @property
    def history(self) -> list[Record]:
        """Records of the passes of training; of other libraries' models, whose records are others, none."""
        return [] if self.ours is None else list(self.ours.model_.training.history)

    @property
    def has_sets(self) -> bool:
        """Whether it predicts label sets; a classifier that is not ours is taken to predict one label."""
        return self.ours is not None and self.ours.model_.sets is not None

    @property
    def has_probabilities(self) -> bool:
        """Whether it has learned them: a fit that was interrupted has none, though it was asked for them."""
        return hasattr(self.last, "predict_proba") and (self.ours is None or self.ours.model_.has_probabilities)

    def facts(self) -> Record:
        """About the model, in the order to be read."""
        last, ours = self.last, self.ours
        found: Record = {"model": " → ".join(self.names), "classes": len(last.classes_)}
        if ours is not None:
            found |= {"hierarchy": summary(ours.hierarchy_.graph), "nodes": ours.hierarchy_.n_nodes}
        if hasattr(last, "n_features_in_"):
            found["features"] = int(last.n_features_in_)
        if ours is not None:
            found["weights_stored"] = ours.model_.weights.count_nonzero()
        params = last.get_params(deep=False) if hasattr(last, "get_params") else {}
        found |= {name: _option(params[name]) for name in _OPTIONS if params.get(name) is not None}
        found |= {name: getattr(last, learned) for name, learned in _LEARNED.items() if hasattr(last, learned)}
        if self.history:
            found["training_seconds"] = float(self.history[-1]["seconds"])
        return found


def _option(value: object) -> str | float:
    """Numbers and names as they are; an instance as it would be written."""
    return value if isinstance(value, (str, bool, int, float)) else repr(value)


def take_apart(model: Estimator) -> Parts:
    """The last step of a fitted model and what comes before it; a search stands for the best model it has found."""
    model = _best(model)
    if not hasattr(model, "predict"):
        raise OptionError(f"model must be a fitted classifier or a pipeline that ends in one, not {model!r}")
    before, last, _ = parts = pipeline_parts(model)
    last = _best(last)
    if not hasattr(last, "classes_"):
        if hasattr(last, "fit"):
            check_is_fitted(last)
        raise OptionError(f"{type(last).__name__} has no classes_: evaluate takes classifiers")
    names = tuple(type(step).__name__ for step in [*(step for _, step in parts.steps), last])
    return Parts(before, last, names)


def _best(model: Estimator) -> Estimator:
    return getattr(model, "best_estimator_", model)


# -- the truth ---------------------------------------------------------------------------------------------------------


class Truth(NamedTuple):
    """What is true, and where labels stand."""

    hierarchy: Hierarchy
    true: sp.csr_array
    """Booleans, (n_samples, n_nodes); labels without what is above them."""
    class_nodes: IntArray
    """Node of every class of the model."""
    unseen: BoolArray
    """Which nodes are labels of samples, but no class."""


def read_truth(y: LabelsLike, parts: Parts, hierarchy: Hierarchy | None) -> Truth:
    """Check and encode ``y``, before anything is predicted."""
    given = hierarchy
    if given is None and parts.ours is not None:
        given = parts.ours.hierarchy
    if given is not None:
        a_hierarchy(given)
    classes = parts.last.classes_.tolist()
    names, codes, indptr = _labels(y, parts, given)
    sizes = np.diff(indptr)
    if not len(sizes):
        raise DataError("y has no samples")
    if not parts.has_sets and (sizes != 1).any():
        i = int(np.flatnonzero(sizes != 1)[0])
        raise LabelError(f"the model predicts one label a sample, but sample {i} of y has {sizes[i]}")
    if given is None:  # the flat hierarchy of a model without one; training need not have seen all labels
        given = Hierarchy.from_edges([], nodes=dict.fromkeys([*classes, *names.tolist()]))
    try:
        class_nodes = given.numbers(classes)
    except UnknownLabelError as error:
        raise UnknownLabelError(error.labels, text=f"a class of the model is {error}") from None
    unknown = np.array([label not in given for label in names.tolist()], dtype=bool)
    if unknown.any():
        found = UnknownLabelError(names[unknown].tolist(), given.nodes)
        first = int(np.flatnonzero(unknown[codes])[0])
        raise UnknownLabelError(found.labels, text=f"{found}; first in sample {row_of(indptr, first)} of y")
    numbers = np.array([given.number(label) for label in names.tolist()], dtype=np.int32)
    unseen = np.zeros(given.n_nodes, dtype=bool)
    unseen[numbers] = True
    unseen[class_nodes] = False
    return Truth(given, indicator(numbers[codes], indptr, given.n_nodes), class_nodes, unseen)


def _labels(y: LabelsLike, parts: Parts, hierarchy: Hierarchy | None) -> tuple[Array, PtrArray, PtrArray]:
    """(names, codes, indptr): sample i has the labels names[codes[indptr[i]:indptr[i + 1]]]."""
    # a tuple is a label set for a model of label sets, unless it is a node; for others it is a label
    known = hierarchy if hierarchy is not None or not parts.has_sets else parts.last.hierarchy_
    if is_multilabel(y, known):
        return read(y, known, parts.last.classes_)[:3]
    names, codes = unique(as_labels(y))
    return names, codes, np.arange(len(codes) + 1)


# -- what the model answers --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """All that the rest of an evaluation needs of the model."""

    pred: sp.csr_array
    """Booleans, (n_samples, n_nodes)."""
    margins: Callable[[Counts], FloatArray]
    """How sure the model was of the samples with these numbers, which it got wrong."""
    reliability: Reliability | None
    node_scores: Scores | None
    """For label sets: of ``score_nodes``; higher for surer."""
    score_nodes: Counts


def answer(parts: Parts, X: MatrixLike, truth: Truth, n_bins: int, for_measure: str | None = None) -> Answers:
    """Ask the model for everything, in as few passes as possible."""
    if parts.before is not None:  # so that text is turned into numbers once
        X = parts.before.transform(X)
    X = X.tocsr() if sp.issparse(X) else X
    return (_sets if parts.has_sets else _single)(parts, X, truth, n_bins, for_measure)


def _chunks(X: MatrixLike, numbers_a_sample: int) -> Iterator[tuple[slice, MatrixLike]]:
    """Some rows at a time."""
    n_samples, size = _num_samples(X), max(1, _NUMBERS // numbers_a_sample)
    for lo in range(0, n_samples, size):
        part = slice(lo, min(n_samples, lo + size))
        yield part, _safe_indexing(X, part)


def _single(parts: Parts, X: MatrixLike, truth: Truth, n_bins: int, for_measure: str | None) -> Answers:
    model, n = parts.last, truth.true.shape[0]
    found = model.predict(X) if for_measure is None else model.predict(X, for_measure=for_measure)
    distinct, codes = unique(as_labels(found))
    place = dict(zip(model.classes_.tolist(), truth.class_nodes.tolist(), strict=True))
    numbers = np.array([place[label] for label in distinct.tolist()], dtype=np.int32)
    pred = indicator(numbers[codes], np.arange(len(codes) + 1), truth.hierarchy.n_nodes)
    if pred.shape[0] != n:
        raise DataError(f"the model gives {pred.shape[0]} predictions for {n} samples")
    bins = None
    if parts.has_probabilities:
        bins, right = Bins("label", n_bins), pred.indices == truth.true.indices
        column = {node: k for k, node in enumerate(truth.class_nodes.tolist())}
        for part, some in _chunks(X, len(model.classes_)):
            proba = model.predict_proba(some)
            own = [column[node] for node in pred.indices[part].tolist()]
            sure = proba.max(axis=1) if for_measure is None else proba[np.arange(len(proba)), own]
            bins.add(sure, right[part])

    def margins(wrong: Counts) -> FloatArray:
        return _label_margins(model, X, wrong, pred.indices, truth)

    return Answers(pred, margins, None if bins is None else bins.result(), None, np.zeros(0, dtype=np.int64))


def _label_margins(model: Estimator, X: MatrixLike, wrong: Counts, pred: IntArray, truth: Truth) -> FloatArray:
    """Score of the predicted label minus that of the true one; NaN where that is no class."""
    found = np.full(len(wrong), np.nan)
    if not hasattr(model, "decision_function"):
        return found
    place = np.full(truth.hierarchy.n_nodes, -1)
    place[truth.class_nodes] = np.arange(len(truth.class_nodes))
    step = max(1, _NUMBERS // len(model.classes_))
    for lo in range(0, len(wrong), step):
        some = wrong[lo : lo + step]
        scores = np.asarray(model.decision_function(_safe_indexing(X, some)), dtype=np.float64)
        if scores.ndim == 1:  # of two classes, the second minus the first
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        here, true = np.arange(len(some)), place[truth.true.indices[some]]
        lead = scores[here, place[pred[some]]] - scores[here, true]
        found[lo : lo + step] = np.where(true >= 0, lead, np.nan)
    return found


def _sets(parts: Parts, X: MatrixLike, truth: Truth, n_bins: int, for_measure: str | None) -> Answers:
    """One pass: what every class adds to the best set says which are in it, how surely, and how probable nodes are."""
    model, n = parts.last, truth.true.shape[0]
    fitted, threads = model.model_, n_threads(model.n_jobs)
    graph, n_nodes = model.hierarchy_.graph, truth.hierarchy.n_nodes
    own = np.flatnonzero(~model.hierarchy_.is_virtual)
    nodes = truth.hierarchy.numbers([model.hierarchy_.nodes[i] for i in own])  # of the columns, in our numbers
    counted = ~((graph.n_roots == 1) & (own == 0))  # every label has a lone root
    true_all = closures(truth.true, truth.hierarchy)[:, nodes]
    bins = Bins("node", n_bins) if parts.has_probabilities else None
    kept = np.empty((n, len(own)), dtype=np.float32) if n * len(own) <= _KEPT else None
    margin = np.zeros(n)
    sizes: list[Counts] = [np.zeros(1, dtype=np.int64)]
    found: list[IntArray] = []
    aimed = None if for_measure is None else _aimed(fitted, X, for_measure, threads)
    for part, some in _chunks(X, n_nodes):
        gains, inside, along = fitted.gains(some, n_threads=threads)
        if aimed is not None:
            inside = aimed[part].toarray() > 0
        sizes.append(inside.sum(axis=1))
        found.append(truth.class_nodes[np.nonzero(inside)[1]])
        # the surest mistake: the most that a label adds which is wrong, or would cost which is missing
        true = truth.true[part][:, truth.class_nodes].toarray()
        margin[part] = np.where(inside != true, np.abs(gains), 0.0).max(axis=1)
        scores = fitted.margins(gains)
        if bins is not None:
            if not graph.is_tree:  # probabilities of label sets on a DAG are those of sets without a proof
                gains, _, along = fitted.gains(some, exact=False, n_threads=threads)
            scores = fitted.curves.probabilities(fitted.margins(gains), along, graph)
            bins.add(scores[:, own][:, counted].ravel(), true_all[part].toarray()[:, counted].ravel())
        if kept is not None:
            kept[part] = scores[:, own]
    pred = indicator(np.concatenate(found), np.cumsum(np.concatenate(sizes)), n_nodes)
    return Answers(
        pred,
        lambda wrong: margin[wrong],
        None if bins is None else bins.result(),
        kept,
        np.asarray(nodes, dtype=np.int64),
    )


def _aimed(fitted: Model, X: MatrixLike, for_measure: str, n_threads: int) -> sp.csr_array:
    """Label sets that are best for a measure, as a 0/1 matrix with a column a class."""
    indptr, leaves = fitted.best_leaves(X, for_measure=for_measure, n_threads=n_threads)
    return rows_of(np.argsort(fitted.class_leaves)[leaves], indptr, len(fitted.classes))


class Bins:
    """Probabilities, and how often what they speak of is true: decisions collected in bins, some at a time.

    Parameters
    ----------
    of : str
        What is decided.
    n_bins : int
        Of equal width.

    Examples
    --------
    >>> bins = Bins("label", 2)
    >>> bins.add(np.array([0.2, 0.4, 0.9]), np.array([False, True, True]))
    >>> found = bins.result()
    >>> found.count, [round(p, 2) for p in found.confidence], found.observed, round(found.error, 3)
    ([2, 1], [0.3, 0.9], [0.5, 1.0], 0.167)
    """

    def __init__(self, of: str, n_bins: int) -> None:
        self._of = of
        self._count, self._sum, self._true = np.zeros(n_bins, dtype=np.int64), np.zeros(n_bins), np.zeros(n_bins)

    def add(self, probability: FloatArray, true: BoolArray) -> None:
        """Some more decisions."""
        n = len(self._count)
        place = np.clip((probability * n).astype(np.int64), 0, n - 1)
        self._count += np.bincount(place, minlength=n)
        self._sum += np.bincount(place, probability, n)
        self._true += np.bincount(place, true, n)

    def result(self) -> Reliability:
        """The bins that have decisions."""
        some = self._count > 0
        count = self._count[some]
        confidence, observed = self._sum[some] / count, self._true[some] / count
        error = float(np.average(np.abs(confidence - observed), weights=count))
        return Reliability(self._of, confidence.tolist(), observed.tolist(), count.tolist(), error)
