"""Early stopping: samples are held out, and scored after every pass, until their score no longer improves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators.calibration import Fold, make_folds, set_folds
from nhsvm.estimators.labels import LabelSets, Targets
from nhsvm.estimators.options import seed_of
from nhsvm.metrics import METRICS
from nhsvm.model.sets import on_leaves
from nhsvm.typing import Array, FloatArray, Options, PtrArray, Record

if TYPE_CHECKING:  # the engine loads numba, which importing an estimator should not
    from nhsvm.engine import Problem
    from nhsvm.engine.protocols import Weights
    from nhsvm.estimators.base import HierarchicalSVM
    from nhsvm.estimators.problem import LearningProblem

ACCURACY, JACCARD = "accuracy", "example_jaccard"
MEASURES: dict[str, tuple[str, Options]] = {
    name: (metric.name, options)
    for metric in METRICS.specs.values()
    if metric.best is not None
    for name, options in metric.scorers.items()
}
"""The measure of every scorer of :func:`nhsvm.metrics.scorers`, and its options."""
_CHUNK = 2**22  # scores at a time


@dataclass
class Validation:
    """Samples held out of a fit, and how their score has gone so far: what watches the solver.

    They stay in the problem and cost nothing, so they are never visited, and the weights that are learned can score
    them where they are.

    Attributes
    ----------
    problem : LearningProblem
        Of all samples.
    rows : array
        Those that are held out.
    measure : str
        Higher is better.
    patience : int
        Passes without a better score that end the fit.
    """

    svm: HierarchicalSVM
    problem: LearningProblem
    rows: PtrArray
    measure: str
    patience: int
    best: float = -np.inf
    since: int = 0
    history: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, svm: HierarchicalSVM, problem: LearningProblem) -> Validation:
        """What an estimator's options hold out of a problem; errors for measures that do not fit its labels."""
        sets = problem.labels.multilabel
        measure = svm.early_stopping if isinstance(svm.early_stopping, str) else JACCARD if sets else ACCURACY
        if measure == ACCURACY and sets:
            raise OptionError("early_stopping='accuracy' is for one label a sample; label sets have 'example_jaccard'")
        if sets and measure in MEASURES and METRICS.spec(MEASURES[measure][0]).single:
            raise OptionError(f"early_stopping={measure!r} is for one label a sample, but y has label sets")
        rows = held_out(svm, problem).held_out
        return cls(svm, problem, rows, measure, int(svm.n_iter_no_change))

    def __call__(self, weights: Weights, record: Record) -> bool:
        """Score the weights, and say whether to end the fit."""
        score = record["validation_score"] = self.score(weights)
        self.since = 0 if score > self.best else self.since + 1
        self.best = max(self.best, score)
        return self.since >= self.patience

    def score(self, weights: Weights) -> float:
        """The measure of what these weights predict for the samples held out."""
        labels, solved = self.problem.labels, self.problem.solved
        step = max(1, _CHUNK // max(1, solved.columns.n_columns))
        parts = [self.rows[lo : lo + step] for lo in range(0, len(self.rows), step)]
        importance = self.problem.weight[self.rows]
        if isinstance(labels, LabelSets):
            predicted = sp.csr_array(sp.vstack([self._sets(weights, part) for part in parts]))
            return self._value(labels.matrix(np.int8)[self.rows], predicted, importance)
        leaves = np.concatenate([best_leaves(solved, weights, part) for part in parts])
        true = labels.leaf_rows().rows(self.rows).indices
        if self.measure == ACCURACY:
            return float(np.average(leaves == true, weights=importance))
        class_of = np.argsort(labels.class_leaves)
        return self._value(labels.classes[class_of[true]], labels.classes[class_of[leaves]], importance)

    def _value(self, true: Array | sp.csr_array, predicted: Array | sp.csr_array, importance: FloatArray) -> float:
        name, options = MEASURES[self.measure]
        h = self.problem.labels.hierarchy
        found = float(METRICS[name](true, predicted, hierarchy=h, sample_weight=importance, **options))  # type: ignore[arg-type]
        return found if METRICS.spec(name).best == 1 else -found

    def _sets(self, weights: Weights, rows: PtrArray) -> sp.csr_array:
        """Leaves of the best label sets, as a 0/1 matrix; on a DAG without proofs."""
        labels, columns = self.problem.labels, self.problem.solved.columns
        form, graph = self.problem.form(self.svm), labels.hierarchy.graph
        assert form is not None
        in_order = np.arange(graph.n_leaves, dtype=np.int32)
        inference = form.inference(graph, columns, in_order, exact=False)
        chosen = inference.best(scores_of(weights, columns, rows), on_leaves(graph, form.leaf_offset))[1]
        number, leaves = inference.leaves(chosen)
        indptr = np.concatenate([[0], np.cumsum(number)])
        return sp.csr_array((np.ones(len(leaves), np.int8), leaves, indptr), (len(rows), graph.n_leaves))


def held_out(svm: HierarchicalSVM, problem: LearningProblem) -> Fold:
    """One part of about ``validation_fraction`` of the samples; the only sample of a class is not in it."""
    parts = max(2, round(1.0 / svm.validation_fraction))
    labels, seed = problem.labels, seed_of(svm.random_state)
    if isinstance(labels, LabelSets):
        folds = set_folds(parts, labels, problem.weight, seed)
    else:
        assert isinstance(labels, Targets)
        folds = make_folds(parts, labels, problem.weight, seed)
    if not folds:
        raise DataError("early_stopping needs samples of two classes to hold some out; leave early_stopping=False")
    return folds[0]


def scores_of(weights: Weights, columns: Columns, rows: PtrArray) -> Array:
    """Scores of the columns of some of the samples that the weights are of."""
    scores = np.empty((len(rows), columns.n_columns), dtype=weights.dtype)
    weights.scores(rows, scores)
    return scores


def best_leaves(problem: Problem, weights: Weights, rows: PtrArray) -> PtrArray:
    """The leaf with the highest score of every sample."""
    from nhsvm.oracles.leaves import leaf_scores

    out = np.empty((len(rows), problem.columns.n_leaves), dtype=weights.dtype)
    leaf_scores(problem.columns, scores_of(weights, problem.columns, rows), out)
    best: PtrArray = out.argmax(axis=1)
    return best
