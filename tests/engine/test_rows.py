"""Weights in rows of any length against a table of the same weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from engine.problems import make_case
from nhsvm.engine import prepare, storage
from nhsvm.engine.samples import Updates
from nhsvm.engine.single_label import PlanesAscent
from nhsvm.engine.storage import make_table, make_weights, table_bytes
from nhsvm.engine.storage import rows as rows_module
from nhsvm.engine.storage.rows import RowWeights
from nhsvm.engine.storage.table import SparseWeights
from nhsvm.errors import MemoryLimitError
from nhsvm.model.checks import check_rows
from nhsvm.threads import Team

ENOUGH = 2**24
seeds = st.integers(0, 2**32)
precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])
teams = pytest.mark.parametrize("threads", [1, 3])


def close(dtype):
    return {"rtol": 1e-11, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}


def table_of(weights):
    """All rows as a table, the constant feature's last."""
    rows = weights.rows
    out = np.zeros((rows.n_rows + 1, rows.n_columns))
    for f in range(rows.n_rows):
        start, size = rows.start[f], rows.size[f]
        if size < 0:
            out[f] = rows.full[start]
        else:
            at = rows.index[start : start + size].astype(int)
            assert len(np.unique(at)) == size
            assert size <= rows.room[f]
            out[f, at] = rows.value[start : start + size]
    out[-1] = weights.constant
    return out


def n_entries(rows):
    """Numbers that are stored."""
    return int(np.maximum(rows.size, 0).sum()) + rows.n_full * rows.n_columns


class Case:
    """Random samples, and both kinds of weights for them."""

    def __init__(self, seed, dtype, limit=ENOUGH):
        rng = self.rng = np.random.default_rng(seed)
        self.n, d = int(rng.integers(1, 40)), int(rng.integers(1, 30))
        self.n_columns = int(rng.integers(1, 60))
        often = np.where(rng.random(d) < 0.2, 0.9, 0.1)
        X = rng.normal(size=(self.n, d)) * (rng.random((self.n, d)) < often)
        made = prepare(sp.csr_array(X), dtype)
        bias = float(rng.choice([0.0, 1.0]))
        self.hybrid = RowWeights(made, self.n_columns, bias, dtype, limit)
        self.table = SparseWeights.zeros(made, self.n_columns, bias, dtype)

    def updates(self, n):
        density = float(self.rng.choice([0.02, 0.1, 0.6]))
        table = sp.random_array((n, self.n_columns), density=density, rng=self.rng, format="csr")
        table.data -= 0.5
        return Updates(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data)

    def change(self, team, times=4):
        for _ in range(times):
            rows = self.rng.permutation(self.n)[: self.rng.integers(1, self.n + 1)]
            updates = self.updates(len(rows))
            for weights in (self.hybrid, self.table):
                weights.batch(rows).apply(updates, team)


@precisions
@teams
@given(seeds)
def test_changes_scores_and_norms(dtype, threads, seed):
    case = Case(seed, dtype)
    with Team(threads) as team:
        case.change(team)
    np.testing.assert_allclose(table_of(case.hybrid), case.table.values, **close(dtype))
    rows = np.arange(case.n)
    ours, theirs = np.empty((2, case.n, case.n_columns))
    case.hybrid.scorer(rows)(0, case.n, ours)
    case.table.scores(rows, theirs)
    np.testing.assert_allclose(ours, theirs, **close(dtype))
    np.testing.assert_allclose(case.hybrid.column_norms(), case.table.column_norms(), **close(dtype))
    np.testing.assert_array_equal(case.hybrid.squared_norms, case.table.squared_norms)
    factors = case.rng.random(case.n_columns)
    case.hybrid.rescale(factors)
    case.table.rescale(factors)
    np.testing.assert_allclose(table_of(case.hybrid), case.table.values, **close(dtype))


@precisions
@teams
@given(seeds)
def test_made_anew(dtype, threads, seed):
    case = Case(seed, dtype)
    updates = case.updates(case.n)
    with Team(threads) as team:
        case.change(team, 1)
        ours, theirs = case.hybrid.rebuild(updates, team), case.table.rebuild(updates, team)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(table_of(case.hybrid), case.table.values, rtol=1e-6, atol=1e-12)
        case.change(team, 2)  # rows without room to spare must grow all the same
    np.testing.assert_allclose(table_of(case.hybrid), case.table.values, **close(dtype))


@precisions
@given(seeds)
def test_the_same_bits_for_any_number_of_threads(dtype, seed):
    found = []
    for threads in (1, 2, 4):
        case = Case(seed, dtype)
        with Team(threads) as team:
            case.change(team)
            scores = np.empty((case.n, case.n_columns), dtype)
            case.hybrid.scores(np.arange(case.n), scores)
            norms = case.hybrid.rebuild(case.updates(case.n), team)
            again = np.empty_like(scores)
            case.hybrid.scores(np.arange(case.n), again)
        found.append((scores, again, *norms, case.hybrid.rows.size))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@precisions
@teams
@given(seeds)
def test_what_a_model_keeps(dtype, threads, seed):
    case = Case(seed, dtype)
    with Team(threads) as team:
        case.hybrid.rebuild(case.updates(case.n), team)
    expected = table_of(case.hybrid)
    stored = case.hybrid.learned()
    check_rows(stored.arrays(), stored.n_features, stored.n_columns, [stored.precision])
    assert stored.shape == expected.shape
    assert stored.dtype == dtype
    assert stored.count_nonzero() == np.count_nonzero(expected)
    np.testing.assert_array_equal(stored.to_array().toarray(), expected[:-1].T)
    np.testing.assert_array_equal(stored.constant, expected[-1])
    some = case.rng.permutation(len(expected) - 1)[:5]
    columns = case.rng.permutation(case.n_columns)[:3]
    np.testing.assert_array_equal(stored.block(some, columns), expected[np.ix_(some, columns)])
    for column in columns:
        np.testing.assert_array_equal(stored.column(column), expected[:-1, column])
    entries = len(stored.value) * (stored.index.itemsize + stored.value.itemsize)
    assert stored.nbytes == entries + stored.full.nbytes + 12 * len(stored.start) + stored.constant.nbytes
    assert n_entries(case.hybrid.rows) == 0


@precisions
@given(seeds)
def test_what_a_model_keeps_of_rows_out_of_order(dtype, seed):
    case = Case(seed, dtype)
    with Team(2) as team:
        case.change(team)
    expected = table_of(case.hybrid)
    stored = case.hybrid.learned()
    check_rows(stored.arrays(), stored.n_features, stored.n_columns, [stored.precision])
    np.testing.assert_array_equal(stored.to_array().toarray(), expected[:-1].T)
    np.testing.assert_array_equal(stored.constant, expected[-1])


def test_rows_become_full_when_they_fill():
    X = prepare(sp.csr_array(np.ones((3, 2))))
    weights = RowWeights(X, 100, 1.0, np.float64, ENOUGH)
    few = Updates(np.array([0, 5, 5, 5]), np.arange(5, dtype=np.int32), np.ones(5))
    many = Updates(np.array([0, 0, 40, 40]), np.arange(40, dtype=np.int32), np.ones(40))
    with Team(1) as team:
        weights.batch(np.arange(3)).apply(few, team)
        assert weights.rows.n_full == 0
        assert n_entries(weights.rows) == 10
        weights.batch(np.arange(3)).apply(many, team)
        assert weights.rows.n_full == 0  # that takes more memory, so not before it is needed
        assert n_entries(weights.rows) == 80
        weights.batch(np.arange(3)).apply(few, team)
    assert weights.rows.n_full == 2
    np.testing.assert_array_equal(table_of(weights)[0, :6], [3, 3, 3, 3, 3, 1])


def test_room_that_rows_leave_is_used_again():
    """A pool of a few hundred entries is enough for rows that together have as many, whatever their way there."""
    rng = np.random.default_rng(0)
    X = prepare(sp.csr_array((rng.random((200, 40)) < 0.1).astype(float)))
    weights = RowWeights(X, 2_000, 0.0, np.float64, 2**21)
    with Team(2) as team:
        for _ in range(10):
            table = sp.random_array((200, 2_000), density=0.0005, rng=rng, format="csr")
            weights.batch(np.arange(200)).apply(
                Updates(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data), team
            )
    rows = weights.rows
    assert rows.n_full == 0
    assert rows.used <= 4 * n_entries(rows) * rows.entry_bytes


def test_no_room():
    X = prepare(sp.csr_array(np.eye(50)))
    updates = sp.random_array((50, 3_000), density=0.15, rng=np.random.default_rng(0), format="csr")
    weights = RowWeights(X, 3_000, 1.0, np.float64, 50_000)
    updates = Updates(updates.indptr.astype(np.int64), updates.indices.astype(np.int32), updates.data)
    with Team(1) as team:
        with pytest.raises(MemoryLimitError, match=r"50 features and 3,000 nodes need more than .* raise memory_limit"):
            weights.batch(np.arange(50)).apply(updates, team)
        with pytest.raises(MemoryLimitError, match="memory_limit"):
            weights.rebuild(updates, team)


def test_the_kind_of_weights():
    X = prepare(sp.csr_array(np.eye(4)))
    assert isinstance(make_weights(X, 3, 1.0, None, None), SparseWeights)
    assert isinstance(make_weights(X, 3, 1.0, None, table_bytes(4, 3, float)), SparseWeights)
    assert isinstance(make_weights(X, 300, 1.0, None, table_bytes(4, 300, float) - 1), RowWeights)
    with pytest.raises(MemoryLimitError, match="4 features and 3 nodes needs 120 bytes, but 10 bytes may"):
        make_table(X, 3, 1.0, None, 10)
    with pytest.raises(MemoryLimitError, match="give sparse samples"):
        make_weights(np.eye(4), 3, 1.0, None, 10)
    wide = make_weights(X, 70_000, 1.0, np.float32, 10**6)
    assert wide.rows.index.dtype == np.uint32
    assert wide.double().dtype == np.float64


@pytest.fixture
def in_rows(monkeypatch):
    """Weights in rows, all of them short."""
    monkeypatch.setattr(storage, "TABLE", 0)
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(share=2.0))


def test_rows_are_made_anew_at_the_same_time_for_any_number_of_threads(in_rows, monkeypatch):
    """Which rooms are used again depends on whose they are; when rows are made anew must not."""
    case = make_case(0, n=600, n_nodes=400, d=200, C=5.0)
    rare = np.random.default_rng(0).random((600, 200)) < np.geomspace(0.02, 1.0, 200)  # rows of all lengths
    case = case.with_(X=prepare(sp.csr_array(case.problem.X.toarray() * rare)), memory=ENOUGH)
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(small=ENOUGH))
    used = []
    certify = PlanesAscent.certify
    monkeypatch.setattr(PlanesAscent, "certify", lambda self: (used.append(self.weights.rows.used), certify(self)))
    for threads in (1, 2):
        case.solve(max_iter=1, n_threads=threads)
    assert used[0] != used[1]  # else the next lines show nothing
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(small=min(used)))
    made = []
    original = RowWeights.rebuild
    monkeypatch.setattr(RowWeights, "rebuild", lambda self, *args: (made.append(1), original(self, *args))[1])
    found = []
    for threads in (1, 2, 4):
        made.clear()
        solution = case.solve(tol=1e-6, max_iter=6, n_threads=threads)
        found.append((len(made), solution.certificate, [r["dual"] for r in solution.history]))
    assert found[0] == found[1] == found[2]


def test_many_threads_need_no_more_room(in_rows):
    """A thread has its part of the pool, and must have its part of the rows."""
    case = make_case(0, n=300, n_nodes=200, d=60, C=5.0)
    p = case.problem
    updates = case.solve(tol=1e-2).dual.coefficients(p.leaves, p.columns)

    def made(limit, threads):
        weights = RowWeights(p.X, p.columns.n_columns, 1.0, np.float64, limit)
        with Team(threads) as team:
            weights.rebuild(updates, team)
        return weights

    need = made(ENOUGH, 1).rows.roomy
    for threads in (1, 2, 4):
        assert not made(int(1.3 * need), threads).overfull
