"""The public door: every method against all labels tried from the definition, labels in and out, errors."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nhsvm.oracles
from nhsvm import Hierarchy
from nhsvm.errors import DataError, LabelError, NHSVMError, OptionError, UnknownLabelError
from nhsvm.losses import LeafHamming, make_loss
from nhsvm.oracles import ORACLES, MostViolating, most_violating
from reference.losses import TWINS, closure, label_sets
from strategies import SPECIAL, dags, hierarchies, trees

ANIMALS = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
METHODS = ["auto", "exact", "lp", "brute_force"]
seeds = st.integers(0, 2**32)
# at most 2^7 - 1 label sets; now and then inner nodes are labels
kinds = {
    kind: st.one_of(of(8), st.builds(lambda h: h.with_virtual_leaves(h.nodes), of(5)))
    for kind, of in {"tree": trees, "dag": dags}.items()
}


def scores_of(h, seed, n=None):
    return np.random.default_rng(seed).normal(size=h.n_nodes if n is None else (n, h.n_nodes))


def truth(h, s, loss=None, true=None, multilabel=True, empty=False):
    """max over all labels, straight from the definition."""
    space = label_sets(h.graph)[: None if multilabel else h.n_leaves] + ([set()] if empty else [])
    score = lambda y: sum(s[n] for n in sorted(y))
    if loss is None:
        return max(score(y) for y in space)
    return max(TWINS[loss](h.graph, None, y, true) + score(y) - score(true) for y in space)


def nodes_of(h, labels):
    return closure(h.graph, [h.graph.leaves[h.leaf_position(label)] for label in labels])


def some_leaves(h, seed, multilabel=True):
    k = np.random.default_rng(seed + 1).permutation(h.n_leaves)
    return [h.leaves[i] for i in k[: 1 + seed % 3 if multilabel else 1]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", kinds)
@pytest.mark.parametrize("loss", ["leaf_hamming", "hamming"])
def test_several_labels(method, kind, loss):
    @settings(max_examples=25)
    @given(kinds[kind], seeds)
    def check(h, seed):
        s, labels = scores_of(h, seed), some_leaves(h, seed)
        true = nodes_of(h, labels)
        found = most_violating(h, s, labels, loss=loss, method=method)
        y = nodes_of(h, found.leaves)
        own = TWINS[loss](h.graph, None, y, true) + sum(s[n] for n in y) - sum(s[n] for n in true)
        assert found.value == pytest.approx(own, abs=1e-12)
        best = truth(h, s, loss, true)
        assert found.value <= best + 1e-12
        assert found.bound >= best - 1e-12
        plain = most_violating(h, s, method=method)
        assert plain.value == pytest.approx(sum(s[n] for n in nodes_of(h, plain.leaves)), abs=1e-12)
        assert plain.bound >= truth(h, s) - 1e-12
        if method != "auto" or h.is_tree:
            assert found.value == pytest.approx(best, abs=1e-12)
            assert plain.value == pytest.approx(truth(h, s), abs=1e-12)
            assert found.bound == pytest.approx(found.value, abs=1e-8)

    check()


@pytest.mark.parametrize("method", ["auto", "exact", "brute_force"])
@pytest.mark.parametrize("loss", ["zero_one", "hamming", "leaf_hamming"])
@settings(max_examples=25)
@given(h=hierarchies(16), seed=seeds)
def test_single_labels(method, loss, h, seed):
    s, (label,) = scores_of(h, seed), some_leaves(h, seed, multilabel=False)
    found = most_violating(h, s, label, loss=loss, method=method, multilabel=False)
    assert len(found.leaves) == 1
    assert found.value == pytest.approx(truth(h, s, loss, nodes_of(h, [label]), multilabel=False), abs=1e-12)
    assert found.bound == found.value
    plain = most_violating(h, s, method=method, multilabel=False)
    assert plain.value == pytest.approx(truth(h, s, multilabel=False), abs=1e-12)
    assert plain.value == pytest.approx(sum(s[n] for n in nodes_of(h, plain.leaves)), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["diamond", "isolated roots"])
@pytest.mark.parametrize("seed", range(6))
def test_empty_sets(method, name, seed):
    h = SPECIAL[name]
    s = scores_of(h, seed) - 1.0
    assert most_violating(h, s, method=method, allow_empty=True).value == pytest.approx(truth(h, s, empty=True))
    nothing = most_violating(h, np.full(h.n_nodes, -1.0), method=method, allow_empty=True)
    assert nothing[:2] == ((), 0.0)
    found = most_violating(h, s, [], method=method, allow_empty=True)
    assert found.value == pytest.approx(truth(h, s, "leaf_hamming", set(), empty=True))
    one, two = most_violating(h, [s, s], [[], [h.leaves[0]]], method=method, allow_empty=True)
    assert one == found
    assert two == most_violating(h, s, {h.leaves[0]}, method=method, allow_empty=True)


@pytest.mark.parametrize("multilabel", [True, False])
@given(h=hierarchies(12), seed=seeds)
def test_a_batch_is_a_list_of_ones(multilabel, h, seed):
    scores = scores_of(h, seed, n=3)
    true = [some_leaves(h, seed + k, multilabel) for k in range(3)]
    if not multilabel:
        true = [labels[0] for labels in true]
    before = scores.copy()
    found = most_violating(h, scores, true, multilabel=multilabel)
    assert found == [most_violating(h, s, y, multilabel=multilabel) for s, y in zip(scores, true, strict=True)]
    assert found == most_violating(h, np.asfortranarray(scores), true, multilabel=multilabel)
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("multilabel", [True, False])
def test_no_sample(multilabel):
    none = np.empty((0, ANIMALS.n_nodes))
    for method in ["auto", "brute_force"]:
        assert most_violating(ANIMALS, none, multilabel=multilabel, method=method) == []
        assert most_violating(ANIMALS, none, [], multilabel=multilabel, method=method) == []


@pytest.mark.parametrize("h", [ANIMALS, SPECIAL["diamond"]])
@pytest.mark.parametrize("multilabel", [True, False])
def test_a_satisfied_margin_is_exactly_zero(h, multilabel):
    label = h.leaves[1]
    inside = nodes_of(h, [label])
    s = np.array([10.1 if n in inside else -10.3 for n in range(h.n_nodes)])
    found = most_violating(h, s, [label] if multilabel else label, multilabel=multilabel)
    assert found == MostViolating((label,), 0.0, 0.0)


@pytest.mark.parametrize(("method", "exact"), [("auto", False), ("exact", True)])
def test_a_dag_is_solved_to_the_end_only_if_asked(method, exact, monkeypatch):
    class Spy:
        dtype = np.uint8

        def __init__(self, graph, **options):
            assert options == {"allow_empty": True, "exact": exact}

        def solve(self, rewards, chosen, value, bound):
            chosen[:], value[:], bound[:] = 1, rewards.sum(), rewards.sum() + 3.0

    monkeypatch.setattr("nhsvm.oracles.dag.oracle.DagMultilabel", Spy)
    h = SPECIAL["diamond"]
    found = most_violating(h, np.ones(h.n_nodes), ["x"], method=method, allow_empty=True)
    assert found == (h.leaves, 4.0, 7.0)  # two wrong leaves, and the reward of both; a bound 3 higher stays 3 higher


def test_inner_labels_come_back_as_themselves():
    h = ANIMALS.with_virtual_leaves(["animal"])
    s = np.where(h.is_virtual, 5.0, -1.0)
    assert most_violating(h, s) == (("animal",), 4.0, 4.0)
    assert most_violating(h, s, {"animal"}).leaves == ("animal",)
    assert most_violating(h, s, "dog", multilabel=False).leaves == ("animal",)


def test_a_loss_with_weights_and_other_forms_of_input():
    alpha = np.full(5, 0.5)
    s = [0, 0, 1, 0, 0]
    found = most_violating(ANIMALS, s, "dog", loss=make_loss("normalized", ANIMALS, alpha), multilabel=False)
    assert found == (("oak",), pytest.approx(np.sqrt(2) - 1), pytest.approx(np.sqrt(2) - 1))
    assert most_violating(ANIMALS, np.array(s, np.float32), {"dog"}, loss=LeafHamming).leaves == ("cat", "oak")
    assert most_violating(ANIMALS, s, ("dog",)) == most_violating(ANIMALS, s, frozenset({"dog"}))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (([0.0] * 4,), {}, DataError, r"5 numbers, one a node.*shape \(4,\)"),
        ((np.zeros((2, 2, 5)),), {}, DataError, r"shape \(2, 2, 5\)"),
        ((3.0,), {}, DataError, r"shape \(\)"),
        (([[0.0] * 5, [0.0] * 4],), {}, DataError, "different lengths"),
        ((["a"] * 5,), {}, DataError, "type <U1"),
        (([0, 0, np.nan, 0, 0],), {}, DataError, "that of 'dog' is nan"),
        (([[0.0] * 5, [0, 0, 0, np.inf, 0]],), {}, DataError, "that of 'cat' in row 1 is inf"),
        (([0.0] * 5,), {"method": "magic"}, OptionError, r"\['auto', 'exact', 'lp', 'brute_force'\] .*not 'magic'"),
        (([0.0] * 5,), {"method": "lp", "multilabel": False}, OptionError, r"\['auto', 'exact', 'brute_force'\].*'lp'"),
        (([0.0] * 5,), {"allow_empty": True, "multilabel": False}, OptionError, "never empty"),
        (([0.0] * 5, {"frog"}), {}, UnknownLabelError, "not in the hierarchy: 'frog'"),
        (([0.0] * 5, "dogs"), {"multilabel": False}, UnknownLabelError, "'dogs'.*did you mean 'dog'"),
        (([0.0] * 5, {"animal"}), {}, LabelError, "'animal' is an inner node.*with_virtual_leaves"),
        (([0.0] * 5, "dog"), {}, LabelError, "expected a set of labels, not 'dog'"),
        (([0.0] * 5, []), {}, LabelError, "has no label"),
        (([[0.0] * 5] * 2, [{"dog"}, set()]), {}, LabelError, "sample 1 has no label"),
        (([[0.0] * 5] * 2, [{"dog"}]), {}, LabelError, "y_true has 1 entries, but node_scores has 2 rows"),
        (([0.0] * 5, {"dog"}), {"loss": "zero_one"}, OptionError, "'zero_one' is no sum over nodes.*leaf_hamming"),
        (([0.0] * 5, {"dog"}), {"loss": "normalized"}, OptionError, r"make_loss\('normalized', hierarchy"),
        (([0.0] * 5, {"dog"}), {"loss": "square"}, OptionError, "'leaf_hamming'.*not 'square'"),
    ],
)  # fmt: skip
def test_errors(arguments, options, error, text):
    with pytest.raises(error, match=text):
        most_violating(ANIMALS, *arguments, **options)


def test_further_errors():
    with pytest.raises(NHSVMError, match="must be a Hierarchy"):
        most_violating(ANIMALS.graph, [0.0] * 5)
    many = Hierarchy.from_edges([("r", k) for k in range(17)])
    with pytest.raises(OptionError, match="up to 16 leaves, but there are 17"):
        most_violating(many, [0.0] * 18, method="brute_force")
    weighted = make_loss("normalized", ANIMALS, np.ones(5))
    with pytest.raises(OptionError, match="'normalized' is no sum over nodes"):
        most_violating(ANIMALS, [0.0] * 5, {"dog"}, loss=weighted)


def loaded_by(code):
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) & {"numba", "highspy"}


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import nhsvm.oracles; nhsvm.oracles.most_violating, list(nhsvm.oracles.ORACLES)", set()),
        ("from nhsvm.oracles import BruteForce, LinearProgram", set()),
        ("from nhsvm.oracles import ORACLES; ORACLES['tree_multilabel']", {"numba"}),
    ],
)
def test_nothing_heavy_before_it_is_needed(code, loaded):
    assert loaded_by(code) == loaded


def test_names():
    assert set(dir(nhsvm.oracles)) == set(nhsvm.oracles.__all__)
    assert len(ORACLES) == len(list(ORACLES))
    for name in nhsvm.oracles.__all__:
        assert getattr(nhsvm.oracles, name) is not None
    with pytest.raises(KeyError):
        ORACLES["magic"]
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        nhsvm.oracles.magic  # noqa: B018
