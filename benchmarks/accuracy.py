"""Accuracy of FlatSVM, HSVM and NHSVM on real data, for each weights scheme and loss.

    python benchmarks/accuracy.py --data DIR --out docs/results/accuracy.md
    python benchmarks/accuracy.py --data DIR --sets clinc150 --records clinc.jsonl    # one set; can be resumed

For every model C is chosen from 0.01 ... 100 (factors of √10) by accuracy on a stratified fifth of the training data;
labels with one sample stay in training; the smallest C wins a tie. The model is then fitted to all training data and
judged once on the test part. The path of C goes upwards with warm starts and ends after three values in a row without a
better accuracy. Every finished row is appended to ``--records``, and rows found there are not computed again.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from scipy.sparse.csgraph import shortest_path
from sklearn.metrics import f1_score

from data import Labels, Problem, add_options, load_all, stratified_split
from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.weights import Power

GRID = tuple(float(f"{c:.3g}") for c in np.logspace(-2, 2, 9))
PATIENCE = 3
LOSSES = ("zero_one", "hamming", "normalized")
WEIGHTS: dict[str, Any] = {
    "maxmin": "maxmin",
    "power, ρ=2": Power(rho=2.0),
    "power, ρ=2, directional": Power(rho=2.0, directional=True),
    "power, ρ=4": Power(rho=4.0),
    "uniform": "uniform",
}

Make = Callable[..., Any]  # options of every model -> an estimator


@dataclass(frozen=True)
class Variant:
    """One row of the table."""

    model: str
    weights: str
    loss: str
    margin: str = "loss"


def variants() -> Iterator[Variant]:
    yield Variant("FlatSVM", "flat", "zero_one")
    yield Variant("FlatSVM", "flat", "hamming")
    for weights, loss in product(WEIGHTS, LOSSES):
        yield Variant("HSVM" if (weights, loss) == ("uniform", "hamming") else "NHSVM", weights, loss)
    yield Variant("NHSVM", "maxmin", "auto", "normalized")


def estimator(variant: Variant, hierarchy: Hierarchy, **options: Any) -> Any:
    """HSVM and FlatSVM are what their rows say, so that the estimators are tested, and not only settings of NHSVM."""
    if variant.model == "FlatSVM":
        return FlatSVM(hierarchy=hierarchy, loss=variant.loss, **options)
    if variant.model == "HSVM":
        return HSVM(hierarchy=hierarchy, **options)
    weights = WEIGHTS[variant.weights]
    return NHSVM(hierarchy=hierarchy, weights=weights, loss=variant.loss, margin=variant.margin, **options)


@dataclass(frozen=True)
class Row:
    """What is written down; ``tree_distance`` counts the edges between the predicted and the true label."""

    set: str
    model: str
    weights: str
    loss: str
    margin: str
    C: float
    held_out: float
    accuracy: float
    macro_f1: float
    tree_distance: float
    gap: float
    fit_seconds: float
    n_test: int

    @property
    def key(self) -> tuple[str, ...]:
        return (self.set, self.model, self.weights, self.loss, self.margin)


def tree_distance(hierarchy: Hierarchy, y: Labels, predicted: Labels) -> float:
    """Mean number of edges on the shortest way from the predicted to the true label.

    Roots count as children of one common root. On a DAG the way may go through any parent.
    """
    parent, child = hierarchy.graph.edges()
    top = hierarchy.n_nodes
    start = np.concatenate([parent, np.full(len(hierarchy.roots), top)])
    end = np.concatenate([child, hierarchy.numbers(list(hierarchy.roots))])
    graph = sp.coo_matrix((np.ones(len(start)), (start, end)), shape=(top + 1, top + 1)).tocsr()
    true, position = np.unique(hierarchy.numbers(y.tolist()), return_inverse=True)
    ways = shortest_path(graph, directed=False, unweighted=True, indices=true)
    return float(ways[position, hierarchy.numbers(predicted.tolist())].mean())


def choose_c(make: Make, problem: Problem, tol: float, seed: int) -> tuple[float, float]:
    """The best C on held-out training data, and its accuracy there."""
    keep, out = stratified_split(problem.y_train, 0.2, seed)
    X, y = problem.X_train[keep], problem.y_train[keep]
    model = make(warm_start=True, tol=tol)
    best, best_c, tired = -1.0, GRID[0], 0
    for C in GRID:
        model.set_params(C=C).fit(X, y)
        found = float(np.mean(np.asarray(model.predict(problem.X_train[out])) == problem.y_train[out]))
        if found > best:
            best, best_c, tired = found, C, 0
        else:
            tired += 1
        if tired == PATIENCE:
            break
    return best_c, best


def evaluate(problem: Problem, variant: Variant, options: argparse.Namespace) -> Row:
    def make(**more: Any) -> Any:
        return estimator(variant, problem.hierarchy, n_jobs=options.jobs, random_state=options.seed, **more)

    C, held_out = choose_c(make, problem, options.search_tol, options.seed)
    start = time.perf_counter()
    model = make(C=C, tol=options.tol).fit(problem.X_train, problem.y_train)
    seconds = time.perf_counter() - start
    predicted = np.asarray(model.predict(problem.X_test))
    return Row(
        set=problem.name,
        **asdict(variant),
        C=C,
        held_out=held_out,
        accuracy=float(np.mean(predicted == problem.y_test)),
        macro_f1=float(f1_score(problem.y_test, predicted, average="macro", zero_division=0)),
        tree_distance=tree_distance(problem.hierarchy, problem.y_test, predicted),
        gap=float(model.gap_),
        fit_seconds=seconds,
        n_test=len(predicted),
    )


# -- what is kept and written ------------------------------------------------------------------------------------------


def read_records(path: Path | None) -> dict[tuple[str, ...], Row]:
    if path is None or not path.exists():
        return {}
    rows = [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {row.key: row for row in rows}


def append_record(path: Path | None, row: Row) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def markdown(rows: list[Row], options: argparse.Namespace) -> str:
    """One table for each set; the best figure of a column is bold."""
    names = list(dict.fromkeys(row.set for row in rows))
    versions = ", ".join(f"{name} {version(name)}" for name in ("nhsvm", "numpy", "scipy", "scikit-learn", "numba"))
    parts = [
        "# Accuracy on real data",
        f"    python benchmarks/accuracy.py --data DIR --sets {' '.join(names)} --tol {options.tol:g} "
        f"--search-tol {options.search_tol:g} --seed {options.seed}",
        f"Python {platform.python_version()}, {versions}. C is chosen from {GRID[0]:g} … {GRID[-1]:g} by accuracy on a "
        "stratified fifth of the training data, then the model is fitted to all of it. Macro-F1 is over the labels "
        "that occur in the test data or are predicted. Tree distance is the mean number of edges from the predicted to "
        "the true label, roots being children of one common root.",
    ]
    for name in names:
        parts += _set_tables([row for row in rows if row.set == name])
    return "\n\n".join(parts) + "\n"


def _set_tables(rows: list[Row]) -> Iterator[str]:
    best = max(row.accuracy for row in rows)
    n = rows[0].n_test
    error = np.sqrt(best * (1 - best) / n)
    yield f"## {rows[0].set}"
    yield f"{n:,} test samples; one standard error of an accuracy of {best:.3f} is {error:.4f}."
    lines = [
        "| model | weights | loss | C | held-out | accuracy | macro-F1 | tree distance |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    extremes = {
        "accuracy": best,
        "macro_f1": max(row.macro_f1 for row in rows),
        "tree_distance": min(row.tree_distance for row in rows),
    }
    for row in rows:
        figures = [_figure(getattr(row, name), value) for name, value in extremes.items()]
        loss = "Eq. 13" if row.margin == "normalized" else row.loss
        edge = " (edge of the grid)" if row.C in (GRID[0], GRID[-1]) else ""
        cells = [row.model, row.weights, loss, f"{row.C:g}{edge}", f"{row.held_out:.4f}", *figures]
        lines.append("| " + " | ".join(cells) + " |")
    yield "\n".join(lines)


def _figure(value: float, best: float) -> str:
    return f"**{value:.4f}**" if value == best else f"{value:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--out", type=Path, help="markdown file, rewritten after every row")
    parser.add_argument("--records", type=Path, help="JSON lines, one a row; makes a stopped run go on where it was")
    parser.add_argument("--tol", type=float, default=1e-3, help="gap of the final fit")
    parser.add_argument("--search-tol", type=float, default=1e-2, help="gap of the fits that choose C")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console(width=150, highlight=False)
    done = read_records(options.records)
    for problem in load_all(options.sets, options.data, console):
        console.print(str(problem))
        for variant in variants():
            key = (problem.name, *asdict(variant).values())
            if key not in done:
                done[key] = evaluate(problem, variant, options)
                append_record(options.records, done[key])
            row = done[key]
            console.print(
                f"  {row.model:<8} {row.weights:<24} {row.loss:<11} {row.margin:<11} C={row.C:<7g} accuracy "
                f"{row.accuracy:.4f}  macro-F1 {row.macro_f1:.4f}  distance {row.tree_distance:.3f}  "
                f"{row.fit_seconds:.1f} s  gap {row.gap:.0e}"
            )
            if options.out:
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(markdown(list(done.values()), options), encoding="utf-8")


if __name__ == "__main__":
    main()
