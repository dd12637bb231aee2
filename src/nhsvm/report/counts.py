"""What is counted in truth and prediction: tables of nodes, of depths and of confused labels, and the surest errors.

All counts come from sparse matrices over the nodes of the hierarchy: there is no loop over samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.metrics import accuracy_at_depth
from nhsvm.metrics.distances import path_lengths
from nhsvm.metrics.inputs import by_level, closures
from nhsvm.report.answers import Parts, Truth
from nhsvm.report.record import Confusion, Counts, Depth, Example, Nodes, share
from nhsvm.typing import FloatArray

_JOINTS = "./:|>-_ "  # what may stand between a parent's name and the rest of its child's
_SNIPPET = 280  # characters of a text
_PATHS = 12  # labels of a sample that are shown


@dataclass(frozen=True)
class Compared:
    """Truth and prediction over all nodes of the hierarchy."""

    truth: Truth
    pred: sp.csr_array

    @property
    def hierarchy(self) -> Hierarchy:
        return self.truth.hierarchy

    @property
    def true(self) -> sp.csr_array:
        return self.truth.true

    @cached_property
    def true_all(self) -> sp.csr_array:
        """With everything above."""
        return closures(self.true, self.hierarchy)

    @cached_property
    def pred_all(self) -> sp.csr_array:
        return closures(self.pred, self.hierarchy)

    @cached_property
    def common(self) -> sp.csr_array:
        return sp.csr_array(self.true.multiply(self.pred))

    @cached_property
    def missed(self) -> sp.csr_array:
        """True, but not predicted."""
        return sp.csr_array(self.true > self.pred)

    @cached_property
    def extra(self) -> sp.csr_array:
        """Predicted, but not true."""
        return sp.csr_array(self.pred > self.true)

    @cached_property
    def wrong(self) -> Counts:
        """Numbers of the samples that are not exactly right."""
        return np.flatnonzero(np.diff(self.missed.indptr) + np.diff(self.extra.indptr))

    @cached_property
    def below(self) -> sp.csr_array:
        """``[n, l] = 1`` if l is n or below it; integers, so that products count."""
        indptr, indices = self.hierarchy.graph.ancestors
        n = self.hierarchy.n_nodes
        return sp.csr_array((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(n, n)).T.tocsr()

    @cached_property
    def used(self) -> Counts:
        """Numbers of the nodes that are, or are above, a class or a label of a sample; no virtual leaf is."""
        seen = np.concatenate([self.truth.class_nodes, self.true.indices])
        graph = self.hierarchy.graph
        return np.flatnonzero(graph.reachable(seen, graph.parents))

    @cached_property
    def position(self) -> Counts:
        """Where every node of the hierarchy is among those in use; −1 for others."""
        found = np.full(self.hierarchy.n_nodes, -1)
        found[self.used] = np.arange(len(self.used))
        return found

    def distances(self, a: Counts, b: Counts) -> FloatArray:
        """Edges between nodes."""
        return path_lengths(self.hierarchy.graph, a.astype(np.int32), b.astype(np.int32)) if len(a) else np.zeros(0)


def count_nodes(compared: Compared, parts: Parts | None) -> Nodes:
    """The table of all nodes in use; α is that of the model."""
    used, graph = compared.used, compared.hierarchy.graph
    is_class = np.zeros(graph.n_nodes, dtype=bool)
    is_class[compared.truth.class_nodes] = True
    first = np.array([row[0] if len(row := graph.parents.row(n)) else -1 for n in used], dtype=np.int64)
    parent = np.where(first >= 0, compared.position[first], -1)
    is_inner = np.zeros(len(used), dtype=bool)
    is_inner[compared.position[graph.parents.rows(used).indices]] = True
    name, short = _names(compared.hierarchy, used, parent)

    def below(values: Counts) -> Counts:
        found: Counts = (compared.below @ values)[used]
        return found

    own, found, said = (_columns(m) for m in (compared.true, compared.common, compared.pred))
    both = sp.csr_array(compared.true_all.multiply(compared.pred_all))
    missed = sp.csr_array(compared.missed.astype(np.int64) @ compared.below.T)
    stayed = missed.multiply(compared.pred_all).sum(axis=0)
    n_classes = below(is_class.astype(np.int64))
    return Nodes(
        name=name,
        short=short,
        parent=parent,
        n_parents=graph.parents.sizes()[used],
        depth=graph.level[used].astype(np.int64),
        is_inner=is_inner,
        is_class=is_class[used],
        is_known=n_classes > 0,
        n_classes=n_classes,
        samples=_columns(compared.true_all)[used],
        predicted=_columns(compared.pred_all)[used],
        both=_columns(both)[used],
        labels=below(own),
        found=below(found),
        said=below(said),
        own=own[used],
        own_found=found[used],
        own_said=said[used],
        left=(missed.sum(axis=0) - stayed)[used],
        weight=_weights(compared, parts),
    )


def count_depths(compared: Compared) -> list[Depth]:
    """The table of all depths at which samples have labels."""
    hierarchy, graph = compared.hierarchy, compared.hierarchy.graph
    true, pred = compared.true_all, compared.pred_all
    columns = np.flatnonzero(~hierarchy.is_virtual)
    accuracy = accuracy_at_depth(
        compared.true[:, columns],
        compared.pred[:, columns],
        hierarchy=hierarchy,
        labels=[hierarchy.nodes[i] for i in columns],
    )
    at = by_level(hierarchy)
    samples = _columns(sp.csr_array(true @ at))
    differ = sp.csr_array(sp.csr_array(true != pred) @ at)
    differ.sort_indices()
    wrong = np.flatnonzero(np.diff(differ.indptr))
    first = np.bincount(differ.indices[differ.indptr[wrong]], minlength=graph.n_levels)
    nodes = np.bincount(graph.level[compared.used], minlength=graph.n_levels)
    both, had, said = (
        np.bincount(graph.level, _columns(m), graph.n_levels).astype(np.int64)
        for m in (sp.csr_array(true.multiply(pred)), true, pred)
    )
    precision, recall, f1 = share(both, said), share(both, had), share(2 * both, had + said)
    return [
        Depth(
            depth=k,
            nodes=int(nodes[k]),
            samples=int(samples[k]),
            accuracy=right,
            precision=float(precision[k]),
            recall=float(recall[k]),
            f1=float(f1[k]),
            first_errors=int(first[k]),
        )
        for k, right in accuracy.items()
    ]


def _columns(matrix: sp.csr_array) -> Counts:
    """How many samples have each column."""
    found: Counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return found


def _weights(compared: Compared, parts: Parts | None) -> FloatArray:
    """α of the nodes in use, which may have other numbers in the model's own hierarchy."""
    names = [compared.hierarchy.nodes[i] for i in compared.used]
    if parts is None or parts.ours is None:
        return np.full(len(names), np.nan)
    own, weights = parts.ours.hierarchy_, parts.ours.node_weights_
    return np.array([weights[own.number(name)] if name in own else np.nan for name in names])


def _names(hierarchy: Hierarchy, used: Counts, parent: Counts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels as text; and short, without the parent's name in front."""
    labels = [hierarchy.nodes[i] for i in used]
    name, short = [], []
    for label, up in zip(labels, parent.tolist(), strict=True):
        above = labels[up] if up >= 0 else None
        if isinstance(label, tuple) and label:  # a path, if it begins with that of its parent
            name.append(" › ".join(map(str, label)))
            short.append(str(label[-1]) if above is None or label[:-1] == above else name[-1])
            continue
        name.append(text(label))
        short.append(name[-1] if above is None else _rest(name[-1], text(above)))
    return tuple(name), tuple(short)


def _rest(name: str, start: str) -> str:
    """A name without its start and what joins the two: ``linalg`` of ``scipy.linalg``, ``cat`` of ``animal > cat``."""
    rest = name.removeprefix(start)
    return rest.lstrip(_JOINTS) or name if start and rest != name and rest[:1] in _JOINTS else name


def text(label: object) -> str:
    """A label as text; a virtual leaf as the node it stands for."""
    return str(label.of if isinstance(label, VirtualLeaf) else label)


# -- confusions and errors ---------------------------------------------------------------------------------------------


def confused_pairs(compared: Compared, nodes: Nodes, most: int) -> tuple[list[Confusion], int]:
    """The most frequent pairs of a missed label and a wrong one of the same sample; and how many pairs there are."""
    pairs = sp.csr_array(compared.missed.T.astype(np.int64) @ compared.extra.astype(np.int64)).tocoo()
    order = np.lexsort((pairs.col, pairs.row, -pairs.data))[:most]
    true, pred, count = pairs.row[order], pairs.col[order], pairs.data[order]
    distance = compared.distances(true, pred)
    own = _columns(compared.true)
    found = [
        Confusion(nodes.name[t], nodes.name[p], int(c), float(part), float(d))
        for t, p, c, part, d in zip(
            compared.position[true], compared.position[pred], count, count / own[true], distance, strict=True
        )
    ]
    return found, int(pairs.nnz)


def surest_errors(
    compared: Compared,
    nodes: Nodes,
    margins: FloatArray,
    distances: FloatArray | None,
    *,
    texts: Sequence[object] | None,
    ids: Sequence[object] | None,
    most: int,
) -> list[Example]:
    """Errors with the largest margin first, and of single labels at most one for every pair."""
    wrong = compared.wrong
    order = np.lexsort((wrong, -np.nan_to_num(margins, nan=-np.inf)))
    if distances is not None:
        n = compared.hierarchy.n_nodes
        key = compared.true.indices[wrong].astype(np.int64) * n + compared.pred.indices[wrong]
        order = order[np.sort(np.unique(key[order], return_index=True)[1])]
    found = []
    for k in order[:most].tolist():
        i = int(wrong[k])
        found.append(
            Example(
                id=str(i if ids is None else ids[i]),
                true=_paths(compared, compared.true, i, nodes),
                predicted=_paths(compared, compared.pred, i, nodes),
                distance=float("nan") if distances is None else float(distances[k]),
                margin=float(margins[k]),
                text="" if texts is None else _snippet(texts[i]),
            )
        )
    return found


def _snippet(text: object) -> str:
    """The beginning of a text on one line."""
    line = " ".join(str(text)[: 4 * _SNIPPET].split())
    return line if len(line) <= _SNIPPET else line[: _SNIPPET - 1].rstrip() + "…"


def _paths(compared: Compared, labels: sp.csr_array, sample: int, nodes: Nodes) -> list[list[str]]:
    own = labels.indices[labels.indptr[sample] : labels.indptr[sample + 1]].tolist()
    shown = [nodes.path(int(compared.position[node])) for node in own[:_PATHS]]
    return shown if len(own) <= _PATHS else [*shown, [f"and {len(own) - _PATHS} more"]]
