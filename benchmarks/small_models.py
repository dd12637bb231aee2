"""Small models: what precision, pruning and a beam do to size, accuracy and time, on real data.

    python benchmarks/small_models.py --data DIR --out docs/results/small_models.md
    python benchmarks/small_models.py --data DIR --scales     # int8: one scale a feature, or one a node?
    python benchmarks/small_models.py --growth                # exact and beam on trees of 110 to 111,110 nodes

One NHSVM (max-min weights, tol 0.01) a set. Every row is that model, saved, loaded and asked about the test part. Sizes
are of files. Times are of the processor: the median of nine loads, the best of three predictions of all of the test
part on one thread, and the median of 200 single documents.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

import nhsvm
from data import DataAbsentError, Problem, load
from nhsvm.model import Model, Training
from nhsvm.storage import PRECISIONS, Table
from quick import parsed

SETS = {"newsgroups20": 3.16, "clinc150": 3.16, "docstrings": 10.0, "lshtc_dryrun": 10.0}  # and C
SHARES = (0.5, 0.8, 0.9, 0.95)
BEAMS = (1, 3, 10)


@dataclass(frozen=True)
class Row:
    """One way to keep or ask a model."""

    what: str
    size: int
    accuracy: float
    same: float  # share of answers that are those of the model as it was
    load: float  # seconds
    batch: float  # seconds for all of the test part
    one: float  # seconds for one document


def timed(work: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of the processor, of every repeat."""
    found = []
    for _ in range(repeats):
        start = process_time()
        work()
        found.append(process_time() - start)
    return found


def measured(what: str, path: Path, problem: Problem, answers: Any, beam: int | None = None) -> Row:
    """A row for the model of a file."""
    model = nhsvm.load(path)
    found = model.predict(problem.X_test, beam=beam)  # compiles
    some = [problem.X_test[[k]] for k in range(min(200, problem.X_test.shape[0]))]
    waiting = iter(some)
    model.predict(some[0], beam=beam)
    return Row(
        what,
        path.stat().st_size,
        float(np.mean(found == problem.y_test)),
        float(np.mean(found == answers)),
        median(timed(lambda: nhsvm.load(path), 9)),
        min(timed(lambda: model.predict(problem.X_test, beam=beam), 3)),
        median(timed(lambda: model.predict(next(waiting), beam=beam), len(some))),
    )


def rows(problem: Problem, model: Any, folder: Path) -> Iterator[Row]:
    """All of one set."""
    path, answers = folder / "model.nhsvm", model.predict(problem.X_test)

    def row(what: str, kept: Any, precision: str | None = None, beam: int | None = None) -> Row:
        kept.save(path, precision=precision)
        return measured(what, path, problem, answers, beam)

    yield row("as trained (float32)", model)
    for precision in PRECISIONS:
        yield row(precision, model, precision)
    for share in SHARES:
        yield row(f"{share:.0%} pruned", nhsvm.prune(model, share=share).model)
    for share in SHARES[1:3]:
        yield row(f"{share:.0%} pruned, int8", nhsvm.prune(model, share=share).model, "int8")
    for beam in BEAMS:
        yield row(f"beam {beam}", model, beam=beam)


def scales(problem: Problem, model: Any) -> str:
    """int8 with a scale for every feature, beside one for every node: errors of weights, and accuracy."""
    fitted = model.model_
    table = fitted.weights.dense_table().T
    found = []
    for name, axis in (("feature", 1), ("node", 0)):
        scale = np.abs(table).max(axis=axis, keepdims=True) / 127
        wide = (np.rint(np.divide(table, scale, where=scale > 0, out=np.zeros_like(table))) * scale).astype(np.float32)
        error = float(np.linalg.norm(wide - table) / np.linalg.norm(table))
        scores = problem.X_test @ wide[:-1] + fitted.bias * wide[-1]
        leaves = np.stack([scores[:, path].sum(axis=1) for path in split(fitted.columns.paths)], axis=1)
        accuracy = np.mean(model.classes_[leaves.argmax(axis=1)] == problem.y_test)
        found.append(f"one scale a {name}: error {error:.4f} of ‖U‖, accuracy {accuracy:.4f}")
    return "; ".join(found)


def split(paths: Any) -> list[Any]:
    """The columns of every leaf."""
    return [paths.row(k) for k in range(len(paths.indptr) - 1)]


def speeds(depth: int) -> str:
    """Documents a second on a tree with ten children a node: weights and documents are random, 100 words each."""
    rng = np.random.default_rng(0)
    n_nodes = sum(10**k for k in range(1, depth + 1))
    h = nhsvm.Hierarchy.from_parents({v: v // 10 - 1 if v >= 10 else None for v in range(n_nodes)})
    weights = Table(rng.normal(size=(1001, n_nodes)).astype(np.float32), by_feature=True)
    order, alpha = np.arange(h.n_leaves, dtype=np.int32), np.ones(n_nodes)
    training = Training(np.nan, np.nan, np.inf, 1, [])
    model = Model.make(h, np.array(h.leaves), order, alpha, weights=weights, bias=1.0, training=training)
    X = sp.random_array((200, 1000), density=0.1, format="csr", dtype=np.float32, rng=rng)
    ways: dict[str, Callable[[], Any]] = {"exact": partial(model.predict, X)}
    ways |= {f"beam {width}": partial(model.predict, X, beam=width) for width in BEAMS}
    seconds = {name: min(timed(work, 4)[1:]) for name, work in ways.items()}  # the first may compile
    return f"{n_nodes:,} nodes: " + ", ".join(f"{name} {200 / took:,.0f}" for name, took in seconds.items())


def table(problem: Problem, found: list[Row]) -> list[str]:
    """Rows in Markdown."""
    n = len(problem.y_test)
    lines = [
        f"### {problem.name}",
        "",
        f"{problem.X_train.shape[0]:,} + {n:,} documents, {problem.X_train.shape[1]:,} features, "
        f"{problem.hierarchy.n_nodes:,} nodes, {problem.n_classes:,} classes seen.",
        "",
        "| | file, MB | accuracy | same answers | load, ms | documents/s | one document, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.what} | {row.size / 1e6:.2f} | {row.accuracy:.4f} | {row.same:.2%} | {1e3 * row.load:.1f} "
        f"| {n / row.batch:,.0f} | {1e3 * row.one:.2f} |"
        for row in found
    ]
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--scales", action="store_true", help="compare scales of int8, and no more")
    parser.add_argument("--growth", action="store_true", help="times on random trees, and no more")
    parser.add_argument("--out", type=Path, help="page to write the tables to, after what it has above '## Tables'")
    args = parsed(parser, sets=["clinc150"])
    lines: list[str] = []
    for depth in range(2, 6) if args.growth else ():
        print(speeds(depth), flush=True)
    for name in () if args.growth else args.sets:
        try:
            problem = load(name, args.data)
        except DataAbsentError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        model = nhsvm.NHSVM(problem.hierarchy, C=SETS[name], tol=0.01).fit(problem.X_train, problem.y_train)
        if args.scales:
            print(f"{name}: {scales(problem, model)}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = table(problem, list(rows(problem, model, Path(folder))))
        print("\n".join(found), flush=True)
        lines += found
    if args.out is not None and lines:
        above = args.out.read_text().split("## Tables")[0] if args.out.exists() else ""
        args.out.write_text(f"{above}## Tables\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
