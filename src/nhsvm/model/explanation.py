"""Scores taken apart into what nodes and features add to them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.explanation import Explanation, Explanations, NodePart
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.labels import VirtualLeaf, public
from nhsvm.storage.samples import Samples
from nhsvm.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from nhsvm.model.model import Model

Label = Hashable


def explained(
    model: Model, samples: Samples, labels: Any, against: Any, feature_names: Any, top: int | None, n_threads: int
) -> Explanations:
    """Explanations of some labels of every sample, or of those that are predicted; as :meth:`Model.explain` says."""
    check_top(top)
    names = namer(model, feature_names)
    parts = _Parts(model)
    asked = None if labels is None else [parts.node_of(label) for label in several(labels, model.hierarchy)]
    other = None if against is None else parts.node_of(against)
    questions = _questions(model, samples, asked, other, n_threads)
    return Explanations([parts.answer(samples.X, one, names, top) for one in questions], samples.n_samples)


def strongest_features(model: Model, node: Label, top: int | None, feature_names: Any) -> list[tuple[str, float]]:
    """The features with the largest weights of one node; see :meth:`Model.strongest_features`."""
    check_top(top)
    names = namer(model, feature_names)
    column = np.flatnonzero(model.columns.nodes == model.hierarchy.number(node))
    if not len(column):  # no weight, so no vector
        return []
    weights = model.weights.column(int(column[0]))
    used = np.flatnonzero(weights)
    if top is not None and top < len(used):
        used = np.sort(used[np.argpartition(-np.abs(weights[used]), top - 1)[:top]])
    used = used[strongest(weights[used])]
    return [(str(names(j)), float(weights[j])) for j in used.tolist()]


class _Question(NamedTuple):
    """One label of one sample."""

    row: int
    label: int
    """Node."""
    against: int | None
    predicted: IntArray
    """Nodes of the leaves that are predicted."""


def _questions(
    model: Model, samples: Samples, asked: list[int] | None, against: int | None, n_threads: int
) -> Iterator[_Question]:
    leaves = model.hierarchy.graph.leaves
    if model.sets is not None:
        indptr, found = model.best_leaves(samples, n_threads=n_threads)
    else:
        found = model.class_leaves[model.best_classes(samples, n_threads=n_threads)]
        indptr = np.arange(len(found) + 1)
    for row in range(len(indptr) - 1):
        predicted = leaves[found[indptr[row] : indptr[row + 1]]]
        for label in predicted.tolist() if asked is None else asked:
            yield _Question(row, label, against, predicted)


class _Parts:
    """What nodes and features add to the scores of a model.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, model.hierarchy.graph
        self._intercepts = model.intercept().astype(np.float64)
        self._offsets = np.zeros_like(self._intercepts) if model.sets is None else model.all_offsets()

    def answer(self, X: Any, question: _Question, names: Any, top: int | None) -> Explanation:
        own = self._counted(question.label, question.predicted)
        other = (
            np.zeros(0, np.int32) if question.against is None else self._counted(question.against, question.predicted)
        )
        mine, theirs = np.setdiff1d(own, other), np.setdiff1d(other, own)  # ascending: from the top
        nodes, sign = np.concatenate([mine, theirs]), np.repeat([1.0, -1.0], [len(mine), len(theirs)])
        ends = [question.label] if question.against is None else [question.label, question.against]
        shared = np.setdiff1d(self._closure(np.array(ends)), nodes)
        shared = shared[self.model.node_weights[shared] > 0]
        used, x = entries(X, question.row)
        parts = sign[:, None] * self._products(nodes, used, x)
        intercepts, offsets = sign * self._intercepts[nodes], sign * self._offsets[nodes]
        best = strongest(parts.sum(axis=0))[:top]
        chosen = parts[:, best]
        rest = np.delete(parts, best, axis=1).sum(axis=1)
        score = chosen.sum(axis=1) + rest + intercepts + offsets
        return Explanation(
            row=question.row,
            label=public(self.model.hierarchy.nodes[question.label]),
            against=None if question.against is None else public(self.model.hierarchy.nodes[question.against]),
            predicted=bool(np.isin(question.label, self._closure(question.predicted))),
            score=float(score.sum()),
            nodes=self._parts(nodes, score, sign < 0),
            shared=self._parts(shared, self._node_totals(shared, used, x)),
            features=tuple(str(names(j)) for j in used[best].tolist()),
            values=x[best],
            contributions=chosen,
            rest=rest,
            n_rest=len(used) - len(best),
            intercepts=intercepts,
            offsets=offsets,
        )  # fmt: skip

    def _counted(self, node: int, predicted: IntArray) -> IntArray:
        """The nodes whose scores make up that of a label, ascending.

        All of Ā(l); of label sets, those that no other predicted leaf has: what the label adds to the set, unless its
        score does not depend on what else is predicted.
        """
        graph, sets = self.graph, self.model.sets
        own = graph.ancestors.row(node)
        if sets is None or sets.independent:
            return own
        others = [leaf for leaf in predicted.tolist() if node not in graph.ancestors.row(leaf)]
        return np.setdiff1d(own, self._closure(np.array(others, dtype=np.int32)))

    def _closure(self, nodes: IntArray) -> IntArray:
        found: IntArray = np.unique(self.graph.ancestors.rows(nodes).indices)
        return found

    def _products(self, nodes: IntArray, used: IntArray, x: FloatArray) -> FloatArray:
        """U_nj·x_j of some nodes and features; 0 for nodes without weight."""
        columns = self.model.columns.nodes
        place = np.minimum(np.searchsorted(columns, nodes), len(columns) - 1)
        has = np.flatnonzero(columns[place] == nodes)
        at = place[has]
        values = self.model.weights.block(used, at).T
        out = np.zeros((len(nodes), len(used)))
        out[has] = values.astype(np.float64) * x
        return out

    def _node_totals(self, nodes: IntArray, used: IntArray, x: FloatArray) -> FloatArray:
        products: FloatArray = self._products(nodes, used, x).sum(axis=1)
        total: FloatArray = products + self._intercepts[nodes] + self._offsets[nodes]
        return total

    def _parts(self, nodes: IntArray, scores: FloatArray, against: Any = None) -> tuple[NodePart, ...]:
        h = self.model.hierarchy
        flags = np.zeros(len(nodes), dtype=bool) if against is None else against
        return tuple(
            NodePart(h.nodes[n], float(self.model.node_weights[n]), int(h.graph.level[n]), float(score), bool(flag))
            for n, score, flag in zip(nodes.tolist(), scores, flags, strict=True)
        )

    def node_of(self, label: Label) -> int:
        """The leaf of a class, or an inner node."""
        number = self.model.hierarchy.number(label)
        return self.model.hierarchy.number(VirtualLeaf(label)) if VirtualLeaf(label) in self.model.hierarchy else number


def namer(model: Model, given: Any) -> Callable[[int], Any]:
    """A function from the number of a feature to its name."""
    names = model.feature_names if given is None else given
    if names is None:
        return lambda j: f"x{j}"
    sized = hasattr(names, "__len__") and hasattr(names, "__getitem__") and not isinstance(names, (str, dict))
    if not sized or len(names) != model.n_features:
        what = f"{len(names)} names" if sized else repr(names)
        raise OptionError(f"feature_names must be a sequence of {model.n_features} names, one a feature, not {what}")
    return lambda j: names[j]


def check_top(top: Any) -> None:
    """Raise unless it is a number of features, or None for all."""
    if top is not None and (not isinstance(top, (int, np.integer)) or isinstance(top, bool) or top < 1):
        raise OptionError(f"top must be a whole number of at least 1, or None for all features, not {top!r}")


def several(labels: Any, hierarchy: Hierarchy) -> list[Label]:
    """Labels in a list, set or array, or the only one; a tuple is one label."""
    if isinstance(labels, (list, set, frozenset, np.ndarray)) and not (
        isinstance(labels, frozenset) and labels in hierarchy
    ):
        found = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        found = sorted(found, key=hierarchy.number) if isinstance(labels, (set, frozenset)) else found
        if not found:
            raise OptionError("labels is empty: name at least one, or leave it out for the predicted ones")
        return found
    return [labels]


def as_matrix(X: Any) -> Any:
    """One sample as a matrix of one row."""
    if sp.issparse(X):
        return X.reshape(1, -1) if X.ndim == 1 else X
    if hasattr(X, "to_frame") and getattr(X, "ndim", 2) == 1 and hasattr(X, "index"):  # a row of a pandas frame
        return X.to_frame().T
    return np.asarray(X)[None] if np.ndim(X) == 1 else X


def entries(X: Any, row: int) -> tuple[IntArray, FloatArray]:
    """(features, values) of a sample where it is not zero."""
    if sp.issparse(X):
        here = slice(X.indptr[row], X.indptr[row + 1])
        used, x = X.indices[here], X.data[here]
        return used[x != 0], x[x != 0].astype(np.float64)
    used = np.flatnonzero(X[row])
    return used.astype(np.int32), X[row, used].astype(np.float64)


def strongest(values: Any) -> IntArray:
    """Positions by absolute value, the largest first; values that differ by rounding only stay in their order."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    order: IntArray = np.argsort(-np.round(size / (size.max(initial=0.0) or 1.0), 9), kind="stable").astype(np.int32)
    return order
