"""Counts of every node and of every depth, from sparse matrices: no loop over samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.metrics import accuracy_at_depth
from nhsvm.metrics.inputs import closures
from nhsvm.report._record import Counts, Depth, Nodes
from nhsvm.report._truth import Truth
from nhsvm.typing import FloatArray

_JOINTS = "./:|>-_ "  # what may stand between a parent's name and the rest of its child's


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


def count_nodes(compared: Compared, model: Any) -> Nodes:
    """The table of all nodes in use."""
    used, truth, graph = compared.used, compared.truth, compared.hierarchy.graph
    position = np.full(graph.n_nodes, -1)
    position[used] = np.arange(len(used))
    is_class = np.zeros(graph.n_nodes, dtype=bool)
    is_class[truth.class_nodes] = True
    first = np.array([row[0] if len(row := graph.parents.row(n)) else -1 for n in used], dtype=np.int64)
    parent = np.where(first >= 0, position[first], -1)
    is_inner = np.zeros(len(used), dtype=bool)
    is_inner[position[graph.parents.rows(used).indices]] = True
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
        weight=_weights(compared, model),
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
    at = sp.csr_array(
        (np.ones(graph.n_nodes, dtype=bool), graph.level, np.arange(graph.n_nodes + 1)),
        shape=(graph.n_nodes, graph.n_levels),
    )
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
    return [
        Depth(
            depth=k,
            nodes=int(nodes[k]),
            samples=int(samples[k]),
            accuracy=right,
            precision=_ratio(both[k], said[k]),
            recall=_ratio(both[k], had[k]),
            f1=_ratio(2 * both[k], had[k] + said[k]),
            first_errors=int(first[k]),
        )
        for k, right in accuracy.items()
    ]


def _columns(matrix: sp.csr_array) -> Counts:
    """How many samples have each column."""
    found: Counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return found


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _weights(compared: Compared, model: Any) -> FloatArray:
    """α of the nodes in use, which may have other numbers in the model's own hierarchy."""
    names = [compared.hierarchy.nodes[i] for i in compared.used]
    own = getattr(model, "hierarchy_", None)
    if own is None or not hasattr(model, "node_weights_"):
        return np.full(len(names), np.nan)
    return np.array([model.node_weights_[own.number(name)] if name in own else np.nan for name in names])


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
