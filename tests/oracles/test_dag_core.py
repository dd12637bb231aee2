"""What works on the core of a DAG, against all sets of small cores."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.oracles import ORACLES
from nhsvm.oracles.dag.bound import OWN
from nhsvm.oracles.dag.core import FREE, OFF, ON, SPENT
from nhsvm.oracles.dag.plan import make_plan
from nhsvm.oracles.dag.search import Asked, Batch, Limits, reduced, solve_program, started
from nhsvm.oracles.protocol import make_memory
from reference import dag_core
from reference.multilabel import answer, random_rewards
from strategies import dags

seeds = st.integers(0, 2**32)


def asked(r):
    """Of samples of which nothing is remembered, but whose shares are wanted."""
    return Asked(r, np.abs(r).sum(axis=1), make_memory(0, 1, 1), np.empty(0, np.int64))


def make_core(h, seed, kind="noise"):
    """The core of one sample, with shares of rewards at random; None if it is too large to try all sets."""
    graph, rng = h.graph, np.random.default_rng(seed)
    plan = make_plan(graph, False)
    if not 1 < len(plan.node) <= 12:
        return None
    r = random_rewards(graph, kind, seed, 1)
    batch = Batch(plan, False)
    batch.load(asked(r), Limits(0, 0.0, False, False))
    core = batch.rounds.first(0)
    core.share[:] = rng.normal(size=len(core.share)) * rng.integers(2)
    return core, batch.rounds.work.samples["big"][0], r


def loaded(h, r, allow_empty=False):
    """Room with one sample that is ready for its first round, and a copy of its core."""
    batch = Batch(make_plan(h.graph, allow_empty), allow_empty)
    batch.load(asked(r), Limits(0, 0.0, False, False))
    core = batch.rounds.first(0)
    arrays = {"reward": core.reward.copy(), "cover": core.cover.copy(), "state": core.state.copy()}
    return batch.rounds, replace(core, **arrays, share=np.zeros(len(core.share)))


def small(core, most=99, limit=10**6):
    """Decisions after the small components are solved, and the number of nodes in these."""
    rounds = started(core, core.state)
    rounds.work.nodes.star[0, OWN::8] = dag_core.own(core)
    rounds.components(most, limit)
    return rounds.work.parts[0], rounds.work.samples["solved"][0]


@given(dags(40), seeds)
def test_the_program_on_a_core_has_the_optimum_of_the_core(h, seed):
    made = make_core(h, seed)
    if made is None or h.n_leaves > 12:
        return
    core, big, r = made
    best = answer(ORACLES["brute_force"](h.graph), r)[1][0]
    assert solve_program(core, big)[1] == pytest.approx(best, abs=1e-6)
    assert dag_core.best(core) == pytest.approx(best, abs=1e-9 * big)


@pytest.mark.parametrize("kind", ["noise", "ties", "cover", "planted"])
@given(dags(40), seeds)
def test_a_smaller_core_has_the_same_optimum(kind, h, seed):
    """Whatever is decided; and the way back leads to a set of that value."""
    made = make_core(h, seed, kind)
    if made is None:
        return
    core, big, _ = made
    rng = np.random.default_rng(seed)
    decision = np.where(core.state == ON, ON, rng.choice([FREE, FREE, FREE, ON, OFF], core.size)).astype(np.uint8)
    best = dag_core.best(core, decision)
    smaller = reduced(core, decision, big)
    if best < -big:
        assert smaller is None or dag_core.best(smaller) < -big
        return
    assert smaller is not None
    assert dag_core.best(smaller) == pytest.approx(best, abs=1e-9 * big)
    assert not any(smaller.state[smaller.links.child] == ON)
    on, _ = small(smaller)
    assert dag_core.worth(core, smaller.expanded((on == ON).astype(np.uint8))) == pytest.approx(best, abs=1e-9 * big)
    assert (decision[core.state == ON] != OFF).all()


@pytest.mark.parametrize("kind", ["noise", "ties", "cover", "planted"])
@pytest.mark.parametrize("stages", [("prune",), ("cut",), ("prune", "cut"), ("cut, briefly",)])
@given(h=dags(40), seed=seeds, more=st.floats(-1.0, 1.0), allow_empty=st.booleans())
def test_what_is_taken_out_no_best_set_has_and_what_is_put_in_every_one_does(
    kind, stages, h, seed, more, allow_empty
):  # fmt: skip
    if not 1 < len(make_plan(h.graph, allow_empty).node) <= 12:
        return
    rounds, core = loaded(h, random_rewards(h.graph, kind, seed, 1) + more, allow_empty)
    run = {"prune": rounds.prune, "cut": rounds.cut, "cut, briefly": lambda: rounds.cut(0)}
    if not sum([run[stage]() for stage in stages]):
        return
    work, best = rounds.work, dag_core.best(core)
    smaller = rounds.core(0, core)
    settled = np.where(work.trace.done[0] == 1, ON, OFF)
    settled[smaller.reduction.node] = work.decision[0, : smaller.size]
    assert dag_core.best(smaller) == pytest.approx(best, abs=1e-9 * work.samples["big"][0])
    assert not any(smaller.state[smaller.links.child] == ON)
    assert np.array_equal(
        core.links.parent[work.shares.edge[0, : len(smaller.share)]], smaller.reduction.node[smaller.links.parent]
    )
    for i in np.flatnonzero((settled != FREE) & (core.state == FREE)):
        against = core.state.copy()
        against[i] = OFF if settled[i] == ON else ON
        assert dag_core.best(core, against) < best


@pytest.mark.parametrize("seed", [507, 1887, 2115, 3511])
def test_decisions_that_are_too_few_for_a_smaller_core_are_counted_once(seed):
    """Pruned, and then cut with a few decisions: exact answers, and bounds that a remembered set is compared with."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 500))
    edges = [(f"n{rng.integers(c)}", f"n{c}") for c in range(1, n)]
    edges += [(f"n{rng.integers(c)}", f"n{c}") for c in rng.integers(1, n, n)]
    h = Hierarchy.from_edges(list(dict.fromkeys(edges)))
    r = -abs(rng.normal(size=(1, h.n_nodes)))
    r[0, rng.integers(0, h.n_nodes, n // 5)] *= -2
    rounds, core = loaded(h, r)
    big = float(rounds.work.samples["big"][0])
    best = solve_program(core, big)[1]
    assert rounds.prune() == 1
    assert rounds.cut() == 0
    work = rounds.work
    assert (work.decision[0, : work.lines["size"][0]] == ON).sum() > 1
    rounds.shrink()
    assert solve_program(rounds.core(0, core), big)[1] == pytest.approx(best, abs=1e-6)
    oracle = ORACLES["dag_multilabel"](h.graph, exact=True)
    assert answer(oracle, r)[1][0] == pytest.approx(best, abs=1e-6)


def test_most_of_a_large_graph_is_pruned():
    """A few leaves are worth something: all but what is near them goes, and nothing of the best set does."""
    rng = np.random.default_rng(0)
    edges = [(f"n{rng.integers(c)}", f"n{c}") for c in range(1, 600)]
    edges += [(f"n{rng.integers(c)}", f"n{c}") for c in rng.integers(1, 600, 200)]
    h = Hierarchy.from_edges(list(dict.fromkeys(edges)))
    r = np.full((1, h.n_nodes), -1.0)
    r[0, h.graph.leaf_ancestors.row(5)] = 2.0
    rounds, core = loaded(h, r)
    assert rounds.prune() == 1
    assert rounds.work.lines["size"][0] < 0.2 * core.size
    assert np.array_equal(answer(ORACLES["dag_multilabel"](h.graph), r)[0][0], r[0] > 0)


def test_flows_settle_most_of_what_rewards_alone_do_not():
    """Rewards of both signs everywhere: one node in four is left, and the best set is still found."""
    rng = np.random.default_rng(0)
    edges = [(f"n{rng.integers(c)}", f"n{c}") for c in range(1, 600)]
    edges += [(f"n{rng.integers(c)}", f"n{c}") for c in rng.integers(1, 600, 300)]
    h = Hierarchy.from_edges(list(dict.fromkeys(edges)))
    r = rng.normal(size=(1, h.n_nodes))
    rounds, core = loaded(h, r)
    rounds.prune()
    left = rounds.work.lines["size"][0]
    rounds.cut()
    assert left > 0.4 * core.size
    assert rounds.work.lines["size"][0] < 0.25 * core.size
    value = answer(ORACLES["dag_multilabel"](h.graph, exact=True), r)[1][0]
    assert value == pytest.approx(solve_program(core, rounds.work.samples["big"][0])[1], abs=1e-6)


@pytest.mark.parametrize("kind", ["noise", "ties", "cover", "planted"])
@given(dags(40), seeds)
def test_small_parts_are_solved(kind, h, seed):
    """With any shares; the root is settled first, so that there are several parts, and not all are small enough."""
    made = make_core(h, seed, kind)
    if made is None:
        return
    core, big, _ = made
    rng = np.random.default_rng(seed)
    decision = core.state.copy()
    decision[rng.integers(1, core.size)] = ON
    smaller = reduced(core, decision, big)
    for each in (core, smaller):
        if each is None or each.size == 0:
            continue
        found, settled = small(each)
        best = dag_core.best(each)
        if best > -big:
            assert settled == np.count_nonzero(each.state == FREE)
            assert dag_core.worth(each, found == ON) == pytest.approx(best, abs=1e-9 * big)
        most = int(rng.integers(1, each.size + 1))
        some, settled = small(each, most)
        assert settled == np.count_nonzero(some != each.state)
        if best > -big:
            assert dag_core.best(each, some) == pytest.approx(best, abs=1e-9 * big)
        none, settled = small(each, limit=0)
        assert np.array_equal(none, each.state)
        assert settled == 0


@given(dags(40), seeds)
def test_sweeps_bound_every_way(h, seed):
    """The bound holds, and what it says of doing against the sign of a marginal."""
    made = make_core(h, seed)
    if made is None:
        return
    core, big, _ = made
    rounds = started(core, core.state)
    me, line = rounds.work.samples, rounds.work.lines
    line["swept"][0] = seed % 2
    best = dag_core.best(core)
    marginal = rounds.work.nodes.marginal[0]
    for sweeps in (1, 2, 5):
        me["sweeps"] = sweeps
        rounds.sweep()
        bound = line["bound"][0]
        assert bound >= best - 1e-9 * big
        shares = replace(core, share=rounds.work.shares.share[0])
        assert rounds.work.nodes.star[0, OWN::8] == pytest.approx(dag_core.own(shares), abs=1e-9 * big)
        for i in np.flatnonzero(core.state == FREE):
            against = core.state.copy()
            against[i] = OFF if marginal[i] > 0 else ON
            assert dag_core.best(core, against) <= bound - abs(marginal[i]) + 1e-9 * big
    if best > -big:  # what is fixed agrees with the best set
        me["value"], me["budget"], me["first"] = best - 1e-9 * big, -1, 1
        rounds.components()
        rounds.advance()
        decision = rounds.work.decision[0]
        sure = (core.state == FREE) & (np.abs(marginal) >= bound - me["value"][0])
        assert me["phase"][0] == SPENT
        assert np.array_equal(decision != core.state, sure)
        assert dag_core.best(core, decision) == pytest.approx(best, abs=1e-9 * big)


@given(dags(40), seeds)
def test_a_dive_leans_to_the_surer_side(h, seed):
    made = make_core(h, seed)
    if made is None:
        return
    core, _, _ = made
    rng = np.random.default_rng(seed)
    marginal = rng.normal(size=core.size)
    state = np.where(core.state == ON, ON, rng.choice([FREE, FREE, OFF], core.size)).astype(np.uint8)
    rounds = started(replace(core, state=state), state, rounds=1)
    rounds.work.nodes.marginal[0] = marginal
    assert rounds.advance() == (1, 1)
    decision, inside = rounds.work.decision
    assert decision.tolist() == dag_core.leaning(core, state.tolist(), marginal)
    assert inside.tolist() == np.where(decision == OFF, state, decision).tolist()


@given(dags(40), seeds)
def test_found_sets_are_sets_and_worth_what_they_say(h, seed):
    made = make_core(h, seed)
    if made is None:
        return
    core, big, _ = made
    rounds = started(core, core.state, big=big, find=1, bound=1e300)
    rounds.work.nodes.marginal[0] = np.random.default_rng(seed).normal(size=core.size)
    rounds.round()
    value, on = rounds.work.samples["candidate"][0], rounds.work.on[0]
    assert value <= dag_core.best(core) + 1e-9 * big
    assert value == pytest.approx(dag_core.worth(core, on), abs=1e-9 * big)
    rounds.advance()
    assert rounds.work.samples["value"][0] == value
    assert np.array_equal(rounds.work.best[0], on)


def test_what_flows_put_in_is_covered_to_the_last_bit():
    """Flows that cancel leave rounding errors, which must not put a node in that nothing below it pays for."""
    rng = np.random.default_rng(1)
    for _ in range(150):
        n = int(rng.integers(100, 600))
        edges = [(f"n{rng.integers(c)}", f"n{c}") for c in range(1, n)]
        edges += [(f"n{rng.integers(c)}", f"n{c}") for c in rng.integers(1, n, n)]
        h = Hierarchy.from_edges(list(dict.fromkeys(edges)))
        rounds, core = loaded(h, rng.normal(size=(1, h.n_nodes)) - 0.3 * rng.random())
        rounds.cut()
        work = rounds.work
        inside = core.state == ON
        inside[work.trace.done[0] == 1] = True
        size = work.lines["size"][0]
        inside[work.nodes.node[0, :size][work.nodes.state[0, :size] == ON]] = True
        many = np.diff(core.links.parent_ptr) > 1
        for i in np.flatnonzero(inside & (core.cover < -work.samples["big"][0]))[1:]:  # not the root
            children = core.links.child[core.links.child_ptr[i] : core.links.child_ptr[i + 1]]
            if many[children].all():
                assert inside[children].any()
