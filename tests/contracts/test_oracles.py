"""What every multi-label oracle must do; a new one is covered as soon as it is in ORACLES."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm.errors import OptionError
from nhsvm.oracles import ORACLES, Oracle
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.oracles.choice import answering_oracle
from reference.multilabel import REWARDS, answer, random_rewards, violated
from strategies import SPECIAL, dags, hierarchies, random_hierarchy, trees

# every way to make one: as it is registered, and with options
KINDS = {name: (name, {}) for name, spec in ORACLES.specs.items() if not spec.single} | {
    "dag_multilabel, exact": ("dag_multilabel", {"exact": True}),
    "lp, integral": ("lp", {"integral": True}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("allow_empty", [False, True])
seeds = st.integers(0, 2**32)


def make(kind, graph, **options):
    name, own = KINDS[kind]
    return ORACLES[name](graph, **own, **options)


def for_trees(kind):
    return ORACLES.specs[KINDS[kind][0]].trees_only


def suitable(kind, max_nodes):
    return trees(max_nodes) if for_trees(kind) else hierarchies(max_nodes)


def example(kind, n_nodes=60, extra=0.7, roots=2):
    if kind == "brute_force":
        return random_hierarchy(14, 3, roots=roots, extra=extra)
    return random_hierarchy(n_nodes, 3, roots=roots, extra=0.0 if for_trees(kind) else extra)


def test_every_oracle_keeps_to_the_protocol():
    assert all(issubclass(ORACLES[name], Oracle) for name, _ in KINDS.values())


def test_an_oracle_that_answers_proves_label_sets():
    """As its spec says; predictions take it by name, and without a proof they do not."""
    graph = example("brute_force").graph
    for name, spec in ORACLES.specs.items():
        if spec.answers:
            oracle = answering_oracle(name, graph, False, exact=True)
            assert type(oracle) is ORACLES[name]
            assert (oracle.exact, oracle.dtype) == (True, np.uint8)
        if not spec.single:
            assert type(answering_oracle(name, graph, False, exact=False)) is ORACLES["dag_multilabel"]


def check_bounds(oracle, rewards, graph, allow_empty, **more):
    """Answers of a type that is declared, with bounds that no label set exceeds."""
    chosen = np.full(rewards.shape, 7, oracle.dtype)
    value, bound = np.full((2, len(rewards)), np.nan)
    oracle.solve(rewards, chosen, value, bound, **more)
    _, truth, _ = answer(BruteForce(graph, allow_empty=allow_empty), rewards)
    small = 1e-9 * np.abs(rewards).sum(axis=1)
    np.testing.assert_allclose(value, (rewards * chosen).sum(axis=1), atol=small.max())
    assert (bound >= np.maximum(value, truth) - small).all()
    return chosen, value, bound


@every_kind
@both
def test_stages_are_oracles_for_the_same_question_and_end_with_the_oracle_itself(kind, allow_empty):
    graph = example("brute_force", extra=0.0 if for_trees(kind) else 0.7).graph
    oracle = make(kind, graph, allow_empty=allow_empty)
    assert oracle.stages[-1] is oracle
    rewards = random_rewards(graph, "noise", 3, n=5)
    for stage in oracle.stages:
        assert (stage.allow_empty, stage.dtype) == (allow_empty, oracle.dtype)
        assert stage.stages == (stage,) or stage is oracle
        check_bounds(stage, rewards, graph, allow_empty)


@every_kind
@both
def test_a_memory_is_declared_and_used_or_refused(kind, allow_empty):
    graph = example("brute_force", extra=0.0 if for_trees(kind) else 0.7).graph
    oracle = make(kind, graph, allow_empty=allow_empty)
    rewards, rows = random_rewards(graph, "noise", 4, n=5), np.array([8, 0, 3, 2, 5])
    memory = oracle.memory(9)
    assert oracle.remembers(9) == (memory is not None)
    arrays = np.empty(rewards.shape, oracle.dtype), *np.empty((2, 5))
    with pytest.raises(OptionError, match="memory and rows go together"):
        oracle.solve(rewards, *arrays, rows=rows)
    if memory is None:
        other = ORACLES["dag_multilabel"](graph).memory(9)
        with pytest.raises(OptionError, match="keeps no memory"):
            oracle.solve(rewards, *arrays, other, rows)
        return
    _, first, _ = check_bounds(oracle, rewards, graph, allow_empty, memory=memory, rows=rows)
    for again in (oracle, oracle.renewal(0), oracle.renewal(3)):
        assert again.allow_empty == allow_empty
        _, value, _ = check_bounds(again, rewards, graph, allow_empty, memory=memory, rows=rows)
        assert (value >= first - 1e-12 * np.abs(rewards).sum(axis=1)).all()
    with pytest.raises(OptionError, match="needs a memory"):
        oracle.renewal(3).solve(rewards, *arrays)


@every_kind
@both
def test_a_relaxation_bounds_all_label_sets(kind, allow_empty):
    graph = example("brute_force", extra=0.0 if for_trees(kind) else 0.7).graph
    relaxation = make(kind, graph, allow_empty=allow_empty).relaxation()
    if relaxation is None:
        return
    assert (relaxation.allow_empty, relaxation.dtype) == (allow_empty, np.float64)
    check_bounds(relaxation, random_rewards(graph, "noise", 5, n=5), graph, allow_empty)


@every_kind
def test_no_leaf_of_the_best_set_is_missing_among_candidates(kind):
    graph = example("brute_force", extra=0.0 if for_trees(kind) else 0.7).graph
    candidates = make(kind, graph, allow_empty=True).leaf_candidates
    if candidates is None:
        return
    rewards = random_rewards(graph, "noise", 6, n=20)
    chosen, _, _ = answer(BruteForce(graph, allow_empty=True), rewards)
    indptr, leaves = candidates.useful(rewards)
    for t, y in enumerate(chosen):
        assert set(np.flatnonzero(y[graph.leaves])) <= set(leaves[indptr[t] : indptr[t + 1]].tolist())


@every_kind
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("rewards", np.zeros((2, 5))),
        ("rewards", np.zeros((2, 6), np.float32)),
        ("chosen", np.zeros((2, 6), np.int16)),
        ("chosen", np.zeros((3, 6), np.uint8)),
        ("value", np.zeros(3)),
        ("bound", np.zeros((2, 1))),
    ],
)
def test_arrays_of_other_shapes_or_types_are_refused(kind, name, wrong):
    graph = SPECIAL["diamond"].graph
    if for_trees(kind):
        return
    oracle = make(kind, graph)
    arrays = {"rewards": np.zeros((2, 6)), "chosen": np.zeros((2, 6), oracle.dtype), "value": np.zeros(2)}
    arrays |= {"bound": np.zeros(2), name: wrong}
    with pytest.raises(OptionError, match=f"{name} must be"):
        oracle.solve(**arrays)


@every_kind
@both
def test_valid_valued_and_bounded(kind, allow_empty):
    @settings(max_examples=50)
    @given(suitable(kind, 11), st.sampled_from(REWARDS), seeds)
    def check(h, rewards_kind, seed):
        graph = h.graph
        rewards = random_rewards(graph, rewards_kind, seed)
        before, oracle = rewards.copy(), make(kind, graph, allow_empty=allow_empty)
        chosen, value, bound = answer(oracle, rewards)
        np.testing.assert_array_equal(rewards, before)
        _, truth, _ = answer(BruteForce(graph, allow_empty=allow_empty), rewards)
        small = 1e-9 * np.abs(rewards).max(axis=1)
        whole = oracle.dtype == np.uint8
        for r, z, v, s in zip(rewards, chosen.astype(float), value, small, strict=True):
            assert set(np.unique(z)) <= {0.0, 1.0} or not whole
            assert violated(graph, z, allow_empty) <= (0.0 if whole else 1e-7)
            assert v == pytest.approx(float(r @ z), rel=1e-12, abs=s)
        assert (bound >= value).all()
        assert (bound >= truth - small).all()
        if whole:
            assert (value <= truth + small).all()
        if oracle.exact:
            np.testing.assert_allclose(value, truth, rtol=1e-9, atol=small.max())
            np.testing.assert_allclose(bound, truth, rtol=1e-9, atol=small.max())

    check()


@every_kind
@both
def test_same_answer_again_alone_and_from_another_oracle(kind, allow_empty):
    h = example(kind)
    for rewards_kind in REWARDS:
        rewards = random_rewards(h.graph, rewards_kind, 1, n=5)
        oracle = make(kind, h.graph, allow_empty=allow_empty)
        first = answer(oracle, rewards)
        again = answer(oracle, rewards)
        other = answer(make(kind, h.graph, allow_empty=allow_empty), rewards)
        alone = [answer(oracle, rewards[t : t + 1].copy()) for t in reversed(range(5))][::-1]
        for k in range(3):
            np.testing.assert_array_equal(first[k], again[k])
            np.testing.assert_array_equal(first[k], other[k])
            np.testing.assert_array_equal(first[k], np.concatenate([a[k] for a in alone]))


@every_kind
def test_threads_share_an_oracle(kind):
    h = example(kind)
    oracle = make(kind, h.graph)
    batches = [random_rewards(h.graph, "noise", seed, n=10) for seed in range(8)]
    expected = [answer(oracle, rewards) for rewards in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda rewards: answer(oracle, rewards), batches))
    for a, b in zip(expected, found, strict=True):
        for k in range(3):
            np.testing.assert_array_equal(a[k], b[k])


@every_kind
@both
def test_no_sample(kind, allow_empty):
    h = example(kind)
    chosen, value, bound = answer(make(kind, h.graph, allow_empty=allow_empty), np.empty((0, h.n_nodes)))
    assert (chosen.shape, value.shape, bound.shape) == ((0, h.n_nodes), (0,), (0,))


@every_kind
@pytest.mark.parametrize("name", ["one node", "isolated roots", "diamond"])
def test_all_negative_is_one_leaf_or_nothing(kind, name):
    h = SPECIAL[name]
    if for_trees(kind) and not h.is_tree:
        return
    rewards = -np.ones((1, h.n_nodes))
    chosen, value, bound = answer(make(kind, h.graph), rewards)
    assert chosen[0, h.graph.leaves].sum() == 1
    assert value[0] == -h.graph.leaf_ancestors.sizes().min()
    assert bound[0] == pytest.approx(value[0])
    chosen, value, bound = answer(make(kind, h.graph, allow_empty=True), rewards)
    assert not chosen.any()
    assert value[0] == 0
    assert bound[0] == pytest.approx(0)


@every_kind
@both
def test_equals_the_dynamic_programme_on_trees(kind, allow_empty):
    graph = SPECIAL["one node"].graph
    if KINDS[kind][0] not in ("dag_multilabel", "lp") and (kind == "brute_force" or not make(kind, graph).exact):
        return

    @settings(max_examples=30)
    @given(trees(40), st.sampled_from(REWARDS), seeds)
    def check(h, rewards_kind, seed):
        rewards = random_rewards(h.graph, rewards_kind, seed)
        _, truth, _ = answer(ORACLES["tree_multilabel"](h.graph, allow_empty=allow_empty), rewards)
        _, value, bound = answer(make(kind, h.graph, allow_empty=allow_empty), rewards)
        small = 1e-9 * np.abs(rewards).max()
        np.testing.assert_allclose(bound, truth, rtol=1e-9, atol=small)
        np.testing.assert_allclose(value, truth, rtol=1e-9, atol=small)

    check()


@given(dags(14), st.sampled_from(REWARDS), seeds)
@settings(max_examples=30)
def test_all_exact_oracles_agree_on_dags(h, rewards_kind, seed):
    rewards = random_rewards(h.graph, rewards_kind, seed)
    oracles = [make(kind, h.graph) for kind in KINDS if not for_trees(kind)]
    values = [answer(oracle, rewards)[1] for oracle in oracles if oracle.exact]
    for value in values[1:]:
        np.testing.assert_allclose(value, values[0], rtol=1e-9, atol=1e-9 * np.abs(rewards).max())
