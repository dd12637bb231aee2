"""Label sets: FlatSVM, HSVM and NHSVM beside one-vs-rest LinearSVC, on real trees and DAGs.

    python benchmarks/multilabel.py --data DIR --out docs/results/multilabel.md
    python benchmarks/multilabel.py --data DIR --sets cellcycle_FUN --records fun.jsonl      # one set; can be resumed

Sets: the yeast sets (FUN: trees, GO: DAGs) and Enron of the hierarchical multi-label collection, Reuters-21578. Dense
features are imputed, standardised and divided by the square root of their number; ``--kernel`` maps them to 1,000
features of an RBF kernel (Nyström). Texts become tf-idf rows. For every model C is chosen from a grid by AU(PRC) on the
validation part (a fifth of the training data where there is none), then the model is fitted to all training data and
judged once on the test part.

AU(PRC) is over all nodes but the only root, and for GO without its three roots, as C-HMCNN reports it. Scores of nodes
are probabilities (``probability=True``) for ours; for LinearSVC the same kind of curves are fitted to held-out scores,
one machine for every label with the ancestors as labels too. Times are of one fit to all training data with the C that
was chosen, without the folds for probabilities.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.datasets import Dataset, read_hmc_arff, read_jsonl
from nhsvm.metrics import auprc, example_jaccard, f1, hierarchical_f1
from nhsvm.weights import Power
from quick import parsed

YEAST = tuple(f"{name}_{kind}" for kind in ("FUN", "GO") for name in ("cellcycle", "derisi", "eisen"))
SETS = (*YEAST, "Enron_corr", "reuters21578")
PUBLISHED = {  # AU(PRC) of C-HMCNN, Giunchiglia and Lukasiewicz (2020)
    "cellcycle_FUN": 0.255, "derisi_FUN": 0.195, "eisen_FUN": 0.306,
    "cellcycle_GO": 0.413, "derisi_GO": 0.370, "eisen_GO": 0.455,
}  # fmt: skip
MODELS: dict[str, Any] = {
    "FlatSVM": (FlatSVM, {}),
    "HSVM": (HSVM, {}),
    "HSVM, loss over nodes": (HSVM, {"loss": "hamming"}),
    "NHSVM, max-min": (NHSVM, {}),
    "NHSVM, power 2": (NHSVM, {"weights": Power(rho=2.0)}),
    "NHSVM, power 2, T=1.5": (NHSVM, {"weights": Power(rho=2.0, total=(1.0, 1.5))}),
}
ONE_VS_REST = "LinearSVC, one-vs-rest"


@dataclass(frozen=True)
class Problem:
    """Training, validation and test parts."""

    name: str
    hierarchy: Hierarchy
    parts: tuple[tuple[Any, list[list[str]]], ...]  # (X, y) of train, valid, train + valid, test


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    set: str
    model: str
    C: float
    auprc: float
    jaccard: float
    micro_f1: float
    hierarchical_f1: float
    seconds: float
    gap: float


def load(name: str, folder: Path, kernel: bool) -> Problem:
    if name == "reuters21578":
        return _texts(name, folder)
    parts = _yeast(name, folder / "hmc")
    hierarchy, first = parts[0].hierarchy, parts[0].X
    assert hierarchy is not None
    assert first is not None
    steps: list[Any] = [SimpleImputer(), StandardScaler()]
    if kernel:
        steps.append(Nystroem(gamma=0.6 / first.shape[1], n_components=1000, random_state=0))
    scale = 1.0 if kernel else np.sqrt(first.shape[1])
    *learned, test = parts
    both = np.vstack([part.X for part in learned])
    prepare = make_pipeline(*steps).fit(both)
    made = [prepare.transform(X) / scale for X in (learned[0].X, learned[-1].X, both, test.X)]
    labels = [learned[0].y, learned[-1].y, [y for part in learned for y in part.y], test.y]
    if len(learned) == 1:
        made[:2], labels[:2] = zip(*_fifth(made[2], labels[2]), strict=True)
    return Problem(name, hierarchy, tuple(zip(made, labels, strict=True)))


def _yeast(name: str, folder: Path) -> list[Dataset]:
    suffixes = (".train", ".valid", ".test") if name in YEAST else ("_trainvalid", "_test")
    found = [read_hmc_arff(folder / f"{name}{suffixes[0]}.arff.gz", multilabel=True)]
    for suffix in suffixes[1:]:
        found.append(read_hmc_arff(folder / f"{name}{suffix}.arff.gz", multilabel=True, like=found[0]))
    return found


def _fifth(X: Any, y: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Four fifths and one fifth, at random."""
    order = np.random.default_rng(0).permutation(len(y))
    cut = len(y) // 5
    return [(X[part], [y[i] for i in part]) for part in (np.sort(order[cut:]), np.sort(order[:cut]))]


def _texts(name: str, folder: Path) -> Problem:
    data = read_jsonl(
        folder / name / "docs.jsonl.gz", text="text", multilabel=True, hierarchy=folder / name / "hierarchy.tsv.gz",
        extra=["split"], drop_root=True,
    )  # fmt: skip
    assert data.hierarchy is not None
    assert data.texts is not None
    split = np.array(data.extra["split"])
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X, y = vectors.fit_transform([data.texts[i] for i in train]), [data.y[i] for i in train]
    parts = (*_fifth(X, y), (X, y), (vectors.transform([data.texts[i] for i in test]), [data.y[i] for i in test]))
    return Problem(name, data.hierarchy, parts)


class OneVsRest:
    """LinearSVC for every node that the training data have, with ancestors as labels, and curves of held-out scores."""

    def __init__(self, hierarchy: Hierarchy, C: float) -> None:
        self.hierarchy, self.C = hierarchy, C

    def _members(self, y: list[list[str]]) -> Any:
        graph = self.hierarchy.graph
        number = {node: k for k, node in enumerate(self.hierarchy.nodes)}
        found = np.zeros((len(y), graph.n_nodes), dtype=bool)
        for i, labels in enumerate(y):
            for label in labels:
                found[i, graph.ancestors.row(number[label])] = True
        return found

    def fit(self, X: Any, y: list[list[str]], *, curves: bool = True) -> OneVsRest:
        from nhsvm.estimators._curve_fit import fit_curves

        Y = self._members(y)
        self.nodes = np.flatnonzero(Y.any(axis=0))
        if curves:
            held, true = [], []
            for k in range(3):
                out = np.arange(len(y)) % 3 == k
                held.append(self._machines(X[~out], Y[~out]).decision_function(X[out]))
                true.append(Y[out][:, self.nodes])
            scores = np.vstack(held)
            self.curves = fit_curves(scores, np.vstack(true), np.ones(len(y)), scores)
        self.machines = self._machines(X, Y)
        return self

    def _machines(self, X: Any, Y: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels that all or none of a fold have
            return OneVsRestClassifier(LinearSVC(C=self.C), n_jobs=1).fit(X, Y[:, self.nodes].astype(int))

    def node_proba(self, X: Any) -> Any:
        found = np.zeros((X.shape[0], self.hierarchy.n_nodes))
        scores = self.machines.decision_function(X)
        a, b, directions, shares = self.curves
        found[:, self.nodes] = expit(scores * a + b + scores @ directions @ shares)
        return found

    def predict(self, X: Any) -> list[list[Any]]:
        """The lowest nodes that are predicted with all above them."""
        graph, nodes = self.hierarchy.graph, self.hierarchy.nodes
        on = np.zeros((X.shape[0], graph.n_nodes), dtype=bool)
        on[:, self.nodes] = self.machines.predict(X) > 0
        for n in range(graph.n_roots, graph.n_nodes):
            on[:, n] &= on[:, graph.parents.row(n)].all(axis=1)
        below = on.copy()
        for n in range(graph.n_nodes):
            if len(graph.children.row(n)):
                below[:, n] &= ~on[:, graph.children.row(n)].any(axis=1)
        return [[nodes[n] for n in np.flatnonzero(row)] for row in below]


def area(problem: Problem, model: Any, X: Any, y: list[list[str]]) -> float:
    hierarchy = model.hierarchy_ if hasattr(model, "hierarchy_") else model.hierarchy
    real = [k for k in range(hierarchy.n_nodes) if not hierarchy.is_virtual[k]]
    found = np.zeros((X.shape[0], problem.hierarchy.n_nodes))  # what was never seen has no chance
    number = {node: k for k, node in enumerate(problem.hierarchy.nodes)}
    found[:, [number[hierarchy.nodes[k]] for k in real]] = model.node_proba(X)[:, real]
    roots: Any = False if problem.name.endswith("_GO") else "auto"
    return float(auprc(y, found, hierarchy=problem.hierarchy, roots=roots))


def make(name: str, problem: Problem, C: float, options: argparse.Namespace, *, proba: bool) -> Any:
    if name == ONE_VS_REST:
        return OneVsRest(problem.hierarchy, C)
    kind, more = MODELS[name]
    return kind(problem.hierarchy, C=C, tol=options.tol, n_jobs=options.jobs, probability=proba, cv=3, **more)


def evaluate(problem: Problem, name: str, options: argparse.Namespace) -> Row:
    train, valid, both, test = problem.parts
    tried = []
    for C in options.grid:
        model = make(name, problem, C, options, proba=True).fit(*train)
        tried.append(area(problem, model, *valid))
        if len(tried) > 1 and tried[-1] < max(tried) - 0.002:
            break
    C = options.grid[int(np.argmax(tried))]
    began = time.perf_counter()
    plain = make(name, problem, C, options, proba=False)
    plain = plain.fit(*both, curves=False) if name == ONE_VS_REST else plain.fit(*both)
    seconds = time.perf_counter() - began
    model = make(name, problem, C, options, proba=True).fit(*both)
    predicted, h, y = plain.predict(test[0]), problem.hierarchy, test[1]
    return Row(
        problem.name, name, C, area(problem, model, *test), example_jaccard(y, predicted, hierarchy=h),
        f1(y, predicted, hierarchy=h, average="micro"), hierarchical_f1(y, predicted, hierarchy=h), seconds,
        getattr(plain, "gap_", float("nan")),
    )  # fmt: skip


def markdown(rows: list[Row], command: str) -> Iterator[str]:
    yield f"# Label sets on real data\n\n    {command}\n"
    for name in dict.fromkeys(row.set for row in rows):
        mark = f"; C-HMCNN's published AU(PRC) is {PUBLISHED[name]:.3f}" if name in PUBLISHED else ""
        yield f"## {name}\n\nOne run{mark}.\n"
        yield "| model | C | AU(PRC) | Jaccard | micro-F1 | hierarchical F1 | fit, s | gap |"
        yield "|---|--:|--:|--:|--:|--:|--:|--:|"
        for row in rows:
            if row.set == name:
                yield (
                    f"| {row.model} | {row.C:g} | {row.auprc:.3f} | {row.jaccard:.3f} | {row.micro_f1:.3f} | "
                    f"{row.hierarchical_f1:.3f} | {row.seconds:.1f} | {row.gap:.0e} |"
                )
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--models", nargs="+", choices=(*MODELS, ONE_VS_REST), default=(*MODELS, ONE_VS_REST))
    parser.add_argument("--grid", nargs="+", type=float, default=(0.1, 1.0, 10.0))
    parser.add_argument("--kernel", action="store_true", help="features of an RBF kernel for dense sets")
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--records", type=Path, help="JSON lines, one a row; makes a stopped run go on where it was")
    parser.add_argument("--out", type=Path, help="markdown file")
    options = parsed(parser, grid=(1.0,), jobs=1)
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    console = Console(width=150)
    rows = []
    if options.records and options.records.exists():
        rows = [Row(**json.loads(line)) for line in options.records.read_text().splitlines()]
    done = {(row.set, row.model) for row in rows}
    for name in options.sets:
        problem = None
        for model in options.models:
            if (name, model) in done:
                continue
            problem = problem or load(name, Path(options.data), options.kernel)
            row = evaluate(problem, model, options)
            rows.append(row)
            console.print(row)
            if options.records:
                with options.records.open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
            if options.out:
                used = f"python benchmarks/multilabel.py --data DIR --tol {options.tol:g}{' --kernel' * options.kernel}"
                options.out.write_text("\n".join(markdown(rows, used)))


if __name__ == "__main__":
    main()
