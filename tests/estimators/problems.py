"""Small learning problems over hierarchies."""

import numpy as np
import scipy.sparse as sp

from nhsvm import HSVM, NHSVM, SSVM, FlatSVM, Hierarchy

TREE = Hierarchy.from_edges(
    [("life", "animal"), ("life", "plant"), ("animal", "dog"), ("animal", "cat"), ("plant", "oak"), ("plant", "rose")]
)
FOREST = Hierarchy.from_edges(
    [("animal", "dog"), ("animal", "cat"), ("plant", "oak"), ("plant", "rose")], nodes=["rock"]
)
DAG = Hierarchy.from_edges(
    [("r", "a"), ("r", "b"), ("a", "x"), ("b", "x"), ("a", "y"), ("b", "z"), ("r", "w"), ("x", "x1"), ("x", "x2")]
)
AUTO_LOSS = {FlatSVM: "zero_one", HSVM: "hamming", NHSVM: "normalized", SSVM: "zero_one"}
HIERARCHIES = {"tree": TREE, "forest": FOREST, "dag": DAG}


def make(hierarchy=TREE, n_samples=90, n_features=6, noise=0.8, seed=0, labels=None, sparse=False):
    """Samples around the sums of random vectors of the nodes on the way to their labels."""
    rng = np.random.default_rng(seed)
    labels = list(hierarchy.leaves if labels is None else labels)
    vectors = {node: rng.normal(size=n_features) for node in hierarchy.nodes}
    y = [labels[i % len(labels)] for i in range(n_samples)]
    X = np.array([sum(vectors[n] for n in sorted(hierarchy.closure(label))) for label in y])
    X += noise * rng.normal(size=X.shape)
    if sparse:
        X[rng.random(X.shape) < 0.3] = 0
        return sp.csr_array(X), y
    return X, y


def make_sets(hierarchy=TREE, n_samples=90, n_features=6, noise=0.8, seed=0, labels=None, sparse=False, empty=False):
    """Samples around the sums of random vectors of the nodes of their label sets, which are sets."""
    rng = np.random.default_rng(seed)
    labels = list(hierarchy.leaves if labels is None else labels)
    vectors = {node: rng.normal(size=n_features) for node in hierarchy.nodes}
    member = rng.random((n_samples, len(labels))) < 1.5 / len(labels)
    member[np.arange(len(labels)), np.arange(len(labels))] = True
    if not empty:
        alone = np.flatnonzero(~member.any(axis=1))
        member[alone, alone % len(labels)] = True
    y = [{label for label, has in zip(labels, row, strict=True) if has} for row in member]
    X = np.array([sum((vectors[n] for n in sorted(hierarchy.closure(some))), np.zeros(n_features)) for some in y])
    X += noise * rng.normal(size=X.shape)
    if sparse:
        X[rng.random(X.shape) < 0.3] = 0
        return sp.csr_array(X), y
    return X, y


def indicator(y, classes):
    """Label sets as a matrix of 0 and 1."""
    return np.array([[int(label in labels) for label in classes] for labels in y])


def closure_norm(model):
    """√(Σ_{n∈Ā(l)} α_n) of the class where it is largest: a change of W by d changes a score by d‖x‖ times this."""
    sums = model.hierarchy_.graph.leaf_matrix() @ model.node_weights_
    return float(np.sqrt(sums.max()))


def score_bound(models, X):
    """How far the scores of models of one problem can be apart: P(W) − P* ≥ ½‖W − W*‖²."""
    away = sum(np.sqrt(2 * max(m.objective_ - m.dual_objective_, 0)) for m in models)
    longest = np.sqrt((X**2).sum(axis=1).max() + models[0].model_.bias ** 2)
    return away * longest * max(closure_norm(m) for m in models)
