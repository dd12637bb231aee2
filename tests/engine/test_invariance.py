"""What must not matter: threads, order, duplication, storage."""

import numpy as np
import pytest
import scipy.sparse as sp

from engine.problems import force_passes, make_case, same_bits
from nhsvm.engine import prepare
from nhsvm.engine.storage import table

both_passes = pytest.mark.parametrize("passes", ["batch", "cached"])
both_inputs = pytest.mark.parametrize("sparse", [True, False])


@both_passes
@both_inputs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("dag", "margin"), [(False, ("hamming", False)), (True, ("normalized", True))])
def test_any_number_of_threads_gives_the_same_bits(passes, sparse, dtype, dag, margin, monkeypatch):
    force_passes(monkeypatch, passes)
    monkeypatch.setattr("nhsvm.engine.problem.CHUNK", 1000)  # several chunks to certify, too
    monkeypatch.setattr(table, "TUNING", table.TUNING._replace(block=200))
    case = make_case(1, dag=dag, margin=margin, sparse=sparse, dtype=dtype, n=301, d=37, n_nodes=23)
    one, two, four = (case.solve(tol=1e-4, n_threads=k) for k in (1, 2, 4))
    case.check(one, 1e-4)
    assert len(one.history) > 2
    same_bits(one, two)
    same_bits(one, four)


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    case = make_case(2, n=100)
    same_bits(case.solve(seed=3), case.solve(seed=3))
    other = case.solve(seed=4)
    assert not np.array_equal(other.weights.values, case.solve(seed=3).weights.values)


@both_inputs
@pytest.mark.parametrize("dag", [False, True])
def test_order_of_samples(sparse, dag):
    tol = 1e-6
    case = make_case(3, dag=dag, sparse=sparse, n=60)
    order = np.random.default_rng(0).permutation(60)
    p = case.problem
    other = case.with_(X=prepare(p.X[order], np.float64), leaves=p.leaves[order], costs=p.costs[order])
    one, two = (c.solve(tol=tol, max_iter=5000) for c in (case, other))
    case.check(one, tol)
    other.check(two, tol)
    # both intervals hold the optimum, so they meet
    assert one.certificate.dual <= two.certificate.primal
    assert two.certificate.dual <= one.certificate.primal


@both_passes
@both_inputs
def test_a_sample_given_twice_is_one_of_twice_the_cost(passes, sparse, monkeypatch):
    force_passes(monkeypatch, passes)
    tol = 1e-7
    case = make_case(4, sparse=sparse, n=30)
    p = case.problem
    twice = np.r_[np.arange(30), np.arange(10)]
    repeated = case.with_(X=prepare(p.X[twice], np.float64), leaves=p.leaves[twice], costs=p.costs[twice])
    heavier = case.with_(costs=p.costs * np.where(np.arange(30) < 10, 2.0, 1.0))
    one, two = (c.solve(tol=tol, max_iter=20_000) for c in (repeated, heavier))
    repeated.check(one, tol)
    heavier.check(two, tol)
    assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=2 * tol)
    # the penalty is strictly convex: U itself is the same, up to the root of the gap
    difference = repeated.U(one) - heavier.U(two)
    kept = case.alpha > 0
    apart = 0.5 * (difference[kept] ** 2).sum(axis=1) @ (1 / case.alpha[kept])
    assert apart <= 4 * tol * one.certificate.primal


def forms(X):
    """The same matrix in every way of storing it that users come with."""
    yield "dense", X
    yield "fortran", np.asfortranarray(X)
    yield "float32", X.astype(np.float32)
    csr = sp.csr_array(X)
    yield "csr", csr
    yield "csr_matrix", sp.csr_matrix(X)
    yield "csc", sp.csc_array(X)
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "int64", wide
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(csr.indptr, csr.indptr[1:], strict=False)])
    yield "unsorted", sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=X.shape)
    halves = np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), csr.indptr * 2
    yield "duplicates", sp.csr_array(halves, shape=X.shape)
    zeros = sp.csr_array(np.where(X == 0, 1.0, X))
    zeros.data[(X == 0).ravel()] = 0.0
    assert zeros.nnz == X.size
    yield "explicit zeros", zeros


@pytest.mark.parametrize("dag", [False, True])
def test_how_samples_are_stored(dag):
    tol = 1e-6
    case = make_case(5, dag=dag, n=40)
    X = np.round(4 * case.X[:, :-1]) / 4  # exact in single precision, so that all are one problem
    assert (X == 0).any()
    found = {}
    for name, data in forms(X):
        arrays = [data.data, data.indices, data.indptr] if sp.issparse(data) else [data]
        before = [a.copy() for a in arrays]
        solution = case.with_(X=prepare(data, np.float64)).solve(tol=tol, max_iter=5000)
        assert solution.converged, name
        found[name] = solution.certificate
        now = [data.data, data.indices, data.indptr] if sp.issparse(data) else [data]
        for a, b, c in zip(arrays, before, now, strict=True):
            assert a is c or np.shares_memory(a, c), name
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=name)
    highest = max(c.dual for c in found.values())
    for name, certificate in found.items():
        assert highest * (1 - 1e-12) <= certificate.primal <= highest * (1 + 2 * tol), name


@both_inputs
def test_nothing_given_is_modified(sparse):
    case = make_case(6, sparse=sparse)
    p = case.problem
    arrays = [p.leaves, p.costs, p.columns.alpha, *p.columns.paths, p.columns.parent, p.columns.leaf_column]
    arrays += [p.X.data, p.X.indices, p.X.indptr] if sparse else [p.X]
    before = [a.copy() for a in arrays]
    table = p.oracle._table.copy()
    case.solve(tol=1e-6, max_iter=5000)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(p.oracle._table, table)
