"""Answers with the best expected value of a measure, beside all answers there are."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators.problems import DAG, FOREST, TREE, make, make_sets
from nhsvm import HRSVM, NHSVM, Hierarchy, load, metrics
from nhsvm.errors import OptionError
from nhsvm.model.decisions import Ratio, best_ratio, best_sets, make_rule, measure_names
from nhsvm.model.sets import SetForm
from reference.metrics import counted, distance
from strategies import hierarchies

seeds = st.integers(0, 2**32)


def jaccard(t, p):
    return len(t & p) / len(t | p) if t | p else 1.0


def f1(t, p):
    return 2 * len(t & p) / (len(t) + len(p)) if t or p else 1.0


def wrong(t, p):
    return -float(len(t ^ p))


OF_SETS = {
    "example_jaccard": jaccard,
    "f1_samples": f1,
    "f1_micro": f1,
    "f1_macro": f1,
    "hamming_distance": wrong,
    "example_jaccard_nodes": jaccard,
    "hierarchical_f1": f1,
    "hierarchical_f1_samples": f1,
    "hamming_distance_nodes": wrong,
}
"""By what is counted of the truth and of the answer, as sets."""
NODES = [name for name in OF_SETS if "nodes" in name or "hierarchical" in name]


def small(h, n_leaves=4):
    """A few leaves, and one inner node as a class of its own."""
    labels = [*h.leaves[:n_leaves], *[n for n in h.nodes if n not in h.leaves][-1:]]
    return h.with_virtual_leaves(labels).subset(labels)


def closed(h, labels):
    """What counts of these labels."""
    return set(h.closure(set(labels))) & counted(h, "auto") if labels else set()


# -- one label a sample ------------------------------------------------------------------------------------------------


def chosen(name, h, proba, candidates=None):
    """Labels, or of the candidate nodes these."""
    class_leaves = np.random.default_rng(len(proba)).permutation(h.n_leaves).astype(np.int32)
    nodes = h.graph.leaves[class_leaves] if candidates is None else h.numbers(candidates)
    labels = [h.leaves[k] for k in class_leaves] if candidates is None else candidates
    rule = make_rule(name, h, class_leaves, nodes, len(proba))
    for lo in range(0, len(proba), 2):  # in parts
        rule.see(slice(lo, lo + 2), proba[lo : lo + 2][:, class_leaves])
    return [labels[k] for k in rule.answers()]


def pair_value(name, h, true, pred):
    if name == "tree_distance":
        return -distance(h, true, pred)
    if name == "lca_f1":
        return 2 / (2 + distance(h, true, pred))
    if name in NODES:
        return OF_SETS[name](closed(h, [true]), closed(h, [pred]))
    return float(true == pred)


@pytest.mark.parametrize("name", [name for name in measure_names(sets=False) if name != "hierarchical_f1"])
@given(h=hierarchies(14), seed=seeds)
def test_no_label_has_a_better_expected_value(name, h, seed):
    h = small(h)
    proba = np.random.default_rng(seed).dirichlet(np.full(h.n_leaves, 0.5), size=3)
    partial = name in measure_names(sets=False, partial=True)
    for candidates in (None, [n for n in h.nodes if n in h.closure(n)]) if partial else (None,):
        answers = list(h.leaves) if candidates is None else candidates
        values = proba @ [[pair_value(name, h, t, p) for p in answers] for t in h.leaves]
        best = [answers.index(label) for label in chosen(name, h, proba, candidates)]
        np.testing.assert_allclose(values[range(3), best], values.max(axis=1), rtol=1e-9)


@given(h=hierarchies(14), seed=seeds, partial=st.booleans())
def test_no_labels_have_a_better_ratio_of_expected_sums(h, seed, partial):
    """Hierarchical F1 is one ratio of all samples: all combinations of answers are tried."""
    h = small(h, 3)
    proba = np.random.default_rng(seed).dirichlet(np.full(h.n_leaves, 0.5), size=3)
    answers = [n for n in h.nodes if n in h.closure(n)][:6] if partial else list(h.leaves)
    true, pred = ([closed(h, [label]) for label in labels] for labels in (h.leaves, answers))
    both = proba @ [[len(t & p) for p in pred] for t in true]
    size = proba @ [len(t) for t in true]

    def ratio(rows):
        whole = size.sum() + sum(len(pred[k]) for k in rows)
        return 2 * sum(both[i, k] for i, k in enumerate(rows)) / whole if whole else 0.0

    found = chosen("hierarchical_f1", h, proba, answers if partial else None)
    best = max(map(ratio, product(range(len(answers)), repeat=3)))
    assert ratio([answers.index(label) for label in found]) == pytest.approx(best, rel=1e-9)


# -- label sets --------------------------------------------------------------------------------------------------------


class Sets:
    """A distribution over the label sets of a small hierarchy for each sample, and what is asked of it."""

    def __init__(self, h, seed, *, empty=False, size=None, n=2):
        rng = np.random.default_rng(seed)
        sizes = range(0 if empty else 1, h.n_leaves + 1) if size is None else [size]
        self.h, self.empty = h, empty
        self.labels = [some for k in sizes for some in combinations(h.leaves, k)]
        self.nodes = [closed(h, some) for some in self.labels]
        shares = rng.dirichlet(np.full(len(self.labels), 0.3), size=n)
        inside = np.zeros((len(self.labels), h.n_nodes))
        for row, some in zip(inside, self.labels, strict=True):
            own = [h.graph.leaves[h.leaf_position(label)] for label in some]
            row[h.graph.reachable(np.array(own, dtype=np.int32), h.graph.parents)] = 1
        self.inside, self.shares, self.proba = inside, shares, np.minimum(shares @ inside, 1.0)

    def counted(self, name):
        return self.nodes if name in NODES else [set(some) for some in self.labels]

    def answers(self, name, allow_empty=None):
        """Positions of the sets found."""
        form = SetForm("set", self.empty if allow_empty is None else allow_empty, 0.0)
        indptr, leaves = best_sets(name, self.h, form, self.proba)
        found = [frozenset(self.h.leaves[k] for k in leaves[a:b]) for a, b in pairwise(indptr)]
        return [[frozenset(some) for some in self.labels].index(some) for some in found]

    def expected(self, name):
        """E of |Y ∩ Ŷ| (samples, answers), of |Y| (samples,), and |Ŷ| (answers,)."""
        sets = self.counted(name)
        sizes = np.array([len(some) for some in sets])
        return self.shares @ [[len(t & p) for p in sets] for t in sets], self.shares @ sizes, sizes


@pytest.mark.parametrize("name", ["hamming_distance", "hamming_distance_nodes"])
@given(h=hierarchies(12), seed=seeds, empty=st.booleans())
def test_sums_are_exact_for_any_distribution(name, h, seed, empty):
    case = Sets(small(h, 3), seed, empty=empty)
    sets = case.counted(name)
    values = case.shares @ [[wrong(t, p) for p in sets] for t in sets]
    np.testing.assert_allclose(values[range(2), case.answers(name)], values.max(axis=1), atol=1e-9)


@pytest.mark.parametrize("name", ["f1_micro", "hierarchical_f1"])
@given(h=hierarchies(12), seed=seeds, empty=st.booleans())
def test_no_sets_have_a_better_ratio_of_expected_sums(name, h, seed, empty):
    case = Sets(small(h, 3), seed, empty=empty)
    both, true, pred = case.expected(name)
    whole = true.sum() + pred[:, None] + pred
    ratios = np.divide(2 * (both[0][:, None] + both[1]), whole, out=np.zeros(whole.shape), where=whole > 0)
    assert ratios[tuple(case.answers(name))] == pytest.approx(ratios.max(), rel=1e-9)


@pytest.mark.parametrize("name", ["hierarchical_f1_samples", "example_jaccard_nodes"])
@given(h=hierarchies(12), seed=seeds)
def test_no_set_has_a_better_ratio_of_its_expectations(name, h, seed):
    case = Sets(small(h, 3), seed)
    both, true, pred = case.expected(name)
    whole = true[:, None] + pred - (both if "jaccard" in name else 0)
    ratios = np.divide(both, whole, out=np.zeros(whole.shape), where=whole > 0)
    np.testing.assert_allclose(ratios[range(2), case.answers(name)], ratios.max(axis=1), rtol=1e-9)


@given(h=hierarchies(12), seed=seeds, size=st.integers(1, 2))
def test_f1_of_nodes_is_exact_where_their_number_is_certain(h, seed, size):
    """By hierarchical F1: of the distribution, only sets with so many nodes are left."""
    h = small(h, 3)
    case, every = Sets(h, seed), Sets(h, seed)
    sizes = [len(some) for some in case.nodes]
    certain = sorted({*sizes} - {0})[:size]
    if not certain:  # a lone root does not count
        return
    which = [k for k, n in enumerate(sizes) if n == certain[-1]]
    shares = np.zeros(case.shares.shape)
    shares[:, which] = np.random.default_rng(seed).dirichlet(np.ones(len(which)), size=2)
    every.proba = np.minimum(shares @ case.inside, 1.0)
    values = shares @ [[f1(t, p) for p in case.nodes] for t in case.nodes]
    found = every.answers("hierarchical_f1_samples")
    np.testing.assert_allclose(values[range(2), found], values.max(axis=1), rtol=1e-9)


@pytest.mark.parametrize("name", ["f1_samples", "example_jaccard"])
@given(n=st.integers(1, 6), seed=seeds, empty=st.booleans(), scale=st.sampled_from([0.1, 0.5, 1.0]))
def test_no_set_is_better_where_labels_are_independent(name, n, seed, empty, scale):
    h = Hierarchy.from_edges([], nodes=range(n))
    proba = scale * np.random.default_rng(seed).random((2, n))
    sets = [np.array(y, bool) for y in product([0, 1], repeat=n)]
    shares = np.array([np.where(y, proba, 1 - proba).prod(axis=1) for y in sets]).T
    as_sets = [set(np.flatnonzero(y).tolist()) for y in sets]
    values = shares @ [[OF_SETS[name](t, p) for p in as_sets] for t in as_sets]
    indptr, leaves = best_sets(name, h, SetForm("set", empty, 0.0), proba)
    found = [as_sets.index(set(leaves[a:b].tolist())) for a, b in pairwise(indptr)]
    allowed = [k for k, y in enumerate(as_sets) if y or empty]
    np.testing.assert_allclose(values[range(2), found], values[:, allowed].max(axis=1), rtol=1e-9)


def test_many_improbable_labels():
    """Which are too many to try, and worth something together: the values of k labels are summed up by hand."""
    h = Hierarchy.from_edges([], nodes=range(300))
    proba = np.vstack([np.full(300, 0.01), np.geomspace(0.9, 1e-12, 300), np.zeros(300)])
    indptr, _ = best_sets("example_jaccard", h, SetForm("set", False, 0.0), proba)
    best = []
    for row in proba:
        others, values = np.ones(1), []
        for k in range(300, 0, -1):
            values.append(row[:k].sum() * (others / (k + np.arange(len(others)))).sum())
            others = np.convolve(others, [1 - row[k - 1], row[k - 1]])
        best.append(max(values))
        k = np.diff(indptr)[len(best) - 1]
        assert values[300 - k] == pytest.approx(best[-1], rel=1e-9)


@given(h=hierarchies(12), seed=seeds)
def test_macro_f1_is_best_for_every_label(h, seed):
    h = small(h, 3)
    case = Sets(h, seed, empty=True, n=4)
    found = [set(case.labels[k]) for k in case.answers("f1_macro")]
    for label in h.leaves:
        p = case.proba[:, h.graph.leaves[h.leaf_position(label)]]
        value = lambda y, p=p: 2 * p[y].sum() / (p.sum() + y.sum())
        best = max(value(np.array(y)) for y in product([False, True], repeat=4))
        assert value(np.array([label in some for some in found])) == pytest.approx(best, rel=1e-9)
    full = Sets(h, seed, n=4)
    assert all(full.labels[k] for k in full.answers("f1_macro"))


def test_a_sample_may_be_without_labels():
    """An empty set is the answer where the truth is empty more likely than anything else is right."""
    form = SetForm("set", allow_empty=True, leaf_offset=0.0)
    proba = np.full((2, TREE.n_nodes), 0.1)
    proba[1] = 0.9
    for name in ("example_jaccard", "hierarchical_f1_samples"):
        assert np.diff(best_sets(name, TREE, form, proba)[0]).tolist() == [0, TREE.n_leaves], name
        assert np.diff(best_sets(name, TREE, form._replace(allow_empty=False), proba)[0]).min() > 0


def test_ratios_end_at_zero():
    """Where nothing can be right there is nothing to improve."""
    calls = []

    def solve(t):
        calls.append(t)
        return Ratio(t, np.zeros(2), np.array([0.0, 1.0]))

    assert best_ratio(solve, 2).tolist() == [0, 0]
    assert len(calls) == 1


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """Models with probabilities, and new samples with their labels."""
    found = {}
    for name, h in {"tree": TREE, "forest": FOREST, "dag": DAG}.items():
        X, y = make(h, n_samples=240, noise=2.5, labels=[*h.leaves, h.nodes[1]])
        found[name] = NHSVM(h, probability=True, cv=2, tol=0.05).fit(X[:120], y[:120]), X[120:], y[120:]
    for name, h, model in (("tree sets", TREE, NHSVM), ("dag sets", DAG, NHSVM), ("leaf sets", FOREST, HRSVM)):
        X, y = make_sets(h, n_samples=240, noise=2.5)
        found[name] = model(h, probability=True, cv=2, tol=0.05).fit(X[:120], y[:120]), X[120:], y[120:]
    return found


@pytest.mark.parametrize("name", ["tree", "forest", "dag"])
def test_models_of_one_label(fitted, name, tmp_path):
    model, X, _ = fitted[name]
    proba, h = model.predict_proba(X), model.hierarchy_
    model.save(tmp_path / "model")
    for measure in measure_names(sets=False):
        found = model.predict(X, for_measure=measure)
        assert set(found) <= set(model.classes_)
        np.testing.assert_array_equal(found, load(tmp_path / "model").predict(X, for_measure=measure))
        np.testing.assert_array_equal(found, model.model_.predict(X, for_measure=f"neg_{measure}", n_threads=2))
        if measure != "hierarchical_f1":  # one of all samples
            np.testing.assert_array_equal(found[:7], model.predict(X[:7], for_measure=measure))
            values = proba @ [[pair_value(measure, h, t, p) for p in model.classes_] for t in model.classes_]
            mine = values[range(len(X)), [list(model.classes_).index(label) for label in found]]
            np.testing.assert_allclose(mine, values.max(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X, for_measure="accuracy"), model.predict(X))
    for measure in measure_names(sets=False, partial=True):
        found = model.predict_partial(X, for_measure=measure)
        assert set(found) <= set(h.nodes)
        assert len(set(found) - set(model.classes_)) or measure != "tree_distance"


@pytest.mark.parametrize("name", ["tree sets", "dag sets", "leaf sets"])
def test_models_of_label_sets(fitted, name):
    model, X, _ = fitted[name]
    for measure in measure_names(sets=True):
        found = model.predict(X, for_measure=measure)
        assert all(found)
        same = model.model_.predict(X, for_measure=measure, n_threads=2)
        assert same.tolist() == found.tolist()
    assert model.predict(X, for_measure="exact_match").tolist() == model.predict(X).tolist()
    size = {m: sum(map(len, model.predict(X, for_measure=m))) for m in ("f1_micro", "hamming_distance")}
    assert size["f1_micro"] > size["hamming_distance"]  # whose labels have to be more likely than not


def test_it_is_worth_it(fitted):
    """On samples that are hard to tell apart, an answer for a measure is better by it."""
    model, X, y = fitted["tree sets"]
    for name, measure in (("f1_micro", metrics.f1), ("hierarchical_f1", metrics.hierarchical_f1)):
        plain, aimed = (measure(y, model.predict(X, for_measure=m), hierarchy=TREE) for m in (None, name))
        assert aimed > plain


def test_errors(fitted):
    model, X, _ = fitted["tree"]
    sets, X_sets, _ = fitted["tree sets"]
    for call, text in (
        (lambda: model.predict(X, for_measure="f1_macro"), "for_measure must be one of .*'hierarchical_f1'.* for one"),
        (lambda: model.predict(X, for_measure=3), "for_measure must be one of"),
        (lambda: sets.predict(X_sets, for_measure="tree_distance"), "for label sets, not 'tree_distance'"),
        (lambda: model.predict(X, for_measure="lca_f1", beam=2), "leave one of them out"),
        (lambda: model.predict_partial(X, 0.5, for_measure="lca_f1"), "leave one of them out"),
        (lambda: model.predict_partial(X, for_measure="accuracy"), "for answers on inner nodes, not 'accuracy'"),
        (lambda: sets.predict_partial(X_sets, for_measure="lca_f1"), "for one label a sample"),
    ):
        with pytest.raises(OptionError, match=text):
            call()
    plain = NHSVM(TREE, tol=0.1).fit(X, fitted["tree"][2])
    for answers in (plain, plain.model_):
        with pytest.raises(OptionError, match=r"needs probabilities.*probability=True"):
            answers.predict(X, for_measure="lca_f1")


def test_too_many_pairs(monkeypatch):
    monkeypatch.setattr("nhsvm.model.decisions._PAIRS", 15)
    leaves = np.arange(4, dtype=np.int32)
    with pytest.raises(OptionError, match="'hierarchical_f1' and 'hamming_distance_nodes' are sums over nodes"):
        make_rule("lca_f1", TREE, leaves, TREE.graph.leaves, 1)
    make_rule("tree_distance", TREE, leaves, TREE.graph.leaves, 1)
