"""One hold-out split, stratified over long-tailed labels."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import DataError, OptionError
from nhsvm.estimators.labels import encode, encode_sets, is_multilabel
from nhsvm.hierarchy import Hierarchy
from nhsvm.model_selection._deal import deal_labels, deal_sets

Samples = npt.NDArray[np.intp]


def hold_out_split(
    y: Any,
    *,
    test_size: float = 0.2,
    random_state: Any = None,
    cover: bool = False,
    hierarchy: Hierarchy | None = None,
) -> tuple[Samples, Samples]:
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
    if not isinstance(cover, (bool, np.bool_)):
        raise OptionError(f"cover must be True or False, not {cover!r}")
    if is_multilabel(y, hierarchy):
        sets = encode_sets(y, hierarchy, allow_empty=True)
        return deal_sets(sets.indptr, sets.indices, size, rng, cover)
    return deal_labels(encode(y, hierarchy).codes, size, rng, cover)


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
        random_state: Any = None,
        cover: bool = False,
        hierarchy: Hierarchy | None = None,
    ) -> None:
        self.test_size, self.random_state, self.cover, self.hierarchy = test_size, random_state, cover, hierarchy

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Samples, Samples]]:
        """The one pair of (samples to learn from, samples to hold out)."""
        if y is None:
            raise DataError("HoldOut splits by labels, so it needs y")
        options = {"test_size": self.test_size, "random_state": self.random_state, "cover": self.cover}
        yield hold_out_split(y, hierarchy=self.hierarchy, **options)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """One."""
        return 1

    def __repr__(self) -> str:
        return f"HoldOut(test_size={self.test_size!r}, random_state={self.random_state!r}, cover={self.cover!r})"


def _size(test_size: Any) -> float:
    """A share below 1, or a whole number."""
    number = isinstance(test_size, Real) and not isinstance(test_size, bool)
    if number and isinstance(test_size, Integral) and int(test_size) >= 1:
        return int(test_size)
    if number and 0 < test_size < 1:
        return float(test_size)
    raise OptionError(f"test_size must be a share between 0 and 1, or a number of samples, not {test_size!r}")


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or (isinstance(random_state, Integral) and int(random_state) >= 0):
        return np.random.default_rng(0 if random_state is None else int(random_state))
    raise OptionError(f"random_state must be None, a seed ≥ 0, a RandomState or a Generator, not {random_state!r}")
