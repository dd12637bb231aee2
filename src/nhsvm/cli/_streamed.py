"""Transformers fitted a part of the data at a time: what they learn is the same as from all of it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from nhsvm.cli._features import FeatureOptions, Missing, Transform, Vectorizer, number_steps, refuse_others, text_steps
from nhsvm.errors import DataError, OptionError

Steps = list[tuple[str, Any]]


def is_asked_for(options: FeatureOptions) -> bool:
    """Whether features are to be made of numbers."""
    return options.transform not in (None, Transform.none)


def fit_texts(parts: Iterable[list[str]], options: FeatureOptions) -> Steps:
    """The transformers of texts.

    Parameters
    ----------
    parts : lists of texts
    options : FeatureOptions

    Returns
    -------
    list of (name, fitted transformer)
    """
    refuse_others(options, texts=True)
    if options.vectorizer is Vectorizer.hashing:
        return text_steps(options, 0)
    analyze = text_steps(options, 0)[0][1].build_analyzer()
    documents, occurrences, n_texts = Counter[str](), Counter[str](), 0
    for texts in parts:
        n_texts += len(texts)
        for text in texts:
            terms = analyze(text)
            occurrences.update(terms)
            documents.update(set(terms))
    if not n_texts:
        raise DataError("no samples are left; see --where")
    steps = text_steps(options, n_texts)
    return _with_vocabulary(steps, documents, occurrences, n_texts)


def _with_vocabulary(steps: Steps, documents: Counter[str], occurrences: Counter[str], n_texts: int) -> Steps:
    import numpy as np

    vectorizer = steps[0][1]
    terms = sorted(documents)
    frequency = np.array([documents[term] for term in terms], dtype=np.int64)
    total = np.array([occurrences[term] for term in terms], dtype=np.int64)
    kept = _kept(vectorizer, frequency, total, n_texts)
    vectorizer.vocabulary_ = {terms[k]: number for number, k in enumerate(kept.tolist())}
    vectorizer.fixed_vocabulary_ = False
    vectorizer._stop_words_id = id(vectorizer.stop_words)  # they were looked at
    if hasattr(vectorizer, "sublinear_tf"):
        from sklearn.feature_extraction.text import TfidfTransformer

        weights = {name: getattr(vectorizer, name) for name in ("norm", "use_idf", "smooth_idf", "sublinear_tf")}
        vectorizer._tfidf = TfidfTransformer(**weights)
        _set_tfidf(vectorizer._tfidf, frequency[kept], n_texts, np.float32)
    for name, step in steps[1:]:
        _fit_counts(name, step, frequency[kept], float(total[kept].sum()), n_texts, np.float32)
    return steps


def _kept(vectorizer: Any, frequency: Any, total: Any, n_texts: int) -> Any:
    """Numbers of the terms that scikit-learn's vectorisers would keep."""
    import numpy as np

    low, high = (
        limit if isinstance(limit, int) else limit * n_texts for limit in (vectorizer.min_df, vectorizer.max_df)
    )
    kept = np.flatnonzero((frequency >= low) & (frequency <= high))
    if vectorizer.max_features is not None and len(kept) > vectorizer.max_features:
        kept = np.sort(kept[(-total[kept].astype(np.float32)).argsort()[: vectorizer.max_features]])
    if not len(kept):
        raise DataError("no features can be made: no term is left; lower --min-df, or raise --max-df")
    return kept


def fit_numbers(parts: Iterable[Any], options: FeatureOptions) -> Steps:
    """The transformers of features that are numbers.

    Parameters
    ----------
    parts : matrices
        The rows of one, some at a time.
    options : FeatureOptions
    """
    refuse_others(options, texts=False)
    if options.missing not in (None, Missing.error) or options.transform is Transform.standard:
        raise OptionError("convert has neither --missing nor --transform standard: give them to train")
    import numpy as np
    import scipy.sparse as sp

    steps = number_steps(options)
    frequency, total, n_rows, dtype = np.zeros(0, np.int64), 0.0, 0, np.dtype(np.float64)
    for X in parts:
        if hasattr(steps[0][1], "partial_fit"):
            steps[0][1].partial_fit(X)
            continue
        rows = sp.csr_array(X)
        if steps[0][0] == "bm25":
            _check_counts(rows, n_rows)
            rows.eliminate_zeros()
        found = np.bincount(rows.indices, minlength=rows.shape[1])
        frequency = frequency + found if n_rows else found
        total, n_rows, dtype = total + float(rows.data.sum(dtype=np.float64)), n_rows + rows.shape[0], rows.dtype
    if n_rows:
        for name, step in steps:
            _fit_counts(name, step, frequency, total, n_rows, dtype)
    return steps


def _check_counts(rows: Any, before: int) -> None:
    import numpy as np

    if rows.data.size and rows.data.min() < 0:
        row = int(np.searchsorted(rows.indptr, np.argmax(rows.data < 0), side="right"))
        raise DataError(f"no features can be made (bm25): counts must be ≥ 0, unlike those of sample {before + row}")


def _fit_counts(name: str, step: Any, frequency: Any, total: float, n_rows: int, dtype: Any) -> None:
    """Fit a transformer by the number of samples that have a feature, and by all counts together."""
    import numpy as np
    import scipy.sparse as sp

    if name == "tfidf":
        _set_tfidf(step, frequency, n_rows, dtype)
    elif name == "bm25":
        step.idf_ = np.log1p((n_rows - frequency + 0.5) / (frequency + 0.5))
        step.average_length_ = total / n_rows
        step.n_features_in_ = len(frequency)
    else:  # learns nothing but the number of features
        step.fit(sp.csr_array((1, len(frequency)), dtype=dtype))


def _set_tfidf(step: Any, frequency: Any, n_rows: int, dtype: Any) -> None:
    """As ``TfidfTransformer.fit``, in the same precision."""
    import numpy as np

    smooth = int(step.smooth_idf)
    idf = np.full(len(frequency), n_rows + smooth, dtype=dtype)
    idf /= (frequency + smooth).astype(dtype)
    np.log(idf, out=idf)
    idf += 1.0
    step.idf_, step.n_features_in_ = idf, len(frequency)


def transformed(steps: Steps, X: Any) -> Any:
    """Samples after all transformers."""
    for name, step in steps:
        try:
            X = step.transform(X)
        except (TypeError, ValueError) as error:
            raise DataError(f"no features can be made ({name}): {error}") from error
    return X
