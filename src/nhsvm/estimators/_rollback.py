"""A fit that fails leaves what was there before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Put all attributes back if an error comes: the model of the fit before stays usable."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in before.keys() & {"_planes", "_stream"}:  # what a solver had in its hands is gone
            before[name] = vars(estimator)[name]
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
