"""How good are predictions in a hierarchy? One family of measures a file.

>>> from nhsvm import Hierarchy
>>> from nhsvm.metrics import hierarchical_f1, tree_distance
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> hierarchical_f1(["dog", "oak"], ["cat", "oak"], hierarchy=h)
0.75
>>> tree_distance(["dog", "oak"], ["cat", "oak"], hierarchy=h)
1.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.metrics.depth import accuracy_at_depth
    from nhsvm.metrics.distance import tree_distance
    from nhsvm.metrics.fscore import f1
    from nhsvm.metrics.hamming import hamming_distance
    from nhsvm.metrics.hierarchical import hierarchical_f1, hierarchical_precision, hierarchical_recall
    from nhsvm.metrics.jaccard import example_jaccard
    from nhsvm.metrics.lca import lca_f1
    from nhsvm.metrics.lshtc import lshtc_measures
    from nhsvm.metrics.pairing import graph_accuracy
    from nhsvm.metrics.precision_recall import auprc
    from nhsvm.metrics.scoring import scorers

__all__ = [
    "accuracy_at_depth",
    "auprc",
    "example_jaccard",
    "f1",
    "graph_accuracy",
    "hamming_distance",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "lca_f1",
    "lshtc_measures",
    "scorers",
    "tree_distance",
]

# public name -> file, imported on first use; no file has the name of a function, since it would hide it
_HOME = {
    "accuracy_at_depth": "depth",
    "auprc": "precision_recall",
    "example_jaccard": "jaccard",
    "f1": "fscore",
    "graph_accuracy": "pairing",
    "hamming_distance": "hamming",
    "hierarchical_f1": "hierarchical",
    "hierarchical_precision": "hierarchical",
    "hierarchical_recall": "hierarchical",
    "lca_f1": "lca",
    "lshtc_measures": "lshtc",
    "scorers": "scoring",
    "tree_distance": "distance",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
