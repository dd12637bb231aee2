"""The learning problem of label sets: true columns, the loss by columns, the oracle."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.errors import OptionError
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Ragged
from nhsvm.losses import Loss
from nhsvm.oracles.protocol import Oracle
from nhsvm.typing import FloatArray


def true_columns(sets: LabelSets, columns: Columns) -> Ragged:
    """Columns of the closure of every sample's labels, ascending."""
    shape = (sets.n_samples, columns.n_leaves)
    labels = sp.csr_array((np.ones(len(sets.indices), np.int32), sets.indices, sets.indptr), shape)
    indptr, indices = columns.paths
    paths = sp.csr_array((np.ones(len(indices), np.int32), indices, indptr), (columns.n_leaves, columns.n_columns))
    closures = sp.csr_array(labels @ paths)
    closures.sort_indices()
    return Ragged(closures.indptr.astype(np.int64), closures.indices.astype(np.int32))


def loss_weights(loss: Loss, hierarchy: Hierarchy, columns: Columns, allow_empty: bool) -> FloatArray:
    """The weights w of Δ(y, y') = Σ_n w_n 1[n in one of y, y'], one a column.

    The solver contracts nodes without weight α. That is exact as long as they do not count in the loss either, since
    whether such a node is in y is no linear function of the columns below it. A node above every leaf is in every label
    set but the empty one, and so counts in none.

    Raises
    ------
    OptionError
        If the loss is no such sum, counts nodes that have no column, or a leaf has none.
    """
    graph, nodes = hierarchy.graph, columns.nodes
    has = np.zeros(graph.n_nodes, dtype=bool)
    has[nodes] = True
    for k in np.flatnonzero(~has[graph.leaves])[:1]:
        raise OptionError(f"label sets need a weight α above 0 for every class, but {hierarchy.leaves[k]!r} has 0")
    everything = np.arange(graph.n_nodes)
    weights = loss.per_node(everything[:0], multilabel=True).rewards
    if not np.array_equal(loss.per_node(everything, multilabel=True).rewards, -weights):
        raise OptionError(f"loss {loss.name!r} is no sum over the nodes in which two label sets differ")
    missed = (weights > 0) & ~has
    if not allow_empty:
        missed &= ~graph.is_common
    for node in np.flatnonzero(missed)[:1]:
        more = " (include_common=True)" if graph.is_common[node] else ""
        raise OptionError(
            f"loss {loss.name!r} counts the node {hierarchy.nodes[node]!r}, but its weight α is 0, so nothing is "
            f"learned of it; use loss='leaf_hamming', or weights above 0 there{more}"
        )
    return weights[nodes]


def training_oracles(name: str, hierarchy: Hierarchy, allow_empty: bool) -> tuple[Oracle, Oracle | None]:
    """The oracle of a name; and one of label sets, if that is one of a relaxation.

    "auto" is the dynamic programme on trees, and elsewhere the search with bounds. "lp" is the linear program, whose
    points are label sets on trees.
    """
    from nhsvm.oracles import ORACLES

    graph = hierarchy.graph
    if name == "auto":
        name = "tree_multilabel" if graph.is_tree else "dag_multilabel"
    if name == "tree_multilabel" and not graph.is_tree:
        child = hierarchy.nodes[int(np.argmax(graph.parents.sizes() > 1))]
        raise OptionError(f"oracle='tree_multilabel' is for trees, but {child!r} has several parents; use 'auto'")
    if name == "lp":
        whole = ORACLES["lp"](graph, allow_empty=allow_empty, integral=True)
        return (whole, None) if graph.is_tree else (ORACLES["lp"](graph, allow_empty=allow_empty), whole)
    return ORACLES[name](graph, allow_empty=allow_empty), None
