"""Measures: how good are predictions in a hierarchy.

>>> from nhsvm import Hierarchy
>>> from nhsvm.metrics import hierarchical_f1, tree_distance
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> hierarchical_f1(["dog", "oak"], ["cat", "oak"], hierarchy=h)
0.75
>>> tree_distance(["dog", "oak"], ["cat", "oak"], hierarchy=h)
1.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nhsvm.registry import Family, Spec, on_first_use
from nhsvm.typing import FloatArray, Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from nhsvm.metrics.counts import (
        accuracy_at_depth,
        example_jaccard,
        f1,
        hamming_distance,
        hierarchical_f1,
        hierarchical_precision,
        hierarchical_recall,
    )
    from nhsvm.metrics.distances import graph_accuracy, lca_f1, tree_distance
    from nhsvm.metrics.precision_recall import auprc
    from nhsvm.metrics.scoring import lshtc_measures, scorers

__all__ = [
    "METRICS",
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


@dataclass(frozen=True)
class Counted:
    """A measure as a ratio of weighted sums of |Y∩Ŷ|, |Y| and |Ŷ|, but for a constant; more is better.

    Attributes
    ----------
    numerator : (float, float, float)
        What |Y∩Ŷ|, |Y| and |Ŷ| count.
    denominator : (float, float, float), optional
        None is 1.
    average : {"samples", "micro", "macro"}
        Whose counts they are, unless an option of that name says so: the mean of every sample's ratio, the ratio of
        sums, or the mean of every label's.
    over : {"labels", "nodes", "edges"}
        What is counted, unless an option says so. "edges" is all nodes with all roots, for a measure of distance: on a
        tree, every node that is above one label and not the other is one edge between them.
    """

    numerator: tuple[float, float, float]
    denominator: tuple[float, float, float] | None = None
    average: str = "samples"
    over: str = "labels"


JACCARD = (1.0, 0.0, 0.0), (-1.0, 1.0, 1.0)
F1 = (2.0, 0.0, 0.0), (0.0, 1.0, 1.0)
AGREEMENT = (2.0, -1.0, -1.0)


@dataclass(frozen=True)
class Metric(Spec):
    """A measure. Its ``options`` are those beside ``hierarchy``, ``labels`` and ``sample_weight``, which all have.

    Attributes
    ----------
    best : int or None
        1, or 0 for a measure of error; None for a table of measures.
    single : bool
        Whether it compares one label with one, and so knows no label sets.
    scorers : mapping
        The scorers that :func:`scorers` makes of it, with their options. Those of errors begin with ``neg_``.
    counted : Counted, optional
        What it counts, if ``offsets=`` and ``for_measure=`` are to aim at it. (Precision or recall alone would ask for
        extremes.)
    of_distance : function, optional
        For one label a sample, its value by the distance of :func:`tree_distance`; more is better.
    """

    best: int | None = 1
    single: bool = False
    scorers: Mapping[str, Options] = field(default_factory=dict)
    counted: Counted | None = None
    of_distance: Callable[[FloatArray], FloatArray] | None = None


METRICS: Family[Metric, Callable[..., object]] = Family(
    "metric",
    __name__,
    [
        Metric(
            "example_jaccard",
            "counts.example_jaccard",
            r'mean of \|Y∩Ŷ\| / \|Y∪Ŷ\|; `over="nodes"` takes Ā(Y), Ā(Ŷ)',
            options=("over", "roots"),
            scorers={"example_jaccard": {}, "example_jaccard_nodes": {"over": "nodes"}},
            counted=Counted(*JACCARD),
        ),
        Metric(
            "f1",
            "counts.f1",
            '2tp / (2tp + fp + fn), `average="micro"`, `"macro"` or `"samples"`, `over="labels"` or `"nodes"`',
            options=("average", "over", "roots", "zero_division"),
            scorers={
                "f1_micro": {"average": "micro"},
                "f1_macro": {"average": "macro"},
                "f1_macro_nodes": {"average": "macro", "over": "nodes"},
                "f1_samples": {"average": "samples"},
            },
            counted=Counted(*F1, average="micro"),
        ),
        Metric(
            "hierarchical_f1",
            "counts.hierarchical_f1",
            "the harmonic mean of the next two",
            options=("average", "roots"),
            scorers={"hierarchical_f1": {}, "hierarchical_f1_samples": {"average": "samples"}},
            counted=Counted(*F1, average="micro", over="nodes"),
        ),
        Metric(
            "hierarchical_precision",
            "counts.hierarchical_precision",
            r"""Σ\|Ā(Y)∩Ā(Ŷ)\| / Σ\|Ā(Ŷ)\| [1]; `average="samples"`: the mean of every sample's""",
            options=("average", "roots", "zero_division"),
            scorers={"hierarchical_precision": {}},
        ),
        Metric(
            "hierarchical_recall",
            "counts.hierarchical_recall",
            r"Σ\|Ā(Y)∩Ā(Ŷ)\| / Σ\|Ā(Y)\|",
            options=("average", "roots", "zero_division"),
            scorers={"hierarchical_recall": {}},
        ),
        Metric(
            "lca_f1",
            "distances.lca_f1",
            "F1 of the paths up to the lowest common ancestors [4], which for one label is 2 / (2 + distance)",
            scorers={"lca_f1": {}},
            of_distance=lambda distance: 2 / (2 + distance),
        ),
        Metric(
            "graph_accuracy",
            "distances.graph_accuracy",
            r"MGIA [4]: 1 − E / (5 \|Y△Ŷ\|), where E has the edges of the cheapest pairing of Y△Ŷ with Ŷ and Y, "
            "and 5 for a label that is left alone (`max_distance=5`)",
            options=("max_distance",),
            scorers={"graph_accuracy": {}},
        ),
        Metric(
            "hamming_distance",
            "counts.hamming_distance",
            r"mean of \|Y△Ŷ\| as a share of all labels or nodes; `normalize=False`: their number",
            options=("over", "roots", "normalize"),
            best=0,
            scorers={"neg_hamming_distance": {}, "neg_hamming_distance_nodes": {"over": "nodes"}},
            counted=Counted(AGREEMENT),
        ),
        Metric(
            "tree_distance",
            "distances.tree_distance",
            "mean number of edges between the labels, the tree-induced error [3]",
            best=0,
            single=True,
            scorers={"neg_tree_distance": {}},
            counted=Counted(AGREEMENT, over="edges"),
            of_distance=lambda distance: -distance,
        ),
        Metric(
            "auprc",
            "precision_recall.auprc",
            "AU(PRC) of node scores: Σ (R_k − R_{k−1}) P_k over the thresholds of one curve for all nodes and samples "
            "[2]",
            options=("nodes", "roots", "zero_division"),
        ),
        Metric(
            "accuracy_at_depth",
            "counts.accuracy_at_depth",
            "share of samples whose nodes at depth 0, 1, 2, … are right",
        ),
        Metric(
            "lshtc_measures",
            "scoring.lshtc_measures",
            "a table: accuracy; example-based, label-based macro and micro, and hierarchical P, R, F1; LCA-F1; "
            "errors by distance [5]",
            best=None,
        ),
    ],
)
"""Every measure by its name."""

__getattr__ = on_first_use(__name__, lambda: {"scorers": "scoring"} | METRICS.homes)


def __dir__() -> list[str]:
    return sorted({*__all__, *METRICS.homes})
