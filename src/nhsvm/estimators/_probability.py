"""Probabilities of classes and nodes, and answers no deeper than they allow; a mixin."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.options import is_number

Floats = npt.NDArray[Any]
_ROUNDING = 1e-9  # by which a sum of probabilities may fall short
_NUMBERS = 2**22  # probabilities of nodes at work at a time


def _asked(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError(
            f"probabilities are learned only when asked for: give {type(estimator).__name__}(probability=True) and fit"
        )
    return True


class Probability:
    """Softmax of the scores over ``temperature_``, and its sums over the hierarchy.

    Attributes
    ----------
    temperature_ : float
        T, learned from held-out folds if ``probability``.
    """

    probability: bool
    classes_: Floats
    temperature_: float
    hierarchy_: Hierarchy

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes: (n_samples, n_classes). Needs ``probability=True``.

        For one label a sample, softmax of the scores over ``temperature_``. For label sets, where they do not add up to
        one, those of :meth:`node_proba`.
        """
        if self._has_sets():
            own: Floats = self.hierarchy_.graph.leaves[self._class_leaves]  # type: ignore[attr-defined]
            nodes: Floats = self.node_proba(X)
            return nodes[:, own]
        found: Floats = softmax(self._logits(X), axis=1)
        return found

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of :meth:`predict_proba`."""
        if self._has_sets():
            classes: Floats = self.predict_proba(X)
            return np.log(classes)
        found: Floats = log_softmax(self._logits(X), axis=1)
        return found

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def node_proba(self, X: Any) -> Floats:
        """Probabilities of the nodes of ``hierarchy_``: (n_samples, n_nodes). Needs ``probability=True``.

        For one label a sample, the sum over the classes at or below. For label sets, a logistic curve for every node,
        learned from held-out folds, of the most that a class at or below it adds to the best set and of the scores of
        all nodes; no node is more probable than what is above it.
        """
        if self._has_sets():
            self._must_have("_curves")
            nodes: Floats = self._set_proba(X)  # type: ignore[attr-defined]
            return nodes
        return self._sum_up(self.predict_proba(X))

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict_partial(self, X: Any, threshold: float = 0.5) -> npt.NDArray[Any]:
        """The deepest node whose probability is at least a threshold: an answer as fine as it is safe.

        Among nodes of equal depth the more probable one, then the first. An inner node that is a class of its own is
        treated like any other inner node. Needs ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features)
        threshold : float
            In (0, 1].

        Returns
        -------
        array of n_samples labels
            Nodes of ``hierarchy_``; None where no node passes, which happens only if it has several roots.
        """
        if self._has_sets():
            raise OptionError("predict_partial is for one label a sample; for label sets take the nodes of node_proba")
        if not is_number(threshold) or not 0 < threshold <= 1:
            raise OptionError(f"threshold must be above 0 and at most 1, not {threshold!r}")
        proba = self.predict_proba(X)
        graph = self.hierarchy_.graph
        step = max(1, _NUMBERS // graph.n_nodes)
        best = np.empty(len(proba), dtype=np.int64)
        for lo in range(0, len(proba), step):
            found = self._sum_up(proba[lo : lo + step])
            passes = (found >= threshold - _ROUNDING) & ~self.hierarchy_.is_virtual  # whose node passes with them
            rank = np.where(passes, 2.0 * graph.level + found, -1.0)  # by depth, then by probability, which is ≤ 1
            here = rank.argmax(axis=1)
            best[lo : lo + step] = np.where(passes[np.arange(len(here)), here], here, graph.n_nodes)
        return _node_labels(self.hierarchy_)[best]

    def _sum_up(self, proba: Floats) -> Floats:
        leaves = np.empty_like(proba)
        leaves[:, self._class_leaves] = proba  # type: ignore[attr-defined]
        return np.ascontiguousarray((self.hierarchy_.graph.leaf_matrix().T @ leaves.T).T)

    def _has_sets(self) -> bool:
        """Whether this is a model of label sets."""
        check_is_fitted(self)
        return self._sets is not None  # type: ignore[attr-defined]

    def _must_have(self, learned: str) -> None:
        if not hasattr(self, learned):
            raise NotFittedError("this model was fitted without probabilities; fit it again with probability=True")

    def _logits(self, X: Any) -> Floats:
        self._must_have("temperature_")
        scores: Floats = self._class_scores(X).astype(np.float64)  # type: ignore[attr-defined]
        scores /= self.temperature_
        return scores


def _node_labels(hierarchy: Hierarchy) -> npt.NDArray[Any]:
    """Labels by node number, and None after the last."""
    labels = [None if virtual else node for node, virtual in zip(hierarchy.nodes, hierarchy.is_virtual, strict=True)]
    kinds = {type(label) for label in labels if label is not None}
    plain = len(kinds) == 1 and kinds <= {str, int, float, bool}
    if plain and hierarchy.graph.n_roots == 1:  # whose probability is 1, so that None is never looked up
        first = hierarchy.nodes[0]
        return np.array([*(first if label is None else label for label in labels), first])
    array = np.empty(len(labels) + 1, dtype=object)
    array[:-1] = labels
    return array
