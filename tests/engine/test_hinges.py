"""Independent hinges: kernels against their twins, blocks against brute force, solutions against other solvers."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from engine.problems import tune
from nhsvm import Hierarchy
from nhsvm.columns import make_columns
from nhsvm.engine import Dual, prepare
from nhsvm.engine.dual.block import Paths, Sweeps, batch_kernel
from nhsvm.engine.dual.boxes import BoxBlock, candidates_kernel, hinges_kernel
from nhsvm.engine.dual.planes import Batch, Pool, spread
from nhsvm.engine.hinges import HingeAscent, HingeProblem, Hinges, Measured
from nhsvm.hierarchy.graph import Ragged
from nhsvm.oracles.leaves import Proposals
from reference import independent as reference
from reference.oracles import random_alpha
from strategies import random_hierarchy

seeds = st.integers(0, 2**32 - 1)
FLAT = Hierarchy.from_edges([], nodes=range(6))


@dataclass(frozen=True)
class Case:
    """A problem with all it was made of."""

    h: Hierarchy
    alpha: np.ndarray
    problem: HingeProblem

    @property
    def X(self):
        """Dense, in double, with the constant feature."""
        X = self.problem.X.toarray() if sp.issparse(self.problem.X) else self.problem.X
        return np.hstack([X.astype(np.float64), np.full((len(X), 1), self.problem.bias)])

    @property
    def paths(self):
        return self.h.graph.leaf_matrix().toarray().astype(float)

    @property
    def Y(self):
        Y = np.full((self.problem.n_samples, self.h.n_leaves), -1.0)
        Y[self.problem.truth.owners(), self.problem.truth.indices] = 1.0
        return Y

    def solve(self, state=None, **options):
        return Dual(**options).solve(self.problem, state)

    def U(self, solution):
        values = solution.weights.values.astype(np.float64)
        U = np.zeros((self.h.n_nodes, self.X.shape[1]))
        U[self.alpha > 0] = values.T if sp.issparse(self.problem.X) else values
        return U

    def b(self, state):
        """Dual variables as (sample, leaf), after a check that they are feasible."""
        b = np.zeros(self.Y.shape)
        for i in range(len(b)):
            part = slice(state.start[i], state.start[i] + state.count[i])
            assert len(set(state.leaf[part].tolist())) == state.count[i]
            np.testing.assert_array_equal(state.scale[part], self.Y[i, state.leaf[part]])
            b[i, state.leaf[part]] = state.weight[part]
        assert (b >= 0).all()
        assert (b <= self.problem.costs[:, None]).all()
        return b

    def check(self, solution, tol):
        """The certificate is what the definitions say, the gap not negative, and at most ``tol``."""
        parts = self.X, self.Y, self.paths, self.alpha, self.problem.costs
        upper, lower = reference.values(self.U(solution), self.b(solution.dual), *parts)
        assert solution.certificate.primal == pytest.approx(upper, rel=1e-10)
        assert solution.certificate.dual == pytest.approx(lower, rel=1e-10)
        assert upper - lower >= -1e-12 * upper
        assert solution.converged
        assert solution.certificate.gap <= tol
        for record in solution.history:
            assert record["primal"] >= record["dual"] - 1e-12 * record["primal"]


def make_case(seed=0, *, h=None, dag=False, alpha=None, single=False, sparse=True, n=40, d=8, C=1.0, bias=1.0, **more):
    """Samples around the sums of their labels' vectors, with noise; a few are zero, or have no label if not single."""
    rng = np.random.default_rng(seed)
    h = random_hierarchy(14, seed, extra=0.7 * dag) if h is None else h
    alpha = random_alpha(h, seed) if alpha is None else alpha
    Y = np.eye(h.n_leaves, dtype=bool)[rng.integers(h.n_leaves, size=n)]
    if not single:
        Y |= rng.random(Y.shape) < 0.15
        Y &= (rng.random(n) < 0.9)[:, None]
    X = Y @ rng.normal(size=(h.n_leaves, d)) + rng.normal(size=(n, d))
    X *= (rng.random((n, d)) < 0.6) & (rng.random(n) < 0.95)[:, None]
    rows = sp.csr_array(Y)
    truth = Ragged(rows.indptr.astype(np.int64), rows.indices.astype(np.int32))
    costs = np.broadcast_to(np.asarray(C, dtype=np.float64), n).copy()
    columns = make_columns(h.graph, alpha)
    made = prepare(sp.csr_array(X) if sparse else X, more.pop("dtype", np.float64))
    problem = HingeProblem(X=made, truth=truth, costs=costs, columns=columns, oracle=Hinges(single), bias=bias, **more)
    return Case(h, alpha, problem)


# -- kernels -----------------------------------------------------------------------------------------------------------


@given(seeds, st.booleans(), st.booleans())
def test_hinges(seed, single, allow_empty):
    rng = np.random.default_rng(seed)
    n, n_leaves = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    scores = rng.normal(size=(n, n_leaves)) - rng.choice([0.0, 2.0])
    Y = rng.random((9, n_leaves)) < 0.3
    if single:
        Y = np.eye(n_leaves, dtype=bool)[rng.integers(n_leaves, size=9)]
    rows, samples = sp.csr_array(Y), rng.integers(9, size=n)
    out = Measured.empty(n)
    hinges_kernel(scores, samples, rows.indptr, rows.indices, single, allow_empty, *out)
    for t, i in enumerate(samples):
        slack, active, wrong = reference.hinges(scores[t], set(np.flatnonzero(Y[i]).tolist()), single, allow_empty)
        assert out.slack[t] == pytest.approx(slack, abs=1e-12)
        assert (out.active[t], out.wrong[t]) == (active, wrong)


@given(seeds, st.integers(1, 6), st.sampled_from([0.0, 0.5]))
def test_candidates(seed, n_new, tolerance):
    """Those in use, the true ones that violate, the most violating others; equal ones from a place of their own on."""
    rng = np.random.default_rng(seed)
    n, n_leaves = int(rng.integers(1, 6)), int(rng.integers(1, 12))
    scores = np.round(rng.normal(size=(n, n_leaves)), 1)  # with equal ones
    Y = rng.random((9, n_leaves)) < 0.3
    rows, samples = sp.csr_array(Y), rng.permutation(9)[:n]
    used = [rng.permutation(n_leaves)[: rng.integers(0, n_leaves + 1)] for _ in range(9)]
    count = np.array([len(u) for u in used], dtype=np.int32)
    start = (np.cumsum(count) - count).astype(np.int64)
    leaf = np.concatenate(used).astype(np.int32)
    owner = np.repeat(np.arange(9), count)
    weight, scale = rng.random(len(leaf)), np.where(Y[owner, leaf], 1.0, -1.0)
    out = Proposals.empty(n, n_leaves)
    pool = Pool(start, count, leaf, weight, np.ones(len(leaf)), scale)
    candidates_kernel(scores.copy(), samples, Ragged(rows.indptr, rows.indices), pool, n_new, tolerance, out)
    for t, i in enumerate(samples):
        true = np.flatnonzero(Y[i]).tolist()
        first = int(i) * 7919 % n_leaves
        expected = reference.candidates(scores[t], true, used[i].tolist(), n_new, tolerance, first)
        size = out.size[t]
        assert out.leaf[t, :size].tolist() == [k for k, _ in expected]
        np.testing.assert_allclose(out.value[t, :size], [g for _, g in expected])
        np.testing.assert_array_equal(out.scale[t, :size], np.where(Y[i, out.leaf[t, :size]], 1.0, -1.0))
        part = slice(start[i], start[i] + count[i])
        np.testing.assert_array_equal(out.weight[t, :size], [*weight[part], *[0.0] * (size - count[i])])
        assert (out.loss[t, :size] == 1.0).all()


def random_batch(rng, h, alpha, n, cost):
    """Samples with some leaves each, variables within their bounds, and any gradients."""
    X = rng.normal(size=(n, 4)) * (rng.random(n) < 0.9)[:, None]
    lists = []
    for _ in range(n):
        leaves = rng.permutation(h.n_leaves)[: rng.integers(1, min(h.n_leaves, 5) + 1)]
        b = cost * np.clip(rng.normal(0.3, 0.5, size=len(leaves)), 0, 1)
        lists.append((leaves, b, rng.normal(size=len(leaves)), rng.choice([-1.0, 1.0], size=len(leaves))))
    return X, lists


def run_batch(X, lists, h, alpha, cost, tolerance, sweeps, slow):
    columns = make_columns(h.graph, alpha)
    n, width = len(lists), max(len(one[0]) for one in lists)
    leaf, (weight, value, scale) = np.zeros((n, width), np.int32), np.zeros((3, n, width))
    size = np.array([len(one[0]) for one in lists], dtype=np.int32)
    for t, one in enumerate(lists):
        for array, part in zip((leaf, weight, value, scale), one, strict=True):
            array[t, : size[t]] = part
    before = weight.copy()
    sums = np.array([columns.alpha[columns.paths.row(k)].sum() for k in range(h.n_leaves)])
    corrections = np.empty((columns.n_columns, n))
    found = Proposals.empty(n, width)._replace(leaf=leaf, weight=weight, value=value, scale=scale, size=size)
    batch = Batch(np.arange(n), leaf[:0, 0], np.full(n, cost), (X**2).sum(axis=1))
    block = BoxBlock(batch, found, before, Paths.of(columns), sums, tolerance)
    gain = batch_kernel(block, X @ X.T, corrections, columns.n_columns, Sweeps(sweeps, slow=slow))
    return [(leaf[t, : size[t]], weight[t, : size[t]]) for t in range(n)], gain


@given(seeds, st.booleans(), st.sampled_from([1e-3, 0.3]), st.integers(1, 4))
def test_batch_against_its_twin(seed, dag, tolerance, sweeps):
    rng = np.random.default_rng(seed)
    h = random_hierarchy(int(rng.integers(2, 14)), seed, extra=0.7 * dag)
    alpha, cost = random_alpha(h, seed), float(rng.choice([0.1, 1.0, 10.0]))
    X, lists = random_batch(rng, h, alpha, int(rng.integers(1, 6)), cost)
    found, gain = run_batch(X, lists, h, alpha, cost, tolerance, sweeps, 0.02)
    paths = h.graph.leaf_matrix().toarray().astype(float)
    expected, total = reference.batch(X, np.full(len(X), cost), lists, paths, alpha, tolerance, sweeps, 0.02)
    assert gain == pytest.approx(total, rel=1e-8, abs=1e-10)
    for (leaves, b), (wanted, those) in zip(found, expected, strict=True):
        assert leaves.tolist() == wanted.tolist()
        np.testing.assert_allclose(b, those, rtol=1e-7, atol=1e-9 * cost)


@given(seeds, st.booleans())
def test_block_against_brute_force(seed, dag):
    """One sample, trees and DAGs, any α: no better point of the box exists."""
    rng = np.random.default_rng(seed)
    h = random_hierarchy(int(rng.integers(2, 14)), seed, extra=0.7 * dag)
    alpha, cost = random_alpha(h, seed), float(rng.choice([0.1, 1.0, 10.0]))
    X, lists = random_batch(rng, h, alpha, 1, cost)
    _, gain = run_batch(X, lists, h, alpha, cost, 1e-9, 50, 0.0)
    (leaves, b, g, y) = lists[0]
    paths = h.graph.leaf_matrix().toarray().astype(float)
    best = reference.best_block(g, b, y, leaves, cost, X[0] @ X[0], paths, alpha)
    assert gain == pytest.approx(best, rel=1e-6, abs=1e-8)


@given(seeds, st.booleans())
def test_spread(seed, dag):
    rng = np.random.default_rng(seed)
    h = random_hierarchy(int(rng.integers(1, 14)), seed, extra=0.7 * dag)
    alpha = random_alpha(h, seed)
    columns = make_columns(h.graph, alpha)
    amounts = rng.normal(size=(4, h.n_leaves)) * (rng.random((4, h.n_leaves)) < 0.5)
    owner, leaf = np.nonzero(amounts)
    found = spread(np.bincount(owner, minlength=4), leaf, amounts[owner, leaf], columns)
    dense = np.zeros((4, columns.n_columns))
    dense[np.repeat(np.arange(4), np.diff(found.indptr)), found.columns] = found.values
    expected = amounts @ h.graph.leaf_matrix().toarray() * alpha
    np.testing.assert_allclose(dense, expected[:, columns.nodes], atol=1e-12)


# -- solutions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dag", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_certificate(sparse, dtype, dag, single):
    """≤ tol at exit, honest, never negative."""
    tol = 1e-4 if dtype == np.float32 else 1e-6
    for seed in range(2):
        case = make_case(seed, dag=dag, sparse=sparse, single=single, dtype=dtype)
        solution = case.solve(tol=tol, max_iter=20_000)
        case.check(solution, tol)
        assert solution.history[-1]["certified"]
        assert solution.history[-1]["planes"] == (case.b(solution.dual) > 0).sum()


@pytest.mark.parametrize("dag", [False, True])
def test_kkt(dag):
    """At a gap of 1e-8: b = 0 beyond the margin, b = C inside it, on it in between."""
    tol = 1e-8
    for seed in range(3):
        case = make_case(seed, dag=dag, sparse=seed % 2 == 0, n=30)
        solution = case.solve(tol=tol, max_iter=50_000)
        case.check(solution, tol)
        b, primal = case.b(solution.dual), solution.certificate.primal
        margin = case.Y * (case.X @ case.U(solution).T @ case.paths.T)
        assert (b * np.maximum(margin - 1, 0)).max() <= tol * primal
        assert ((case.problem.costs[:, None] - b) * np.maximum(1 - margin, 0)).max() <= tol * primal
        assert (b > 0).any()
        assert (b == 0).any()


@pytest.mark.parametrize("seed", range(12))
def test_against_a_conic_solver(seed):
    """Trees and DAGs, any α, with and without a constant feature, random costs with zeros among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    costs = rng.random(n) * rng.choice([0.0, 0.3, 1.0, 20.0], size=n)
    case = make_case(
        seed, h=random_hierarchy(int(rng.integers(2, 12)), seed, extra=0.7 * (seed % 2)), single=seed % 4 > 1,
        sparse=seed % 3 > 0, n=n, d=int(rng.integers(1, 6)), C=costs, bias=float(rng.choice([0.0, 1.0, 2.0])),
    )  # fmt: skip
    solution = case.solve(tol=1e-7, max_iter=50_000)
    case.check(solution, 1e-7)
    optimum = reference.optimum(case.X, case.Y, case.paths, case.alpha, costs)
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-6, abs=1e-7)
    assert solution.certificate.dual == pytest.approx(optimum, rel=1e-6, abs=1e-7)


def test_order_of_samples_and_seed():
    """Another order, by permutation or by seed, leads to the same objective within the gap."""
    case = make_case(3, n=80)
    p, order = case.problem, np.random.default_rng(0).permutation(80)
    other = replace(case, problem=replace(p, X=prepare(p.X[order]), truth=p.truth.rows(order)))
    found = [case.solve(tol=1e-5), other.solve(tol=1e-5), case.solve(tol=1e-5, seed=7)]
    low, high = max(s.certificate.dual for s in found), min(s.certificate.primal for s in found)
    assert low <= high * (1 + 1e-12)  # all bounds hold for one optimum
    assert max(s.certificate.primal for s in found) <= high * (1 + 1e-5)


@pytest.mark.parametrize("sparse", [True, False])
def test_threads(sparse):
    """The same bits for any number of threads."""
    case = make_case(1, n=600, sparse=sparse, dtype=np.float32)
    one, two, three = (case.solve(tol=1e-3, n_threads=k) for k in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.weights.values, other.weights.values)
        np.testing.assert_array_equal(case.b(one.dual), case.b(other.dual))
        assert one.certificate == other.certificate


def test_few_new_leaves(monkeypatch):
    """With one new leaf a visit the optimum is the same."""
    case = make_case(2, n=30)
    all_at_once = case.solve(tol=1e-6)
    tune(monkeypatch, HingeAscent, new=1)
    slowly = case.solve(tol=1e-6)
    case.check(slowly, 1e-6)
    assert slowly.certificate.primal == pytest.approx(all_at_once.certificate.primal, rel=1e-6)
    assert len(slowly.history) > 1


def test_many_batches(monkeypatch):
    tune(monkeypatch, HingeAscent, smallest_batch=7, first_batch=7, largest_batch=7)
    case = make_case(4, n=50)
    case.check(case.solve(tol=1e-3, max_iter=5000), 1e-3)


def test_rows_instead_of_a_table():
    """Weights that do not fit as a table are the same."""
    case = make_case(5, n=60, d=30, dtype=np.float64)
    table = case.solve(tol=1e-6)
    size = (30 + 1) * case.problem.columns.n_columns * 8
    rows = replace(case, problem=replace(case.problem, memory=size - 1)).solve(tol=1e-6)
    assert type(rows.weights) is not type(table.weights)
    assert rows.certificate.primal == pytest.approx(table.certificate.primal, rel=2e-6)


def test_from_one_cost_to_the_next():
    """Dual variables of one C serve the next: feasible, and certified without a pass if nothing has changed."""
    case = make_case(6, n=60)
    first = case.solve(tol=1e-5)
    again = case.solve(first.dual, tol=1e-5)
    assert again.certificate == first.certificate
    assert len(again.history) == 1
    for factor in (3.0, 0.2, np.where(np.arange(60) % 2, 0.0, 2.0)):
        costs = case.problem.costs * factor
        state = case.solve(tol=1e-5).dual
        state.warm_start(case.problem.costs, costs)
        other = replace(case, problem=replace(case.problem, costs=costs))
        solution = other.solve(state, tol=1e-5)
        other.check(solution, 1e-5)
        assert solution.certificate.primal == pytest.approx(other.solve(tol=1e-5).certificate.primal, rel=1e-5)


def test_nothing_to_learn_from():
    """Samples of zeros without a constant feature: all hinges stay at 1, which is optimal."""
    case = make_case(0, n=5, bias=0.0)
    zero = replace(case, problem=replace(case.problem, X=prepare(sp.csr_array((5, 8)))))
    solution = zero.solve(tol=1e-9)
    assert solution.certificate == pytest.approx((5 * case.h.n_leaves,) * 2, rel=1e-13)
    assert solution.certificate.primal >= 5 * case.h.n_leaves >= solution.certificate.dual
    free = make_case(0, n=5, C=0.0)
    assert free.solve(tol=1e-9).certificate.gap == 0.0


def test_a_leaf_without_weight():
    """Its score is 0 whatever is learned."""
    alpha = np.zeros(FLAT.n_nodes)
    alpha[0] = 1.0
    case = make_case(0, h=FLAT, alpha=alpha, n=20)
    case.check(case.solve(tol=1e-6), 1e-6)
