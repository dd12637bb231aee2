"""What fitted estimators answer: scores, labels, the best few labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nhsvm.columns import Columns
from nhsvm.errors import OptionError
from nhsvm.estimators._beam import beam_leaves
from nhsvm.estimators._chunks import Learned, in_chunks
from nhsvm.estimators._data import checked, checked_weights, same_length
from nhsvm.estimators._explain import Explaining
from nhsvm.estimators._leaves import best_of_all, scores_of_all
from nhsvm.estimators._sets import Sets
from nhsvm.estimators._targets import as_labels
from nhsvm.hierarchy.graph import IntArray
from nhsvm.packed import Packed
from nhsvm.rows import StoredRows

Floats = npt.NDArray[Any]


class Prediction(Explaining, Sets):
    """Prediction with stored weights; a mixin.

    Attributes
    ----------
    _values : array
        U, feature-major with shape (n_features + 1, n_columns) if ``_by_feature``, else (n_columns, n_features + 1); or
        StoredRows, where a table would be too large; or Packed, in a model that was saved to be small.
    _columns : Columns
        With the leaves in the order of ``classes_``, so that the first of equal scores wins.
    _class_leaves : array of n_classes
        Position of every class among the leaves of the hierarchy.
    """

    _values: Any
    _by_feature: bool
    _bias: float
    _columns: Columns
    _class_leaves: IntArray
    n_jobs: int | None

    @property
    def coef_(self) -> Any:
        """U, one row a node of ``hierarchy_``: zero for nodes without weight (n_nodes, n_features).

        A sparse array, made when asked for, if weights did not fit into memory as a table.
        """
        check_is_fitted(self)
        values = self._values.widened() if isinstance(self._values, Packed) else self._values
        if isinstance(values, StoredRows):
            return self._sparse_coef(values)
        values = values[:-1].T if self._by_feature else values[:, :-1]
        if self._columns.n_columns == self._n_nodes:
            return values
        full = np.zeros((self._n_nodes, values.shape[1]), dtype=values.dtype)
        full[self._columns.nodes] = values
        return full

    def _sparse_coef(self, rows: StoredRows) -> sp.csr_array:
        found = rows.to_csc()
        if self._columns.n_columns < self._n_nodes:
            nodes = self._columns.nodes.astype(np.int32)[found.indices]
            found = sp.csc_array((found.data, nodes, found.indptr), shape=(self._n_nodes, found.shape[1]))
        return found.tocsr()

    @property
    def intercept_(self) -> Floats:
        """What the constant feature adds to the score of every node (n_nodes,)."""
        check_is_fitted(self)
        if isinstance(self._values, (StoredRows, Packed)):
            last = self._values.constant
        else:
            last = self._values[-1] if self._by_feature else self._values[:, -1]
        full = np.zeros(self._n_nodes, dtype=last.dtype)
        full[self._columns.nodes] = last * self._bias
        return full

    @property
    def _n_nodes(self) -> int:
        return self.hierarchy_.n_nodes

    def decision_function(self, X: Any) -> Floats:
        """Scores of the classes.

        One label a sample: γ(x, l) of Eq. 1, of shape (n_samples, n_classes), or for two classes (n_samples,).

        Label sets: what a label, with what is above it, adds to the score of the predicted set when all others stay as
        they are, (n_samples, n_classes). So it is positive for the labels that are predicted and negative for the
        others, unless a label is there only because a set must not be empty.
        """
        check_is_fitted(self)
        if self._sets is not None:
            return self._gains(X).gains
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any, *, beam: int | None = None, exact: bool = True) -> Any:
        """The label, or label set, with the highest score of every sample.

        Parameters
        ----------
        X : samples
        beam : int, optional
            Go down the tree and keep so many nodes a level, instead of looking at all labels: quicker with sparse
            features and many nodes, and the label may not be the best one. For one label a sample, on trees.
        exact : bool
            Label sets on a DAG: prove each to be the best, which may take seconds a sample on a large one. Without a
            proof the search ends within a budget of work; the set may not be the best one then.

        Notes
        -----
        Label sets come in the form they were given to :meth:`fit` in: an array of lists, tuples, sets or frozensets, or
        an indicator, dense or sparse, with the columns of ``classes_``. Each is the best of all label sets, unless
        ``exact=False``; an empty one only with ``allow_empty=True``.
        """
        check_is_fitted(self)
        if beam is not None:
            self._check_beam(beam)
        if self._sets is not None:
            return self._predict_sets(X, exact)
        X = self._checked(X)
        if beam is not None:
            return self.classes_[beam_leaves(X, self._learned, self._columns, beam, self.n_jobs)]
        return self.classes_[best_of_all(X, self._learned, self._columns, self.n_jobs)]

    def _check_beam(self, beam: Any) -> None:
        if not isinstance(beam, (int, np.integer)) or isinstance(beam, bool) or not beam >= 1:
            raise OptionError(f"beam must be None or a whole number of at least 1, not {beam!r}")
        if self._sets is not None:
            raise OptionError("beam is for one label a sample; label sets are searched for exactly")
        if not self.hierarchy_.graph.is_tree:
            raise OptionError("beam goes down a tree, but a node of this hierarchy has several parents")

    def predict_topk(self, X: Any, k: int = 5) -> Floats:
        """The k classes with the highest scores, best first: (n_samples, k), or all classes if there are fewer.

        Of label sets, the labels that are predicted come first, then the others, both by :meth:`decision_function`.
        Equal scores are in the order of ``classes_``.
        """
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not k >= 1:
            raise OptionError(f"k must be a whole number of at least 1, not {k!r}")
        check_is_fitted(self)
        if self._sets is None:
            order = np.argsort(-self._class_scores(X), axis=1, kind="stable")
        else:
            gains, inside, _ = self._gains(X)
            order = np.lexsort((-gains, ~inside), axis=1)
        return self.classes_[order[:, :k]]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of samples with the right label, or with exactly the right set of labels.

        Labels may be of any type, such as tuples. A label that training has not seen is never right. For label sets
        this is scikit-learn's subset accuracy, 0 for a set that lacks one label of ten;
        :func:`nhsvm.metrics.example_jaccard` and others are less strict.
        """
        check_is_fitted(self)
        if self._sets is not None:
            right = self._right_sets(X, y)
        else:
            found, labels = self.predict(X).astype(object), as_labels(y).astype(object)
            same_length(len(found), len(labels))
            right = np.fromiter((a == b for a, b in zip(found, labels, strict=True)), dtype=bool, count=len(found))
        return float(np.average(right, weights=checked_weights(sample_weight, len(right))))

    def node_scores(self, X: Any) -> Floats:
        """U_n·x of every node of ``hierarchy_``: (n_samples, n_nodes), without ``leaf_offset`` and ``offsets_``."""
        X = self._checked(X)
        out = np.zeros((X.shape[0], self._n_nodes), dtype=self._values.dtype)

        def store(part: slice, scores: Floats) -> None:
            out[part, self._columns.nodes] = scores

        self._in_chunks(X, store)
        return out

    def _class_scores(self, X: Any) -> Floats:
        return scores_of_all(self._checked(X), self._learned, self._columns, self.n_jobs)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return checked(self, X, bounded=False)

    def _in_chunks(self, X: Any, use: Callable[[slice, Floats], None], width: int | None = None) -> None:
        """Column scores of all samples, some at a time, on all threads."""
        in_chunks(X, self._learned, use, self.n_jobs, width)

    @property
    def _learned(self) -> Learned:
        return Learned(self._values, self._by_feature, self._bias)
