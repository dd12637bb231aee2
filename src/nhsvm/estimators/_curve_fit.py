"""The curves of probabilities of largest likelihood on held-out samples.

With normal priors, since most nodes of a hierarchy have few samples: on the slope per standard deviation of the margin,
and on the shares in all directions per root of the total variance of all scores. A node without any sample keeps its
frequency. Without directions these are Platt's curves, one node after the other; with them the others help, as when
models are stacked.

References
----------
J. Platt (1999). Probabilistic outputs for support vector machines. Advances in large margin classifiers.
D. Wolpert (1992). Stacked generalization. Neural Networks 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.utils.extmath import randomized_svd

from nhsvm.model import Curves
from nhsvm.typing import BoolArray, FloatArray

DIRECTIONS = 32  # at most
_PRIOR = 2.0  # weight of the priors, in samples
_ROUNDS = 30  # of Newton's method
_LONGEST = 1.0  # root mean square by which one round changes what is inside the logistic function
_CLOSE = 1e-6  # the same, when it is enough
_NOISE = 100.0  # roundings by which numbers may differ that ought to be equal
_NODES, _SAMPLES = 256, 4096  # at a time


class Samples(NamedTuple):
    """Held-out samples: z, true nodes, weights of mean 1."""

    along: FloatArray
    true: BoolArray
    weight: FloatArray


def fit_curves(margins: FloatArray, true: BoolArray, weight: FloatArray, scores: npt.NDArray[Any]) -> Curves:
    """Curves of all nodes.

    Parameters
    ----------
    margins : array of (n_samples, n_nodes)
        Of held-out samples.
    true : array of (n_samples, n_nodes)
        Whether a sample has the node.
    weight : array of n_samples
    scores : array of (n_samples, n_columns)
        What the directions are found in.
    """
    directions, shift = _directions(scores, weight)
    samples = Samples(scores @ directions - shift, true, weight / weight.mean())
    nodes = range(0, margins.shape[1], _NODES)
    least = _NOISE * float(np.finfo(scores.dtype).eps)
    parts = [
        _fit(margins[:, lo : lo + _NODES], samples._replace(true=true[:, lo : lo + _NODES]), least) for lo in nodes
    ]
    slope, intercept, shares = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return Curves(slope, intercept - shift @ shares, directions, shares)


def _directions(scores: npt.NDArray[Any], weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(directions, mean z) such that z has mean 0 and, over all directions there are, a total variance of 1."""
    mean = np.average(scores, axis=0, weights=weight)
    kind = scores.dtype  # there may be many
    centred = (scores - mean.astype(kind)) * np.sqrt(weight / weight.sum()).astype(kind)[:, None]
    total = float(np.sqrt(np.square(centred).sum(dtype=np.float64)))
    differ = total > _NOISE * np.finfo(kind).eps * float(np.linalg.norm(mean))
    k = min(DIRECTIONS, *scores.shape) if differ else 0
    found = np.zeros((scores.shape[1], 0))
    if k:
        found = np.asarray(randomized_svd(centred, k, random_state=0)[2].T / total, dtype=np.float64)
    return found, mean @ found


def _fit(margins: FloatArray, samples: Samples, least: float) -> tuple[FloatArray, FloatArray, FloatArray]:
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
    prior = np.full(k + 2, _PRIOR)
    prior[1] = 0.0
    size = np.concatenate([[1.0, 1.0], np.average(samples.along**2, axis=0, weights=weight)])
    for _ in range(_ROUNDS):
        gradient, curvature = _derivatives(inside, z, samples)
        gradient -= prior[:, None] * inside
        curvature[:, range(k + 2), range(k + 2)] += prior
        held = (inside[0] <= 0.0) & (gradient[0] <= 0.0)  # no slope is better than a negative one
        gradient[0, held] = 0.0
        curvature[held, 0, 1:] = curvature[held, 1:, 0] = 0.0
        change = np.linalg.solve(curvature, gradient.T[:, :, None])[:, :, 0].T
        length = np.sqrt(size @ change**2)
        inside += change * np.minimum(1.0, _LONGEST / np.maximum(length, _LONGEST))
        inside[0] = np.maximum(inside[0], 0.0)
        if length.max() < _CLOSE:
            break
    slope = np.where(differ, inside[0] / unit, 0.0)
    return slope, inside[1] - slope * mean, inside[2:]


def _derivatives(inside: FloatArray, z: FloatArray, samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Gradient (k + 2, n) of the log-likelihood of n nodes, and its negative curvature (n, k + 2, k + 2)."""
    size, n = inside.shape
    k = size - 2
    gradient, curvature = np.zeros((size, n)), np.zeros((n, size, size))
    first, second = np.triu_indices(k)
    tail = np.zeros((n, len(first)))
    for lo in range(0, len(z), _SAMPLES):
        rows = slice(lo, lo + _SAMPLES)
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
