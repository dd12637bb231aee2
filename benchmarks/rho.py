"""How often Eq. 6 on a random DAG cannot be solved with a proof, by ρ: 150 graphs with 8 sets of constraints each.

python benchmarks/rho.py 2 16 100 1000
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from nhsvm import node_weights
from nhsvm.errors import NotSolvedError
from quick import parsed
from strategies import random_hierarchy

TOTALS = ((1, 1), (1, 1.01), (1, 1.5), (1, 50))


def unsolved(rho: float, n_graphs: int) -> tuple[int, int]:
    failed = tried = 0
    for i in range(n_graphs):
        h = random_hierarchy(10 + i % 40, 1000 + i, roots=1 + i % 3, extra=(0.3, 1.0, 1.5)[i % 3])
        for directional, total in product((False, True), TOTALS):
            tried += 1
            try:
                node_weights(h, "power", rho=rho, directional=directional, total=total)
            except NotSolvedError:
                failed += 1
    return failed, tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rho", nargs="+", type=float)
    parser.add_argument("--graphs", type=int, default=150)
    options = parsed(parser, graphs=3)
    for rho in options.rho:
        failed, tried = unsolved(rho, options.graphs)
        print(f"rho={rho}: {failed} of {tried} unsolved", flush=True)


if __name__ == "__main__":
    main()
