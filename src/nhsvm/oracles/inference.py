"""``most_violating``: loss-augmented inference from labels to labels, by any of the oracles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.checks import a_hierarchy
from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.hierarchy import Hierarchy, LabelSpace
from nhsvm.hierarchy.graph import Graph
from nhsvm.hierarchy.labels import samples
from nhsvm.losses import LOSSES, Loss, make_loss
from nhsvm.oracles import ORACLES
from nhsvm.oracles.choice import AUTO, answering_oracle
from nhsvm.typing import Array, FloatArray, IntArray, Label, LabelsLike


class MostViolating(NamedTuple):
    """What :func:`most_violating` found for one sample."""

    leaves: tuple[Label, ...]
    """The classes of the label set, in the order of ``hierarchy.leaves``."""
    value: float
    """Its score, or what it violates the margin of ``y_true`` by."""
    bound: float
    """No label set has a larger value; equal to ``value`` up to rounding where that is proved to be the best."""


def most_violating(
    hierarchy: Hierarchy,
    node_scores: npt.ArrayLike,
    y_true: LabelsLike = None,
    loss: str | type[Loss] | Loss = "auto",
    multilabel: bool = True,
    method: str = "auto",
    allow_empty: bool = False,
) -> MostViolating | list[MostViolating]:
    """Argmax over labels y of Δ(y, y_true) + Σ_{n∈y} s_n − Σ_{n∈y_true} s_n (Eq. 18), or of Σ_{n∈y} s_n.

    Parameters
    ----------
    hierarchy : Hierarchy
        With a virtual leaf for every inner node that is a label.
    node_scores : array of n_nodes, or of (n_samples, n_nodes)
        s, aligned with ``hierarchy.nodes``: U_n·x of every node.
    y_true : label set (or label, with ``multilabel=False``), or one a sample, optional
        The right label. Without it, the label with the highest score is sought, and ``loss`` plays no part.
    loss : str or Loss
        Δ. ``"auto"`` is ``"leaf_hamming"``, or ``"hamming"`` for single labels. One that depends on node weights comes
        from :func:`nhsvm.losses.make_loss`.
    multilabel : bool
        Whether y runs over Y_m, the closures of all non-empty sets of leaves, or over Y_s, the closures of one leaf.
    method : {"auto", "exact", "lp", "brute_force"}
        - ``"auto"``: exact for single labels and on trees; on DAGs with bounded work, so ``bound`` may exceed ``value``
        - ``"exact"``: on DAGs too, however long it takes
        - ``"lp"``: the paper's way, a linear program and, if its answer is fractional, an integer program
        - ``"brute_force"``: try all label sets, of up to 16 leaves
        - any other oracle whose spec says that it answers
    allow_empty : bool
        Whether a label set, y or y_true, may be empty.

    Returns
    -------
    MostViolating, or a list of them
        ``(leaves, value, bound)``; a list if ``node_scores`` has two dimensions.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> h.nodes
    ('animal', 'plant', 'dog', 'cat', 'oak')
    >>> scores = [0.5, -0.25, 1.25, 0.5, -2.0]
    >>> most_violating(h, scores)
    MostViolating(leaves=('dog', 'cat'), value=2.25, bound=2.25)
    >>> most_violating(h, scores, y_true={"dog"})
    MostViolating(leaves=('dog', 'cat'), value=1.5, bound=1.5)
    >>> most_violating(h, [scores], y_true=["oak"], loss="zero_one", multilabel=False)
    [MostViolating(leaves=('dog',), value=5.0, bound=5.0)]
    """
    a_hierarchy(hierarchy)
    methods = _methods(multilabel)
    if method not in methods:
        kind = "several labels" if multilabel else "single labels"
        raise OptionError(f"method must be one of {methods} for {kind}, not {method!r}")
    if allow_empty and not multilabel:
        raise OptionError("allow_empty is for several labels: a single label is never empty")
    scores, one = _checked_scores(node_scores, hierarchy)
    true = None
    if y_true is not None:
        true = _closures(hierarchy, [y_true] if one else y_true, len(scores), multilabel, allow_empty)
    delta = None if true is None else _made_loss(loss, hierarchy, multilabel)
    search = _search_sets if multilabel else _search_leaves
    sets, slack = search(hierarchy.graph, scores, true, delta, method, allow_empty)
    found = []
    for t, y in enumerate(sets):
        value = _value(y, scores[t], None if true is None else true[t], delta)
        leaves = np.searchsorted(hierarchy.graph.leaves, y[hierarchy.graph.is_leaf[y]])
        found.append(MostViolating(tuple(hierarchy.leaves[k] for k in leaves), value, value + float(slack[t])))
    return found[0] if one else found


def _methods(multilabel: bool) -> list[str]:
    """What ``method`` can be."""
    proving = [spec.name for spec in ORACLES.specs.values() if spec.answers]
    return [AUTO, "exact", *(proving if multilabel else ["brute_force"])]


def _made_loss(loss: str | type[Loss] | Loss, hierarchy: Hierarchy, multilabel: bool) -> Loss:
    if isinstance(loss, str):
        loss = ("leaf_hamming" if multilabel else "hamming") if loss == "auto" else loss
        if loss in LOSSES and LOSSES[loss].needs_weights:
            raise OptionError(
                f"loss {loss!r} depends on node weights: give make_loss({loss!r}, hierarchy, node_weights)"
            )
    return make_loss(loss, hierarchy)


def _search_sets(
    graph: Graph, scores: FloatArray, true: list[IntArray] | None, delta: Loss | None, method: str, allow_empty: bool
) -> tuple[list[IntArray], FloatArray]:
    """The best sets of Y_m, and by how much a better one may exceed each."""
    rewards = scores
    if true is not None and delta is not None:
        rewards = np.array([s + delta.per_node(y, multilabel=True).rewards for s, y in zip(scores, true, strict=True)])
        rewards = rewards.reshape(scores.shape)
    name = AUTO if method == "exact" else method
    oracle = answering_oracle(name, graph, allow_empty, exact=method != AUTO)
    chosen: Array = np.empty(scores.shape, oracle.dtype)
    value, bound = np.empty((2, len(scores)))
    oracle.solve(rewards, chosen, value, bound)
    return [np.flatnonzero(row).astype(np.int32) for row in chosen], bound - value


def _search_leaves(
    graph: Graph, scores: FloatArray, true: list[IntArray] | None, delta: Loss | None, method: str, allow_empty: bool
) -> tuple[list[IntArray], FloatArray]:
    """The same over Y_s; ``allow_empty`` is false."""
    if method == "brute_force":
        closures = graph.leaf_ancestors
        totals = np.array([[s[closures.row(k)].sum() for k in range(graph.n_leaves)] for s in scores])
    else:
        from nhsvm.columns import make_columns
        from nhsvm.oracles.leaves import leaf_scores

        totals = np.empty((len(scores), graph.n_leaves))
        leaf_scores(make_columns(graph, np.ones(graph.n_nodes)), scores, totals)
    totals = totals.reshape(len(scores), graph.n_leaves)
    if true is not None and delta is not None:  # the last node of a closure is its leaf
        totals += delta.to_leaves(np.searchsorted(graph.leaves, np.array([y[-1] for y in true], np.int32)))
    return [graph.leaf_ancestors.row(k) for k in totals.argmax(axis=1)], np.zeros(len(scores))


def _value(y: IntArray, s: FloatArray, true: IntArray | None, delta: Loss | None) -> float:
    """Δ + score difference of one label set: exactly 0 for the true one, since only what differs is summed."""
    if true is None or delta is None:
        return float(s[y].sum())
    more, less = np.setdiff1d(y, true), np.setdiff1d(true, y)
    return delta.between(y, true) + float(s[more].sum() - s[less].sum())


def _checked_scores(given: npt.ArrayLike, hierarchy: Hierarchy) -> tuple[FloatArray, bool]:
    """Finite scores as a C-ordered matrix, and whether one vector was given."""
    n = hierarchy.n_nodes
    wanted = f"node_scores must be {n} numbers, one a node, or rows of that many"
    try:
        array = np.asarray(given)
    except ValueError:
        raise DataError(f"{wanted}, not rows of different lengths") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"{wanted}, not of type {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise DataError(f"{wanted}, not of shape {array.shape}")
    scores = np.ascontiguousarray(array.reshape(-1, n), dtype=np.float64)
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, node = bad[0]
        where = f"that of {hierarchy.nodes[node]!r}" + ("" if array.ndim == 1 else f" in row {row}")
        raise DataError(f"node_scores must be finite, but {where} is {scores[row, node]}")
    return scores, array.ndim == 1


def _closures(hierarchy: Hierarchy, y: LabelsLike, n: int, multilabel: bool, allow_empty: bool) -> list[IntArray]:
    """Ā of every true label, as ascending node numbers."""
    y = samples(y)
    if len(y) != n:
        raise LabelError(f"y_true has {len(y)} entries, but node_scores has {n} rows: give one a row")
    empty = [allow_empty and _is_empty(labels) and labels not in hierarchy for labels in y]
    y = [list(hierarchy.leaves[:1]) if none else labels for labels, none in zip(y, empty, strict=True)]  # any will do
    found = LabelSpace(hierarchy, multilabel=multilabel).closures(y)
    return [found.row(i)[: 0 if none else None] for i, none in enumerate(empty)]


def _is_empty(labels: object) -> bool:
    return isinstance(labels, (set, frozenset, list, tuple, np.ndarray)) and not len(labels)
