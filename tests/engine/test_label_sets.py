"""Label sets: the dual method with node marginals on trees, and with levels on DAGs."""

import dataclasses
import itertools

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from engine.set_problems import DAG, FLAT, FOREST, TREE, make, objective
from nhsvm.columns import make_columns
from nhsvm.engine import Dual, LabelSetProblem
from nhsvm.engine.dual.level_step import ALL, SETTLE, UNUSED, USED
from nhsvm.engine.label_sets import DagAscent
from nhsvm.engine.set_certificate import SetTuning
from nhsvm.errors import OptionError
from nhsvm.objective import dual, penalty
from nhsvm.oracles import DagMultilabel
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.oracles.lp import LinearProgram
from nhsvm.threads import Team


@pytest.mark.parametrize("scheme", ["uniform", "maxmin", "power", "flat"])
@pytest.mark.parametrize("h", [TREE, FOREST, DAG], ids=["tree", "forest", "dag"])
@pytest.mark.parametrize("sparse", [True, False])
def test_the_gap_closes_and_is_that_of_the_model(h, scheme, sparse):
    problem, X, _ = make(h, scheme, sparse=sparse)
    solution = Dual(tol=1e-4, max_iter=3000).solve(problem)
    assert solution.converged
    assert 0 <= solution.certificate.gap <= 1e-4
    expected = objective(problem, X, solution.weights, BruteForce(h.graph))
    # on a DAG it is a bound, from oracles that stop within their precision
    loose = 0.0 if h.is_tree else SetTuning.loose * 1e-4
    assert expected * (1 - 1e-9) <= solution.certificate.primal <= expected * (1 + 1e-9 + loose)
    duals = [record["dual"] for record in solution.history]
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in itertools.pairwise(duals))


@pytest.mark.parametrize("offset", [0.0, -1.0, 0.5, -2.0])
@pytest.mark.parametrize("h", [TREE, FOREST, DAG], ids=["tree", "forest", "dag"])
def test_the_first_slacks_are_bounds_without_an_oracle(h, offset):
    problem, X, _ = make(h, offset=offset)
    bound = problem.first_slacks()
    zero = problem.weights()
    for i in range(len(X)):
        costs = np.zeros(len(X))
        costs[i] = 1.0
        exact = objective(dataclasses.replace(problem, costs=costs), X, zero, BruteForce(h.graph))
        assert bound[i] >= exact - 1e-12
        if offset == 0.0 and len(problem.truth.row(i)) < problem.columns.n_columns:
            assert bound[i] == pytest.approx(exact)  # all wrong leaves and no other


def test_flat_sets_are_independent_hinge_machines():
    """Leaves without anything above, and the empty set allowed: LIBLINEAR's L1 loss, one leaf at a time."""
    problem, X, member = make(FLAT, "flat", allow_empty=True)
    solution = Dual(tol=1e-6, max_iter=5000).solve(problem)
    assert solution.converged
    total = 0.0
    for k in range(6):
        y = np.where(member[:, k], 1, -1)
        machine = LinearSVC(loss="hinge", C=1.0, tol=1e-10, max_iter=10**6)
        machine.fit(X, y, sample_weight=problem.costs)
        slack = np.maximum(0, 1 - y * machine.decision_function(X))
        total += 0.5 * (machine.coef_**2).sum() + 0.5 * machine.intercept_[0] ** 2 + problem.costs @ slack
    assert solution.certificate.primal == pytest.approx(total, rel=2e-6)


@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
def test_an_offset_is_a_part_of_every_score(h):
    problem, X, _ = make(h, offset=-1.0)
    solution = Dual(tol=1e-4, max_iter=3000).solve(problem)
    assert solution.converged
    expected = objective(problem, X, solution.weights, BruteForce(h.graph))
    loose = 0.0 if h.is_tree else SetTuning.loose * 1e-4  # as above: on a DAG it is a bound
    assert expected * (1 - 1e-9) <= solution.certificate.primal <= expected * (1 + 1e-9 + loose)
    without = Dual(tol=1e-4, max_iter=3000).solve(make(h)[0])
    assert abs(solution.certificate.primal - without.certificate.primal) > 1e-2 * without.certificate.primal


@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("sparse", [True, False])
def test_threads_do_not_change_a_bit(sparse, h):
    results = []
    for threads in (1, 2, 4):
        problem, _, _ = make(h, sparse=sparse, dtype=np.float32)
        results.append(Dual(tol=1e-3, n_threads=threads).solve(problem))
    for other in results[1:]:
        np.testing.assert_array_equal(other.weights.values, results[0].weights.values)
        assert other.certificate == results[0].certificate


@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
def test_going_on_from_the_dual_variables(h):
    problem, _, _ = make(h)
    first = Dual(tol=1e-4, max_iter=3000).solve(problem)
    again = Dual(tol=1e-4).solve(problem, first.dual)
    assert len(again.history) == 1
    assert again.history[0]["certified"]
    assert again.certificate.dual == pytest.approx(first.certificate.dual, rel=1e-12)
    dearer = dataclasses.replace(problem, costs=2.0 * problem.costs)
    dearer.resume(again.dual, problem.costs)
    more = Dual(tol=1e-4, max_iter=3000).solve(dearer, again.dual)
    fresh = Dual(tol=1e-4, max_iter=3000).solve(dearer)
    assert more.converged
    assert more.history[0]["dual"] > fresh.history[0]["dual"]
    assert more.certificate.primal == pytest.approx(fresh.certificate.primal, rel=2e-4)


def test_a_tree_as_a_dag_has_the_same_optimum(monkeypatch):
    """Levels need no tree: on one, they end where marginals do."""
    problem, _, _ = make(TREE)
    by_marginals = Dual(tol=1e-4, max_iter=3000).solve(problem)
    monkeypatch.setattr(LabelSetProblem, "nests", False)
    by_levels = Dual(tol=1e-4, max_iter=3000).solve(make(TREE)[0])
    assert by_levels.converged
    assert type(by_levels.dual) is not type(by_marginals.dual)
    assert by_levels.certificate.primal == pytest.approx(by_marginals.certificate.primal, rel=2e-4)


def test_levels_are_mixtures_of_label_sets():
    """The marginals of a sample are in C·conv(Y_m): a sum of cells, each the average of the sets above thresholds."""
    problem, _, _ = make(DAG)
    state = Dual(tol=1e-3).solve(problem).dual
    held = state.held()
    sets = {tuple(row) for row in BruteForce(DAG.graph).sets.astype(int).tolist()}
    for i in np.flatnonzero(problem.costs > 0):
        total, at, cut = np.zeros(problem.columns.n_columns), 0, state.sizes[i]
        assert state.masses[i].sum() == pytest.approx(problem.costs[i], rel=1e-12)
        for size, mass in zip(cut, state.masses[i], strict=True):
            leaves, levels = state.leaves[i][at : at + size], state.levels[i][at : at + size]
            at += size
            assert levels.max() == pytest.approx(mass, rel=1e-12)
            steps = np.concatenate([[0.0], np.unique(levels)])
            for lower, upper in itertools.pairwise(steps):
                y = np.zeros(DAG.n_nodes, int)
                y[np.concatenate([DAG.graph.leaf_ancestors.row(leaf) for leaf in leaves[levels > lower]])] = 1
                assert tuple(y) in sets
                total += (upper - lower) * y[problem.columns.nodes]
        found = np.zeros_like(total)
        mine = slice(held.indptr[i], held.indptr[i + 1])
        found[held.columns[mine]] = held.values[mine]
        np.testing.assert_allclose(found, total, atol=1e-12)


def test_marginals_stay_in_the_polytope():
    problem, _, _ = make(TREE)
    state = Dual(tol=1e-3).solve(problem).dual
    indptr, at = state.flat()
    parent = problem.columns.parent
    for i in range(problem.n_samples):
        z = np.zeros(problem.columns.n_columns)
        here = at[indptr[i] : indptr[i + 1]]
        assert (np.diff(state.column[here]) > 0).all()
        z[state.column[here]] = state.z[here]
        C = problem.costs[i]
        above = np.where(parent >= 0, z[parent], C)
        assert (z <= above + 1e-9 * C).all()
        for p in np.unique(parent):
            assert z[parent == p].sum() >= (C if p < 0 else z[p]) - 1e-9 * C


def test_a_leaf_without_weight_is_refused():
    problem, _, _ = make(TREE, "flat")
    columns = make_columns(TREE.graph, np.where(TREE.graph.is_leaf, 0.0, 1.0))
    with pytest.raises(OptionError, match="leaf"):
        dataclasses.replace(problem, columns=columns)


def test_history_counts_errors_at_the_end():
    problem, _, _ = make(TREE, C=50.0, n=10, d=30)
    solution = Dual(tol=1e-3, max_iter=3000).solve(problem)
    assert solution.history[-1]["training_error"] < 0.25
    assert np.isnan(solution.history[0]["training_error"])  # not counted on the way


class Worst(DagMultilabel):
    """An oracle whose sets are worse than the true ones."""

    def solve(self, rewards, chosen, value, bound, *remembered, **more):
        super().solve(-rewards, chosen, value, bound)
        value[:] = (rewards * chosen).sum(axis=1)
        bound[:] = np.inf


class Misled(DagMultilabel):
    """Its first stage is that."""

    @property
    def stages(self):
        return Worst(self.graph), self


def test_sets_that_are_worse_than_the_true_ones_do_not_make_the_gap_look_small():
    """A set below the true one would count as a negative slack; fits went on without a step where many were."""
    oracle = Worst(DAG.graph)
    problem = dataclasses.replace(make(DAG)[0], oracle=Misled(DAG.graph))
    with Team(1) as team:
        ascent = Dual().begin(problem, None, team)
        ascent.batch_pass()  # some weights
        samples = np.flatnonzero(problem.costs > 0)
        ascent.fit.exact = True
        found = ascent.propose(samples, 0.0)
    scores = np.empty((len(samples), problem.columns.n_columns))
    ascent.weights.scores(samples, scores)
    problem.add_loss(samples, scores)
    worst = problem.solved(oracle, scores)[1] - problem.true_sums(samples, scores)
    assert (worst < -0.1).any()
    np.testing.assert_allclose(found.slack, np.maximum(worst, 0.0), atol=1e-9)


def dual_of(ascent):
    """The dual value of the variables as they are, from scratch."""
    ascent.rebuild()
    return dual(penalty(ascent.norms.exact, ascent.problem.columns.alpha), ascent.mass())


def levels_of(state):
    """{(sample, cell, leaf): level} and the masses."""
    found = {}
    for i, (sizes, leaves, levels) in enumerate(zip(state.sizes, state.leaves, state.levels, strict=True)):
        cells = np.repeat(np.arange(len(sizes)), sizes)
        found |= {
            (i, k, leaf): level for k, leaf, level in zip(cells.tolist(), leaves.tolist(), levels.tolist(), strict=True)
        }
    return found, [mass.tolist() for mass in state.masses]


@pytest.mark.parametrize("seed", range(4))
def test_settling_raises_leaves_that_are_not_in_use_and_moves_no_other(seed):
    problem, _, _ = make(DAG, n=60, C=2.0, seed=seed)
    with Team(1) as team:
        ascent = Dual(tol=1e-6).begin(problem, None, team)
        for _ in range(2):
            ascent.batch_pass()
        before, masses = levels_of(ascent.dual)
        value = dual_of(ascent)
        gained = ascent.settle_pass()
        after, still = levels_of(ascent.dual)
        assert still == masses
        assert {key: after[key] for key in before} == before
        assert len(after) > len(before)  # some were of use
        assert gained > 0
        assert dual_of(ascent) - value == pytest.approx(gained, rel=1e-6)


@pytest.mark.parametrize("part", [ALL, USED, SETTLE])
def test_what_parts_of_a_visit_gain_is_what_the_dual_gains(part):
    problem, _, _ = make(DAG, n=60, C=2.0)
    with Team(1) as team:
        ascent = Dual(tol=1e-6).begin(problem, None, team)
        for _ in range(2):
            ascent.batch_pass()
        value = dual_of(ascent)
        samples = np.flatnonzero(problem.costs > 0)
        found = ascent.propose(samples, 0.0)
        steps = ascent.steps(samples, found.layout)
        steps.part = part
        _, _, gained = steps.run(np.arange(len(samples)), ascent.weights.batch(samples).gram, 0.0, 1)
        ascent.dual.keep(samples, found.layout)
        assert gained > 0
        assert dual_of(ascent) - value == pytest.approx(gained, rel=1e-6)


def test_levels_of_zero_stay_where_only_those_in_use_are_to_move():
    problem, _, _ = make(DAG, n=60, C=2.0)
    with Team(1) as team:
        ascent = Dual(tol=1e-6).begin(problem, None, team)
        ascent.batch_pass()
        samples = np.flatnonzero(problem.costs > 0)
        raised = []
        for part in (USED, ALL):
            found = ascent.propose(samples, 0.0)
            layout = found.layout._replace(weight=np.where(found.layout.weight > 0, found.layout.weight, UNUSED))
            steps = ascent.steps(samples, layout._replace(z=layout.z.copy(), held=layout.held.copy()))
            steps.part = part
            masses = steps.layout.weight > 0  # cells that come with a label set may have any leaf
            before = steps.layout.z.copy()
            steps.run(np.arange(len(samples)), ascent.weights.batch(samples).gram, 1e9, 1)  # too coarse to move mass
            owners = np.repeat(masses, np.repeat(layout.n_local, layout.n_cells))
            raised.append(int((owners & (before == 0) & (steps.layout.z > 0)).sum()))
        assert raised[0] == 0
        assert raised[1] > 0


def test_a_relaxation_has_nothing_to_settle(monkeypatch):
    def never(_):
        raise AssertionError("settled")

    problem, _, _ = make(DAG)
    relaxed = dataclasses.replace(problem, oracle=LinearProgram(DAG.graph), answers=problem.oracle)
    monkeypatch.setattr(DagAscent, "settle_pass", never)
    assert Dual(tol=1e-2, max_iter=500).solve(relaxed).converged


def test_samples_that_cost_nothing_hold_nothing():
    """Their levels are all zero; listed as if they were new, they would not fit into the lists."""
    problem, _, _ = make(DAG)
    free = dataclasses.replace(problem, costs=np.zeros(problem.n_samples))
    with Team(1) as team:
        held = Dual().begin(free, None, team).dual.held()
    assert held.indptr.max() == 0
