"""Scores taken apart into what nodes and features add to them; a mixin."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nhsvm.columns import Columns
from nhsvm.estimators._explain_input import as_matrix, check_top, entries, namer, several, strongest
from nhsvm.explanation import Explanation, Explanations, NodePart
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.hierarchy.labels import VirtualLeaf, public
from nhsvm.packed import Packed
from nhsvm.rows import StoredRows

Label = Hashable


class _Question(NamedTuple):
    """One label of one sample."""

    row: int
    label: int
    """Node."""
    against: int | None
    predicted: IntArray
    """Nodes of the leaves that are predicted."""


class Explaining:
    """``explain``, for an estimator that predicts."""

    hierarchy_: Hierarchy
    node_weights_: FloatArray
    n_features_in_: int
    _values: Any
    _by_feature: bool
    _bias: float
    _columns: Columns
    _sets: Any

    def explain(
        self, X: Any, labels: Any = None, *, against: Any = None, feature_names: Any = None, top: int | None = 10
    ) -> Explanations:
        """Why labels have their scores: what every node on the way and every feature adds, exactly.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features), or one sample of n_features
        labels : label, or list, set or array of labels, optional
            Which to explain for every sample; by default what is predicted. An inner node that is no class is explained
            by the sum over itself and what is above it.
        against : label, optional
            Explain the difference to the score of this one: why A rather than B. Nodes of both cancel.
        feature_names : sequence of n_features, optional
            By default the names that :meth:`fit` has seen, or ``x0``, ``x1``, ...
        top : int or None
            Features to name, those that add the most or take the most away; the others are summed up. None is all.

        Returns
        -------
        Explanations
            One for every sample and label, in this order: ``print`` it, or see ``to_dict`` and ``plot``.

        Notes
        -----
        Of label sets, the score of a label is what it adds to the predicted set, as in :meth:`decision_function`. Nodes
        that the set has for other labels anyway are listed as shared and do not count.

        Examples
        --------
        >>> from nhsvm import HSVM, Hierarchy
        >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
        >>> X, y = [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], ["dog", "cat", "oak"]
        >>> model = HSVM(h, tol=1e-9, fit_intercept=False).fit(X, y)
        >>> print(model.explain([1, 1, 0, 0], feature_names=["legs", "barks", "purrs", "leaves"]))
        dog: score 2.091 (predicted)
               animal     dog     sum
        barks   0.273   1.000   1.273
        legs    0.545   0.273   0.818
        sum     0.818   1.273   2.091
        """
        check_is_fitted(self)
        check_top(top)
        names = namer(self, feature_names)
        asked = None if labels is None else [self._node_of(label) for label in several(labels, self.hierarchy_)]
        other = None if against is None else self._node_of(against)
        given = as_matrix(X)  # what has the names of features, which are checked
        X = self._checked(given)  # type: ignore[attr-defined]
        questions = self._questions(given, asked, other)
        return Explanations([self._answer(X, one, names, top) for one in questions], X.shape[0])

    def strongest_features(
        self, node: Label, top: int | None = 10, *, feature_names: Any = None
    ) -> list[tuple[str, float]]:
        """The features with the largest weights, U_nj, of one node, by their absolute values.

        Parameters
        ----------
        node : label
            A node of ``hierarchy_``, also an inner one; of ``hierarchy_.nodes``, virtual leaves too.
        top : int or None
            How many; None is all. Weights of zero are left out.
        feature_names : sequence of n_features, optional
            By default the names that :meth:`fit` has seen, or ``x0``, ``x1``, ...

        Returns
        -------
        list of (name, weight)

        Examples
        --------
        >>> from nhsvm import FlatSVM
        >>> model = FlatSVM(fit_intercept=False, tol=1e-9).fit([[2, 0], [0, 1]], ["dog", "cat"])
        >>> [(name, round(weight, 6)) for name, weight in model.strongest_features("dog")]
        [('x1', -0.5), ('x0', 0.25)]
        """
        check_is_fitted(self)
        check_top(top)
        names = namer(self, feature_names)
        column = np.flatnonzero(self._columns.nodes == self.hierarchy_.number(node))
        if not len(column):  # no weight, so no vector
            return []
        if isinstance(self._values, (StoredRows, Packed)):
            weights = self._values.column(int(column[0]))
        else:
            weights = self._values[:-1, column[0]] if self._by_feature else self._values[column[0], :-1]
        used = np.flatnonzero(weights)
        if top is not None and top < len(used):
            used = np.sort(used[np.argpartition(-np.abs(weights[used]), top - 1)[:top]])
        used = used[strongest(weights[used])]
        return [(str(names(j)), float(weights[j])) for j in used.tolist()]

    def _questions(self, X: Any, asked: list[int] | None, against: int | None) -> Iterator[_Question]:
        leaves = self.hierarchy_.graph.leaves
        if self._sets is not None:
            indptr, found = self._found(X)  # type: ignore[attr-defined]
        else:
            positions = [self.hierarchy_.leaf_position(label) for label in self.predict(X).tolist()]  # type: ignore[attr-defined]
            indptr, found = np.arange(len(positions) + 1), np.array(positions, dtype=np.int32)
        for row in range(len(indptr) - 1):
            predicted = leaves[found[indptr[row] : indptr[row + 1]]]
            for label in predicted.tolist() if asked is None else asked:
                yield _Question(row, label, against, predicted)

    def _answer(self, X: Any, question: _Question, names: Any, top: int | None) -> Explanation:
        own = self._counted(question.label, question.predicted)
        other = (
            np.zeros(0, np.int32) if question.against is None else self._counted(question.against, question.predicted)
        )
        mine, theirs = np.setdiff1d(own, other), np.setdiff1d(other, own)  # ascending: from the top
        nodes, sign = np.concatenate([mine, theirs]), np.repeat([1.0, -1.0], [len(mine), len(theirs)])
        ends = [question.label] if question.against is None else [question.label, question.against]
        shared = np.setdiff1d(self._closure(np.array(ends)), nodes)
        shared = shared[self.node_weights_[shared] > 0]
        used, x = entries(X, question.row)
        parts = sign[:, None] * self._products(nodes, used, x)
        intercepts, offsets = (sign * part[nodes] for part in self._constants())
        best = strongest(parts.sum(axis=0))[:top]
        chosen = parts[:, best]
        rest = np.delete(parts, best, axis=1).sum(axis=1)
        score = chosen.sum(axis=1) + rest + intercepts + offsets
        return Explanation(
            row=question.row,
            label=public(self.hierarchy_.nodes[question.label]),
            against=None if question.against is None else public(self.hierarchy_.nodes[question.against]),
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

        All of Ā(l); of label sets, those that no other predicted leaf has: what the label adds to the set.
        """
        graph = self.hierarchy_.graph
        own = graph.ancestors.row(node)
        if self._sets is None:
            return own
        others = [leaf for leaf in predicted.tolist() if node not in graph.ancestors.row(leaf)]
        return np.setdiff1d(own, self._closure(np.array(others, dtype=np.int32)))

    def _closure(self, nodes: IntArray) -> IntArray:
        found: IntArray = np.unique(self.hierarchy_.graph.ancestors.rows(nodes).indices)
        return found

    def _products(self, nodes: IntArray, used: IntArray, x: FloatArray) -> FloatArray:
        """U_nj·x_j of some nodes and features; 0 for nodes without weight."""
        columns = self._columns.nodes
        place = np.minimum(np.searchsorted(columns, nodes), len(columns) - 1)
        has = np.flatnonzero(columns[place] == nodes)
        at = place[has]
        if isinstance(self._values, (StoredRows, Packed)):
            values = self._values.block(used, at).T
        else:
            values = self._values[np.ix_(used, at)].T if self._by_feature else self._values[np.ix_(at, used)]
        out = np.zeros((len(nodes), len(used)))
        out[has] = values.astype(np.float64) * x
        return out

    def _constants(self) -> tuple[FloatArray, FloatArray]:
        """What the intercept and the offsets add to every node."""
        intercepts = self.intercept_.astype(np.float64)  # type: ignore[attr-defined]
        offsets = np.zeros_like(intercepts) if self._sets is None else self._all_offsets()  # type: ignore[attr-defined]
        return intercepts, offsets

    def _node_totals(self, nodes: IntArray, used: IntArray, x: FloatArray) -> FloatArray:
        intercepts, offsets = self._constants()
        total: FloatArray = self._products(nodes, used, x).sum(axis=1) + intercepts[nodes] + offsets[nodes]
        return total

    def _parts(self, nodes: IntArray, scores: FloatArray, against: Any = None) -> tuple[NodePart, ...]:
        h = self.hierarchy_
        flags = np.zeros(len(nodes), dtype=bool) if against is None else against
        return tuple(
            NodePart(h.nodes[n], float(self.node_weights_[n]), int(h.graph.level[n]), float(score), bool(flag))
            for n, score, flag in zip(nodes.tolist(), scores, flags, strict=True)
        )

    def _node_of(self, label: Label) -> int:
        """The leaf of a class, or an inner node."""
        number = self.hierarchy_.number(label)
        return self.hierarchy_.number(VirtualLeaf(label)) if VirtualLeaf(label) in self.hierarchy_ else number
