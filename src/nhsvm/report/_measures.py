"""All measures that fit, by name, with what to call them and what they mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nhsvm import metrics
from nhsvm.metrics.inputs import class_numbers
from nhsvm.report._answers import Answers
from nhsvm.report._nodes import Compared
from nhsvm.typing import FloatArray


class Measure(NamedTuple):
    """How a measure is shown."""

    title: str
    meaning: str
    is_share: bool = True
    """From 0 to 1, so that it may be shown as a percentage."""
    low_is_good: bool = False
    only: str = ""
    """The kind of labels it is for, if not any: "single" or "sets"."""


MEASURES: dict[str, Measure] = {
    "accuracy": Measure("Accuracy", "share of samples with the right label", only="single"),
    "exact_match": Measure("Exact match", "share of samples with exactly the right label set", only="sets"),
    "example_jaccard": Measure("Jaccard index", "mean of |true ∩ predicted| / |true ∪ predicted| labels", only="sets"),
    "example_jaccard_nodes": Measure("Jaccard index, nodes", "the same with everything above the labels", only="sets"),
    "hierarchical_f1": Measure("Hierarchical F1", "F1 of labels with everything above them, from summed counts"),
    "hierarchical_precision": Measure("Hierarchical precision", "share of predicted nodes that are true"),
    "hierarchical_recall": Measure("Hierarchical recall", "share of true nodes that are predicted"),
    "f1_micro": Measure("Micro F1", "F1 from counts summed over all labels"),
    "f1_macro": Measure("Macro F1", "mean of the F1 of every label that is true or predicted"),
    "f1_samples": Measure("F1 of samples", "mean of the F1 of every sample", only="sets"),
    "f1_micro_nodes": Measure("Micro F1, nodes", "F1 from counts summed over all nodes", only="sets"),
    "f1_macro_nodes": Measure("Macro F1, nodes", "mean of the F1 of every node that is true or predicted"),
    "auprc": Measure("AU(PRC)", "area under the precision-recall curve of all nodes together", only="sets"),
    "hamming": Measure("Hamming distance", "share of labels that are wrong", low_is_good=True, only="sets"),
    "hamming_nodes": Measure("Hamming distance, nodes", "share of nodes that are wrong", low_is_good=True, only="sets"),
    "tree_distance": Measure("Tree distance", "mean edges between true and predicted label", False, True, "single"),
    "error_distance": Measure(
        "Distance of errors", "mean edges from a wrong label to the right one; 2 for siblings", False, True, "single"
    ),
    "lca_f1": Measure("LCA-F1", "F1 of the ways up to the lowest common ancestors"),
    "graph_accuracy": Measure("Graph-induced accuracy", "1 minus the distance of label sets, by pairs", only="sets"),
    "calibration_error": Measure("Calibration error", "mean difference of probability and truth", low_is_good=True),
}


def fitting(kind: str, *, probabilities: bool) -> list[str]:
    """Names of the measures that a model of single labels or of label sets can have."""
    names = [name for name, measure in MEASURES.items() if measure.only in ("", kind)]
    return names if probabilities else [name for name in names if name != "calibration_error"]


def measured(compared: Compared, answers: Answers, distances: FloatArray | None) -> dict[str, float]:
    """Every measure of :data:`MEASURES` that fits, in its order."""
    given = pair(compared)
    n_samples = compared.true.shape[0]
    right = 1.0 - len(compared.wrong) / n_samples
    found = {name: getattr(metrics, name)(**given) for name in _PLAIN}
    found |= {
        "f1_micro": metrics.f1(**given),
        "f1_macro": metrics.f1(average="macro", **given),
        "f1_macro_nodes": metrics.f1(average="macro", over="nodes", **given),
    }
    if distances is not None:
        far = float(distances.sum())
        found |= {
            "accuracy": right,
            "tree_distance": far / n_samples,
            "error_distance": far / len(distances) if len(distances) else float("nan"),
        }
    else:
        found |= {
            "exact_match": right,
            "example_jaccard": metrics.example_jaccard(**given),
            "example_jaccard_nodes": metrics.example_jaccard(over="nodes", **given),
            "f1_samples": metrics.f1(average="samples", **given),
            "f1_micro_nodes": metrics.f1(over="nodes", **given),
            "hamming": metrics.hamming_distance(**given),
            "hamming_nodes": metrics.hamming_distance(over="nodes", **given),
            "graph_accuracy": metrics.graph_accuracy(**given),
        }
        if answers.node_scores is not None:
            found["auprc"] = _auprc(compared, answers, given["labels"])
    if answers.bins is not None:
        found["calibration_error"] = answers.bins.result().error
    return {name: float(found[name]) for name in MEASURES if name in found}


_PLAIN = ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall", "lca_f1")


def pair(compared: Compared) -> dict[str, Any]:
    """What every measure is given: columns are the leaves and the labels that occur, as if labels had been given."""
    hierarchy = compared.hierarchy
    occur = (class_numbers(hierarchy), compared.true.indices, compared.pred.indices)
    columns = np.unique(np.concatenate(occur))
    return {
        "y_true": compared.true[:, columns],
        "y_pred": compared.pred[:, columns],
        "hierarchy": hierarchy,
        "labels": [hierarchy.nodes[i] for i in columns],
    }


def _auprc(compared: Compared, answers: Answers, labels: list[Any]) -> float:
    """Over all nodes in use: those that training has not seen have the lowest score of all."""
    hierarchy, scores = compared.hierarchy, answers.node_scores
    assert scores is not None
    unseen = np.setdiff1d(compared.used, answers.score_nodes)
    nodes = [hierarchy.nodes[i] for i in np.concatenate([answers.score_nodes, unseen])]
    if len(unseen):
        scores = np.hstack([scores, np.full((len(scores), len(unseen)), -np.inf, dtype=scores.dtype)])
    return metrics.auprc(pair(compared)["y_true"], scores, hierarchy=hierarchy, nodes=nodes, labels=labels)
