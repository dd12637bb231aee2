"""What every storage of U keeps: the protocol ``Weights``, beside a plain table in double precision."""

import numpy as np
import pytest
import scipy.sparse as sp

from nhsvm.errors import DataError
from nhsvm.storage import StoredRows, Table, Weights, pack, score_in_chunks

N_FEATURES, N_COLUMNS, BIAS = 40, 7, 1.5


def numbers():
    """A table in single precision: rows of the constant feature, of zeros, with few weights and with many."""
    rng = np.random.default_rng(3)
    U = rng.normal(size=(N_FEATURES + 1, N_COLUMNS)) * (rng.random((N_FEATURES + 1, N_COLUMNS)) < 0.3)
    U[3], U[4] = 0.0, rng.normal(size=N_COLUMNS)
    return U.astype(np.float32)


def in_rows():
    table = numbers()
    row, column = np.nonzero(table[:-1])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=N_FEATURES))])
    return StoredRows.from_lists(indptr, column.astype(np.int32), table[row, column], table[-1])


FULL = {
    "by feature": lambda: Table(numbers(), by_feature=True),
    "by column": lambda: Table(np.ascontiguousarray(numbers().T), by_feature=False),
    "rows": in_rows,
}
STORAGES = FULL | {
    f"{name}, {precision}": lambda make=make, precision=precision: pack(make(), precision)
    for name, make in FULL.items()
    for precision in ("float16", "int8")
}


@pytest.fixture(params=STORAGES)
def weights(request) -> Weights:
    return STORAGES[request.param]()


def table_of(weights):
    found = weights.to_array()
    found = found.toarray() if sp.issparse(found) else found
    return np.vstack([found.T, weights.constant])


def samples(n=50):
    rng = np.random.default_rng(4)
    return rng.normal(size=(n, N_FEATURES)) * (rng.random((n, N_FEATURES)) < 0.4)


def test_sides_and_types(weights):
    assert (weights.n_features, weights.n_columns) == (N_FEATURES, N_COLUMNS)
    sides = (N_FEATURES + 1, N_COLUMNS)
    assert weights.shape == (sides if weights.by_feature else sides[::-1])
    assert weights.dtype == np.float32
    assert weights.precision in ("float32", "float16", "int8")
    assert weights.nbytes == sum(array.nbytes for array in weights.arrays().values())
    assert (weights.table is None) == (weights.precision != "float32" or not weights.takes_dense)


def test_weights_are_what_was_stored(weights):
    step = {"float32": 0.0, "float16": 2.0**-10, "int8": 1 / 127}[weights.precision]
    table, exact = table_of(weights), numbers()
    assert (np.abs(table - exact) <= step * np.abs(exact).max(axis=1, keepdims=True)).all()


def test_parts_are_those_of_the_whole(weights):
    table = table_of(weights)
    np.testing.assert_array_equal(weights.column(2), table[:-1, 2])
    some, few = np.array([4, 0, 3, 39]), np.array([6, 1])
    np.testing.assert_array_equal(weights.block(some, few), table[np.ix_(some, few)])
    assert weights.count_nonzero() == np.count_nonzero(table)
    lists = weights.lists()
    made = sp.csr_array((lists.value, lists.column.astype(np.int32), lists.indptr), shape=(N_FEATURES, N_COLUMNS))
    np.testing.assert_array_equal(made.toarray(), table[:-1])
    np.testing.assert_array_equal(lists.constant, table[-1])
    np.testing.assert_array_equal(table_of(weights.widened()), table)
    if weights.takes_dense:
        np.testing.assert_array_equal(weights.dense_table(), table.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [True, False])
def test_scores(weights, dtype, sparse):
    X = samples().astype(dtype)
    table = table_of(weights).astype(float)
    exact = X.astype(float) @ table[:-1] + BIAS * table[-1]
    found = [np.zeros(exact.shape), np.zeros(exact.shape)]
    for n_threads, out in zip((1, 2), found, strict=True):

        def store(rows, scores, out=out):
            out[rows] = scores

        score_in_chunks(sp.csr_array(X) if sparse else X, weights, BIAS, store, n_threads=n_threads)
    np.testing.assert_allclose(found[0], exact, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(*found)


def test_scores_that_are_not_finite(weights):
    X = samples(3)
    X[1, 4] = np.inf
    for given in (X, sp.csr_array(X)):
        with pytest.raises(DataError, match="too large"):
            score_in_chunks(given, weights, BIAS, lambda rows, scores: None)


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_the_largest_weights(weights, least):
    table = table_of(weights)
    expected = np.where(np.abs(table) >= least, table, 0.0)
    expected[-1] = table[-1]
    np.testing.assert_array_equal(table_of(StoredRows.largest_of(weights.lists(), least)), expected)
