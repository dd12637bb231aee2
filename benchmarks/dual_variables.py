"""Label sets: which dual variables? Planes (label sets that the oracle has found, with weights) beside node marginals.

    python benchmarks/dual_variables.py --data DIR --sets cellcycle_FUN cellcycle_GO --passes 8

Both solve one problem (HSVM's weights, loss over leaves) with the same kind of oracle, one thread. Planes are the block
Frank-Wolfe method with a memory: a visit of a sample asks the oracle, then moves weight between its planes, from the
worst to the best, by exact steps. Ours are ``nhsvm.engine.Dual``'s: exact marginals on a tree, cells of levels on a
DAG. The dual value is what counts, and the numbers that are kept; seconds are of the processor.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from multilabel_data import YEAST, load
from nhsvm import HSVM
from nhsvm.engine import Dual
from nhsvm.objective import dual, penalty
from quick import parsed

_MOVES = 10  # between the planes of a sample, a visit


class Planes:
    """Block coordinate ascent on the weights of planes, with dense features."""

    def __init__(self, problem: Any, X: Any) -> None:
        self.problem = problem
        self.oracle = problem.oracle.stages[min(1, len(problem.oracle.stages) - 1)]  # good, and quick
        self.X = np.column_stack([X, np.full(len(X), problem.bias)])
        self.norms = np.einsum("ij,ij->i", self.X, self.X)
        self.U = np.zeros((self.X.shape[1], problem.columns.n_columns))
        self.rng = np.random.default_rng(0)
        self.loss = 0.0  # Σ a Δ
        self.sets: list[Any] = []
        self.weights: list[Any] = []
        for i, C in enumerate(problem.costs):
            true = np.zeros((1, problem.columns.n_columns))
            true[0, problem.truth.row(i)] = 1.0
            self.sets.append(true)
            self.weights.append(np.array([C]))

    def one_pass(self) -> None:
        problem, alpha = self.problem, self.problem.columns.alpha
        for i in self.rng.permutation(problem.n_samples):
            x, q = self.X[i], self.norms[i]
            scores = x @ self.U
            r = scores.astype(np.float64)
            problem.add_loss(np.array([i]), r[None])
            loss = r - scores
            chosen, _, _ = problem.solved(self.oracle, r[None])
            sets, weights = np.vstack([self.sets[i], chosen]), np.append(self.weights[i], 0.0)
            before = weights @ sets
            for _ in range(_MOVES):
                worth = sets @ r
                top, low = int(np.argmax(worth)), int(np.argmin(np.where(weights > 0, worth, np.inf)))
                d = sets[top] - sets[low]
                slope, curvature = float(r @ d), float(q * (alpha @ (d * d)))
                if slope <= 1e-9:
                    break
                step = min(weights[low], slope / curvature)
                weights[top] += step
                weights[low] -= step
                r = r - q * step * alpha * d
            change = weights @ sets - before
            self.loss += float(loss @ change)
            self.U -= np.outer(x, alpha * change)
            self.sets[i], self.weights[i] = sets[weights > 0], weights[weights > 0]

    @property
    def value(self) -> float:
        return float(dual(penalty(np.einsum("dn,dn->n", self.U, self.U), self.problem.columns.alpha), self.loss))

    @property
    def kept(self) -> int:
        """Numbers: a weight a plane, and its leaves."""
        leaves = self.problem.columns.paths.indices[self.problem.columns.paths.indptr[1:] - 1]
        return sum(len(sets) + int(sets[:, leaves].sum()) for sets in self.sets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--sets", nargs="+", choices=YEAST, default=["cellcycle_FUN", "cellcycle_GO"])
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--C", type=float, default=1.0)
    options = parsed(parser, passes=2)
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    console = Console(width=120)
    for name in options.sets:
        found = load(name, Path(options.data))
        X, y = found.linear[2]
        X = np.asarray(X, np.float32)
        problem: Any = HSVM(found.hierarchy, C=options.C).make_problem(X, y).solved
        table = Table(title=f"{name}: {len(y):,} samples, {problem.columns.n_columns:,} nodes, C = {options.C:g}")
        for column in ("pass", "planes: dual", "numbers kept", "s", "ours: dual", "numbers kept", "s"):
            table.add_column(column, justify="right")
        planes = Planes(problem, X)
        theirs = []
        began = process_time()
        for _ in range(options.passes):
            planes.one_pass()
            theirs.append((f"{planes.value:,.0f}", f"{planes.kept:,}", f"{process_time() - began:.0f}"))
        ours: list[Any] = []
        began = process_time()

        def note(record: Any, ours: list[Any] = ours, began: float = began) -> None:
            ours.append((f"{record['dual']:,.0f}", f"{record['planes']:,}", f"{process_time() - began:.0f}"))

        solution = Dual(tol=1e-2, max_iter=options.passes, callback=note).solve(problem)
        for k in range(options.passes):
            table.add_row(str(k + 1), *theirs[k], *(ours[k] if k < len(ours) else ("", "", "")))
        console.print(table)
        console.print(
            f"ours ends with a dual of {solution.certificate.dual:,.0f} and a gap of {solution.certificate.gap:.1e}"
        )


if __name__ == "__main__":
    main()
