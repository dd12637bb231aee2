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
        if "_planes" in before:  # dual variables that a solver had in its hands are gone
            before["_planes"] = vars(estimator)["_planes"]
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
