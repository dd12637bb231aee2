"""What fitted estimators answer: scores, labels, the best few labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nhsvm.columns import Columns
from nhsvm.errors import OptionError
from nhsvm.estimators._data import checked, precise_enough
from nhsvm.estimators._options import n_threads
from nhsvm.hierarchy.graph import IntArray

_SCORES = 2**18  # numbers in the scores of one chunk of samples

Floats = npt.NDArray[Any]


class Prediction:
    """Prediction with stored weights; a mixin.

    Attributes
    ----------
    _values : array
        U, feature-major with shape (n_features + 1, n_columns) if ``_by_feature``, else (n_columns, n_features + 1).
    _columns : Columns
        With the leaves in the order of ``classes_``, so that the first of equal scores wins.
    _class_leaves : array of n_classes
        Position of every class among the leaves of the hierarchy.
    """

    _values: Floats
    _by_feature: bool
    _bias: float
    _columns: Columns
    _class_leaves: IntArray
    classes_: Floats
    n_jobs: int | None

    @property
    def coef_(self) -> Floats:
        """U, one row a node of ``hierarchy_``: zero for nodes without weight (n_nodes, n_features)."""
        check_is_fitted(self)
        values = self._values[:-1].T if self._by_feature else self._values[:, :-1]
        if self._columns.n_columns == self._n_nodes:
            return values
        full = np.zeros((self._n_nodes, values.shape[1]), dtype=values.dtype)
        full[self._columns.nodes] = values
        return full

    @property
    def intercept_(self) -> Floats:
        """What the constant feature adds to the score of every node (n_nodes,)."""
        check_is_fitted(self)
        last = self._values[-1] if self._by_feature else self._values[:, -1]
        full = np.zeros(self._n_nodes, dtype=last.dtype)
        full[self._columns.nodes] = last * self._bias
        return full

    @property
    def _n_nodes(self) -> int:
        return int(self.hierarchy_.n_nodes)  # type: ignore[attr-defined]

    def decision_function(self, X: Any) -> Floats:
        """Scores of the classes, γ(x, l) of Eq. 1: (n_samples, n_classes), or for two classes (n_samples,)."""
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Floats:
        """The class with the highest score of every sample."""
        from nhsvm.oracles.single_label import best_leaves

        X = self._checked(X)
        best = np.empty(X.shape[0], dtype=np.int32)
        self._in_chunks(X, lambda part, scores: best_leaves(self._columns, scores, best[part]))
        return self.classes_[best]

    def predict_topk(self, X: Any, k: int = 5) -> Floats:
        """The k classes with the highest scores, best first: (n_samples, k), or all classes if there are fewer.

        Equal scores are in the order of ``classes_``.
        """
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not k >= 1:
            raise OptionError(f"k must be a whole number of at least 1, not {k!r}")
        scores = self._class_scores(X)
        return self.classes_[np.argsort(-scores, axis=1, kind="stable")[:, :k]]

    def node_scores(self, X: Any) -> Floats:
        """U_n·x of every node of ``hierarchy_``: (n_samples, n_nodes)."""
        X = self._checked(X)
        out = np.zeros((X.shape[0], self._n_nodes), dtype=self._values.dtype)

        def store(part: slice, scores: Floats) -> None:
            out[part, self._columns.nodes] = scores

        self._in_chunks(X, store)
        return out

    def _class_scores(self, X: Any) -> Floats:
        from nhsvm.oracles.single_label import leaf_scores

        X = self._checked(X)
        out = np.empty((X.shape[0], self._columns.n_leaves), dtype=self._values.dtype)
        self._in_chunks(X, lambda part, scores: leaf_scores(self._columns, scores, out[part]))
        return out

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return checked(self, X)

    def _in_chunks(self, X: Any, use: Callable[[slice, Floats], None]) -> None:
        """Column scores of all samples, some at a time, on all threads."""
        from nhsvm.solvers._dense import DenseWeights
        from nhsvm.solvers._problem import Weights, prepare
        from nhsvm.solvers._sparse import SparseWeights
        from nhsvm.solvers._threads import Team

        n = X.shape[0]
        dtype = self._values.dtype if precise_enough(X, self._bias) else np.dtype(np.float64)
        weights: Weights
        if sp.issparse(X):
            values = self._values if self._by_feature else np.ascontiguousarray(self._values.T)
            weights = SparseWeights(prepare(X), values, self._bias)
        else:
            weights = DenseWeights(X, self._values.T if self._by_feature else self._values, self._bias)
        step = max(16, _SCORES // max(1, self._columns.n_columns))

        def work(lo: int, hi: int) -> None:
            for rows in _steps(lo, hi, step):
                scores = np.empty((rows.stop - rows.start, self._columns.n_columns), dtype=dtype)
                weights.scores(np.arange(rows.start, rows.stop), scores)
                use(rows, scores)

        # BLAS has threads of its own, and its bits may depend on the shape of what it is given
        with Team(n_threads(self.n_jobs) if sp.issparse(X) else 1) as team:
            team.split(n, work)


def _steps(lo: int, hi: int, step: int) -> Iterator[slice]:
    return (slice(k, min(hi, k + step)) for k in range(lo, hi, step))
