"""Measures by distance in the hierarchy: edges between labels, F1 up to common ancestors, cheapest pairings.

Distances go over common ancestors: d(a, b) is the least up(a, c) + up(b, c), where up(n, c) is the number of edges on
the shortest path from n up to c. If there are several roots, an unnamed node above them is an ancestor of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from nhsvm.hierarchy import Graph, Hierarchy, Ragged
from nhsvm.metrics.inputs import Pair, documented, make_pair, positive
from nhsvm.typing import FloatArray, IntArray, Label, LabelsLike, PtrArray, SampleWeights

MAX_DISTANCE = 5.0
BATCH = 2**17  # pairs of labels that are compared at a time
MAX_CHOICES = 4096  # combinations of paths that are all tried for LCA-F1; with more, the first choices are taken

Nodes = frozenset[int]
Sides = tuple[Nodes, Nodes]  # the true side and the predicted side


@documented
def tree_distance(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> float:
    """Mean number of edges between the true and the predicted label, the tree-induced error [1]_.

    On a tree this is the length of the path between them. On a DAG it is the length of the shortest path that goes up
    to a common ancestor and down again. Several roots are taken to be children of an unnamed root.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        With exactly one label a sample, on a leaf or an inner node; sets have
        :func:`~nhsvm.metrics.graph_accuracy`.
    hierarchy : Hierarchy
    {given}

    Returns
    -------
    float
        0 is best.

    References
    ----------
    .. [1] O. Dekel, J. Keshet, Y. Singer. Large margin hierarchical classification. ICML 2004.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> tree_distance(["dog", "dog", "dog"], ["cat", "oak", "animal"], hierarchy=h)  # (2 + 4 + 1) / 3
    2.3333333333333335
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return pair.mean(path_lengths(hierarchy.graph, *pair.single("tree_distance")))


@documented
def lca_f1(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> float:
    """Mean F1 of the paths from true and from predicted labels up to their lowest common ancestors [1]_.

    Labels are extended by the nodes on their paths up to common ancestors, these included, and not, as in
    :func:`~nhsvm.metrics.hierarchical_f1`, by all their ancestors: what is above is in both and says nothing. With T
    and P, the true and the predicted labels so extended, F1 is 2 |T ∩ P| / (|T| + |P|).

    **One label a sample.** The two paths share the lowest common ancestor c alone. So with d(y, ŷ) edges between the
    labels, the distance of :func:`~nhsvm.metrics.tree_distance`, F1 = 2 / (2 + d). On a DAG, c is a common ancestor for
    which d is least; which of several does not matter. It may be the unnamed root above several roots.

    **Label sets.** Labels above others of the same set are left out first. Every label that is not in both sets gets
    its path up to a lowest common ancestor with the nearest label of the other set, and every ancestor that such a path
    leads to is reached from both sides, from any label below it. Where several are equally near, or several labels
    are below, those are taken for which |T| + |P| is least, and of these, those for which |T ∩ P| is largest: nothing
    is added that is not needed. (With more than 4,096 combinations, the first of each choice is taken.) On a DAG, of
    several shortest paths up the one counts whose nodes come first in ``hierarchy.nodes``.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    {given}

    Returns
    -------
    float
        From 0 to 1, 1 is best. A sample counts 1 if both sets are empty, and 0 if one is.

    References
    ----------
    .. [1] {unified view}

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> lca_f1(["dog", "dog"], ["cat", "dog"], hierarchy=h)  # (2 / (2 + 2) + 2 / (2 + 0)) / 2
    0.75
    >>> lca_f1([{"dog", "oak"}], [{"cat", "oak"}], hierarchy=h)  # {dog, animal, oak} and {cat, animal, oak}
    0.6666666666666666
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    if pair.is_single:
        return pair.mean(2 / (2 + path_lengths(hierarchy.graph, pair.true.indices, pair.pred.indices)))
    paths = UpwardPaths(hierarchy.graph)
    return pair.mean(each_sample(pair, lambda true, pred: f1_of_sets(paths, true, pred)))


@documented
def graph_accuracy(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    max_distance: float = MAX_DISTANCE,
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> float:
    """Multi-label graph-induced accuracy (MGIA) [1]_: the distance of label sets, as a share of the largest.

    Labels that are in one of the sets Y and Ŷ only are paired with labels of the other set, each with at least one, or
    left alone. A pair costs the edges between its labels, as in :func:`~nhsvm.metrics.tree_distance`, a label that is
    alone costs ``max_distance``. With E, the cost of the cheapest pairing, the graph-induced error, the value of a
    sample is 1 - E / (max_distance |Y △ Ŷ|). Labels above others of the same set count as any other.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    max_distance : float
        What a label costs that is not paired.
    {given}

    Returns
    -------
    float
        From 0 to 1, 1 is best.

    References
    ----------
    .. [1] {unified view}

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> graph_accuracy([{"dog", "oak"}], [{"cat", "oak"}], hierarchy=h)  # dog and cat: 1 - 2 / (5 · 2)
    0.8
    """
    alone = positive("max_distance", max_distance)
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    paths = UpwardPaths(hierarchy.graph)

    def share(true: Nodes, pred: Nodes) -> float:
        differ = len(true ^ pred)
        return 1.0 - pairing_cost(paths, true, pred, alone) / (alone * differ) if differ else 1.0

    return pair.mean(each_sample(pair, share))


def pairing_cost(paths: UpwardPaths, true: Nodes, pred: Nodes, alone: float) -> float:
    """The cost of the cheapest pairing.

    If every label takes what is cheapest for it, a pair that is cheapest for both is paid for twice. So that much is
    paid at first, and given back for pairs of different labels such that most is given back, which is an assignment.
    """
    ours, theirs = sorted(true - pred), sorted(pred - true)
    own, other = (
        np.array([min([alone, *(paths.distance(n, m) for m in found)]) for n in some])
        for some, found in ((ours, pred), (theirs, true))
    )
    paid = float(own.sum() + other.sum())
    if not (ours and theirs):
        return paid
    pairs = np.array([[paths.distance(n, m) for m in theirs] for n in ours])
    back = np.maximum(own[:, None] + other[None, :] - pairs, 0.0)
    return paid - float(back[linear_sum_assignment(back, maximize=True)].sum())


def path_lengths(graph: Graph, a: IntArray, b: IntArray) -> FloatArray:
    """d(a, b) = min over common ancestors c of up(a, c) + up(b, c), for each pair of node numbers."""
    keys, place = np.unique(a.astype(np.int64) * graph.n_nodes + b, return_inverse=True)
    found = np.empty(len(keys), dtype=np.int64)
    indptr, indices = graph.ancestors
    above = sp.csr_array((distances_up(graph) + 1, indices, indptr), shape=(graph.n_nodes, graph.n_nodes))
    # the roots have the lowest numbers: from each node the shortest path up to one, and one step further
    to_top = np.minimum.reduceat(np.where(indices < graph.n_roots, above.data, np.iinfo(np.int32).max), indptr[:-1])
    for start in range(0, len(keys), BATCH):
        part = slice(start, start + BATCH)
        found[part] = _lengths(above, to_top, *np.divmod(keys[part], graph.n_nodes))
    return found[place].astype(np.float64)


def _lengths(above: sp.csr_array, to_top: IntArray, a: PtrArray, b: PtrArray) -> PtrArray:
    """``above[n, c]`` is up(n, c) + 1, so that no stored number is zero."""
    lengths = to_top[a].astype(np.int64) + to_top[b]
    from_a, from_b = above[a], above[b]
    both = (from_a.multiply(from_b.astype(bool)) + from_b.multiply(from_a.astype(bool))).tocsr()
    rows = np.flatnonzero(np.diff(both.indptr))
    if len(rows):
        through = np.minimum.reduceat(both.data, both.indptr[rows]) - 2
        lengths[rows] = np.minimum(lengths[rows], through)
    return lengths


def distances_up(graph: Graph) -> IntArray:
    """up(n, c) for every entry c of every list of ``graph.ancestors``."""
    ancestors = graph.ancestors
    if graph.is_tree:
        return np.repeat(graph.level, ancestors.sizes()) - graph.level[ancestors.indices]
    n = graph.n_nodes
    edges = np.full(len(ancestors.indices), np.iinfo(np.int32).max, dtype=np.int32)
    edges[ancestors.indptr[1:] - 1] = 0  # a node itself is the last of its list
    entry = Ragged(ancestors.indptr, np.arange(len(edges), dtype=np.int32))
    for nodes in graph.levels():
        own = np.arange(nodes.start, nodes.stop)
        up = graph.parents.rows(own)
        theirs = entry.rows(up.indices)
        owner = np.repeat(up.owners(), theirs.sizes()).astype(np.int64)
        mine = ancestors.rows(own)
        keys = mine.owners().astype(np.int64) * n + mine.indices
        place = np.searchsorted(keys, owner * n + ancestors.indices[theirs.indices])
        np.minimum.at(edges, ancestors.indptr[nodes.start] + place, edges[theirs.indices] + 1)
    return edges


class UpwardPaths:
    """Shortest paths up. If there are several roots, an unnamed node, number ``n_nodes``, is above them."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._up = graph, distances_up(graph)
        self.above, self.path = cache(self._above), cache(self._path)

    def _above(self, node: int) -> dict[int, int]:
        """Every ancestor of a node, itself included, with the edges on the shortest path up to it."""
        indptr, indices = self._graph.ancestors
        part = slice(indptr[node], indptr[node + 1])
        found = dict(zip(indices[part].tolist(), self._up[part].tolist(), strict=True))
        if self._graph.n_roots > 1:
            found[self._graph.n_nodes] = 1 + min(edges for n, edges in found.items() if n < self._graph.n_roots)
        return found

    def _path(self, node: int, top: int) -> Nodes:
        """The nodes of the shortest path up, both ends included; of several the one over the first parents."""
        found, edges = {node, top}, self.above(node)[top]
        while edges > 1:
            edges -= 1
            node = min(n for n in self._graph.parents.row(node).tolist() if self.above(n).get(top) == edges)
            found.add(node)
        return frozenset(found)

    def lowest(self, nodes: Nodes) -> Nodes:
        """Nodes without those that are above others of them."""
        return nodes - {n for node in nodes for n in self.above(node) if n != node}

    def distance(self, a: int, b: int) -> int:
        """Edges on the shortest path from one node up to a common ancestor and down to the other."""
        above = self.above(b)
        return min(up + above[n] for n, up in self.above(a).items() if n in above)

    def nearest(self, node: int, others: Nodes) -> Nodes:
        """The common ancestors over which the path to the nearest of ``others`` leads."""
        found: dict[int, set[int]] = {}
        above = self.above(node)
        for other in others:
            for n, up in self.above(other).items():
                if n in above:
                    found.setdefault(up + above[n], set()).add(n)
        return frozenset(found[min(found)])


def each_sample(pair: Pair, measure: Callable[[Nodes, Nodes], float]) -> FloatArray:
    """A measure of the true and the predicted labels of every sample; the same two sets are looked at once."""
    known = cache(measure)
    rows = zip(*(np.split(y.indices, y.indptr[1:-1]) for y in (pair.true, pair.pred)), strict=True)
    return np.array([known(frozenset(true.tolist()), frozenset(pred.tolist())) for true, pred in rows])


class Step(NamedTuple):
    """A path up that one side needs: to one of some ancestors, from one of some labels."""

    side: int
    labels: Nodes
    tops: Nodes


def f1_of_sets(paths: UpwardPaths, true: Nodes, pred: Nodes) -> float:
    """2 |T ∩ P| / (|T| + |P|) of the extended sets; see :func:`nhsvm.metrics.lca_f1`."""
    true, pred = paths.lowest(true), paths.lowest(pred)
    if true == pred:
        return 1.0
    if not (true and pred):
        return 0.0
    extended = _MinimalExtension(paths, (true, pred)).smallest()
    return 2 * len(extended[0] & extended[1]) / (len(extended[0]) + len(extended[1]))


class _MinimalExtension:
    """The search for the smallest extension of two sets."""

    def __init__(self, paths: UpwardPaths, sides: Sides) -> None:
        self._paths, self._labels = paths, sides
        self._steps = [
            Step(side, frozenset({n}), paths.nearest(n, sides[1 - side]))
            for side in (0, 1)
            for n in sorted(sides[side] - sides[1 - side])
        ]
        self._steps.sort(key=lambda step: len(step.tops))  # what is certain comes first
        choices = prod(len(step.tops) for step in self._steps)
        several = {top for step in self._steps for top in step.tops}
        choices *= prod(max(len(self._below(side, top)) for side in (0, 1)) for top in several)
        self._pick: Callable[[Iterator[Sides]], Sides] = _smallest if choices <= MAX_CHOICES else next

    def smallest(self) -> Sides:
        """Both sides, such that every label has its path up and both sides have all ancestors that these lead to."""
        return self._walk(self._labels, self._steps, frozenset())

    def _walk(self, sides: Sides, steps: list[Step], used: Nodes) -> Sides:
        if not steps:
            missing = [(top, side) for side in (0, 1) for top in used - sides[side]]
            if not missing:
                return sides
            top, side = min(missing)  # the topmost: the path to it may lead over others
            steps = [Step(side, self._below(side, top), frozenset({top}))]
        (side, labels, tops), *later = steps
        return self._pick(
            self._walk(_with(sides, side, self._paths.path(n, top)), later, used | {top})
            for top in sorted(tops)
            for n in sorted(labels)
        )

    def _below(self, side: int, top: int) -> Nodes:
        """The labels of a side that have a node above them."""
        return frozenset(n for n in self._labels[side] if top in self._paths.above(n))


def _smallest(found: Iterable[Sides]) -> Sides:
    return min(found, key=lambda sides: (len(sides[0]) + len(sides[1]), -len(sides[0] & sides[1])))


def _with(sides: Sides, side: int, nodes: Nodes) -> Sides:
    more = sides[side] | nodes
    return (more, sides[1]) if side == 0 else (sides[0], more)
