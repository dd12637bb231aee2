"""What a warm-started path over C saves, beside as many independent fits; all times of one run, in one process.

    python benchmarks/path.py                                  # generated text
    python benchmarks/path.py --steps 2 --samples 8000         # a finer grid
    python benchmarks/path.py --texts                          # from texts to a choice: tune beside GridSearchCV
    python benchmarks/path.py --sets newsgroups20 --data DIR   # real sets

Times are processor seconds of this process, so that a busy machine changes them little. Three ways of trying the same
values of C on the same held-out samples:

* independent: a fit for each C, at the tolerance of the estimator (``GridSearchCV`` does this);
* loose: the same at the tolerance of the search, 1e-2;
* path: the same tolerance, each fit from the dual variables of the last (``nhsvm.model_selection.tune`` does this).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from data import Problem, add_options, load_all
from generate import text_like
from nhsvm import NHSVM
from nhsvm.datasets import make_text
from nhsvm.model_selection import HoldOut, hold_out_split, regularization_path, tune

SEARCH_TOL = 1e-2
WAYS = ("independent", "loose", "path")


@dataclass(frozen=True)
class Fit:
    """One fit: processor seconds, passes, held-out accuracy."""

    seconds: float
    passes: int
    score: float


def independent(problem: Problem, Cs: list[float], tol: float, train: Any) -> Iterator[Any]:
    for C in Cs:
        yield NHSVM(problem.hierarchy, C=C, tol=tol).fit(problem.X_train[train], problem.y_train[train])


def path(problem: Problem, Cs: list[float], train: Any) -> Iterator[Any]:
    estimator = NHSVM(problem.hierarchy, tol=SEARCH_TOL)
    for _, model in regularization_path(estimator, problem.X_train[train], problem.y_train[train], Cs):
        yield model


def measured(models: Iterator[Any], X: Any, y: Any) -> list[Fit]:
    """Time, passes and held-out accuracy of every fit."""
    found = []
    while True:
        start = time.process_time()
        model = next(models, None)
        seconds = time.process_time() - start
        if model is None:
            return found
        found.append(Fit(seconds, model.n_iter_, model.score(X, y)))


def compare(problem: Problem, Cs: list[float], console: Console) -> None:
    train, out = hold_out_split(problem.y_train, test_size=0.2, random_state=0)
    X, y = problem.X_train[out], problem.y_train[out]
    console.print(str(problem))
    fits = {
        "independent": measured(independent(problem, Cs, 1e-3, train), X, y),
        "loose": measured(independent(problem, Cs, SEARCH_TOL, train), X, y),
        "path": measured(path(problem, Cs, train), X, y),
    }
    table = Table("C", *(f"{way} {what}" for way in WAYS for what in ("s", "passes", "score")))
    for k, C in enumerate(Cs):
        cells = [(f"{f[k].seconds:.2f}", f"{f[k].passes}", f"{f[k].score:.4f}") for f in fits.values()]
        table.add_row(f"{C:g}", *(text for cell in cells for text in cell))
    console.print(table)
    total = {way: sum(fit.seconds for fit in fits[way]) for way in WAYS}
    best = {way: Cs[int(np.argmax([fit.score for fit in fits[way]]))] for way in WAYS}
    for way in ("independent", "loose"):
        ratio = total[way] / total["path"]
        console.print(f"{way}: {total[way]:.1f} s, path {total['path']:.1f} s: ratio {ratio:.1f}")
    console.print(f"best C: {', '.join(f'{way} {best[way]:g}' for way in WAYS)}\n")


def from_texts(n_samples: int, Cs: list[float], console: Console) -> None:
    """A pipeline from texts: ``tune`` beside ``GridSearchCV`` on the same split, with and without its refit."""
    problem = text_like(200, 500, 50)
    data = make_text(problem.hierarchy, n_samples=n_samples, output="texts", random_state=0)
    console.print(f"{n_samples:,} generated texts, {problem.hierarchy}, {len(Cs)} values of C")
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), NHSVM(problem.hierarchy))
    start = time.process_time()
    grid = GridSearchCV(pipeline, {"nhsvm__C": Cs}, cv=HoldOut(random_state=0)).fit(data.texts, data.y)
    middle = time.process_time()
    found = tune(pipeline, data.texts, data.y, C=Cs, random_state=0)
    seconds = middle - start, time.process_time() - middle
    console.print(f"GridSearchCV {seconds[0]:.1f} s, tune {seconds[1]:.1f} s: ratio {seconds[0] / seconds[1]:.1f}")
    chosen = grid.best_params_["nhsvm__C"], found.best.C
    console.print(f"C {chosen[0]:g} ({grid.best_score_:.4f}) and {chosen[1]:g} ({found.best_score:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, extra=("generated",))
    parser.set_defaults(sets=["generated"])
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--leaves", type=int, default=200)
    parser.add_argument("--steps", type=int, default=1, help="values of C in a factor of ten")
    parser.add_argument("--range", type=float, nargs=2, default=(0.01, 100.0), metavar=("LEAST", "MOST"))
    parser.add_argument("--texts", action="store_true", help="compare whole searches from texts")
    options = parser.parse_args()
    console = Console(width=130, highlight=False)
    low, high = np.log10(options.range)
    Cs = [float(C) for C in np.logspace(low, high, round((high - low) * options.steps) + 1)]
    small = text_like(300, 500, 10)
    NHSVM(small.hierarchy, tol=SEARCH_TOL).fit(small.X_train, small.y_train)  # compiles
    if options.texts:
        return from_texts(options.samples, Cs, console)
    if "generated" in options.sets:
        compare(text_like(options.samples, options.features, options.leaves), Cs, console)
    names = [name for name in options.sets if name != "generated"]
    for problem in load_all(names, options.data, console):
        compare(problem, Cs, console)


if __name__ == "__main__":
    main()
