"""One hold-out split, stratified over long-tailed labels."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral

import numpy as np

from nhsvm.checks import flag
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators.labels import encode, encode_sets, is_multilabel
from nhsvm.hierarchy import Hierarchy, Ragged
from nhsvm.sizes import is_number
from nhsvm.typing import AnySeed, BoolArray, LabelsLike, PtrArray

_NOTHING = "so none can be held out: give more samples, or a validation set"


def hold_out_split(
    y: LabelsLike,
    *,
    test_size: float = 0.2,
    random_state: AnySeed = None,
    cover: bool = False,
    hierarchy: Hierarchy | None = None,
) -> tuple[PtrArray, PtrArray]:
    """Sample numbers to learn from and to hold out, both ascending.

    Every label gives the same share of its samples, as nearly as whole samples allow. So the held-out samples are a
    small picture of all, and a score on them says what to expect of new ones. **Every label keeps a sample to learn
    from**: the only sample of a label is never held out.

    Parameters
    ----------
    y : labels or label sets
        All that ``fit`` of the estimators accepts.
    test_size : float or int
        Share, or number, to hold out of the samples whose labels have more than one.
    random_state : int, RandomState, Generator or None
        Which samples of a label are held out. None is a fixed seed, as everywhere in this library.
    cover : bool
        Hold out one sample, at least, of every label that has two or more, if ``test_size`` has room for them all. That
        is for scores that count labels, such as macro-F1. A label with two samples then gives half of them, so
        rare labels count for more in a mean over samples than they will later on.
    hierarchy : Hierarchy, optional
        To tell whether tuples are labels or label sets.

    Notes
    -----
    One label a sample: samples are put in an order sorted by label, random within a label, and every (1/share)-th is
    taken. A label with n samples gives n·share of them, rounded up or down, at random for labels too rare to be sure.

    Label sets: from the rarest label on, every sample goes to the side that lacks its labels most, compared with their
    shares (iterative stratification). A label that would have no sample to learn from then gets one back.

    Examples
    --------
    >>> from nhsvm.model_selection import hold_out_split
    >>> y = ["dog"] * 10 + ["cat"] * 5 + ["yeti"]
    >>> train, held_out = hold_out_split(y, test_size=0.2)
    >>> [y[i] for i in held_out]
    ['dog', 'dog', 'cat']
    """
    size, rng = _size(test_size), _generator(random_state)
    flag("cover", cover)
    if is_multilabel(y, hierarchy):
        sets = encode_sets(y, hierarchy, allow_empty=True)
        n_samples, out = sets.n_samples, _deal_sets(Ragged(sets.indptr, sets.indices), size, rng, cover)
    else:
        codes = encode(y, hierarchy).codes
        n_samples, out = len(codes), _deal_labels(codes, size, rng, cover)
    return np.setdiff1d(np.arange(n_samples), out), np.sort(out)


class HoldOut:
    """A scikit-learn splitter with one split: :func:`hold_out_split`, for ``cv=`` of ``GridSearchCV`` and others.

    Parameters
    ----------
    test_size, random_state, cover, hierarchy
        As for :func:`hold_out_split`.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nhsvm import FlatSVM
    >>> X, y = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], ["a"] * 3 + ["b"] * 3
    >>> search = GridSearchCV(FlatSVM(), {"C": [1, 10]}, cv=HoldOut(test_size=0.4)).fit(X, y)
    >>> search.n_splits_
    1
    """

    def __init__(
        self,
        test_size: float = 0.2,
        *,
        random_state: AnySeed = None,
        cover: bool = False,
        hierarchy: Hierarchy | None = None,
    ) -> None:
        self.test_size, self.random_state, self.cover, self.hierarchy = test_size, random_state, cover, hierarchy

    def split(self, X: object, y: LabelsLike = None, groups: object = None) -> Iterator[tuple[PtrArray, PtrArray]]:
        """The one pair of (samples to learn from, samples to hold out)."""
        if y is None:
            raise DataError("HoldOut splits by labels, so it needs y")
        yield hold_out_split(
            y, test_size=self.test_size, random_state=self.random_state, cover=self.cover, hierarchy=self.hierarchy
        )

    def get_n_splits(self, X: object = None, y: LabelsLike = None, groups: object = None) -> int:
        """One."""
        return 1

    def __repr__(self) -> str:
        return f"HoldOut(test_size={self.test_size!r}, random_state={self.random_state!r}, cover={self.cover!r})"


def _size(test_size: object) -> float:
    """A share below 1, or a whole number."""
    is_whole = isinstance(test_size, Integral)
    if is_number(test_size):
        if is_whole and test_size >= 1:
            return int(test_size)
        if 0 < test_size < 1:
            return float(test_size)
    raise OptionError(f"test_size must be a share between 0 and 1, or a number of samples, not {test_size!r}")


def _generator(random_state: object) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or (isinstance(random_state, Integral) and int(random_state) >= 0):
        return np.random.default_rng(0 if random_state is None else int(random_state))
    raise OptionError(f"random_state must be None, a seed ≥ 0, a RandomState or a Generator, not {random_state!r}")


# -- which samples are held out ----------------------------------------------------------------------------------------


def _deal_labels(codes: PtrArray, size: float, rng: np.random.Generator, cover: bool) -> PtrArray:
    """Every (1/share)-th sample in an order sorted by label, random within a label."""
    count = np.bincount(codes)
    order = np.lexsort((rng.random(len(codes)), codes))
    order = order[count[codes[order]] > 1]
    if not len(order):
        raise DataError(f"no label has a second sample, {_NOTHING}")
    firsts = order[np.concatenate([[True], codes[order[1:]] != codes[order[:-1]]])]
    step = _step(size, len(order), len(order) - len(firsts))
    out = order[np.arange(rng.uniform(0, step), len(order), step).astype(int)]
    n = round(len(order) / step)
    if cover and len(firsts) <= n:  # a sample of every label without one, instead of others of labels with several
        missing = firsts[~np.isin(codes[firsts], codes[out])]
        further = out[np.concatenate([[False], codes[out[1:]] == codes[out[:-1]]])]
        surplus = max(0, len(out) + len(missing) - n)
        out = np.union1d(np.setdiff1d(out, further[np.arange(surplus) * len(further) // max(1, surplus)]), missing)
    emptied = np.bincount(codes[out], minlength=len(count)) == count
    return np.setdiff1d(out, firsts[emptied[codes[firsts]]])


def _step(size: float, n_samples: int, most: int) -> float:
    """One of so many samples is held out, and one in all at least."""
    if isinstance(size, int):
        if size > most:
            raise OptionError(f"test_size={size}, but if every label is to keep a sample only {most} can be held out")
        return n_samples / size
    return min(1 / size, float(n_samples))


def _deal_sets(sets: Ragged, size: float, rng: np.random.Generator, cover: bool) -> PtrArray:
    """From the rarest label on, each sample goes to the side that keeps the shares of its labels nearest to ``size``.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas (2011). On the stratification of multi-label data. ECML PKDD.
    """
    owner, sizes = sets.owners(), sets.sizes()
    count = np.bincount(sets.indices)
    free = np.ones(len(sizes), dtype=bool)
    free[owner[count[sets.indices] == 1]] = False  # the only sample of a label
    order = rng.permutation(np.flatnonzero(free))
    if not len(order):
        raise DataError(f"every sample has a label that no other has, {_NOTHING}")
    # samples by their rarest labels, the rarest first; those without labels come last
    some = sizes > 0
    label = np.full(len(sizes), len(count))
    label[some] = sets.indices[np.lexsort((sets.indices, count[sets.indices], owner))][sets.indptr[:-1][some]]
    rarity = np.append(count, np.iinfo(np.int64).max)[label]
    order = order[np.lexsort((label[order], rarity[order]))]
    held = _dealt(sets, order.tolist(), 1 / _step(size, len(order), len(order)))
    left = count - np.bincount(sets.indices[held[owner]], minlength=len(count))
    if cover:  # hold out a sample of every label, where all labels of that sample keep another one
        for i in order.tolist():
            mine = sets.row(i)
            if not held[i] and (left[mine] == count[mine]).any() and (left[mine] > 1).all():
                held[i] = True
                left[mine] -= 1
    for i in np.flatnonzero(held):  # labels without a sample to learn from get one back
        mine = sets.row(i)
        if (left[mine] == 0).any():
            held[i] = False
            left[mine] += 1
    held[order[-1]] |= not held.any()  # its labels have other samples
    return np.flatnonzero(held)


def _dealt(sets: Ragged, order: list[int], share: float) -> BoolArray:
    """Which samples are held out: greedily, so that shares are right at any time.

    Of the samples of label l that have been dealt, d_l more should have been held out, and d more of all. To hold
    out the next one takes 1 from d and from the d_l of its labels; that is done if it makes d² + Σ d_l² smaller.
    """
    held = np.zeros(len(sets.indptr) - 1, dtype=bool)
    ends, labels = sets.indptr.tolist(), sets.indices.tolist()
    lack, lack_all = [0.0] * (int(sets.indices.max(initial=-1)) + 1), 0.0
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
