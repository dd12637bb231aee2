"""What every weights scheme must do; a new one is covered as soon as it is in SCHEMES."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given

from nhsvm import Hierarchy, node_weights
from nhsvm.weights import SCHEMES
from strategies import SPECIAL, hierarchies

every_scheme = pytest.mark.parametrize("name", SCHEMES)
# of each option that a scheme needs, a value for a hierarchy
NEEDED = {"squared_norms": lambda h: [1.0 + len(h.ancestors(node)) for node in h.nodes]}


def needed(name, h):
    return {option: NEEDED[option](h) for option in SCHEMES.specs[name].needs}


@every_scheme
@given(h=hierarchies())
def test_a_number_for_every_node(name, h):
    alpha = node_weights(h, name, **needed(name, h))
    assert alpha.shape == (h.n_nodes,)
    assert alpha.dtype == np.float64
    assert np.isfinite(alpha).all()
    assert (alpha >= 0).all()
    assert (h.graph.leaf_matrix() @ alpha > 0).all()  # every label has some


@every_scheme
@pytest.mark.parametrize("h", SPECIAL.values(), ids=SPECIAL)
def test_extremes(name, h):
    alpha = node_weights(h, name, **needed(name, h))
    assert np.isfinite(alpha).all()
    assert alpha.max() > 0


@every_scheme
@given(h=hierarchies(15))
def test_it_does_not_matter_how_nodes_are_numbered(name, h):
    again = Hierarchy.from_edges(list(h.edges())[::-1], nodes=h.nodes[::-1])
    found, other = (node_weights(g, name, **needed(name, g)) for g in (h, again))
    np.testing.assert_allclose(other[again.numbers(list(h.nodes))], found, atol=1e-6)


@every_scheme
def test_the_same_again_and_a_result_of_its_own(name):
    h = SPECIAL["diamond"]
    scheme = SCHEMES[name](**needed(name, h))
    first = node_weights(h, scheme)
    first_again = first.copy()
    first[:] = 7.0
    np.testing.assert_array_equal(node_weights(h, scheme), first_again)
    np.testing.assert_array_equal(node_weights(h, name, **needed(name, h)), first_again)


@every_scheme
@pytest.mark.parametrize("again", [copy.deepcopy, lambda scheme: pickle.loads(pickle.dumps(scheme))])
def test_copies(name, again):
    scheme = SCHEMES[name](**needed(name, SPECIAL["diamond"]))
    assert again(scheme) == scheme
    assert repr(again(scheme)) == repr(scheme)
    assert type(scheme).__name__ in repr(scheme)
