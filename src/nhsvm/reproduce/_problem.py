"""A data set as the models get it: features, labels, a hierarchy, and what was left out for testing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from nhsvm.errors import DataError
from nhsvm.features import BM25Transformer
from nhsvm.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Problem:
    """Training, validation and test samples.

    Attributes
    ----------
    hierarchy : Hierarchy
    train, test : (features, labels)
    validation : (features, labels), optional
        To choose with; otherwise a part of the training samples is held out.
    features : str
        How the features were made, in words.
    """

    hierarchy: Hierarchy
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    features: str
    validation: tuple[Any, Any] | None = None

    @property
    def multilabel(self) -> bool:
        return isinstance(self.train[1], list)

    @property
    def whole(self) -> tuple[Any, Any]:
        """All samples that may be learned from in the end."""
        if self.validation is None:
            return self.train
        (X, y), (X_more, y_more) = self.train, self.validation
        stack = sp.vstack if sp.issparse(X) else np.vstack
        return stack([X, X_more]), [*y, *y_more] if self.multilabel else np.concatenate([y, y_more])


def text_features(train: Sequence[str], *others: Sequence[str]) -> list[Any]:
    """Words that come in two training texts at least, with BM25 weights, every text of length one."""
    counter = CountVectorizer(min_df=2, dtype=np.float64)
    return count_features(counter.fit_transform(train), *(counter.transform(other) for other in others))


def count_features(train: Any, *others: Any) -> list[Any]:
    """Term counts with BM25 weights, as in the paper, every sample of length one."""
    steps = make_pipeline(BM25Transformer(), Normalizer()).fit(train)
    return [steps.transform(X).tocsr() for X in (train, *others)]


def dense_features(train: Any, *others: Any) -> list[Any]:
    """Missing values are means; columns have mean 0 and variance 1 / n_features, so samples have length one or so."""
    if np.isnan(train).all(axis=0).any():
        raise DataError("a feature has no value in any training sample")
    steps = make_pipeline(SimpleImputer(), StandardScaler()).fit(train)
    return [steps.transform(X) / np.sqrt(train.shape[1]) for X in (train, *others)]


BM25, DENSE = "BM25, length one", "standardised"
