"""Small fits that compile the kernels of common paths, before anybody waits for them."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from nhsvm.compilation import COMPILATIONS
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.estimators.presets import HRSVM, NHSVM
from nhsvm.hierarchy import Hierarchy

_TEXTS = (
    "barks at the cat", "a loyal friend that barks", "purrs and sleeps", "chases mice and purrs", "acorns and leaves",
    "a tree with leaves",
)  # fmt: skip
_LABELS = ("dog", "dog", "cat", "cat", "oak", "oak")
_SETS = ({"dog"}, {"dog", "cat"}, {"cat"}, {"cat", "oak"}, {"oak"}, {"oak"})
_TREE = (("animal", "dog"), ("animal", "cat"), ("plant", "oak"))
_DAG = (*_TREE, ("garden", "cat"), ("garden", "oak"))


class Route(NamedTuple):
    """One way through the library: an estimator, and samples and labels of one kind."""

    name: str
    estimator: type[HierarchicalSVM] = NHSVM
    dag: bool = False
    has_sets: bool = False
    dense: bool = False


# those that take longest first; neighbours have little in common, since several processes may share them
ROUTES = (
    Route("label sets on a DAG", dag=True, has_sets=True),
    Route("texts, one label each"),
    Route("label sets on a tree", has_sets=True),
    Route("texts, one label each, on a DAG", dag=True),
    Route("HRSVM", HRSVM),
    Route("numbers, one label each", dense=True),
    Route("numbers, label sets", has_sets=True, dense=True),
)


class Compiled(NamedTuple):
    """What following some routes has compiled: how many kernels, and the files that have their machine code."""

    kernels: int
    files: dict[Path, int]


def follow(route: Route) -> Compiled:
    """Learn and predict in a small way."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    before = COMPILATIONS.kernels
    hierarchy = Hierarchy.from_edges(_DAG if route.dag else _TREE)
    X = TfidfVectorizer().fit_transform(_TEXTS)
    X = X.toarray() if route.dense else X
    model = route.estimator(hierarchy, C=10).fit(X, list(_SETS if route.has_sets else _LABELS))
    model.decision_function(X)
    model.predict(X)
    return Compiled(COMPILATIONS.kernels - before, dict(COMPILATIONS.files))


def follow_all(routes: Sequence[Route], jobs: int) -> Iterator[tuple[Route, Compiled]]:
    """Follow routes, as they are done; ``jobs`` processes share them, and wait for each other's kernels."""
    jobs = min(jobs, len(routes))
    if jobs == 1:
        for route in routes:
            yield route, follow(route)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), _leave_interrupts_to_the_parent) as pool:
        waiting = {pool.submit(follow, route): route for route in routes}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:  # after an interrupt, what has begun is waited for, and no more
            pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
