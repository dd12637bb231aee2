"""Probabilities, learned from scores of samples that a model has not seen: those of held-out folds.

**One label a sample** has one temperature: P(l|x) = softmax_l(s(x, l) / T), with T > 0 of least log-loss.
scikit-learn's ``CalibratedClassifierCV(method="temperature")`` has the same idea and wraps any of these estimators.
Inside them it does not serve: it refuses data where a class has fewer samples than there are folds, which a hierarchy
with a long tail always has; it takes the models of all folds to know the same classes; and it is new in scikit-learn
1.8. What is left is the minimum of a convex function of one number.

**Label sets** have a logistic curve for every node, of largest likelihood; see :mod:`nhsvm.model.sets`. It has
normal priors, since most nodes of a hierarchy have few samples: on the slope per standard deviation of the margin, and
on the shares in all directions per root of the total variance of all scores. A node without any sample keeps its
frequency. Without directions these are Platt's curves, one node after the other; with them the others help, as when
models are stacked.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017). On calibration of modern neural networks. ICML.
J. Platt (1999). Probabilistic outputs for support vector machines. Advances in large margin classifiers.
D. Wolpert (1992). Stacked generalization. Neural Networks 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.model_selection import check_cv
from sklearn.utils.extmath import randomized_svd

from nhsvm.errors import DataError
from nhsvm.estimators.labels import LabelSets, Targets
from nhsvm.model import Curves, Model
from nhsvm.storage.samples import Samples
from nhsvm.typing import Array, BoolArray, FloatArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine import Solver
    from nhsvm.estimators.problem import LearningProblem

_SCORES = 2**26  # held-out scores to keep; one number needs no more, however many samples there are
_SET_SCORES = 2**25  # the same of label sets: 134 MB in single precision
_BLOCK = 2**20  # scores at work at a time
_PARTS = 5  # of the samples, if only one of them is held out


# -- folds -------------------------------------------------------------------------------------------------------------


class Fold(NamedTuple):
    """Sample numbers to learn from, and to hold out."""

    train: PtrArray
    held_out: PtrArray


def make_folds(cv: object, targets: Targets, weight: FloatArray, seed: int) -> list[Fold]:
    """Folds in which every held-out sample has a class that is learned; samples of weight zero are in none.

    If ``cv`` is a number, and no splitter or iterable of (train, test), samples are dealt at random, as ``seed`` says.
    A DataError says that nothing can be held out.
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


def set_folds(cv: object, sets: LabelSets, weight: FloatArray, seed: int) -> list[Fold]:
    """Folds of samples with label sets, which are stratified by the rarest label of each."""
    found = splits(cv, strata(sets, weight), weight, seed)
    folds = [fold for fold in found if len(fold.train) and len(fold.held_out)]
    if not folds:
        raise DataError(
            "offsets=... and probability=True need samples to hold out and others to learn from; give more samples, or "
            "leave them out"
        )
    return folds


def strata(sets: LabelSets, weight: FloatArray) -> PtrArray:
    """Classes of samples with label sets, by which folds are stratified: the rarest label of each.

    Samples that are the only ones with their rarest label are dealt as if they shared one; if it is just one sample, it
    is not held out. The others have to be: where labels have a long tail they may be most of the samples, and those
    with the most labels, so without them all nodes would seem rarer than they are.
    """
    codes = rarest(sets, weight)
    alone = np.bincount(codes[weight > 0], minlength=len(sets.classes) + 1)[codes] <= 1
    codes[alone] = len(sets.classes) + 1
    return codes


def rarest(sets: LabelSets, weight: FloatArray) -> PtrArray:
    """The position of the leaf of every sample that fewest samples have; one more than the last for an empty set."""
    n_leaves = len(sets.classes)
    owner = sets.leaf_rows().owners()
    count = np.bincount(sets.indices[weight[owner] > 0], minlength=n_leaves)
    found = np.full(sets.n_samples, n_leaves, dtype=np.int64)
    some = np.diff(sets.indptr) > 0
    rank = count[sets.indices] * n_leaves + sets.indices
    found[some] = np.minimum.reduceat(rank, sets.indptr[:-1][some]) % n_leaves
    return found


def splits(
    cv: object, codes: PtrArray, weight: FloatArray, seed: int, groups: npt.ArrayLike | None = None
) -> Iterator[Fold]:
    """What ``cv`` says, without samples of weight zero; samples are stratified by ``codes``."""
    if isinstance(cv, Integral):
        found = _dealt(int(cv), codes, np.flatnonzero(weight > 0), np.random.default_rng(seed))
    else:
        found = check_cv(cv, codes, classifier=True).split(np.zeros((len(codes), 1)), codes, groups)
    for train, held_out in found:
        yield Fold(*(np.asarray(part)[weight[part] > 0] for part in (train, held_out)))


def _dealt(n_folds: int, codes: PtrArray, used: PtrArray, rng: np.random.Generator) -> Iterator[Fold]:
    """Stratified folds: samples are dealt class by class, so that a class with two samples is in all training parts.

    The only sample of a class stays in training. (``StratifiedKFold`` would hold it out, and gives up if all classes
    have fewer samples than there are folds.) One fold is the first of five: a fifth is held out, once.
    """
    used = rng.permutation(used)
    several = np.bincount(codes[used])[codes[used]] > 1
    dealt = used[several][np.argsort(codes[used[several]], kind="stable")]
    parts = n_folds if n_folds > 1 else _PARTS
    for k in range(n_folds):
        held_out = dealt[k::parts]
        yield Fold(np.setdiff1d(used, held_out), rng.permutation(held_out))


# -- scores of held-out samples ----------------------------------------------------------------------------------------


class FoldInterruptedError(Exception):
    """The user has interrupted the fit of a fold."""


class HeldOut(NamedTuple):
    """What a fold's model says of the samples held out: scores of its classes, the column of the truth, weights."""

    scores: Array
    truth: PtrArray
    weight: FloatArray


class HeldOutSets(NamedTuple):
    """Held-out samples with label sets: scores of the columns, true leaves as a 0/1 matrix, weights."""

    scores: Array
    true: sp.csr_array
    weight: FloatArray


class FoldModels(NamedTuple):
    """Folds, and models of the samples that each learns from, made one after the other."""

    folds: list[Fold]
    models: Iterable[Model]

    @classmethod
    def learned(cls, problem: LearningProblem, model: Model, folds: list[Fold], solver: Solver) -> FoldModels:
        """Models with the columns of ``model``, that of all samples, whether or not all labels are in a fold."""

        def learn() -> Iterator[Model]:
            for train, _ in folds:
                solution = solver.solve(problem.solved.part(train))
                if solution.interrupted:
                    raise FoldInterruptedError
                yield replace(model, weights=solution.weights.learned())

        return cls(folds, learn())

    def held_out(self, problem: LearningProblem, most: int) -> Iterator[tuple[Fold, Samples, Model]]:
        """For every fold, with at most so many held-out samples: these, and a model of the others."""
        for (train, held_out), model in zip(self.folds, self.models, strict=True):
            held_out = held_out[:most]
            yield Fold(train, held_out), Samples(problem.solved.X[held_out]), model


def hold_out(problem: LearningProblem, labels: Targets, made: FoldModels, n_threads: int) -> list[HeldOut]:
    """Scores of held-out samples with one label each, under models of the other samples."""
    found = []
    most = max(1, _SCORES // (len(labels.classes) * max(1, len(made.folds))))
    for (train, held_out), samples, fold_model in made.held_out(problem, most):
        seen = np.unique(labels.codes[train])  # scores of other classes would say that nobody has learned them
        scores = fold_model.class_scores(samples, n_threads=n_threads)
        truth = np.searchsorted(seen, labels.codes[held_out])
        found.append(HeldOut(scores[:, seen], truth, problem.weight[held_out]))
    return found


def hold_out_sets(
    problem: LearningProblem, labels: LabelSets, made: FoldModels, n_columns: int, n_threads: int
) -> HeldOutSets:
    """The same of samples with label sets: scores of the columns, of as many samples as there is room for."""
    most = max(1, _SET_SCORES // (n_columns * len(made.folds)))
    truth = labels.matrix(np.int8)
    parts: list[HeldOutSets] = []
    for (_, held_out), samples, fold_model in made.held_out(problem, most):
        scores = np.empty((len(held_out), n_columns), dtype=fold_model.weights.dtype)

        def store(some: slice, found: Array, scores: Array = scores) -> None:
            scores[some] = found

        fold_model.score_columns(samples, store, n_threads=n_threads)
        parts.append(HeldOutSets(scores, truth[held_out], problem.weight[held_out]))
    return HeldOutSets(
        np.concatenate([part.scores for part in parts]),
        sp.csr_array(sp.vstack([part.true for part in parts])),
        np.concatenate([part.weight for part in parts]),
    )


# -- one label a sample: the temperature -------------------------------------------------------------------------------


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


def _blocks(part: HeldOut) -> Iterator[tuple[Array, FloatArray]]:
    """Differences d to the score of the truth, and weights, some samples at a time."""
    step = max(1, _BLOCK // part.scores.shape[1])
    for lo in range(0, len(part.truth), step):
        rows = slice(lo, lo + step)
        scores = part.scores[rows]
        yield scores - np.take_along_axis(scores, part.truth[rows, None], axis=1), part.weight[rows]


# -- label sets: curves ------------------------------------------------------------------------------------------------


class CurveSettings(NamedTuple):
    """Constants of the fit of curves."""

    directions: int = 32
    """At most."""
    prior: float = 2.0
    """Weight of the priors, in samples."""
    rounds: int = 30
    """Of Newton's method, at most."""
    longest: float = 1.0
    """Root mean square by which one round changes what is inside the logistic function, at most."""
    close: float = 1e-6
    """The same, when it is enough."""
    noise: float = 100.0
    """Roundings by which numbers may differ that ought to be equal."""
    nodes: int = 256
    """At a time."""
    samples: int = 4096
    """At a time."""


CURVES = CurveSettings()


class CurveSamples(NamedTuple):
    """Held-out samples."""

    along: FloatArray  # z
    true: BoolArray  # nodes
    weight: FloatArray  # of mean 1


def fit_curves(margins: FloatArray, true: BoolArray, weight: FloatArray, scores: Array) -> Curves:
    """Curves of all nodes, from what held-out samples have: margins of nodes, true nodes, weights, scores of columns.

    The directions are found in the scores.
    """
    directions, shift = _directions(scores, weight)
    samples = CurveSamples(scores @ directions - shift, true, weight / weight.mean())
    least = CURVES.noise * float(np.finfo(scores.dtype).eps)
    nodes = (slice(lo, lo + CURVES.nodes) for lo in range(0, margins.shape[1], CURVES.nodes))
    parts = [_fit(margins[:, some], samples._replace(true=true[:, some]), least) for some in nodes]
    slope, intercept, shares = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return Curves(slope, intercept - shift @ shares, directions, shares)


def _directions(scores: Array, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(directions, mean z) such that z has mean 0 and, over all directions there are, a total variance of 1."""
    mean = np.average(scores, axis=0, weights=weight)
    kind = scores.dtype  # there may be many
    centred = (scores - mean.astype(kind)) * np.sqrt(weight / weight.sum()).astype(kind)[:, None]
    total = float(np.sqrt(np.square(centred).sum(dtype=np.float64)))
    differ = total > CURVES.noise * np.finfo(kind).eps * float(np.linalg.norm(mean))
    k = min(CURVES.directions, *scores.shape) if differ else 0
    found = np.zeros((scores.shape[1], 0))
    if k:
        found = np.asarray(randomized_svd(centred, k, random_state=0)[2].T / total, dtype=np.float64)
    return found, mean @ found


def _fit(margins: FloatArray, samples: CurveSamples, least: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's method for some nodes at once: slopes, intercepts, shares.

    Margins whose spread is at most ``least`` of their size are taken as equal: what was never learned is −1 for all
    samples up to rounding, and a curve of that would be steep enough to make any other margin certain.
    """
    weight, k = samples.weight, samples.along.shape[1]
    mean = np.average(margins, axis=0, weights=weight)
    spread = np.sqrt(np.average((margins - mean) ** 2, axis=0, weights=weight))
    differ = spread > least * np.abs(mean)
    unit = np.where(differ, spread, 1.0)
    z = np.where(differ, (margins - mean) / unit, 0.0)
    positive, total = weight @ samples.true, float(weight.sum())
    inside = np.zeros((k + 2, margins.shape[1]))  # a, b, w of what is inside the logistic function
    inside[1] = np.log((positive + 0.5) / (total - positive + 0.5))
    prior = np.full(k + 2, CURVES.prior)
    prior[1] = 0.0
    size = np.concatenate([[1.0, 1.0], np.average(samples.along**2, axis=0, weights=weight)])
    for _ in range(CURVES.rounds):
        gradient, curvature = _derivatives(inside, z, samples)
        gradient -= prior[:, None] * inside
        curvature[:, range(k + 2), range(k + 2)] += prior
        held = (inside[0] <= 0.0) & (gradient[0] <= 0.0)  # no slope is better than a negative one
        gradient[0, held] = 0.0
        curvature[held, 0, 1:] = curvature[held, 1:, 0] = 0.0
        change = np.linalg.solve(curvature, gradient.T[:, :, None])[:, :, 0].T
        length = np.sqrt(size @ change**2)
        inside += change * np.minimum(1.0, CURVES.longest / np.maximum(length, CURVES.longest))
        inside[0] = np.maximum(inside[0], 0.0)
        if length.max() < CURVES.close:
            break
    slope = np.where(differ, inside[0] / unit, 0.0)
    return slope, inside[1] - slope * mean, inside[2:]


def _derivatives(inside: FloatArray, z: FloatArray, samples: CurveSamples) -> tuple[FloatArray, FloatArray]:
    """Gradient (k + 2, n) of the log-likelihood of n nodes, and its negative curvature (n, k + 2, k + 2)."""
    size, n = inside.shape
    k = size - 2
    gradient, curvature = np.zeros((size, n)), np.zeros((n, size, size))
    first, second = np.triu_indices(k)
    tail = np.zeros((n, len(first)))
    for lo in range(0, len(z), CURVES.samples):
        rows = slice(lo, lo + CURVES.samples)
        here, along, w = z[rows], samples.along[rows], samples.weight[rows, None]
        p = expit(here * inside[0] + inside[1] + along @ inside[2:])
        # half a sample more of either kind: a node that all have, or none, is not certain
        target = (w * samples.true[rows] + 0.5 / len(z)) / (w + 1.0 / len(z))
        residual, bend = w * (target - p), w * p * (1.0 - p)
        gradient[0] += (residual * here).sum(axis=0)
        gradient[1] += residual.sum(axis=0)
        gradient[2:] += along.T @ residual
        sloped = bend * here
        curvature[:, 0, 0] += (sloped * here).sum(axis=0)
        curvature[:, 0, 1] += sloped.sum(axis=0)
        curvature[:, 1, 1] += bend.sum(axis=0)
        curvature[:, 0, 2:] += sloped.T @ along
        curvature[:, 1, 2:] += bend.T @ along
        tail += bend.T @ (along[:, first] * along[:, second])
    curvature[:, first + 2, second + 2] = tail
    lower = np.tril_indices(size, -1)
    curvature[:, *lower] = curvature[:, *lower[::-1]]
    return gradient, curvature
