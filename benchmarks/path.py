"""What a warm-started path over C saves, beside as many independent fits; all times of one run, in one process.

    python benchmarks/path.py                                  # generated text
    python benchmarks/path.py --steps 2 --samples 8000         # a finer grid
    python benchmarks/path.py --texts                          # from texts to a choice: tune beside GridSearchCV
    python benchmarks/path.py --sets newsgroups20 --data DIR   # real sets
    python benchmarks/path.py --patience --sets clinc150 --data DIR  # does ending a path early miss the best C?

Times are processor seconds of this process, so that a busy machine changes them little. Three ways of trying the same
values of C on the same held-out samples:

* independent: a fit for each C, at the tolerance of the estimator (``GridSearchCV`` does this);
* loose: the same at the tolerance of the search, 1e-2;
* path: the same tolerance, each fit from the dual variables of the last (``nhsvm.model_selection.tune`` does this).

With ``--patience`` whole paths are gone, and the rule by which ``tune`` ends a path is applied to their scores
afterwards. Fits do not depend on what comes after them, so that tells what ``tune`` would have done.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from data import Problem, add_options, load_all
from generate import text_like
from nhsvm import HSVM, NHSVM, FlatSVM
from nhsvm.datasets import make_text
from nhsvm.model_selection import HoldOut, Trial, Tuning, hold_out_split, regularization_path, tune
from nhsvm.model_selection.path import SearchPath
from nhsvm.model_selection.result import choose

SEARCH_TOL = 1e-2
SCORINGS = ["accuracy", "hierarchical_f1"]
PATIENCE = (1, 2, 3)
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


def ended(found: Tuning, scoring: str, patience: int) -> list[Trial]:
    """The fits that ``tune`` makes with this patience, of those that it makes with none."""
    path = SearchPath(found.plan.settings[0], [])
    for trial in found.records:
        path.trials.append(trial)
        if path.has_fallen(scoring, patience, found.n_held_out):
            break
    return path.trials


def patience(problem: Problem, Cs: list[float], splits: int, console: Console) -> None:
    """How often, and by how much, an early end misses the best C of the whole path."""
    console.print(str(problem))
    table = Table("model", "split", "score", "best C, whole path", *(f"patience {n}" for n in PATIENCE))
    n_missed, n_fits, rows = dict.fromkeys(PATIENCE, 0), dict.fromkeys(PATIENCE, 0), 0
    for model in (NHSVM, HSVM, FlatSVM):
        for split in range(splits):
            estimator = model(problem.hierarchy)
            options = {"C": Cs, "scoring": SCORINGS, "patience": None, "refit": False, "random_state": split}
            found = tune(estimator, problem.X_train, problem.y_train, **options)
            for scoring in SCORINGS:
                best = choose(found.records, scoring)
                cells, rows = [], rows + 1
                for n in PATIENCE:
                    trials = ended(found, scoring, n)
                    chosen = choose(trials, scoring)
                    lost = best.scores[scoring] - chosen.scores[scoring]
                    n_missed[n] += chosen.C != best.C
                    n_fits[n] += len(trials)
                    end = f"to {trials[-1].C:g}" if len(trials) < len(Cs) else "whole"
                    cells.append(end + (f", missed: −{lost:.4f}" if chosen.C != best.C else ""))
                name = f"{best.C:g} ({best.scores[scoring]:.4f})"
                table.add_row(model.__name__, f"{split}", scoring, name, *cells)
    console.print(table)
    for n in PATIENCE:
        fits = f"{n_fits[n]} of {rows * len(Cs)} fits"
        console.print(f"patience {n}: best C missed {n_missed[n]} of {rows} times; {fits}")
    console.print()


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
    parser.add_argument("--patience", action="store_true", help="whether ending a path early misses the best C")
    parser.add_argument("--splits", type=int, default=2, help="hold-out splits of --patience")
    options = parser.parse_args()
    console = Console(width=130, highlight=False)
    low, high = np.log10(options.range)
    Cs = [float(C) for C in np.logspace(low, high, round((high - low) * options.steps) + 1)]
    small = text_like(300, 500, 10)
    NHSVM(small.hierarchy, tol=SEARCH_TOL).fit(small.X_train, small.y_train)  # compiles
    if options.texts:
        return from_texts(options.samples, Cs, console)
    made = [text_like(options.samples, options.features, options.leaves)] if "generated" in options.sets else []
    names = [name for name in options.sets if name != "generated"]
    for problem in chain(made, load_all(names, options.data, console)):
        if options.patience:
            patience(problem, Cs, options.splits, console)
        else:
            compare(problem, Cs, console)


if __name__ == "__main__":
    main()
