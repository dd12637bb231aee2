"""All measures that fit, with what to call them and what they mean; and an evaluation in a few plain sentences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nhsvm import metrics
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics.inputs import class_numbers
from nhsvm.report.answers import Answers, Scores
from nhsvm.report.counts import Compared
from nhsvm.report.record import Counts, Evaluation
from nhsvm.typing import FloatArray, Label, MatrixLike

_ENOUGH = 10  # samples that a branch must have to be called weak


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
    "hamming_distance": Measure("Hamming distance", "share of labels that are wrong", low_is_good=True, only="sets"),
    "hamming_distance_nodes": Measure(
        "Hamming distance, nodes", "share of nodes that are wrong", low_is_good=True, only="sets"
    ),
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


class Given(NamedTuple):
    """What every measure is given: columns are the leaves and the labels that occur, as if labels had been given."""

    y_true: MatrixLike
    y_pred: MatrixLike
    hierarchy: Hierarchy
    labels: list[Label]

    @classmethod
    def of(cls, compared: Compared) -> Given:
        """Truth and prediction over these columns."""
        hierarchy = compared.hierarchy
        occur = (class_numbers(hierarchy), compared.true.indices, compared.pred.indices)
        columns = np.unique(np.concatenate(occur))
        labels = [hierarchy.nodes[i] for i in columns]
        return cls(compared.true[:, columns], compared.pred[:, columns], hierarchy, labels)


def measured(given: Given, compared: Compared, answers: Answers, distances: FloatArray | None) -> dict[str, float]:
    """Every measure of :data:`MEASURES` that fits, in its order."""
    named = given._asdict()
    n_samples = compared.true.shape[0]
    right = 1.0 - len(compared.wrong) / n_samples
    found = {name: getattr(metrics, name)(**named) for name in _PLAIN}
    found |= {
        "f1_micro": metrics.f1(**named),
        "f1_macro": metrics.f1(average="macro", **named),
        "f1_macro_nodes": metrics.f1(average="macro", over="nodes", **named),
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
            "example_jaccard": metrics.example_jaccard(**named),
            "example_jaccard_nodes": metrics.example_jaccard(over="nodes", **named),
            "f1_samples": metrics.f1(average="samples", **named),
            "f1_micro_nodes": metrics.f1(over="nodes", **named),
            "hamming_distance": metrics.hamming_distance(**named),
            "hamming_distance_nodes": metrics.hamming_distance(over="nodes", **named),
            "graph_accuracy": metrics.graph_accuracy(**named),
        }
        if answers.node_scores is not None:
            found["auprc"] = _auprc(given, compared, answers.node_scores, answers.score_nodes)
    if answers.reliability is not None:
        found["calibration_error"] = answers.reliability.error
    return {name: float(found[name]) for name in MEASURES if name in found}


_PLAIN = ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall", "lca_f1")


def _auprc(given: Given, compared: Compared, scores: Scores, score_nodes: Counts) -> float:
    """Over all nodes in use: those that training has not seen have the lowest score of all."""
    unseen = np.setdiff1d(compared.used, score_nodes)
    nodes = [given.hierarchy.nodes[i] for i in np.concatenate([score_nodes, unseen])]
    if len(unseen):
        scores = np.hstack([scores, np.full((len(scores), len(unseen)), -np.inf, dtype=scores.dtype)])
    return metrics.auprc(given.y_true, scores, hierarchy=given.hierarchy, nodes=nodes, labels=given.labels)


# -- in words ----------------------------------------------------------------------------------------------------------


def sentences(found: Evaluation) -> list[str]:
    r"""What a reader should know first.

    Examples
    --------
    >>> from nhsvm import Hierarchy, NHSVM
    >>> from nhsvm.report import evaluate
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X, y = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], ["dog", "cat", "oak"]
    >>> found = evaluate(NHSVM(h, C=10).fit(X, y), [*X, [0.9, 0.1, 0.0]], [*y, "cat"])
    >>> print(*sentences(found), sep="\n")  # doctest: +NORMALIZE_WHITESPACE
    Of 4 samples, 75.0% got the right label.
    A wrong label is 2.0 edges away from the right one on average (a sibling is 2 away); 100.0% of the wrong ones are
    still in the right branch at the top.
    """
    samples = f"{found.n_samples:,} sample{'' if found.n_samples == 1 else 's'}"
    if found.kind == "single":
        said = [f"Of {samples}, {percent(found.metrics['accuracy'])} got the right label."]
        split = next((depth for depth in found.depths if depth.nodes > 1), None)
        if found.n_wrong and split is not None and len(found.depths) > 1:
            astray = split.samples * (1 - split.accuracy)
            said.append(
                f"A wrong label is {found.metrics['error_distance']:.1f} edges away from the right one on average (a "
                f"sibling is 2 away); {percent(max(0.0, 1 - astray / found.n_wrong))} of the wrong ones are still in "
                "the right branch at the top."
            )
    else:
        said = [
            f"Of {samples}, {percent(found.metrics['exact_match'])} got exactly the right set of labels.",
            f"{percent(found.lshtc['micro_recall'])} of the true labels are found, and "
            f"{percent(found.lshtc['micro_precision'])} of the predicted ones are right; with everything above them, "
            f"{percent(found.metrics['hierarchical_recall'])} and "
            f"{percent(found.metrics['hierarchical_precision'])}.",
        ]
    weak = _weakest(found)
    if weak:
        said.append(weak)
    if found.reliability is not None:
        points = 100 * found.reliability.error
        said.append(f"Its probabilities are off by {points:.1f} percentage points on average.")
    return said


def _weakest(found: Evaluation) -> str:
    """The worst and the best of the branches at the top, if there are some to compare."""
    nodes = found.nodes
    splits = [k for k in np.unique(nodes.depth) if (nodes.depth == k).sum() > 1]
    if not splits:
        return ""
    enough = nodes.is_inner & (nodes.depth == splits[0]) & (nodes.labels >= max(_ENOUGH, 0.01 * found.n_samples))
    branches = np.flatnonzero(enough)
    if len(branches) < 2:
        return ""
    values, what = (nodes.accuracy, "accuracy") if found.kind == "single" else (nodes.f1, "F1")
    worst, best = branches[values[branches].argmin()], branches[values[branches].argmax()]
    if percent(values[worst]) == percent(values[best]):  # so there is nothing to tell them apart
        return ""
    return (
        f"The weakest large branch is {nodes.name[worst]} ({what} {percent(values[worst])}), the strongest "
        f"{nodes.name[best]} ({percent(values[best])})."
    )


def percent(value: float | None) -> str:
    """A share with one decimal; a dash for what does not exist.

    Examples
    --------
    >>> percent(0.8617), percent(float("nan")), percent(None)
    ('86.2%', '–', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}%"


def number(value: object, digits: int = 4) -> str:
    """A number with so many significant digits; whole ones with commas; others as they are.

    Examples
    --------
    >>> number(12345), number(0.000123456), number(float("nan")), number(True), number("maxmin")
    ('12,345', '0.0001235', '–', 'yes', 'maxmin')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (int, np.integer)) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)


def measure(name: str, value: float) -> str:
    """The value of a measure as it is shown."""
    return percent(value) if MEASURES[name].is_share else ("–" if math.isnan(value) else f"{value:.2f}")
