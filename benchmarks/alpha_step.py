"""The α-step of the Shared SVM on large DAGs: seconds, and how far from the best weights it ends.

    python benchmarks/alpha_step.py [--nodes 5000 50312]

Node norms are random (log-normal, a third of the inner nodes zero), graphs those of ``benchmarks/hierarchy.py``. Later
steps go on from the prices of the step before after the norms have changed by 10 %, as between two passes of training.
"above" is how far Σ_n ‖U_n‖²/α_n is above the dual of Eq. 20 at these prices, relative to it: a proof.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from rich.console import Console

from hierarchy import wiki_shaped
from nhsvm.columns import make_columns
from nhsvm.engine.alternating import Budget
from nhsvm.typing import FloatArray
from quick import parsed


def above(budget: Budget, norms: FloatArray, alpha: FloatArray) -> float:
    """(primal − dual) / dual of Eq. 20, the prices scaled to be the best of their direction."""
    assert budget._prices is not None
    used = norms > 0
    value = float((norms[used] / alpha[used]).sum())
    root = float(np.sqrt(norms * (budget._paths.T @ budget._prices)).sum())
    lower = root**2 / float(budget._prices.sum())
    return value / lower - 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", nargs="+", type=int, default=[5_000, 50_312])
    parser.add_argument("--steps", type=int, default=5)
    options = parsed(parser, nodes=[400])
    console = Console(width=120, highlight=False)
    for n_nodes in options.nodes:
        h = wiki_shaped(n_nodes, seed=0, extra=0.5)
        rng = np.random.default_rng(0)
        columns = make_columns(h.graph, np.ones(h.n_nodes))
        norms = np.exp(2.0 * rng.normal(size=columns.n_columns))
        norms[(rng.random(columns.n_columns) < 1 / 3) & ~h.graph.is_leaf[columns.nodes]] = 0.0
        budget = Budget(h.graph, columns)
        console.print(str(h))
        for step in range(options.steps):
            began = perf_counter()
            alpha = budget.best(norms)
            seconds = perf_counter() - began
            worst = float((budget._paths @ alpha).max())
            console.print(
                f"  step {step + 1}: {seconds:.2f} s, above {above(budget, norms, alpha):.1e}, largest sum {worst:.12f}"
            )
            norms = norms * np.exp(0.1 * rng.normal(size=len(norms)))


if __name__ == "__main__":
    main()
