"""The hold-out split: shares of labels, singletons, both kinds of y, as a splitter."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, cross_val_score

from nhsvm import FlatSVM, Hierarchy
from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.model_selection import HoldOut, hold_out_split

labels = st.lists(st.integers(0, 12), min_size=2, max_size=80).filter(lambda y: len(set(y)) < len(y))
sets = st.lists(st.sets(st.integers(0, 9), max_size=4), min_size=2, max_size=60)
shares = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**31)


def parts(y, **options):
    train, out = hold_out_split(y, **options)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, out])), np.arange(len(y)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(out) > 0).all()
    return train, out


@given(labels, shares, seeds)
def test_labels(y, share, seed):
    _, out = parts(y, test_size=share, random_state=seed)
    assert len(out) >= 1
    for label in set(y):
        n, held = y.count(label), sum(y[i] == label for i in out)
        assert held <= n - 1  # one is left to learn from
        if n > 1:
            assert np.floor(n * share - 1e-9) - (share > 0.5) <= held <= max(1, np.ceil(n * share + 1e-9))
        if n > 1 and n * share >= 1 + 1e-9:
            assert held >= 1
    several = sum(y.count(label) > 1 for label in y)
    if share <= 0.5:
        assert abs(len(out) - share * several) <= 1
    again = hold_out_split(y, test_size=share, random_state=seed)
    np.testing.assert_array_equal(out, again[1])


@given(labels, shares, seeds)
def test_cover_puts_every_label_on_both_sides_if_there_is_room(y, share, seed):
    _, out = parts(y, test_size=share, random_state=seed, cover=True)
    twice = {label for label in y if y.count(label) > 1}
    held = [y[i] for i in out]
    assert all(held.count(label) <= y.count(label) - 1 for label in held)
    if len(twice) <= share * sum(y.count(label) > 1 for label in y) - 0.5:
        assert twice == set(held)


@given(sets, shares, seeds, st.booleans())
def test_label_sets(y, share, seed, cover):
    count = {label: sum(label in s for s in y) for s in y for label in s}
    free = [i for i, s in enumerate(y) if all(count[label] > 1 for label in s)]
    if not free or not count:
        with pytest.raises((DataError, LabelError)):
            hold_out_split(y, test_size=share, random_state=seed, cover=cover)
        return
    train, out = parts(y, test_size=share, random_state=seed, cover=cover)
    assert set(count) == set().union(*(y[i] for i in train))  # every label can be learned
    assert set(out.tolist()) <= set(free)
    assert len(out) >= 1
    np.testing.assert_array_equal(out, hold_out_split(y, test_size=share, random_state=seed, cover=cover)[1])


def long_tailed(n=3000, n_labels=200, seed=0):
    rng = np.random.default_rng(seed)
    p = 1 / np.arange(1, n_labels + 1)
    return rng, p / p.sum(), n


def test_label_sets_of_a_long_tail_keep_their_shares():
    rng, p, n = long_tailed()
    y = [set(rng.choice(200, size=k, replace=False, p=p).tolist()) for k in rng.integers(1, 5, n)]
    _, out = hold_out_split(y, test_size=0.2, random_state=0)
    assert len(out) == pytest.approx(0.2 * n, rel=0.03)
    total, held = (np.bincount([label for i in rows for label in y[i]], minlength=200) for rows in (range(n), out))
    assert (abs(held - 0.2 * total) <= 1.5 + 0.02 * total).all()


def test_rare_labels_are_held_out_by_their_share():
    y = np.repeat(np.arange(500), 2)
    _, out = hold_out_split(y, test_size=0.2)
    assert len(out) == 200
    assert len(set(y[out])) == 200


def test_a_number_of_samples():
    y = ["a"] * 10 + ["b"] * 10 + ["c"]
    assert len(hold_out_split(y, test_size=7)[1]) == 7
    with pytest.raises(OptionError, match="only 18 can be held out"):
        hold_out_split(y, test_size=19)


def test_all_forms_of_y_give_the_same_split():
    y = [{"a"}, {"a", "b"}, {"b"}, {"c"}, {"c", "a"}, {"b", "c"}] * 5
    matrix = np.array([[label in s for label in "abc"] for s in y]).astype(int)
    expected = hold_out_split(y, test_size=0.3, random_state=3)[1]
    for form in (matrix, sp.csr_array(matrix), [sorted(s) for s in y]):
        np.testing.assert_array_equal(hold_out_split(form, test_size=0.3, random_state=3)[1], expected)


def test_tuples_are_labels_unless_the_hierarchy_says_otherwise():
    y = [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    assert len(hold_out_split(y, test_size=0.5)[1]) == 2
    h = Hierarchy.from_edges([], nodes=["a", "b", 1, 2])
    train, _ = hold_out_split(y, test_size=0.5, hierarchy=h)
    assert {label for i in train for label in y[i]} == {"a", "b", 1, 2}


@pytest.mark.parametrize("test_size", [0, 0.0, 1.0, -0.1, 1.5, True, None, "half", np.nan])
def test_bad_sizes(test_size):
    with pytest.raises(OptionError, match="test_size must be"):
        hold_out_split(["a", "a"], test_size=test_size)


def test_bad_options():
    with pytest.raises(OptionError, match="random_state must be"):
        hold_out_split(["a", "a"], random_state="x")
    with pytest.raises(OptionError, match="random_state must be"):
        hold_out_split(["a", "a"], random_state=-1)
    with pytest.raises(OptionError, match="cover must be"):
        hold_out_split(["a", "a"], cover="yes")
    with pytest.raises(DataError, match="no label has a second sample"):
        hold_out_split(["a", "b"])
    with pytest.raises(DataError, match="every sample has a label that no other has"):
        hold_out_split([{"a"}, {"b"}])
    with pytest.raises(DataError, match="needs y"):
        next(HoldOut().split([[1]]))


def test_kinds_of_random_state():
    y = ["a"] * 50
    seeded = [hold_out_split(y, random_state=np.random.RandomState(1))[1] for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    np.testing.assert_array_equal(
        hold_out_split(y, random_state=np.random.default_rng(5))[1], hold_out_split(y, random_state=5)[1]
    )
    np.testing.assert_array_equal(hold_out_split(y)[1], hold_out_split(y, random_state=0)[1])
    assert hold_out_split(y, random_state=1)[1].tolist() != hold_out_split(y, random_state=2)[1].tolist()


def test_as_a_scikit_learn_splitter():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"] * 20 + ["rare"])
    X = rng.normal(size=(61, 4)) + 3 * np.searchsorted(["a", "b", "c", "rare"], y)[:, None]
    cv = HoldOut(test_size=0.25, random_state=1)
    assert repr(cv) == "HoldOut(test_size=0.25, random_state=1, cover=False)"
    (found,) = cross_val_score(FlatSVM(), X, y, cv=cv)
    train, out = hold_out_split(y, test_size=0.25, random_state=1)
    assert found == FlatSVM().fit(X[train], y[train]).score(X[out], y[out])
    assert GridSearchCV(FlatSVM(), {"C": [0.1, 1]}, cv=cv).fit(X, y).n_splits_ == cv.get_n_splits() == 1
