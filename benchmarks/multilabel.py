"""Label sets: FlatSVM, HSVM and NHSVM beside one-vs-rest LinearSVC, on real trees and DAGs.

    python benchmarks/multilabel.py --data DIR --out tables.md
    python benchmarks/multilabel.py --data DIR --sets cellcycle_FUN --records fun.jsonl      # one set; can be resumed

Sets: the yeast sets (FUN: trees, GO: DAGs) and Enron of the hierarchical multi-label collection, Reuters-21578.
``--maps`` says what becomes of dense features (``multilabel_data.py``); with several, a model is fitted to each and
probabilities are averaged. For every model C is chosen from a grid by AU(PRC) on the validation part (a fifth of the
training data where there is none), then the model is fitted to all training data and judged once on the test part.

AU(PRC) is over all nodes but the only root, and for GO without its three roots, as C-HMCNN reports it. Scores of nodes
are probabilities (``probability=True``) for ours; for LinearSVC the same kind of curves are fitted to held-out scores,
one machine for every label with the ancestors as labels too. Times are of the fit to all training data with the C that
was chosen, without the folds for probabilities.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from multilabel_data import MAPS, SETS, TEXTS, Problem, load
from multilabel_models import MODELS, ONE_VS_REST, OneVsRest, Ours
from nhsvm.estimators import calibration
from nhsvm.metrics import auprc, example_jaccard, f1, hierarchical_f1
from quick import parsed

PUBLISHED = {  # AU(PRC) of C-HMCNN, Giunchiglia and Lukasiewicz (2020)
    "cellcycle_FUN": 0.255, "derisi_FUN": 0.195, "eisen_FUN": 0.306,
    "cellcycle_GO": 0.413, "derisi_GO": 0.370, "eisen_GO": 0.455,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    set: str
    model: str
    features: str
    C: float
    valid: float
    auprc: float
    jaccard: float
    micro_f1: float
    hierarchical_f1: float
    seconds: float
    gap: float


def area(problem: Problem, model: Any, Xs: list[Any], y: list[list[str]]) -> float:
    roots: Any = False if problem.name.endswith("_GO") else "auto"
    return float(auprc(y, model.node_proba(Xs), hierarchy=problem.hierarchy, roots=roots))


def make(name: str, problem: Problem, C: float, options: argparse.Namespace) -> Any:
    if name == ONE_VS_REST:
        return OneVsRest(problem.hierarchy, C)
    return Ours(name, problem.hierarchy, C=C, tol=options.tol, max_iter=options.passes, n_jobs=options.jobs)


def evaluate(problem: Problem, name: str, options: argparse.Namespace) -> Row:
    train, valid, both, test = map(problem.part, range(4))
    tried: list[float] = []
    for C in options.grid:
        tried.append(area(problem, make(name, problem, C, options).fit(*train), *valid))
        if tried[-1] < max(tried) - 0.002:
            break
    C = options.grid[int(np.argmax(tried))]
    model = make(name, problem, C, options).fit(*both)
    predicted, h, y = model.predict(test[0]), problem.hierarchy, test[1]
    return Row(
        problem.name, name, " + ".join(problem.features), C, max(tried), area(problem, model, *test),
        example_jaccard(y, predicted, hierarchy=h), f1(y, predicted, hierarchy=h, average="micro"),
        hierarchical_f1(y, predicted, hierarchy=h), model.seconds, model.gap,
    )  # fmt: skip


def markdown(rows: list[Row]) -> Iterator[str]:
    for name in dict.fromkeys(row.set for row in rows):
        mark = f"; C-HMCNN's published AU(PRC) is {PUBLISHED[name]:.3f}" if name in PUBLISHED else ""
        yield f"## {name}\n\nOne run{mark}.\n"
        yield "| model | features | C | valid | AU(PRC) | Jaccard | micro-F1 | hierarchical F1 | fit, s | gap |"
        yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
        for row in rows:
            if row.set == name:
                yield (
                    f"| {row.model} | {row.features} | {row.C:g} | {row.valid:.3f} | {row.auprc:.3f} | "
                    f"{row.jaccard:.3f} | {row.micro_f1:.3f} | {row.hierarchical_f1:.3f} | {row.seconds:.1f} | "
                    f"{row.gap:.0e} |"
                )
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--models", nargs="+", choices=(*MODELS, ONE_VS_REST), default=(*MODELS, ONE_VS_REST))
    parser.add_argument("--grid", nargs="+", type=float, default=(0.1, 1.0, 10.0))
    parser.add_argument("--maps", nargs="+", choices=MAPS, default=("linear",), help="features of dense sets")
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--passes", type=int, default=1000, help="over the data, at most")
    parser.add_argument("--directions", type=int, help="that curves of probabilities have a share in; 0 is Platt's way")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--records", type=Path, help="JSON lines, one a row; makes a stopped run go on where it was")
    parser.add_argument("--out", type=Path, help="markdown file")
    options = parsed(parser, grid=(1.0,), jobs=1)
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    if ONE_VS_REST in options.models and len(options.maps) > 1:
        parser.error(f"{ONE_VS_REST} takes one kind of features")
    if options.directions is not None:
        calibration.CURVES = calibration.CURVES._replace(directions=options.directions)
    warnings.simplefilter("ignore", ConvergenceWarning)
    console = Console(width=150)
    rows = []
    if options.records and options.records.exists():
        rows = [Row(**json.loads(line)) for line in options.records.read_text().splitlines()]
    done = {(row.set, row.model, row.features) for row in rows}
    for name in options.sets:
        problem, features = None, "linear" if name in TEXTS else " + ".join(options.maps)
        for model in options.models:
            if (name, model, features) in done:  # whatever the other options were
                continue
            problem = problem or load(name, Path(options.data), options.maps)
            row = evaluate(problem, model, options)
            rows.append(row)
            console.print(row)
            if options.records:
                with options.records.open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
            if options.out:
                options.out.write_text("\n".join(markdown(rows)))


if __name__ == "__main__":
    main()
