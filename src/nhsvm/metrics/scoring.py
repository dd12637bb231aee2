"""Many measures at once: scikit-learn scorers of all, and those of the LSHTC challenges in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nhsvm.checks import a_hierarchy
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import METRICS
from nhsvm.metrics.distances import MAX_DISTANCE, UpwardPaths, each_sample, f1_of_sets, pairing_cost, path_lengths
from nhsvm.metrics.inputs import Pair, choice, documented, make_pair, ratio
from nhsvm.typing import Label, LabelsLike, Options, SampleWeights


def scorers(
    hierarchy: Hierarchy, *, multilabel: bool = False, labels: Sequence[Label] | None = None
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
    example_jaccard example_jaccard_nodes f1_micro f1_macro f1_macro_nodes f1_samples hierarchical_f1
    hierarchical_f1_samples hierarchical_precision hierarchical_recall lca_f1 graph_accuracy neg_hamming_distance
    neg_hamming_distance_nodes neg_tree_distance
    """
    from sklearn.metrics import make_scorer

    a_hierarchy(hierarchy)
    choice("multilabel", multilabel, (True, False))
    given: Options = {"hierarchy": hierarchy}
    if labels is not None:
        given["labels"] = list(labels)
    return {
        name: make_scorer(METRICS[metric.name], greater_is_better=metric.best == 1, **given, **options)
        for metric in METRICS.specs.values()
        if not (multilabel and metric.single)
        for name, options in metric.scorers.items()
    }


@documented
def lshtc_measures(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> dict[str, float]:
    """Accuracy; example-based, label-based and hierarchical precision, recall and F1; errors by distance [1]_ [2]_.

    With tp_c, fp_c, fn_c counted for every label c of C, the labels that are true or predicted in some sample,

    - ``accuracy``: mean over samples of |Y ∩ Ŷ| / |Y ∪ Ŷ|,
    - ``example_precision``, ``example_recall``, ``example_f1``: means over samples of |Y ∩ Ŷ| / |Ŷ|, |Y ∩ Ŷ| / |Y| and
      2 |Y ∩ Ŷ| / (|Y| + |Ŷ|),
    - ``macro_precision``, ``macro_recall``: means over C of tp_c / (tp_c + fp_c) and tp_c / (tp_c + fn_c),
    - ``macro_f1``: the harmonic mean of these two means, which is not the mean of every label's F1 that
      :func:`~nhsvm.metrics.f1` gives with ``average="macro"``,
    - ``micro_precision``, ``micro_recall``, ``micro_f1``: the same ratios from counts summed over C,
    - ``hierarchical_precision``, ``hierarchical_recall``, ``hierarchical_f1``: the example-based ones over labels with
      everything above them, :func:`~nhsvm.metrics.hierarchical_f1` with ``average="samples"``,
    - ``lca_f1``: :func:`~nhsvm.metrics.lca_f1`,
    - ``graph_accuracy``: :func:`~nhsvm.metrics.graph_accuracy`, and ``graph_error``, the mean over samples of what the
      cheapest pairing costs there, without dividing it (the multi-label graph-induced error),
    - ``tree_error``: :func:`~nhsvm.metrics.tree_distance`; only if every sample has one label.

    0/0 is 1 where truth and prediction are both empty and 0 elsewhere, such as for the precision of a label that is
    never predicted.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    {given}

    References
    ----------
    .. [1] I. Partalas et al. LSHTC: a benchmark for large-scale text classification. arXiv:1503.08581, 2015.
    .. [2] A. Kosmopoulos, I. Partalas, E. Gaussier, G. Paliouras, I. Androutsopoulos. Evaluation measures for
       hierarchical classification: a unified view and novel approaches. Data Mining and Knowledge Discovery 29, 2015.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> found = lshtc_measures(["dog", "cat", "oak"], ["dog", "dog", "oak"], hierarchy=h)
    >>> {name: round(found[name], 3) for name in ("accuracy", "macro_f1", "lca_f1", "tree_error")}
    {'accuracy': 0.667, 'macro_f1': 0.571, 'lca_f1': 0.833, 'tree_error': 0.667}
    """
    given = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    pair, nodes = given.over("labels", "auto"), given.over("nodes", "auto")
    both, true, pred = pair.per_sample()
    found = {"accuracy": pair.mean(ratio(both, true + pred - both, true, 0.0))}
    found |= _of_samples("example", pair) | _of_labels(pair) | _of_samples("hierarchical", nodes)
    paths = UpwardPaths(hierarchy.graph)
    costs = each_sample(given, lambda true, pred: pairing_cost(paths, true, pred, MAX_DISTANCE))
    differ = true + pred - 2 * both
    found |= {
        "lca_f1": pair.mean(each_sample(given, lambda true, pred: f1_of_sets(paths, true, pred))),
        "graph_accuracy": pair.mean(1.0 - costs / (MAX_DISTANCE * np.maximum(differ, 1.0))),
        "graph_error": pair.mean(costs),
    }
    if given.is_single:
        found["tree_error"] = pair.mean(path_lengths(hierarchy.graph, given.true.indices, given.pred.indices))
    return found


def _of_samples(name: str, pair: Pair) -> dict[str, float]:
    """Means over samples."""
    both, true, pred = pair.per_sample()
    return {
        f"{name}_precision": pair.mean(ratio(both, pred, true, 0.0)),
        f"{name}_recall": pair.mean(ratio(both, true, pred, 0.0)),
        f"{name}_f1": pair.mean(ratio(2 * both, true + pred, true, 0.0)),
    }


def _of_labels(pair: Pair) -> dict[str, float]:
    """Macro and micro averages over labels."""
    found = {}
    columns = pair.per_column()
    used = columns.true + columns.pred > 0
    for name, counts in (
        ("macro", [count[used] for count in columns]),
        ("micro", [np.array([count.sum()]) for count in columns]),
    ):
        both, true, pred = counts
        precision, recall = (
            float(values.mean()) if len(values) else 1.0
            for values in (ratio(both, pred, true, 0.0), ratio(both, true, pred, 0.0))
        )
        found[f"{name}_precision"], found[f"{name}_recall"] = precision, recall
        found[f"{name}_f1"] = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return found
