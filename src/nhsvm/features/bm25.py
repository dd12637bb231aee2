"""BM25: weights of terms from their counts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nhsvm.errors import DataError, OptionError
from nhsvm.typing import FloatArray, LabelsLike, Matrix, MatrixLike, PtrArray


class BM25Transformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Term counts to BM25 weights, the weighting of the paper's experiments.

    A term t that comes c times in a document d gets ::

        idf(t) · (k1 + 1)·c / (c + k1·(1 − b + b·|d|/avg|d|)),     idf(t) = log(1 + (N − n_t + ½) / (n_t + ½)),

    where |d| is the sum of the counts of d and its average, the number N of documents and the number n_t of those with
    the term are taken from the training data. The further 1 + in the logarithm keeps weights of frequent terms ≥ 0.

    Parameters
    ----------
    k1 : float, default 1.2
        How fast further occurrences of a term cease to count: 0 only sees whether it is there.
    b : float, default 0.75
        How much long documents are held against their terms, from 0 to 1.

    Attributes
    ----------
    idf_ : array of n_features
    average_length_ : float
    n_features_in_ : int
    feature_names_in_ : array, if features have names

    Notes
    -----
    Sparse counts give a CSR matrix, an array gives an array, and single precision stays single. Combine it with
    ``sklearn.preprocessing.Normalizer`` where vectors should have length one, as a linear SVM prefers.

    References
    ----------
    S. Robertson, H. Zaragoza. The probabilistic relevance framework: BM25 and beyond. Foundations and Trends in
    Information Retrieval 3, 2009.

    Examples
    --------
    >>> counts = sp.csr_matrix([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    >>> BM25Transformer().fit_transform(counts).toarray().round(3)
    array([[0.993, 0.194, 0.   ],
           [0.   , 0.172, 1.057]])
    """

    idf_: FloatArray
    average_length_: float
    n_features_in_: int

    def __init__(self, *, k1: float = 1.2, b: float = 0.75) -> None:
        self.k1 = k1
        self.b = b

    def fit(self, X: MatrixLike, y: LabelsLike = None) -> BM25Transformer:
        """Learn document frequencies and the average length.

        Parameters
        ----------
        X : array or sparse matrix of counts, a row a document
        y : ignored
        """
        self._check_options()
        X = self._checked(X, reset=True)
        n_samples, n_features = X.shape
        frequency = np.bincount(X.indices, minlength=n_features) if sp.issparse(X) else np.count_nonzero(X, axis=0)
        return self.fit_totals(n_samples, frequency, float(X.sum(dtype=np.float64)))

    def fit_totals(self, n_samples: int, frequency: PtrArray, total: float) -> BM25Transformer:
        """Learn from totals of documents that are read a part at a time.

        Parameters
        ----------
        n_samples : int
        frequency : array of n_features
            Documents that have the term.
        total : float
            Of all counts.
        """
        self.idf_ = np.log1p((n_samples - frequency + 0.5) / (frequency + 0.5))
        self.average_length_, self.n_features_in_ = total / n_samples, len(frequency)
        return self

    def transform(self, X: MatrixLike) -> Matrix:
        """Weights of the terms of some documents.

        Parameters
        ----------
        X : array or sparse matrix of counts, a row a document

        Returns
        -------
        array or CSR matrix of the same shape
        """
        check_is_fitted(self)
        X = self._checked(X)
        lengths = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        relative = lengths / self.average_length_ if self.average_length_ else lengths
        # in the precision of X, so that millions of single-precision counts do not become doubles on the way
        penalty = (self.k1 * (1 - self.b + self.b * relative)).astype(X.dtype)
        gain = ((self.k1 + 1) * self.idf_).astype(X.dtype)
        if not sp.issparse(X):
            weights = X + penalty[:, None]
            np.divide(X, weights, out=weights, where=weights > 0)
            return weights * gain
        weights = X.data + np.repeat(penalty, np.diff(X.indptr))
        np.divide(X.data, weights, out=weights)  # counts are positive here: zeros are not stored
        weights *= gain[X.indices]
        return type(X)((weights, X.indices.copy(), X.indptr.copy()), shape=X.shape)

    def _checked(self, X: MatrixLike, reset: bool = False) -> Matrix:
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        values = X.data if sp.issparse(X) else X
        if values.size and values.min() < 0:
            first = int((values < 0).argmax())
            row = np.searchsorted(X.indptr, first, side="right") - 1 if sp.issparse(X) else first // X.shape[1]
            raise DataError(f"Negative values in data passed to BM25Transformer: counts must be ≥ 0, unlike row {row}")
        if sp.issparse(X) and values.size and not (values.all() and X.has_canonical_format):
            X = X.copy()
            X.sum_duplicates()
            X.eliminate_zeros()
        return X

    def _check_options(self) -> None:
        for name, value, most in (("k1", self.k1, np.inf), ("b", self.b, 1.0)):
            is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not (is_number and np.isfinite(value) and 0 <= value <= most):
                limits = "≥ 0" if most == np.inf else "from 0 to 1"
                raise OptionError(f"{name} must be a number {limits}, not {value!r}")

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
