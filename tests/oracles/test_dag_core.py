"""What works on the core of a DAG, against all sets of small cores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.oracles import ORACLES
from nhsvm.oracles._dag_core import FREE, OFF, ON, Core, back, fixed, reduced
from nhsvm.oracles._dag_dive import leaning
from nhsvm.oracles._dag_plan import fold, make_plan
from nhsvm.oracles._dag_program import solve_program
from nhsvm.oracles._dag_small import solve_small
from nhsvm.oracles._dag_sweeps import Sweeper
from reference import dag_core
from reference.multilabel import answer, random_rewards
from strategies import dags

seeds = st.integers(0, 2**32)


def make_core(h, seed, kind="noise"):
    """The core of one sample, with shares of rewards at random; None if it is too large to try all sets."""
    graph, rng = h.graph, np.random.default_rng(seed)
    plan = make_plan(graph, False)
    if not 1 < len(plan.node) <= 12:
        return None
    r = random_rewards(graph, kind, seed, 1)
    big = 2 * np.abs(r).sum() + 1.0
    folded = fold(plan, r[0], -2 * big, False)
    state = np.zeros(len(plan.node), np.uint8)
    state[0] = ON
    share = rng.normal(size=len(plan.links.child)) * rng.integers(2)
    return Core(folded.reward, folded.cover, state, plan.links, share, 0.0), big, r


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
    fate = np.where(core.state == ON, ON, rng.choice([FREE, FREE, FREE, ON, OFF], core.size)).astype(np.uint8)
    best = dag_core.best(core, fate)
    smaller = reduced(core, fate, big)
    if best < -big:
        assert smaller is None or dag_core.best(smaller) < -big
        return
    assert smaller is not None
    assert dag_core.best(smaller) == pytest.approx(best, abs=1e-9 * big)
    assert not any(smaller.state[smaller.links.child] == ON)
    on, _, _ = solve_small(smaller, dag_core.own(smaller), 99, 10**6, 0.0)
    assert dag_core.worth(core, back(smaller, (on == ON).astype(np.uint8))) == pytest.approx(best, abs=1e-9 * big)
    assert (fate[core.state == ON] != OFF).all()


@pytest.mark.parametrize("kind", ["noise", "ties", "cover", "planted"])
@given(dags(40), seeds)
def test_small_parts_are_solved(kind, h, seed):
    """With any shares; the root is settled first, so that there are several parts, and not all are small enough."""
    made = make_core(h, seed, kind)
    if made is None:
        return
    core, big, _ = made
    rng = np.random.default_rng(seed)
    fate = core.state.copy()
    fate[rng.integers(1, core.size)] = ON
    smaller = reduced(core, fate, big)
    for each in (core, smaller):
        if each is None or each.size == 0:
            continue
        own = dag_core.own(each)
        found, settled, _ = solve_small(each, own, 99, 10**6, 0.0)
        best = dag_core.best(each)
        if best > -big:
            assert settled == np.count_nonzero(each.state == FREE)
            assert dag_core.worth(each, found == ON) == pytest.approx(best, abs=1e-9 * big)
        most = int(rng.integers(1, each.size + 1))
        some, settled, _ = solve_small(each, own, most, 10**6, 0.0)
        assert settled == np.count_nonzero(some != each.state)
        if best > -big:
            assert dag_core.best(each, some) == pytest.approx(best, abs=1e-9 * big)
        none, settled, _ = solve_small(each, own, 99, 0, 0.0)
        assert np.array_equal(none, each.state)
        assert settled == 0


@given(dags(40), seeds)
def test_sweeps_bound_every_way(h, seed):
    """The bound holds, and what it says of doing against the sign of a marginal."""
    made = make_core(h, seed)
    if made is None:
        return
    core, big, _ = made
    sweeper = Sweeper(core, bool(seed % 2))
    best = dag_core.best(core)
    for rounds in (1, 2, 5):
        sweeper.run(rounds, -1e300)
        assert sweeper.bound >= best - 1e-9 * big
        assert sweeper.own == pytest.approx(dag_core.own(core), abs=1e-9 * big)
        for i in np.flatnonzero(core.state == FREE):
            against = core.state.copy()
            against[i] = OFF if sweeper.marginal[i] > 0 else ON
            assert dag_core.best(core, against) <= sweeper.bound - abs(sweeper.marginal[i]) + 1e-9 * big
    if best > -big:
        gap = sweeper.bound - best + 1e-9 * big
        fate, n_fixed = fixed(core.state, sweeper.marginal, gap)
        assert n_fixed == np.count_nonzero(fate != core.state)
        assert dag_core.best(core, fate) == pytest.approx(best, abs=1e-9 * big)


@given(dags(40), seeds)
def test_a_dive_leans_to_the_surer_side(h, seed):
    made = make_core(h, seed)
    if made is None:
        return
    core, _, _ = made
    rng = np.random.default_rng(seed)
    marginal = rng.normal(size=core.size)
    state = np.where(core.state == ON, ON, rng.choice([FREE, FREE, OFF], core.size)).astype(np.uint8)
    assert leaning(core, state, marginal).tolist() == dag_core.leaning(core, state.tolist(), marginal)
