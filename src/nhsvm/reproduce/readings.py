"""Other readings of Section 8.1, where the paper leaves open how its synthetic sets and SSVM were made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from nhsvm.datasets import Dataset, make_balanced, make_unbalanced
from nhsvm.engine import Sgd
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.reproduce._page import UNREADABLE
from nhsvm.reproduce._printed import alternated

TOL = 0.05
PASSES = 20  # of the stochastic method
ROUNDS = 2  # of the alternation, after the fit with max-min weights
LAMBDAS = {"balanced": (10.0,), "unbalanced": (0.1, 0.01)}
SOLVERS = ("dual", "sgd")
START = "NHSVM, max-min"
PRINTED = {"SSVM, √α printed": True, "SSVM, α printed": False}
COLUMNS = ("FlatSVM", "HSVM", START, "NHSVM, power", "SSVM", *PRINTED)


def columns(solver: str) -> tuple[str, ...]:
    """What a solver can do: the joint problem of SSVM takes the dual one."""
    return tuple(column for column in COLUMNS if (column, solver) != ("SSVM", "sgd"))


@dataclass(frozen=True)
class Reading:
    """One way to make the data.

    Attributes
    ----------
    kind : {"balanced", "unbalanced"}
    how : str or float
        ``assign`` of :func:`~nhsvm.datasets.make_balanced`, ``share`` of :func:`~nhsvm.datasets.make_unbalanced`.
    n_train, n_test, n_features : int
    """

    kind: str
    how: str | float
    n_train: int
    n_test: int
    n_features: int = 1_000

    def make(self, seed: Sequence[int]) -> Dataset:
        """Training and test samples, in this order."""
        rng, n = np.random.default_rng(list(seed)), self.n_train + self.n_test
        if self.kind == "balanced":
            return make_balanced(n, self.n_features, assign=str(self.how), random_state=rng)
        return make_unbalanced(n, self.n_features, share=self.how, random_state=rng)


READINGS = (
    Reading("balanced", "sum", 5_500, 2_500),
    Reading("balanced", "signs", 5_500, 2_500),
    Reading("balanced", "top_down", 10_000, 5_000),
    Reading("unbalanced", 0.4, 8_000, 2_000),
    Reading("unbalanced", "random", 8_000, 2_000),
)
_QUICK = (Reading("balanced", "top_down", 100, 50, 10), Reading("unbalanced", "random", 100, 50, 10))


@dataclass(frozen=True)
class Results:
    """Accuracies in percent.

    Attributes
    ----------
    seed, repeats : int
    quick : bool
    found : dict of (Reading, solver) to dict of column to (data sets, λ) accuracies
    """

    seed: int
    repeats: int
    quick: bool
    found: dict[tuple[Reading, str], dict[str, list[list[float]]]]

    def to_json(self) -> str:
        """All of it, for :meth:`from_json`."""
        head = {"seed": self.seed, "repeats": self.repeats, "quick": self.quick}
        found = [{"reading": asdict(r), "solver": solver, **rows} for (r, solver), rows in self.found.items()]
        return json.dumps({**head, "readings": found}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """The opposite.

        Raises
        ------
        DataError
            If it is no such file.
        """
        try:
            read = json.loads(text)
            found = {
                (Reading(**r["reading"]), str(r["solver"])): {c: _numbers(r[c]) for c in columns(r["solver"])}
                for r in read["readings"]
            }
            results = cls(int(read["seed"]), int(read["repeats"]), bool(read["quick"]), found)
            wanted = {(reading, solver) for reading, _ in plan(2, quick=results.quick) for solver in SOLVERS}
            if set(found) != wanted:
                raise ValueError("its readings are not those of this version")
            return results
        except UNREADABLE as error:
            raise DataError(f"this is no file of results of reproduce readings: {error}") from error

    def best(self, reading: Reading, solver: str, column: str) -> list[float]:
        """Accuracies of every data set of a reading, with the λ of the highest mean."""
        values = np.array(self.found[reading, solver][column])
        return [float(a) for a in values[:, values.mean(axis=0).argmax()]]


def _numbers(rows: Any) -> list[list[float]]:
    return [[float(a) for a in row] for row in rows]


def plan(repeats: int, *, quick: bool = False) -> list[tuple[Reading, int]]:
    """(reading, number of its data set): twice as many where every data set has cuts of its own."""
    readings = _QUICK if quick else READINGS
    return [(r, k) for r in readings for k in range(2 * repeats if r.how == "random" else repeats)]


def run(
    repeats: int = 3, seed: int = 0, *, quick: bool = False, progress: Callable[[int, int], Any] | None = None
) -> Results:
    """Every column on ``repeats`` data sets of every reading."""
    if repeats < 2:
        raise OptionError(f"repeats must be at least 2 for a standard deviation, not {repeats}")
    if seed < 0:
        raise OptionError(f"seed must be at least 0, not {seed}")
    tasks = plan(repeats, quick=quick)
    found: dict[tuple[Reading, str], dict[str, list[list[float]]]] = {
        (reading, solver): {column: [] for column in columns(solver)}
        for reading in dict.fromkeys(reading for reading, _ in tasks)
        for solver in SOLVERS
    }
    for done, (reading, k) in enumerate(tasks, start=1):
        for solver in SOLVERS:
            for column, accuracies in on_one_set(reading, (seed, k), solver).items():
                found[reading, solver][column].append(accuracies)
        if progress is not None:
            progress(done, len(tasks))
    return Results(seed, repeats, quick, found)


def on_one_set(reading: Reading, seed: tuple[int, int], solver: str) -> dict[str, list[float]]:
    """Accuracies in percent of all columns, one a λ."""
    data, n = reading.make(seed), reading.n_train
    X, y = np.asarray(data.X), np.asarray(data.y)
    found: dict[str, list[float]] = {column: [] for column in columns(solver)}
    with threadpool_limits(1), catch_warnings():  # the last bits of a product depend on the threads of BLAS
        simplefilter("ignore", ConvergenceWarning)  # the stochastic method is meant to stop early
        for lam in LAMBDAS[reading.kind]:
            for column, model in fitted(data.hierarchy, X[:n], y[:n], lam, solver):
                found[column].append(100 * float(model.score(X[n:], y[n:])))
    return found


def fitted(hierarchy: Any, X: Any, y: Any, lam: float, solver: str) -> Iterator[tuple[str, Any]]:
    """Every column's model."""
    method = "dual" if solver == "dual" else Sgd(tol=0.0, max_iter=PASSES)
    usual: dict[str, Any] = {"C": 1 / (2 * lam), "solver": method, "tol": TOL}
    yield "FlatSVM", FlatSVM(hierarchy, **usual).fit(X, y)
    yield "HSVM", HSVM(hierarchy, **usual).fit(X, y)
    start = NHSVM(hierarchy, margin="normalized", **usual).fit(X, y)
    yield START, start
    yield "NHSVM, power", NHSVM(hierarchy, weights="power", margin="normalized", **usual).fit(X, y)
    if solver == "dual":
        yield "SSVM", SSVM(hierarchy, C=1 / (2 * lam), loss="hamming", tol=TOL).fit(X, y)
    for column, root in PRINTED.items():
        yield column, alternated(start, X, y, root=root, rounds=ROUNDS)
