"""The single-label oracle against brute force and loops over closures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.columns import make_columns
from nhsvm.losses import difference, make_loss
from nhsvm.objective import loss_augmented
from nhsvm.oracles.leaves import Proposals, SingleLabel, best_leaves, leaf_scores
from reference.oracles import brute_force, leaf_sums, proposed, random_alpha, values
from strategies import SPECIAL, dags, hierarchies, trees

seeds = st.integers(0, 2**32)
MARGINS = [("zero_one", False), ("hamming", False), ("normalized", False), ("normalized", True)]
N = 6


class Case:
    """An oracle with random scores for N samples; with ``ties`` the scores are small whole numbers."""

    def __init__(self, h, seed, name, normalized, *, ties=False, dtype=np.float64, alpha=None):
        rng = self.rng = np.random.default_rng(seed)
        self.h = h
        self.alpha = random_alpha(h, seed) if alpha is None else alpha
        self.columns = make_columns(h.graph, self.alpha)
        self.loss, self.normalized = make_loss(name, h, self.alpha), normalized
        self.oracle = SingleLabel(self.columns, self.loss, normalized)
        shape = (N, self.columns.n_columns)
        self.scores = (rng.integers(-2, 3, size=shape) if ties else 3 * rng.normal(size=shape)).astype(dtype)
        self.leaves = rng.integers(h.n_leaves, size=N).astype(np.int32)
        self.node_scores = np.zeros((N, h.n_nodes))
        self.node_scores[:, self.columns.nodes] = self.scores

    def values(self, t):
        return values(self.h, self.node_scores[t], int(self.leaves[t]), self.loss, self.normalized)

    def slacks(self):
        slack, best = np.empty(N), np.empty(N, np.int32)
        self.oracle.slacks(self.scores.astype(np.float64), self.leaves, slack, best)
        return slack, best

    def some_planes(self):
        """A few planes a sample, where a plane can be: not the true leaf, and for Eq. 13 not at distance 0 from it."""
        rows = self.loss.to_leaves(self.leaves)
        start, count, leaf, weight = [], [], [7], [9.0]  # the pool has other things in it
        for t in range(N):
            others = [k for k in range(self.h.n_leaves) if k != self.leaves[t] and (rows[t, k] or not self.normalized)]
            some = self.rng.permutation(others)[: self.rng.integers(4)]
            start.append(len(leaf))
            count.append(len(some))
            leaf += [int(k) for k in some]
            weight += [float(w) for w in self.rng.integers(0, 3, size=len(some)) / 8]
        return np.array(start), np.array(count, np.int32), np.array(leaf, np.int32), np.array(weight)

    def propose(self, planes, n_new, tolerance=0.0):
        found = Proposals.empty(N, int(planes[1].max()) + n_new)
        self.oracle.propose(self.scores.copy(), self.leaves, np.ones(N), planes, n_new, tolerance, found)
        return found


@pytest.mark.parametrize(("name", "normalized"), MARGINS)
@given(hierarchies(), seeds)
def test_slacks_equal_brute_force(name, normalized, h, seed):
    case = Case(h, seed, name, normalized)
    slack, best = case.slacks()
    for t in range(N):
        leaf, value = brute_force(h.graph, case.node_scores[t], case.leaves[t], case.loss, normalized=normalized)
        assert slack[t] == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert case.values(t)[leaf] == pytest.approx(value, rel=1e-9, abs=1e-12)
        sums = leaf_sums(h, case.node_scores[t])
        assert sums[best[t]] == pytest.approx(max(sums), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["zero_one", "hamming"])
@pytest.mark.parametrize("kind", [trees, dags])
def test_ties_are_exact_and_go_to_the_first_leaf(name, kind):
    @given(kind(), seeds)
    def check(h, seed):
        case = Case(h, seed, name, False, ties=True)
        slack, best = case.slacks()
        for t in range(N):
            leaf, value = brute_force(h.graph, case.node_scores[t], case.leaves[t], case.loss)
            assert slack[t] == value == max(case.values(t))
            assert leaf == int(np.argmax(case.values(t)))
            assert best[t] == int(np.argmax(leaf_sums(h, case.node_scores[t])))

    check()


@pytest.mark.parametrize(("name", "normalized"), MARGINS)
@given(hierarchies(), seeds)
def test_slacks_equal_the_objective(name, normalized, h, seed):
    case = Case(h, seed, name, normalized)
    scores = np.array([leaf_sums(h, s) for s in case.node_scores])
    expected = loss_augmented(scores, case.leaves, case.loss.to_leaves(case.leaves), normalized).max(axis=1)
    np.testing.assert_allclose(case.slacks()[0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(hierarchies(), seeds)
def test_leaf_scores_and_best_leaves(dtype, h, seed):
    case = Case(h, seed, "zero_one", False, ties=True, dtype=dtype)
    before = case.scores.copy()
    out, best = np.empty((N, h.n_leaves), dtype), np.empty(N, np.int32)
    leaf_scores(case.columns, case.scores, out)
    best_leaves(case.columns, case.scores, best)
    expected = [leaf_sums(h, s) for s in case.node_scores]
    assert out.tolist() == expected
    assert best.tolist() == [int(np.argmax(s)) for s in expected]
    np.testing.assert_array_equal(case.scores, before)


@pytest.mark.parametrize(("name", "normalized"), MARGINS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(hierarchies(), seeds, st.integers(1, 5))
def test_proposals(name, normalized, dtype, h, seed, n_new):
    """First the planes in use, then the largest others: sorted, new, and never the true leaf."""
    case = Case(h, seed, name, normalized, dtype=dtype)
    planes = start, count, leaf, weight = case.some_planes()
    found = case.propose(planes, n_new)
    rows = case.loss.to_leaves(case.leaves)
    close = {"rel": 1e-9, "abs": 1e-9} if dtype == np.float64 else {"rel": 1e-4, "abs": 1e-4}
    for t in range(N):
        m, y, exact = count[t], case.leaves[t], case.values(t)
        size = found.size[t]
        got, got_values = found.leaf[t, :size].tolist(), found.value[t, :size]
        assert m <= size <= m + n_new
        assert got[:m] == leaf[start[t] : start[t] + m].tolist()
        assert found.weight[t, :size].tolist() == [*weight[start[t] : start[t] + m], *[0.0] * (size - m)]
        assert y not in got
        assert len(set(got)) == size
        assert got_values.tolist() == pytest.approx([exact[k] for k in got], **close)
        assert (np.diff(got_values[m:]) <= 0).all()
        bar = sum(w * exact[k] for k, w in zip(got[:m], found.weight[t], strict=False))
        left_out = [exact[k] for k in range(h.n_leaves) if k not in got and k != y and (rows[t, k] or not normalized)]
        most = bar if size < m + n_new else got_values[-1]
        assert max(left_out, default=-np.inf) <= most + close["abs"] * max(1.0, abs(most))
        assert all(v >= bar - close["abs"] * max(1.0, abs(bar)) for v in got_values[m:])
        assert found.slack[t] == pytest.approx(max(0.0, *exact), **close)
        distances = rows[t, got]
        assert found.loss[t, :size].tolist() == ([1.0] * size if normalized else distances.tolist())
        assert found.scale[t, :size].tolist() == ((1.0 / distances).tolist() if normalized else [1.0] * size)
        sums = leaf_sums(h, case.node_scores[t])
        assert sums[found.best[t]] == pytest.approx(max(sums), **close)


@pytest.mark.parametrize("name", ["zero_one", "hamming"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(hierarchies(), seeds, st.integers(1, 5), st.sampled_from([0.0, 0.25, 2.0]))
def test_proposals_with_ties(name, dtype, h, seed, n_new, tolerance):
    """Whole numbers, so that the order among equals and the bar itself are exact."""
    case = Case(h, seed, name, False, ties=True, dtype=dtype)
    planes = start, count, leaf, weight = case.some_planes()
    found = case.propose(planes, n_new, tolerance)
    for t in range(N):
        part = slice(start[t], start[t] + count[t])
        used, weights, y = leaf[part].tolist(), weight[part].tolist(), int(case.leaves[t])
        exact = case.values(t)
        expected = proposed(exact, used, weights, y, 1.0, n_new, tolerance)
        assert found.leaf[t, : found.size[t]].tolist() == expected
        assert found.value[t, : found.size[t]].tolist() == [exact[k] for k in expected]
        assert found.slack[t] == max([0.0, *(exact[k] for k in expected)])
        assert max(exact) - tolerance <= found.slack[t] <= max(exact)
        assert found.best[t] == int(np.argmax(leaf_sums(h, case.node_scores[t])))


@given(hierarchies(), seeds)
def test_the_bar_is_per_unit_of_cost(h, seed):
    case = Case(h, seed, "hamming", False, ties=True)
    start, count, leaf, weight = case.some_planes()
    one = case.propose((start, count, leaf, weight), 3)
    found = Proposals.empty(N, int(count.max()) + 3)
    parts = (case.scores.copy(), case.leaves, np.full(N, 4.0))
    case.oracle.propose(*parts, (start, count, leaf, 4 * weight), 3, 0.0, found)
    np.testing.assert_array_equal(found.size, one.size)
    for t in range(N):
        assert found.leaf[t, : found.size[t]].tolist() == one.leaf[t, : found.size[t]].tolist()


@pytest.mark.parametrize(("name", "normalized"), MARGINS)
@given(hierarchies(), seeds)
def test_losses_by_the_batch_equal_those_of_the_table(name, normalized, h, seed):
    case = Case(h, seed, name, normalized)
    table = case.slacks(), case.propose(case.some_planes(), 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nhsvm.oracles.leaves.TABLE", 0)
        patch.setattr(difference, "LIMITS", difference.Limits(sharing=1e9))  # leaves share rows
        case = Case(h, seed, name, normalized)
        shared = case.oracle.losses(case.leaves)
    assert case.oracle._table is None
    assert case.oracle.losses(case.leaves).rows is shared.rows or name == "zero_one"  # not made anew
    rows, which = case.oracle.loss_rows(case.leaves)
    assert len(rows) == len(set(case.leaves.tolist()))
    np.testing.assert_array_equal(rows[which], case.loss.to_leaves(case.leaves))
    again = case.slacks(), case.propose(case.some_planes(), 3)
    for a, b in zip(table[0], again[0], strict=True):
        np.testing.assert_array_equal(a, b)
    for t in range(N):
        for a, b in zip(table[1][:5], again[1][:5], strict=True):
            np.testing.assert_array_equal(a[t, : table[1].size[t]], b[t, : again[1].size[t]])


def test_flat_weights_on_a_deep_hierarchy():
    """α on the leaves only: inner nodes have no column, and the score of a leaf is its own."""
    h = Hierarchy.from_edges([("r", "a"), ("a", "b"), ("b", "c"), ("c", "x"), ("c", "y"), ("a", "z")])
    alpha = np.where(h.graph.is_leaf, 1.0, 0.0)
    case = Case(h, 0, "hamming", False, alpha=alpha)
    assert case.columns.n_columns == 3
    for t in range(N):
        assert case.slacks()[0][t] == pytest.approx(
            brute_force(h.graph, case.node_scores[t], case.leaves[t], case.loss)[1], rel=1e-12
        )


@pytest.mark.parametrize("extra", [0.0, 1.0])
def test_labels_that_nothing_tells_apart_ask_for_no_margin(extra):
    """Eq. 13 with α = 0 at two sister leaves: not even when all planes in use are satisfied may one be proposed."""
    h = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("b", "z"), *([("b", "w"), ("c", "w")] if extra else [])])
    alpha = np.array([0.0 if n in ("x", "y") else 1.0 for n in h.nodes])
    case = Case(h, 0, "normalized", True, alpha=alpha)
    x, z = h.leaves.index("x"), h.leaves.index("z")
    case.leaves[:] = x
    case.scores[:] = np.where(np.isin(case.columns.nodes, h.graph.ancestors.row(h.graph.leaves[x])), 50.0, -50.0)
    planes = np.arange(N), np.ones(N, np.int32), np.full(N, z, np.int32), np.ones(N)
    found = case.propose(planes, 4)
    assert (found.value[:, 0] < -1).all()
    for t in range(N):
        assert h.leaves.index("y") not in found.leaf[t, : found.size[t]]
    assert (found.slack == 0).all()
    assert (case.slacks()[0] == 0).all()


@pytest.mark.parametrize("name", ["one node", "diamond", "isolated roots"])
def test_no_node_carries_weight(name):
    """Then every score is 0, and slacks are the losses."""
    h = SPECIAL[name]
    case = Case(h, 0, "hamming", False, alpha=np.zeros(h.n_nodes))
    slack, best = case.slacks()
    assert slack.tolist() == case.loss.to_leaves(case.leaves).max(axis=1).tolist()
    assert (best == 0).all()


def test_parts_of_proposals_are_views():
    whole = Proposals.empty(4, 3)
    part = whole.part(slice(1, 3))
    part.leaf[:] = 5
    part.slack[:] = 2.0
    assert (whole.leaf[1:3] == 5).all()
    assert (whole.slack[1:3] == 2).all()
    assert [a.shape for a in part] == [(2, 3)] * 5 + [(2,)] * 3
