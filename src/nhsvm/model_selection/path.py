"""Fits along C, each of which starts from the dual variables of the one before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from nhsvm.errors import OptionError
from nhsvm.estimators.options import streams
from nhsvm.model_selection.grid import costs, last_step


def regularization_path(
    estimator: Any, X: Any, y: Any, Cs: Any, *, sample_weight: Any = None
) -> Iterator[tuple[float, Any]]:
    """Fitted models along a path of C, from the smallest to the largest.

    Cheaper than as many fits, and the more so the closer the values are: each starts from the dual variables of the one
    before, and a pipeline's other steps are fitted once. Every model has the accuracy of a fit of its own, since that
    is proved by its gap.

    Parameters
    ----------
    estimator : FlatSVM, HSVM, NHSVM, SSVM, or Pipeline that ends in one
        Not changed. With ``solver="sgd"`` there are no dual variables, and every fit starts from nothing.
    X, y, sample_weight
        As for ``fit``.
    Cs : numbers
        In any order.

    Yields
    ------
    C, model : float, fitted estimator
        Models are independent of each other; those of a pipeline share its fitted first steps.

    Examples
    --------
    >>> from nhsvm import FlatSVM
    >>> from nhsvm.model_selection import regularization_path
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], ["a", "a", "b", "b"]
    >>> for C, model in regularization_path(FlatSVM(), X, y, [1, 100, 10]):
    ...     print(C, model.score(X, y))
    1.0 1.0
    10.0 1.0
    100.0 1.0
    """
    values = costs(Cs, None)
    if values is None:
        raise OptionError("regularization_path needs values of C")
    last_step(estimator)
    return _path(clone(estimator), X, y, values, sample_weight)


def _path(estimator: Any, X: Any, y: Any, values: tuple[float, ...], sample_weight: Any) -> Iterator[tuple[float, Any]]:
    steps, model = split_pipeline(estimator)
    if steps is not None:
        X = steps.fit_transform(X, y)
    warm = model.warm_start
    go_on(model)
    problem = model.make_problem(X, y, sample_weight)
    for C in values:
        model.set_params(C=C).fit_problem(problem)
        yield C, joined(steps, detached(model).set_params(warm_start=warm), estimator)


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """(steps before the last as a pipeline, or None if there are none; the last step)."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    return (estimator[:-1] if len(estimator.steps) > 1 else None), estimator.steps[-1][1]


def joined(steps: Any, model: Any, like: Any) -> Any:
    """The opposite: a pipeline of fitted parts, if ``like`` is one."""
    if not isinstance(like, Pipeline):
        return model
    before = [] if steps is None else steps.steps
    return Pipeline([*before, (like.steps[-1][0], model)])


def go_on(model: Any) -> None:
    """Let the next fits of a model start from the last one, if its solver can."""
    model.set_params(warm_start=not streams(model))


def detached(model: Any) -> Any:
    """A fitted model that later fits of this one do not change, without dual variables."""
    return model._with_model(model.model_)
