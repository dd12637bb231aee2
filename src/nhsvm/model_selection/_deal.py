"""Which samples are held out: the two ways of dealing them, for labels and for label sets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import DataError, OptionError

Numbers = npt.NDArray[np.int64]
Samples = npt.NDArray[np.intp]
_NOTHING = "so none can be held out: give more samples, or a validation set"


def deal_labels(codes: Numbers, size: float, rng: np.random.Generator, cover: bool) -> tuple[Samples, Samples]:
    """Every (1/share)-th sample in an order sorted by label, random within a label.

    Parameters
    ----------
    codes : array of n_samples
        Labels as numbers.
    size : float or int
        Share or number of samples to hold out.
    rng : Generator
    cover : bool
        Hold out a sample of every label with two, if there is room.
    """
    count = np.bincount(codes)
    order = np.lexsort((rng.random(len(codes)), codes))
    order = order[count[codes[order]] > 1]
    if not len(order):
        raise DataError(f"no label has a second sample, {_NOTHING}")
    firsts = order[np.concatenate([[True], codes[order[1:]] != codes[order[:-1]]])]
    step = _step(size, len(order), len(order) - len(firsts))
    out = order[np.arange(rng.uniform(0, step), len(order), step).astype(int)]
    if cover:
        out = _covering(codes, firsts, out, round(len(order) / step))
    emptied = np.bincount(codes[out], minlength=len(count)) == count
    return _both_sides(len(codes), np.setdiff1d(out, firsts[emptied[codes[firsts]]]))


def _step(size: float, n_samples: int, most: int) -> float:
    """One of so many samples is held out, and one in all at least."""
    if isinstance(size, int):
        if size > most:
            raise OptionError(f"test_size={size}, but if every label is to keep a sample only {most} can be held out")
        return n_samples / size
    return min(1 / size, float(n_samples))


def _covering(codes: Numbers, firsts: Samples, out: Samples, n: int) -> Samples:
    """Take in a sample of every label that has none, and leave out as many of labels that have several."""
    if len(firsts) > n:
        return out
    missing = firsts[~np.isin(codes[firsts], codes[out])]
    further = out[np.concatenate([[False], codes[out[1:]] == codes[out[:-1]]])]
    surplus = max(0, len(out) + len(missing) - n)
    return np.union1d(np.setdiff1d(out, further[np.arange(surplus) * len(further) // max(1, surplus)]), missing)


def deal_sets(
    indptr: Numbers, indices: npt.NDArray[Any], size: float, rng: np.random.Generator, cover: bool
) -> tuple[Samples, Samples]:
    """From the rarest label on, each sample goes to the side that keeps the shares of its labels nearest to ``size``.

    Parameters
    ----------
    indptr, indices : arrays
        Sample i has the labels ``indices[indptr[i]:indptr[i + 1]]``.
    size, rng, cover
        As for :func:`deal_labels`.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas (2011). On the stratification of multi-label data. ECML PKDD.
    """
    n_samples = len(indptr) - 1
    count = np.bincount(indices)
    owner = np.repeat(np.arange(n_samples), np.diff(indptr))
    free = np.ones(n_samples, dtype=bool)
    free[owner[count[indices] == 1]] = False  # the only sample of a label
    order = _by_rarest(indptr, indices, count, rng.permutation(np.flatnonzero(free)))
    if not len(order):
        raise DataError(f"every sample has a label that no other has, {_NOTHING}")
    held = _dealt(indptr, indices, order, 1 / _step(size, len(order), len(order)))
    left = count - np.bincount(indices[held[owner]], minlength=len(count))
    if cover:
        _cover_sets(indptr, indices, order, held, left, count)
    _give_back(indptr, indices, held, left)
    held[order[-1]] |= not held.any()  # its labels have other samples
    return _both_sides(n_samples, np.flatnonzero(held))


def _by_rarest(indptr: Numbers, indices: npt.NDArray[Any], count: Numbers, samples: Samples) -> list[int]:
    """Samples by their rarest labels, the rarest first, otherwise as they are; those without labels come last."""
    owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    some = np.diff(indptr) > 0
    label = np.full(len(some), len(count))
    label[some] = indices[np.lexsort((indices, count[indices], owner))][indptr[:-1][some]]
    rarity = np.append(count, np.iinfo(np.int64).max)[label]
    ordered: list[int] = samples[np.lexsort((label[samples], rarity[samples]))].tolist()
    return ordered


def _dealt(indptr: Numbers, indices: npt.NDArray[Any], order: list[int], share: float) -> npt.NDArray[np.bool_]:
    """Which samples are held out: greedily, so that shares are right at any time.

    Of the samples of label l that have been dealt, d_l more should have been held out, and d more of all. To hold
    out the next one takes 1 from d and from the d_l of its labels; that is done if it makes d² + Σ d_l² smaller.
    """
    held = np.zeros(len(indptr) - 1, dtype=bool)
    ends, labels = indptr.tolist(), indices.tolist()
    lack, lack_all = [0.0] * (int(indices.max(initial=-1)) + 1), 0.0
    for i in order:
        mine = labels[ends[i] : ends[i + 1]]
        lack_all += share
        for label in mine:
            lack[label] += share
        if lack_all - 0.5 + sum(lack[label] - 0.5 for label in mine) > 0:
            held[i] = True
            lack_all -= 1
            for label in mine:
                lack[label] -= 1
    return held


def _cover_sets(
    indptr: Numbers, indices: npt.NDArray[Any], order: list[int], held: Any, left: Numbers, count: Numbers
) -> None:
    """Hold out a sample of every label, the rarest first, where all labels of that sample keep another one."""
    for i in order:
        mine = indices[indptr[i] : indptr[i + 1]]
        if not held[i] and (left[mine] == count[mine]).any() and (left[mine] > 1).all():
            held[i] = True
            left[mine] -= 1


def _give_back(indptr: Numbers, indices: npt.NDArray[Any], held: npt.NDArray[np.bool_], left: Numbers) -> None:
    """Labels without a sample to learn from get one back."""
    for i, (a, b) in enumerate(pairwise(indptr.tolist())):
        if held[i] and (left[indices[a:b]] == 0).any():
            held[i] = False
            left[indices[a:b]] += 1


def _both_sides(n_samples: int, out: Samples) -> tuple[Samples, Samples]:
    return np.setdiff1d(np.arange(n_samples), out), np.sort(out)
