"""Explanations of what a pipeline says, in terms of what its first steps make of a sample: the words of a text."""

from __future__ import annotations

from typing import Any

from nhsvm.errors import OptionError
from nhsvm.explanation.parts import Explanations


def explain(
    model: Any, X: Any, labels: Any = None, *, against: Any = None, feature_names: Any = None, top: int | None = 10
) -> Explanations:
    """Explain the predictions of an estimator, or of a pipeline that ends in one, as its ``explain`` does.

    Parameters
    ----------
    model : FlatSVM, HSVM, NHSVM, SSVM, or Pipeline
        Fitted.
    X : text, texts or samples
        What the model takes; a single text need not be in a list.
    labels, against, top
        See ``NHSVM.explain``.
    feature_names : sequence of n_features, optional
        By default what the pipeline's steps call them (words, for a vectoriser); features are numbered, ``x17``, if a
        step does not name them, as a hashing vectoriser.

    Returns
    -------
    Explanations

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from nhsvm import FlatSVM
    >>> model = make_pipeline(TfidfVectorizer(), FlatSVM(fit_intercept=False, tol=1e-9))
    >>> model = model.fit(["it barks", "it purrs"], ["dog", "cat"])
    >>> print(explain(model, "who barks?"))
    dog: score 0.614 (predicted)
              dog     sum
    barks   0.614   0.614
    sum     0.614   0.614
    """
    steps, estimator = _split(model)
    if isinstance(X, str):
        X = [X]
    if steps is not None:
        if feature_names is None:
            feature_names = features_of(model)
        X = steps.transform(X)
    found: Explanations = estimator.explain(X, labels, against=against, feature_names=feature_names, top=top)
    return found


def features_of(model: Any) -> Any:
    """Names of the features that the last step of a pipeline, or an estimator, has learned from; None without names.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.
    """
    steps, estimator = _split(model)
    if steps is None:
        return getattr(estimator, "feature_names_in_", None)
    named = all(hasattr(step, "get_feature_names_out") for _, step in steps.steps if not isinstance(step, str))
    return steps.get_feature_names_out() if named else None


def _split(model: Any) -> tuple[Any, Any]:
    """(what comes before the estimator, or None; the estimator)."""
    steps, estimator = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    if not hasattr(estimator, "explain"):
        kind = type(estimator).__name__
        raise OptionError(f"only FlatSVM, HSVM, NHSVM, SSVM and pipelines that end in one can be explained, not {kind}")
    return (steps if steps is None or len(steps) else None), estimator
