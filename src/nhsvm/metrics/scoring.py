"""The measures as scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.metrics import make_scorer

from nhsvm.checks import a_hierarchy
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._options import choice
from nhsvm.metrics.distance import tree_distance
from nhsvm.metrics.fscore import f1
from nhsvm.metrics.hamming import hamming_distance
from nhsvm.metrics.hierarchical import hierarchical_f1, hierarchical_precision, hierarchical_recall
from nhsvm.metrics.jaccard import example_jaccard
from nhsvm.metrics.lca import lca_f1
from nhsvm.metrics.pairing import graph_accuracy

# name -> (function, options); a name with neg_ is an error, and the scorer gives its negative
_SETS: dict[str, tuple[Callable[..., float], dict[str, Any]]] = {
    "example_jaccard": (example_jaccard, {}),
    "example_jaccard_nodes": (example_jaccard, {"over": "nodes"}),
    "f1_micro": (f1, {"average": "micro"}),
    "f1_macro": (f1, {"average": "macro"}),
    "f1_macro_nodes": (f1, {"average": "macro", "over": "nodes"}),
    "hierarchical_f1": (hierarchical_f1, {}),
    "hierarchical_f1_samples": (hierarchical_f1, {"average": "samples"}),
    "hierarchical_precision": (hierarchical_precision, {}),
    "hierarchical_recall": (hierarchical_recall, {}),
    "lca_f1": (lca_f1, {}),
    "graph_accuracy": (graph_accuracy, {}),
    "neg_hamming_distance": (hamming_distance, {}),
    "neg_hamming_distance_nodes": (hamming_distance, {"over": "nodes"}),
}
_SINGLE: dict[str, tuple[Callable[..., float], dict[str, Any]]] = {
    "neg_tree_distance": (tree_distance, {}),
}


def scorers(
    hierarchy: Hierarchy, *, multilabel: bool = False, labels: Sequence[Any] | None = None
) -> dict[str, Callable[..., float]]:
    """Scorers of all measures by name, for ``scoring=`` of ``GridSearchCV`` or ``cross_validate``.

    Higher is better for all: a measure of error comes negated, with ``neg_`` before its name. They can be pickled. For
    other options, ``sklearn.metrics.make_scorer(function, hierarchy=h, ...)`` makes more of them.

    Parameters
    ----------
    hierarchy : Hierarchy
    multilabel : bool
        Leave out measures that compare one label with one.
    labels : sequence of labels, optional
        What the columns are if y is a 0/1 matrix; by default ``hierarchy.leaves``.

    Returns
    -------
    dict of str to scorer
        With several of them, ``GridSearchCV`` needs ``refit="<name>"``.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> print(*scorers(h))  # doctest: +NORMALIZE_WHITESPACE
    example_jaccard example_jaccard_nodes f1_micro f1_macro f1_macro_nodes hierarchical_f1 hierarchical_f1_samples
    hierarchical_precision hierarchical_recall lca_f1 graph_accuracy neg_hamming_distance neg_hamming_distance_nodes
    neg_tree_distance
    """
    a_hierarchy(hierarchy)
    choice("multilabel", multilabel, (True, False))
    given: dict[str, Any] = {"hierarchy": hierarchy}
    if labels is not None:
        given["labels"] = list(labels)
    wanted = _SETS if multilabel else {**_SETS, **_SINGLE}
    return {
        name: make_scorer(function, greater_is_better=not name.startswith("neg_"), **given, **options)
        for name, (function, options) in wanted.items()
    }
