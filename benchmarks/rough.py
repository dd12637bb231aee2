"""Rough fits as they are beside the same fits with the constants of fits that prove their gap.

    python benchmarks/rough.py --data DIR
    python benchmarks/rough.py --data DIR --sets clinc150 eisen_go --gaps 0.5 0.3
    python benchmarks/rough.py --data DIR --sets proteins --proteins DIR --samples 20000

One row a set and gap. Scores are accuracy, or the mean Jaccard index of label sets; kernels are compiled before, and
seconds are those of the processor, the least of several fits in turn.
"""

from __future__ import annotations

import argparse
import os
import warnings
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from defaults import one, proteins
from nhsvm.engine import Dual
from nhsvm.paper.benchmark_sets import SETS, TrainTest
from quick import parsed


def compare(name: str, problem: TrainTest, gap: float, repeats: int) -> None:
    how: dict[str, Any] = {"tol": gap, "certify": False}
    seconds, fits = np.full(2, np.inf), [(0.0, 0.0, 0.0, None)] * 2
    for turn, rough in product(range(-1, repeats), (0, 1)):
        with patch.object(Dual, "rough", Dual.rough if rough else lambda self, gap: False):
            fits[rough] = one("NHSVM", problem, how | ({"max_iter": 1} if turn < 0 else {}))
        seconds[rough] = np.inf if turn < 0 else min(seconds[rough], fits[rough][2])
    told = (f"{s:.4f} ± {error:.4f} | {model.n_iter_} | {model.gap_:.2f}" for s, error, _, model in fits)
    print(f"| {name} | {gap:g} | {' | '.join(told)} | {seconds[0]:.2f} | {seconds[1]:.2f} | "
          f"{seconds[1] / seconds[0]:.2f} |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--gaps", nargs="+", type=float, default=[0.5, 0.3])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--proteins", type=Path, help="folder of proteins.npz and proteins.json")
    parser.add_argument("--samples", type=int, default=20_000, help="of proteins")
    options = parsed(parser, sets=["clinc150"], gaps=[0.5], repeats=1)
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| set | gap | usual | passes | gap left | rough | passes | gap left | usual, CPU s | rough, CPU s | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in options.sets or [name for name, known in SETS.items() if not known.missing(options.data)]:
        if name == "proteins":
            problem = proteins(options.proteins, options.samples)
        else:
            problem = SETS[name].load(options.data, 0)
        for gap in options.gaps:
            compare(name, problem, gap, options.repeats)


if __name__ == "__main__":
    main()
