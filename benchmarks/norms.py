"""Time and proved gap of the structured shared norm, up to the size of the paper's largest graph.

python benchmarks/norms.py                     # trees and a DAG of 5,000 nodes
python benchmarks/norms.py --nodes 50312       # some minutes for the DAG
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console

from hierarchy import timed, wiki_shaped
from nhsvm.paper import structured_shared_norm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--columns", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-6)
    options = parser.parse_args()
    console = Console(width=120, highlight=False)
    for extra in (0.0, 0.5):
        h = wiki_shaped(options.nodes, 0, extra)
        node_rows = np.random.default_rng(0).normal(size=(h.n_nodes, options.columns))
        U = h.graph.leaf_matrix() @ node_rows
        found, seconds = timed(lambda h=h, U=U: structured_shared_norm(U, h, tol=options.tol, return_certificate=True))
        gap = 1 - found.lower_bound / found.value
        share = found.value / np.linalg.norm(U)
        console.print(f"{h}: {seconds:.1f} s, relative gap {gap:.0e}, {share:.3f} of the Frobenius norm")


if __name__ == "__main__":
    main()
