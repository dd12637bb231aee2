"""Probabilities from scores: one temperature, learned from scores of samples that a model has not seen.

P(l|x) = softmax_l(s(x, l) / T), with T > 0 of least log-loss on the held-out samples of folds (temperature scaling).

scikit-learn's ``CalibratedClassifierCV(method="temperature")`` has the same idea and wraps any of these estimators.
Inside them it does not serve: it refuses data where a class has fewer samples than there are folds, which a hierarchy
with a long tail always has; it takes the models of all folds to know the same classes; and it is new in scikit-learn
1.8. What is left is the minimum of a convex function of one number.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017). On calibration of modern neural networks. ICML.
J. Platt (1999). Probabilistic outputs for support vector machines. Advances in large margin classifiers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.model_selection import check_cv

from nhsvm.errors import DataError
from nhsvm.estimators._options import n_threads
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._targets import Codes, Targets
from nhsvm.model import Model
from nhsvm.storage.samples import Samples
from nhsvm.typing import FloatArray

_SCORES = 2**26  # held-out scores to keep; one number needs no more, however many samples there are
_BLOCK = 2**20  # scores at work at a time
Floats = npt.NDArray[Any]


class Fold(NamedTuple):
    """Sample numbers to learn from, and to hold out."""

    train: Codes
    held_out: Codes


class HeldOut(NamedTuple):
    """What a fold's model says of the samples held out: scores of its classes, the column of the truth, weights."""

    scores: Floats
    truth: Codes
    weight: FloatArray


def make_folds(cv: Any, targets: Targets, weight: FloatArray, seed: int) -> list[Fold]:
    """Folds in which every held-out sample has a class that is learned; samples of weight zero are in none.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
    targets : Targets
    weight : array of n_samples
    seed : int
        Of the dealing, if ``cv`` is a number.

    Raises
    ------
    DataError
        If nothing can be held out.
    """
    codes = targets.codes
    if len(targets.classes) == 1:
        return []  # its probability is one
    folds = []
    for train, held_out in splits(cv, codes, weight, seed):
        held_out = held_out[np.isin(codes[held_out], codes[train])]
        if len(held_out) and len(np.unique(codes[train])) > 1:
            folds.append(Fold(train, held_out))
    if not folds:
        raise DataError(
            "probability=True needs samples to hold out, but no class has a second sample that a model could learn it "
            "from; give more samples of some class, or leave probability=False"
        )
    return folds


def splits(cv: Any, codes: Codes, weight: FloatArray, seed: int) -> Iterator[Fold]:
    """What ``cv`` says, without samples of weight zero; samples are stratified by ``codes``."""
    if isinstance(cv, Integral):
        found = _dealt(int(cv), codes, np.flatnonzero(weight > 0), np.random.default_rng(seed))
    else:
        found = check_cv(cv, codes, classifier=True).split(np.zeros((len(codes), 1)), codes)
    for train, held_out in found:
        yield Fold(*(np.asarray(part)[weight[part] > 0] for part in (train, held_out)))


def _dealt(n_folds: int, codes: Codes, used: Codes, rng: np.random.Generator) -> Iterator[tuple[Codes, Codes]]:
    """Stratified folds: samples are dealt class by class, so that a class with two samples is in all training parts.

    The only sample of a class stays in training. (``StratifiedKFold`` would hold it out, and gives up if all classes
    have fewer samples than there are folds.)
    """
    used = rng.permutation(used)
    several = np.bincount(codes[used])[codes[used]] > 1
    dealt = used[several][np.argsort(codes[used[several]], kind="stable")]
    for k in range(n_folds):
        held_out = dealt[k::n_folds]
        yield np.setdiff1d(used, held_out), rng.permutation(held_out)


def hold_out(
    problem: LearningProblem, model: Model, folds: list[Fold], solver: Any, n_jobs: int | None
) -> list[HeldOut] | None:
    """Scores of held-out samples, under models of the other samples; None if the user interrupts.

    Parameters
    ----------
    problem : LearningProblem
        Of all samples, with one label each.
    model : Model
        What was learned from all.
    folds : list of Fold
    solver : solver
    n_jobs : int or None
    """
    labels, solved = problem.labels, problem.solved
    assert isinstance(labels, Targets)
    found = []
    rows = max(1, _SCORES // (len(labels.classes) * max(1, len(folds))))
    for train, held_out in folds:
        solution = solver.solve(problem.part(train))
        if solution.interrupted:
            return None
        held_out = held_out[:rows]
        seen = np.unique(labels.codes[train])  # scores of other classes would say that nobody has learned them
        fold_model = replace(model, weights=solution.weights.learned())
        scores = fold_model.class_scores(Samples(solved.X[held_out]), n_threads=n_threads(n_jobs))
        truth = np.searchsorted(seen, labels.codes[held_out])
        found.append(HeldOut(scores[:, seen], truth, problem.weight[held_out]))
    return found


def temperature(parts: list[HeldOut]) -> float:
    """T of least log-loss, min_{β=1/T} Σ_i w_i [ln Σ_l exp(β d_il) − β ε mean_{l≠y_i} d_il],  d_il = s_i(l) − s_i(y_i).

    The second term is Platt's: N samples of which all are right do not prove that none will be wrong, so the truth gets
    a share of 1 − ε = (N+1)/(N+2), and the other classes the rest. The minimum is then finite. It is the root of the
    derivative Σ_i w_i [Σ_l p_il d_il − ε mean d_il], which grows with β.
    """
    n = sum(len(part.truth) for part in parts)
    total = sum(float(part.weight.sum()) for part in parts)
    blocks = [block for part in parts for block in _blocks(part)]
    spread = sum(float(w @ np.abs(d).mean(axis=1)) for d, w in blocks) / total if n else 0.0
    if not spread > 0:
        return 1.0  # one class, or all scores equal: any temperature gives the same

    def slope(beta: float) -> float:
        found = 0.0
        for d, weight in blocks:
            d = d.astype(np.float64)
            p = softmax(beta * d, axis=1)
            found += float(weight @ (np.einsum("il,il->i", p, d) - d.sum(axis=1) / ((n + 2) * max(1, d.shape[1] - 1))))
        return found / total

    low, high = 1e-3 / spread, 1.0 / spread
    if slope(low) >= 0:  # the scores say nothing, or the opposite of the truth
        return 1 / low
    while slope(high) < 0 and high < 1e9 / spread:
        low, high = high, 4 * high
    return 1 / (float(brentq(slope, low, high, rtol=1e-8)) if slope(high) > 0 else high)


def _blocks(part: HeldOut) -> Iterator[tuple[Floats, FloatArray]]:
    """Differences d to the score of the truth, and weights, some samples at a time."""
    step = max(1, _BLOCK // part.scores.shape[1])
    for lo in range(0, len(part.truth), step):
        rows = slice(lo, lo + step)
        scores = part.scores[rows]
        yield scores - np.take_along_axis(scores, part.truth[rows, None], axis=1), part.weight[rows]
