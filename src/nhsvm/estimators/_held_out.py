"""Scores of samples with label sets under models that have not seen them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import DataError
from nhsvm.estimators._calibration import Fold, splits
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._options import n_threads
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._targets import Codes
from nhsvm.storage import score_in_chunks
from nhsvm.typing import FloatArray

_SCORES = 2**25  # held-out scores to keep: 134 MB in single precision
Floats = npt.NDArray[Any]


class HeldOutSets(NamedTuple):
    """Held-out samples: scores of the columns, true leaves as a 0/1 matrix, weights."""

    scores: Floats
    true: sp.csr_array
    weight: FloatArray


def set_folds(cv: Any, sets: LabelSets, weight: FloatArray, seed: int) -> list[Fold]:
    """Folds of samples with label sets, which are stratified by the rarest label of each.

    Samples that are the only ones with their rarest label are dealt as if they shared one; if it is just one sample, it
    is not held out. The others have to be: where labels have a long tail they may be most of the samples, and those
    with the most labels, so without them all nodes would seem rarer than they are.

    Raises
    ------
    DataError
        If nothing can be held out.
    """
    codes = rarest(sets, weight)
    alone = np.bincount(codes[weight > 0], minlength=len(sets.classes) + 1)[codes] <= 1
    codes[alone] = len(sets.classes) + 1
    folds = [fold for fold in splits(cv, codes, weight, seed) if len(fold.train) and len(fold.held_out)]
    if not folds:
        raise DataError(
            "offsets=... and probability=True need samples to hold out and others to learn from; give more samples, or "
            "leave them out"
        )
    return folds


def rarest(sets: LabelSets, weight: FloatArray) -> Codes:
    """The position of the leaf of every sample that fewest samples have; one more than the last for an empty set."""
    n_leaves = len(sets.classes)
    owner = np.repeat(np.arange(sets.n_samples), np.diff(sets.indptr))
    count = np.bincount(sets.indices[weight[owner] > 0], minlength=n_leaves)
    order = np.lexsort((sets.indices, count[sets.indices], owner))
    found = np.full(sets.n_samples, n_leaves, dtype=np.int64)
    some = np.diff(sets.indptr) > 0
    found[some] = sets.indices[order][sets.indptr[:-1][some]]
    return found


def hold_out_sets(problem: LearningProblem, folds: list[Fold], solver: Any, n_jobs: int | None) -> HeldOutSets | None:
    """Scores of held-out samples, of as many as there is room for; None if the user interrupts.

    Parameters
    ----------
    problem : LearningProblem
        Of all samples, with label sets.
    folds : list of Fold
    solver : solver
    n_jobs : int or None
    """
    sets, solved = problem.labels, problem.solved
    assert isinstance(sets, LabelSets)
    rows = max(1, _SCORES // (solved.columns.n_columns * len(folds)))
    truth = sp.csr_array(
        (np.ones(len(sets.indices), dtype=np.int8), sets.indices, sets.indptr), (sets.n_samples, len(sets.classes))
    )
    parts: list[HeldOutSets] = []
    for train, held_out in folds:
        solution = solver.solve(problem.part(train))
        if solution.interrupted:
            return None
        held_out = held_out[:rows]
        weights = solution.weights.learned()
        scores = np.empty((len(held_out), solved.columns.n_columns), dtype=weights.dtype)

        def store(some: slice, found: Floats, scores: Floats = scores) -> None:
            scores[some] = found

        score_in_chunks(solved.X[held_out], weights, solved.bias, store, n_threads=n_threads(n_jobs))
        parts.append(HeldOutSets(scores, truth[held_out], problem.weight[held_out]))
    return HeldOutSets(
        np.concatenate([part.scores for part in parts]),
        sp.csr_array(sp.vstack([part.true for part in parts])),
        np.concatenate([part.weight for part in parts]),
    )
