"""Plain fits beside fits with every option set by hand: what "auto" costs, in accuracy and in time.

    python benchmarks/defaults.py --data DIR
    python benchmarks/defaults.py --data DIR --sets clinc150 enron --models NHSVM FlatSVM HSVM HRSVM SSVM
    python benchmarks/defaults.py --data DIR --sets proteins --proteins DIR --samples 20000

By hand: C, the value of the constant feature and the offset of leaves, all in units of the size of samples, and the gap
at which to stop, every combination of a few values of each. The best by hand is the quickest whose score on the test
part is within a standard error of the highest. Scores are accuracy, or the mean Jaccard index of label sets. Kernels
are compiled before; seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import nhsvm
from nhsvm import Hierarchy
from nhsvm.paper.benchmark_sets import SETS, TrainTest
from quick import parsed

COSTS, CONSTANTS, OFFSETS, GAPS = (1.0, 3.0, 10.0), (0.1, 0.3, 1.0), (-1.3, 0.0), (0.5, 0.3, 0.1)
HELD_OUT = 5_000  # proteins to test with


def proteins(folder: Path, samples: int) -> TrainTest:
    """Swiss-Prot proteins and their terms of the Gene Ontology, from two files: arrays of a CSR matrix, and labels."""
    arrays = np.load(folder / "proteins.npz")
    X = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"])
    told = json.loads((folder / "proteins.json").read_text())
    order = np.random.default_rng(0).permutation(X.shape[0])
    test, train = order[:HELD_OUT], order[HELD_OUT:][:samples]
    y = told["labels"]
    hierarchy = Hierarchy.from_edges([tuple(edge) for edge in told["edges"]])
    return TrainTest(hierarchy, (X[train], [y[i] for i in train]), (X[test], [y[i] for i in test]), "3-mers, tf-idf")


def scores(model: Any, X: Any, y: Any, multilabel: bool) -> np.ndarray:
    """Of every test sample."""
    if not multilabel:
        return np.asarray(model.predict(X) == np.asarray(y), float)
    pairs = zip(map(set, model.predict(X, exact=False)), map(set, y), strict=True)
    return np.array([len(a & b) / max(1, len(a | b)) for a, b in pairs])


def one(kind: str, problem: TrainTest, options: dict[str, Any]) -> tuple[float, float, float, Any]:
    """(score, its standard error, seconds, model) of one fit."""
    (X, y), (X_test, y_test) = problem.whole, problem.test
    begin = time.process_time()
    model = getattr(nhsvm, kind)(problem.hierarchy, **options).fit(X, y)
    seconds = time.process_time() - begin
    found = scores(model, X_test, y_test, problem.multilabel)
    return float(found.mean()), float(found.std() / len(found) ** 0.5), seconds, model


def compare(kind: str, name: str, problem: TrainTest, n_jobs: int) -> None:
    X, multilabel = problem.whole[0], problem.multilabel
    size = float((X.multiply(X) if sp.issparse(X) else X**2).sum()) / X.shape[0]
    plain: dict[str, Any] = {"n_jobs": n_jobs}
    one(kind, problem, plain | {"max_iter": 1})
    score, error, seconds, model = one(kind, problem, plain)
    offsets = OFFSETS if multilabel and kind != "HRSVM" else (None,)
    tried = []
    for cost, constant, offset, gap in product(COSTS, CONSTANTS, offsets, GAPS):
        by_hand = {"C": cost / size, "intercept_scaling": constant * size**0.5, "tol": gap, "certify": False}
        by_hand |= {} if offset is None else {"leaf_offset": offset}
        tried.append((*one(kind, problem, plain | by_hand)[:3], by_hand))
    best = max(tried, key=lambda fit: fit[0])
    quickest = min((fit for fit in tried if fit[0] >= best[0] - best[1]), key=lambda fit: fit[2])
    hand = ", ".join(f"{key} {value:.3g}" for key, value in quickest[3].items() if key != "certify")
    print(
        f"| {name} | {kind} | {score:.4f} ± {error:.4f} | {seconds:.2f} | {model.n_iter_} | {model.gap_:.2g} | "
        f"{best[0]:.4f} | {quickest[0]:.4f} | {quickest[2]:.2f} | {seconds / quickest[2]:.2f} | {hand} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--models", nargs="+", default=["NHSVM"])
    parser.add_argument("--proteins", type=Path, help="folder of proteins.npz and proteins.json")
    parser.add_argument("--samples", type=int, default=20_000, help="of proteins")
    parser.add_argument("--jobs", type=int, default=1)
    options = parsed(parser, sets=["clinc150"], models=["NHSVM"])
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| set | model | plain | CPU s | passes | gap | best | by hand | CPU s | ratio of times | set by hand |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    names = options.sets or [name for name, one in SETS.items() if not one.missing(options.data)]
    for name, kind in product(names, options.models):
        problem = (
            proteins(options.proteins, options.samples) if name == "proteins" else SETS[name].load(options.data, 0)
        )
        compare(kind, name, problem, options.jobs)


if __name__ == "__main__":
    main()
