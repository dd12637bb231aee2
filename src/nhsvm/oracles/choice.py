"""Which oracles of label sets a name stands for: the one that trains, and the one that answers."""

from __future__ import annotations

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles import ORACLES
from nhsvm.oracles.protocol import Oracle

AUTO = "auto"


def training_oracles(name: str, hierarchy: Hierarchy, allow_empty: bool) -> tuple[Oracle, Oracle | None]:
    """The oracle that training takes; and one of label sets for what is predicted, if that is one of a relaxation.

    ``"auto"`` is the dynamic programme on trees, and elsewhere the search with bounds. Of a relaxation the points are
    label sets on trees.
    """
    graph = hierarchy.graph
    spec = ORACLES.spec(_automatic(graph) if name == AUTO else name)
    if spec.trees_only and not graph.is_tree:
        child = hierarchy.nodes[int(np.argmax(graph.parents.sizes() > 1))]
        raise OptionError(f"oracle={name!r} is for trees, but {child!r} has several parents; use 'auto'")
    if not spec.relaxes:
        return ORACLES[spec.name](graph, allow_empty=allow_empty), None
    whole = ORACLES[spec.name](graph, allow_empty=allow_empty, integral=True)
    return (whole, None) if graph.is_tree else (ORACLES[spec.name](graph, allow_empty=allow_empty), whole)


def answering_oracle(name: str, graph: Graph, allow_empty: bool, *, exact: bool) -> Oracle:
    """The oracle of predictions: that of the name, if it answers and proofs are asked for, else that of ``"auto"``.

    Without ``exact``, a search on a DAG ends within a budget of work. A tree needs no such choice.
    """
    spec = None if name == AUTO else ORACLES.spec(name)
    if exact and spec is not None and spec.answers and (graph.is_tree or not spec.trees_only):
        whole = {"integral": True} if spec.relaxes else {}
        return ORACLES[name](graph, allow_empty=allow_empty, **whole)
    more = {} if graph.is_tree else {"exact": exact}
    return ORACLES[_automatic(graph)](graph, allow_empty=allow_empty, **more)


def _automatic(graph: Graph) -> str:
    return "tree_multilabel" if graph.is_tree else "dag_multilabel"
