"""Shared SVM beside fixed weights on real sets: time to the same proved gap; accuracy with C chosen on held-out data.

    python benchmarks/shared.py --data DIR [--sets ...] [--tol 1e-3] [--jobs 1]

Times are of fits with loss "zero_one" and the C that SSVM chose; accuracy is each model's with its own C.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter
from typing import Any

from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from data import Problem, add_options, load_all, stratified_split
from nhsvm import HSVM, NHSVM, SSVM, FlatSVM

GRID = (0.01, 0.1, 1.0, 10.0)
MODELS: dict[str, tuple[type, dict[str, Any]]] = {
    "FlatSVM": (FlatSVM, {}),
    "HSVM": (HSVM, {}),
    "NHSVM": (NHSVM, {}),
    "NHSVM zero_one": (NHSVM, {"loss": "zero_one"}),
    "SSVM": (SSVM, {}),
    "SSVM hamming": (SSVM, {"loss": "hamming"}),
}


def chosen(problem: Problem, cls: type, options: dict[str, Any], seed: int) -> float:
    """C of highest accuracy on a fifth of the training set; a gap of 1e-2 is enough for it."""
    train, held_out = stratified_split(problem.y_train, 0.2, seed)
    X, y = problem.X_train[train], problem.y_train[train]
    scores = {}
    for C in GRID:
        model = cls(problem.hierarchy, C=C, **options | {"tol": 1e-2}).fit(X, y)
        scores[C] = model.score(problem.X_train[held_out], problem.y_train[held_out])
    return max(GRID, key=lambda C: scores[C])


def timed(problem: Problem, cls: type, **options: Any) -> tuple[float, Any]:
    began = perf_counter()
    model = cls(problem.hierarchy, **options).fit(problem.X_train, problem.y_train)
    return perf_counter() - began, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-only", type=float, metavar="C", help="no accuracy; times at this C")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    console = Console(width=200, highlight=False)
    for problem in load_all(options.sets, options.data, console):
        console.print(str(problem))
        C = options.time_only
        for name, (cls, more) in {} if C else MODELS.items():
            more = more | {"tol": options.tol, "n_jobs": options.jobs}
            best = chosen(problem, cls, more, options.seed)
            C = best if name == "SSVM" else C
            _, model = timed(problem, cls, C=best, **more)
            score = model.score(problem.X_test, problem.y_test)
            console.print(f"  {name:<15} C={best:<6g} accuracy {score:.4f}  gap {model.gap_:.0e}")
        settings = {"C": C, "loss": "zero_one", "n_jobs": options.jobs}
        timed(problem, NHSVM, **settings, tol=0.5)  # compiles, or loads, the kernels
        fixed, nhsvm = timed(problem, NHSVM, **settings, tol=options.tol)
        joint, ssvm = timed(problem, SSVM, **settings, tol=options.tol)
        console.print(
            f"  to a gap of {options.tol:g} at C={C:g}: NHSVM {fixed:.1f} s ({nhsvm.n_iter_} passes, objective "
            f"{nhsvm.objective_:.5g}), SSVM {joint:.1f} s ({ssvm.n_iter_} passes, objective {ssvm.objective_:.5g}, "
            f"gap {ssvm.gap_:.1e}): {joint / fixed:.2f} times as long"
        )


if __name__ == "__main__":
    main()
