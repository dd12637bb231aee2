"""Tables of nodes, depths and confusions equal plain loops on random hierarchies."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.metrics.inputs import indicator
from nhsvm.report.answers import Truth
from nhsvm.report.counts import Compared, confused_pairs, count_depths, count_nodes
from reference import report as reference
from strategies import SPECIAL, hierarchies


def compare(h, y_true, y_pred):
    """As if a model with all nodes as classes had said y_pred."""

    def matrix(sets):
        rows = [sorted(h.number(label) for label in labels) for labels in sets]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        return indicator(np.array(list(chain.from_iterable(rows)), dtype=np.int32), indptr, h.n_nodes)

    classes = np.arange(h.n_nodes, dtype=np.int32)
    return Compared(Truth(h, matrix(y_true), classes, np.zeros(h.n_nodes, dtype=bool)), matrix(y_pred))


def random_sets(h, seed, n=8):
    rng = np.random.default_rng(seed)
    return [{h.nodes[i] for i in rng.integers(0, h.n_nodes, rng.integers(0, 4))} for _ in range(n)]


@given(hierarchies(15), st.integers(0, 2**32), st.integers(0, 2**32))
def test_counts_are_those_of_loops(h, seed_true, seed_pred):
    y_true, y_pred = random_sets(h, seed_true), random_sets(h, seed_pred)
    y_pred[:3] = y_true[:3]
    compared = compare(h, y_true, y_pred)
    nodes = count_nodes(compared, None)
    names = ("samples", "predicted", "both", "labels", "found", "said", "left")
    for i, label in enumerate(h.nodes):
        found = tuple(int(getattr(nodes, name)[i]) for name in names)
        assert found == reference.branch(h, y_true, y_pred, label)
    assert {d.depth: d.first_errors for d in count_depths(compared) if d.first_errors} == {
        depth: times
        for depth, times in reference.first_errors(h, y_true, y_pred).items()
        if any(h.depth(node) == depth for labels in y_true for node in h.closure(list(labels)))
    }
    pairs, total = confused_pairs(compared, nodes, 10**6)
    expected = reference.confusions(y_true, y_pred)
    assert {(c.true, c.predicted): c.count for c in pairs} == {(str(a), str(b)): k for (a, b), k in expected.items()}
    assert total == len(expected)


@pytest.mark.parametrize("name", SPECIAL)
def test_extremes(name):
    h = SPECIAL[name]
    label = h.leaves[-1]
    nodes = count_nodes(compare(h, [{label}], [{label}]), None)
    assert nodes.found[h.number(label)] == 1
    assert nodes.samples.sum() == len(h.closure(label))
    assert nodes.path(h.number(label))[-1] == nodes.short[h.number(label)]
