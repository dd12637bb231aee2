"""Shared SVM beside fixed weights on real sets: accuracy with C chosen on held-out data, and time to the same gap.

    python benchmarks/shared.py --data DIR --sets lshtc_dryrun newsgroups20 clinc150 imclef07a --out shared.md
    python benchmarks/shared.py --data DIR --time-only 1      # times alone, at this C

Times are of fits with loss "zero_one" at the C that SSVM chose, one after the other. Accuracy is each model's with its
own C; p is of the exact McNemar test against FlatSVM: how likely is it, if both were equally good, that the samples on
which exactly one of them is right fall so unevenly.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from data import Problem, add_options, load_all, stratified_split
from nhsvm import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.paper.tables import mcnemar

GRID = (0.01, 0.1, 1.0, 10.0)
MODELS: dict[str, tuple[type, dict[str, Any]]] = {
    "FlatSVM": (FlatSVM, {}),
    "HSVM": (HSVM, {}),
    "NHSVM": (NHSVM, {}),
    "NHSVM, loss zero_one": (NHSVM, {"loss": "zero_one"}),
    "SSVM": (SSVM, {}),
    "SSVM, loss hamming": (SSVM, {"loss": "hamming"}),
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


def accuracies(problem: Problem, options: argparse.Namespace) -> tuple[list[str], float]:
    """Rows of the table, and the C of SSVM."""
    rows, flat, C = [], None, 1.0
    for name, (cls, more) in MODELS.items():
        more = more | {"tol": options.tol, "n_jobs": options.jobs}
        best = chosen(problem, cls, more, options.seed)
        C = best if name == "SSVM" else C
        _, model = timed(problem, cls, C=best, **more)
        right = np.asarray(model.predict(problem.X_test)) == np.asarray(problem.y_test)
        flat = right if flat is None else flat
        p = "" if name == "FlatSVM" else f"{mcnemar(right, flat):.2g}"
        rows.append(f"| {name} | {best:g} | {right.mean():.4f} | {right.mean() - flat.mean():+.4f} | {p} |")
    return rows, C


def times(problem: Problem, C: float, options: argparse.Namespace) -> str:
    settings = {"C": C, "loss": "zero_one", "n_jobs": options.jobs}
    timed(problem, NHSVM, **settings, tol=0.5)  # compiles, or loads, the kernels
    fixed, nhsvm = timed(problem, NHSVM, **settings, tol=options.tol)
    joint, ssvm = timed(problem, SSVM, **settings, tol=options.tol)
    return (
        f"To a gap of {options.tol:g} at C = {C:g}: NHSVM {fixed:.1f} s ({nhsvm.n_iter_} passes, objective "
        f"{nhsvm.objective_:.5g}), SSVM {joint:.1f} s ({ssvm.n_iter_} passes, objective {ssvm.objective_:.5g}, "
        f"gap {ssvm.gap_:.1e}): **{joint / fixed:.2f}** times as long."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-only", type=float, metavar="C", help="no accuracy; times at this C")
    parser.add_argument("--out", type=Path, help="markdown file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    console = Console(width=200, highlight=False)
    text = []
    for problem in load_all(options.sets, options.data, console):
        C, told = options.time_only, len(text)
        text.append(f"## {problem.name}\n\n{problem}\n")
        if not C:
            rows, C = accuracies(problem, options)
            head = ["| model | C | accuracy | against flat | p |", "|---|--:|--:|--:|--:|"]
            text.append("\n".join([*head, *rows]) + "\n")
        text.append(times(problem, C, options) + "\n")
        for part in text[told:]:
            console.print(part)
    if options.out:
        command = f"    python benchmarks/shared.py --data DIR --sets {' '.join(options.sets)}\n"
        options.out.write_text("\n".join(["# Shared SVM on real data\n", command, *text]))


if __name__ == "__main__":
    main()
