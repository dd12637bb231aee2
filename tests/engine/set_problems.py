"""Small learning problems of label sets, and their objective from scratch."""

import numpy as np
import scipy.sparse as sp

from nhsvm import Hierarchy
from nhsvm.columns import column_parents, make_columns
from nhsvm.engine import prepare
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.hierarchy.graph import Ragged
from nhsvm.oracles import DagMultilabel, TreeMultilabel
from nhsvm.weights import node_weights

TREE = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", 0), ("a", 1), ("b", 2), ("b", 3), ("b", 4), ("r", 5)])
FLAT = Hierarchy.from_edges([], nodes=list(range(6)))
DAG = Hierarchy.from_edges(
    [
        ("r", "a"),
        ("r", "b"),
        ("a", "c"),
        ("b", "c"),
        ("a", 0),
        ("c", 1),
        ("b", 1),
        ("c", 2),
        ("b", 3),
        ("a", 4),
        ("b", 4),
        ("r", 5),
    ]
)
FOREST = Hierarchy.from_edges([("a", 0), ("a", 1), ("b", 2), ("b", 3), ("b", "c"), ("c", 4), ("c", 5)])


def make(h, scheme="maxmin", *, n=40, d=8, C=0.3, allow_empty=False, sparse=False, dtype=np.float64, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[0] = 0.0  # a sample without features still owes its share of the dual
    member = X @ rng.normal(size=(d, 6)) + rng.normal(size=(n, 6)) > 0.8
    if not allow_empty:
        member[~member.any(axis=1), 2] = True
    member[1] = True
    alpha = node_weights(h, scheme)
    columns = make_columns(h.graph, alpha)
    position = [h.leaf_position(k) for k in range(6)]
    lists = [
        np.unique(np.concatenate([columns.paths.row(position[k]) for k in np.flatnonzero(row)] or [[]]))
        for row in member
    ]
    truth = Ragged(
        np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64),
        np.concatenate(lists).astype(np.int32),
    )
    costs = C * rng.uniform(0.5, 1.5, n)
    costs[2] = 0.0
    oracle = (TreeMultilabel if h.is_tree else DagMultilabel)(h.graph, allow_empty=allow_empty)
    weights = h.graph.is_leaf[columns.nodes].astype(float)
    made = prepare(sp.csr_array(X) if sparse else X)
    if "offset" in more:
        more["offset"] = np.where(weights > 0, more["offset"], 0.0)
    above = column_parents(h.graph, columns)
    problem = LabelSetProblem(
        X=made, truth=truth, costs=costs, columns=columns, above=above, oracle=oracle, loss_weights=weights,
        n_nodes=h.n_nodes, dtype=dtype, **more,
    )  # fmt: skip
    return problem, X, member


def objective(problem, X, weights, oracle):
    """The primal from scratch, with any oracle."""
    columns = problem.columns
    U = weights.learned().dense_table()
    scores = np.hstack([X, np.ones((len(X), 1))]) @ U.T.astype(float)
    total = 0.5 * np.sum((U.astype(float) ** 2).sum(axis=1) / columns.alpha)
    for i in range(len(X)):
        true = np.zeros(columns.n_columns)
        true[problem.truth.row(i)] = 1
        rewards = np.zeros((1, problem.n_nodes))
        rewards[0, columns.nodes] = scores[i] + problem.offsets + problem.loss_weights * (1 - 2 * true)
        chosen, value, bound = np.empty((1, problem.n_nodes), np.uint8), np.empty(1), np.empty(1)
        oracle.solve(rewards, chosen, value, bound)
        total += problem.costs[i] * (value[0] + problem.loss_weights @ true - (scores[i] + problem.offsets) @ true)
    return total
