"""Kernels of sparse and dense weights against plain matrix products, and the pool of planes against lists."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.columns import make_columns
from nhsvm.engine import prepare
from nhsvm.engine.dual import planes as planes_module
from nhsvm.engine.dual.planes import Planes
from nhsvm.engine.samples import Updates
from nhsvm.engine.storage import table as table_module
from nhsvm.engine.storage.table import DenseWeights, SparseWeights
from nhsvm.losses import make_loss
from nhsvm.oracles.leaves import Proposals, SingleLabel
from nhsvm.threads import Team
from reference.oracles import random_alpha
from strategies import hierarchies

seeds = st.integers(0, 2**32)
KINDS = [(sparse, dtype) for sparse in (True, False) for dtype in (np.float32, np.float64)]
kinds = pytest.mark.parametrize(("sparse", "dtype"), KINDS)


def close(dtype):
    return {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-5}


class Case:
    """Random samples, some empty, some features common to most; random weights; and dense twins in double."""

    def __init__(self, seed, sparse, dtype):
        rng = self.rng = np.random.default_rng(seed)
        n, d, self.n_columns = int(rng.integers(1, 30)), int(rng.integers(1, 40)), int(rng.integers(1, 9))
        often = np.where(rng.random(d) < 0.2, 0.9, 0.15)
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < often)
        X[rng.random(n) < 0.2] = 0
        self.bias = float(rng.choice([0.0, 1.0, 0.5]))
        made = prepare(sp.csr_array(X) if sparse else X, dtype if rng.random() < 0.5 else np.float64)
        self.X = (made.toarray() if sparse else made).astype(np.float64)
        self.weights = (SparseWeights if sparse else DenseWeights).zeros(made, self.n_columns, self.bias, dtype)
        U = rng.normal(size=(self.n_columns, d + 1)).astype(dtype)
        self.weights.values[:] = U.T if sparse else U
        self.U = U.astype(np.float64)
        self.full = np.hstack([self.X, np.full((n, 1), self.bias)])  # with the constant feature
        self.n = n

    def updates(self, rows):
        table = sp.random_array((len(rows), self.n_columns), density=0.4, rng=self.rng, format="csr")
        table.data -= 0.5
        return Updates(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data), table.toarray()

    def stored(self):
        """U with the constant feature, whatever the layout."""
        return self.weights.learned().dense_table().astype(np.float64)


@kinds
@given(seeds)
def test_scores(sparse, dtype, seed):
    case = Case(seed, sparse, dtype)
    w = case.weights
    rows = case.rng.permutation(case.n)
    expected = case.full[rows] @ case.U.T
    out = np.empty((case.n, case.n_columns))
    w.scores(rows, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    for lo, hi in ((0, case.n), (case.n // 3, case.n // 2)):
        some = np.full((case.n, case.n_columns), 7, dtype)
        w.scorer(rows)(lo, hi, some)
        np.testing.assert_allclose(some[lo:hi], expected[lo:hi], **close(dtype))
        assert (some[:lo] == 7).all()
        assert (some[hi:] == 7).all()
    assert w.squared_norms.dtype == np.float64
    np.testing.assert_allclose(w.squared_norms, (case.full**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(case.stored(), case.U)


def test_double_scores_of_single_weights_are_summed_in_double():
    """The certificate is of the float32 weights, in double precision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 400)).astype(np.float32)
    U = rng.normal(size=(3, 401)).astype(np.float32)
    for made in (prepare(sp.csr_array(X), np.float32), prepare(X, np.float32)):
        w = (SparseWeights if sp.issparse(made) else DenseWeights).zeros(made, 3, 1.0)
        w.values[:] = U.T if sp.issparse(made) else U
        out = np.empty((5, 3))
        w.scores(np.arange(5), out)
        exact = X.astype(np.float64) @ U[:, :-1].T.astype(np.float64) + U[:, -1]
        np.testing.assert_allclose(out, exact, rtol=1e-11)


@kinds
@pytest.mark.parametrize("threads", [1, 3])
@given(seeds)
def test_gram_and_apply(sparse, dtype, threads, seed):
    case = Case(seed, sparse, dtype)
    rows = case.rng.permutation(case.n)[: case.rng.integers(1, case.n + 1)]
    with Team(threads) as team:
        batch = case.weights.batch(rows)
        gram = batch.gram
        np.testing.assert_allclose(gram, case.full[rows] @ case.full[rows].T, **close(dtype))
        assert gram.dtype == dtype
        np.testing.assert_array_equal(gram, gram.T)
        updates, table = case.updates(rows)
        batch.apply(updates, team)
    expected = case.U + table.T @ case.full[rows]
    if not case.bias:
        expected[:, -1] = case.U[:, -1]
    np.testing.assert_allclose(case.stored(), expected, **close(dtype))
    if sparse:
        assert not case.weights.scratch.any()


@kinds
@pytest.mark.parametrize("block", [None, 8])
@given(seeds)
def test_rebuild(sparse, dtype, block, seed):
    """From nothing, in double: ‖U_n‖² exact, and as stored."""
    case = Case(seed, sparse, dtype)
    updates, table = case.updates(np.arange(case.n))
    with pytest.MonkeyPatch.context() as patch, Team(2) as team:
        if block:
            patch.setattr(table_module, "TUNING", table_module.TUNING._replace(block=block))  # many blocks of features
        exact, stored = case.weights.rebuild(updates, team)
    expected = table.T @ case.full
    np.testing.assert_allclose(exact, (expected**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(case.stored(), expected, rtol=1e-6 if dtype == np.float32 else 1e-12, atol=1e-14)
    np.testing.assert_allclose(stored, (case.stored() ** 2).sum(axis=1), rtol=1e-13)
    if dtype == np.float64:
        np.testing.assert_array_equal(exact, stored)


@kinds
def test_double_keeps_the_form_that_kernels_are_compiled_for(sparse, dtype):
    case = Case(5, sparse, dtype)
    double = case.weights.double()
    assert double.values.dtype == np.float64
    assert not double.values.any()
    assert (double.n_columns, double.bias, double.n_samples) == (case.n_columns, case.bias, case.n)
    out = np.empty((case.n, case.n_columns))
    double.values[:] = case.weights.values
    double.scores(np.arange(case.n), out)
    np.testing.assert_allclose(out, case.full @ case.U.T, rtol=1e-12, atol=1e-12)
    if sparse:
        assert (double.X.indices.dtype, double.X.indptr.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "matrix", "unsorted", "duplicates", "explicit zeros"])
def test_prepare_gives_one_form_and_leaves_the_input_alone(dtype, index, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 9)) * (rng.random((6, 9)) < 0.5)
    X[2] = 0
    given_ = sp.csr_array(X.astype(dtype))
    if form == "unsorted":
        for i in range(6):
            part = slice(given_.indptr[i], given_.indptr[i + 1])
            given_.indices[part], given_.data[part] = given_.indices[part][::-1].copy(), given_.data[part][::-1].copy()
        given_ = sp.csr_array((given_.data, given_.indices, given_.indptr), shape=X.shape)
    elif form == "duplicates":
        parts = np.repeat(given_.data / 2, 2), np.repeat(given_.indices, 2), given_.indptr * 2
        given_ = sp.csr_array(parts, shape=X.shape)
    elif form == "explicit zeros":
        given_.data[::3] = 0
        X = given_.toarray()
    elif form in ("csc", "coo"):
        given_ = given_.asformat(form)
    elif form == "matrix":
        given_ = sp.csr_matrix(given_)
    if form != "coo":
        given_.indices, given_.indptr = given_.indices.astype(index), given_.indptr.astype(index)
    before = [np.copy(a) for a in (given_.data, *((given_.indices, given_.indptr) if form != "coo" else ()))]
    made = prepare(given_, np.float32)
    assert isinstance(made, sp.csr_array)
    assert (made.dtype, made.indices.dtype, made.indptr.dtype) == (np.float32, np.int32, np.int64)
    np.testing.assert_allclose(made.toarray(), X, rtol=1e-6)
    for i in range(6):
        assert (np.diff(made.indices[made.indptr[i] : made.indptr[i + 1]]) > 0).all()
    after = [given_.data, *((given_.indices, given_.indptr) if form != "coo" else ())]
    for a, b in zip(before, after, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_prepare_does_not_copy_what_is_right():
    X = sp.csr_array(np.eye(3, dtype=np.float32))
    made = prepare(X, np.float32)
    assert np.shares_memory(made.data, X.data)
    assert np.shares_memory(made.indices, X.indices)
    dense = np.eye(3)
    assert prepare(dense, np.float64) is dense
    assert prepare(dense) is dense
    for dtype in (np.float32, np.float64):  # the weights may have another precision than the samples
        same = X.astype(dtype)
        assert np.shares_memory(prepare(same).data, same.data)
    assert prepare(np.eye(2, dtype=np.int64)).dtype == np.float64
    assert prepare(np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.float64).flags.c_contiguous


# -- planes ------------------------------------------------------------------------------------------------------------


class Pool:
    """Planes beside a dict of what they should hold."""

    def __init__(self, seed, n_samples=12, n_leaves=30):
        self.rng = np.random.default_rng(seed)
        self.n_leaves = n_leaves
        self.planes = Planes(n_samples)
        self.twin = {i: {} for i in range(n_samples)}

    def add(self):
        """Replace the planes of some samples by those they have and some more, as a search pass does."""
        samples = self.rng.permutation(len(self.twin))[: self.rng.integers(1, len(self.twin) + 1)]
        found = Proposals.empty(len(samples), self.n_leaves)
        for t, i in enumerate(samples):
            for leaf in self.rng.permutation(self.n_leaves)[: self.rng.integers(0, 9)]:
                self.twin[i].setdefault(int(leaf), (float(self.rng.random()), float(leaf), 2.0 + leaf))
            found.size[t] = len(self.twin[i])
            for k, (leaf, (weight, loss, scale)) in enumerate(self.twin[i].items()):
                found.leaf[t, k], found.weight[t, k], found.loss[t, k], found.scale[t, k] = leaf, weight, loss, scale
        self.planes.add(samples, found)

    def check(self):
        p = self.planes
        assert p.n_planes == sum(len(planes) for planes in self.twin.values())
        taken = []
        for i, planes in self.twin.items():
            part = slice(p.start[i], p.start[i] + p.count[i])
            held = zip(
                p.leaf[part].tolist(), zip(p.weight[part], p.loss[part], p.scale[part], strict=True), strict=True
            )
            assert dict(held) == planes
            assert p.count[i] <= p.room[i]
            taken += range(p.start[i], p.start[i] + p.room[i])
        assert len(set(taken)) == len(taken)  # no two lists share room
        assert max(taken, default=-1) < p._top[0] <= len(p.leaf) == len(p.weight) == len(p.loss) == len(p.scale)


@given(seeds)
def test_the_pool_grows_and_compacts_and_loses_nothing(seed):
    pool = Pool(seed)
    tops, sizes = [], []
    for _ in range(12):
        pool.add()
        pool.check()
        tops.append(int(pool.planes._top[0]))
        sizes.append(len(pool.planes.leaf))
    assert sizes[-1] > 4 * 12  # it has grown
    p = pool.planes
    indptr, at = p.flat()
    assert indptr.tolist() == np.concatenate([[0], np.cumsum(p.count)]).tolist()
    expected = [plane for i in range(12) for plane in pool.twin[i].items()]
    assert p.leaf[at].tolist() == [leaf for leaf, _ in expected]
    assert p.mass() == pytest.approx(sum(w * d for _, (w, d, _) in expected), rel=1e-12)
    factors = pool.rng.random(12)
    p.rescale(factors)
    for i, planes in pool.twin.items():
        pool.twin[i] = {leaf: (w * factors[i], d, s) for leaf, (w, d, s) in planes.items()}
    pool.check()


def test_holes_are_filled_again():
    pool = Pool(0)
    shrunk = False
    for _ in range(40):
        top = int(pool.planes._top[0])
        pool.add()
        shrunk |= int(pool.planes._top[0]) < top
    assert shrunk
    assert len(pool.planes.leaf) <= 4 * (int(pool.planes.room.sum()) + 12 * 30)


@pytest.mark.parametrize("call", [1, 2])
def test_an_interrupt_while_lists_move_loses_none(call, monkeypatch):
    pool = Pool(2)
    pool.add()
    original = planes_module.flat
    calls = []

    def pressed(*args):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(planes_module, "flat", pressed)
    with pytest.raises(KeyboardInterrupt):
        pool.planes._make_room(10_000)
    assert calls
    pool.check()


def test_of_and_pool_are_the_live_arrays():
    pool = Pool(1)
    pool.add()
    p = pool.planes
    start, count, leaf, weight = p.of(np.array([3, 1]))
    assert start.tolist() == [p.start[3], p.start[1]]
    assert count.tolist() == [p.count[3], p.count[1]]
    assert leaf is p.leaf
    assert weight is p.weight
    assert [a is b for a, b in zip(p.pool, (p.start, p.count, p.leaf, p.weight, p.loss, p.scale), strict=True)] == [
        True
    ] * 6


def planes_for(h, seed, normalized):
    """Random planes of random samples of a hierarchy, with what the oracle says of them."""
    rng = np.random.default_rng(seed)
    alpha = random_alpha(h, seed)
    columns = make_columns(h.graph, alpha)
    loss = make_loss("normalized", h, alpha)
    leaves = rng.integers(h.n_leaves, size=7).astype(np.int32)
    rows = loss.to_leaves(leaves)
    planes = Planes(7)
    found = Proposals.empty(7, h.n_leaves)
    for t in range(7):
        some = [k for k in rng.permutation(h.n_leaves)[:4] if k != leaves[t] and rows[t, k] > 0]
        found.size[t] = len(some)
        for k, leaf in enumerate(some):
            found.leaf[t, k], found.weight[t, k] = leaf, rng.choice([0.0, 0.3, 1.0])
            found.loss[t, k] = found.scale[t, k] = -1.0  # to be described
    planes.add(np.arange(7), found)
    planes.describe(leaves, SingleLabel(columns, loss, normalized))
    return planes, leaves, columns, rows


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("chunk", [4096, 2])
@given(hierarchies(), seeds)
def test_describe_and_coefficients(normalized, chunk, h, seed):
    """Δ and κ of every plane, and α_n β_in = α_n Σ_l a_il κ_il (1[n∈y_i] − 1[n∈l])."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nhsvm.engine.dual.planes._CHUNK", chunk)
        planes, leaves, columns, rows = planes_for(h, seed, normalized)
    expected = np.zeros((7, columns.n_columns))
    for i in range(7):
        for at in range(planes.start[i], planes.start[i] + planes.count[i]):
            leaf = planes.leaf[at]
            assert planes.loss[at] == (1.0 if normalized else rows[i, leaf])
            assert planes.scale[at] == (1.0 / rows[i, leaf] if normalized else 1.0)
            amount = planes.weight[at] * planes.scale[at]
            expected[i, columns.paths.row(leaves[i])] += amount
            expected[i, columns.paths.row(leaf)] -= amount
    found = planes.coefficients(leaves, columns)
    assert len(found.columns) == len(found.values) == found.indptr[-1]
    table = np.zeros_like(expected)
    for i in range(7):
        part = slice(found.indptr[i], found.indptr[i + 1])
        assert len(set(found.columns[part].tolist())) == len(found.columns[part])
        table[i, found.columns[part]] = found.values[part]
    np.testing.assert_allclose(table, expected * columns.alpha, rtol=1e-12, atol=1e-13)


def test_describe_drops_planes_that_have_no_margin():
    """Under Eq. 13 a label with the vector of the true one has no direction to be separated in."""

    class Oracle:
        normalized = True

        def loss_rows(self, leaves):
            return np.array([[0.0, 0.0, 2.0]]), np.zeros(len(leaves), np.int32)

    planes = Planes(1)
    found = Proposals.empty(1, 2)
    found.leaf[:], found.weight[:], found.loss[:], found.scale[:], found.size[:] = [1, 2], [0.25, 0.5], 1.0, 1.0, 2
    planes.add(np.array([0]), found)
    planes.describe(np.array([0], np.int32), Oracle())
    at = planes.flat()[1]
    np.testing.assert_array_equal(planes.weight[at], [0.0, 0.5])
    np.testing.assert_array_equal(planes.scale[at], [1.0, 0.5])
