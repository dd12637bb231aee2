"""What the model says of the samples, some at a time: labels, how sure it is, probabilities, scores of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import DataError
from nhsvm.estimators.options import n_threads
from nhsvm.metrics.inputs import closures
from nhsvm.report._model import Parts, chunks, rows
from nhsvm.report._record import Counts
from nhsvm.report._reliability import Bins
from nhsvm.report._truth import Truth, as_nodes, indicator
from nhsvm.typing import BoolArray, FloatArray, IntArray

_NUMBERS = 2**22  # scores at work at a time
_KEPT = 2**28  # scores of nodes that are kept for AU(PRC): 1 GiB

Scores = npt.NDArray[np.float32]


class Margins(Protocol):
    """How sure the model was of what it got wrong."""

    def __call__(self, wrong: Counts) -> FloatArray:
        """Of the samples with these numbers."""


@dataclass(frozen=True)
class Answers:
    """All that the rest of an evaluation needs of the model."""

    pred: sp.csr_array
    """Booleans, (n_samples, n_nodes)."""
    margins: Margins
    bins: Bins | None
    node_scores: Scores | None
    """For label sets: of ``score_nodes``; higher for surer."""
    score_nodes: Counts


def n_samples_of(X: Any) -> int:
    """Rows of anything that has rows."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def answer(parts: Parts, X: Any, truth: Truth, n_bins: int) -> Answers:
    """Ask the model for everything, in as few passes as possible."""
    return _sets(parts, X, truth, n_bins) if parts.has_sets else _single(parts, X, truth, n_bins)


def _single(parts: Parts, X: Any, truth: Truth, n_bins: int) -> Answers:
    model, n = parts.last, truth.true.shape[0]
    pred = as_nodes(model.predict(X), truth, model.classes_)
    if pred.shape[0] != n:
        raise DataError(f"the model gives {pred.shape[0]} predictions for {n} samples")
    bins = None
    if parts.has_probabilities:
        bins, right = Bins("label", n_bins), pred.indices == truth.true.indices
        for part, some in chunks(X, n, max(1, _NUMBERS // len(model.classes_))):
            bins.add(model.predict_proba(some).max(axis=1), right[part])

    def margins(wrong: Counts) -> FloatArray:
        return _label_margins(model, X, wrong, pred.indices, truth)

    return Answers(pred, margins, bins, None, np.zeros(0, dtype=np.int64))


def _label_margins(model: Any, X: Any, wrong: Counts, pred: Any, truth: Truth) -> FloatArray:
    """Score of the predicted label minus that of the true one; NaN where that is no class."""
    found = np.full(len(wrong), np.nan)
    if not hasattr(model, "decision_function"):
        return found
    place = np.full(truth.hierarchy.n_nodes, -1)
    place[truth.class_nodes] = np.arange(len(truth.class_nodes))
    step = max(1, _NUMBERS // len(model.classes_))
    for lo in range(0, len(wrong), step):
        some = wrong[lo : lo + step]
        scores = np.asarray(model.decision_function(rows(X, some)), dtype=np.float64)
        if scores.ndim == 1:  # of two classes, the second minus the first
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        here, true = np.arange(len(some)), place[truth.true.indices[some]]
        lead = scores[here, place[pred[some]]] - scores[here, true]
        found[lo : lo + step] = np.where(true >= 0, lead, np.nan)
    return found


def _sets(parts: Parts, X: Any, truth: Truth, n_bins: int) -> Answers:
    """One pass: what every class adds to the best set says which are in it, how surely, and how probable nodes are."""
    model, n = parts.last, truth.true.shape[0]
    fitted, threads = model.model_, n_threads(model.n_jobs)
    graph, n_nodes = model.hierarchy_.graph, truth.hierarchy.n_nodes
    own = [i for i, virtual in enumerate(model.hierarchy_.is_virtual) if not virtual]
    nodes = truth.hierarchy.numbers([model.hierarchy_.nodes[i] for i in own])  # of the columns, in our numbers
    counted = ~((graph.n_roots == 1) & (np.array(own) == 0))  # every label has a lone root
    true_all = closures(truth.true, truth.hierarchy)[:, nodes]
    bins = Bins("node", n_bins) if parts.has_probabilities else None
    kept = np.empty((n, len(own)), dtype=np.float32) if n * len(own) <= _KEPT else None
    margin = np.zeros(n)
    sizes: list[Counts] = [np.zeros(1, dtype=np.int64)]
    found: list[IntArray] = []
    for part, some in chunks(X, n, max(1, _NUMBERS // n_nodes)):
        gains, inside, along = fitted.gains(some, n_threads=threads)
        sizes.append(inside.sum(axis=1))
        found.append(truth.class_nodes[np.nonzero(inside)[1]])
        margin[part] = _set_margins(gains, inside, truth.true[part][:, truth.class_nodes].toarray())
        scores = fitted.margins(gains)
        if bins is not None:
            if not graph.is_tree:  # probabilities of label sets on a DAG are those of sets without a proof
                gains, _, along = fitted.gains(some, exact=False, n_threads=threads)
            scores = fitted.curves.probabilities(fitted.margins(gains), along, graph)
            bins.add(scores[:, own][:, counted].ravel(), true_all[part].toarray()[:, counted].ravel())
        if kept is not None:
            kept[part] = scores[:, own]
    pred = indicator(np.concatenate(found), np.cumsum(np.concatenate(sizes)), n_nodes)
    return Answers(pred, lambda wrong: margin[wrong], bins, kept, np.asarray(nodes, dtype=np.int64))


def _set_margins(gains: FloatArray, inside: BoolArray, true: BoolArray) -> FloatArray:
    """The surest mistake: the most that a label adds which is wrong, or would cost which is missing."""
    found: FloatArray = np.where(inside != true, np.abs(gains), 0.0).max(axis=1)
    return found
