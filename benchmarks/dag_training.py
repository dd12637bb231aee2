"""How long label sets on the Gene Ontology take to a proved gap: every pass as it goes.

    python benchmarks/dag_training.py --data DIR --sets cellcycle_GO eisen_GO derisi_GO
    python benchmarks/dag_training.py --data DIR --sets eisen_GO --model HSVM --C 0.1 --jobs 1

The training part of a set, standardised features, C = 1. Kernels are compiled before, on a few samples. A gap that is
not proved is an estimate by the label sets that were found while the pass went on.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from multilabel_data import YEAST, load
from multilabel_models import MODELS
from quick import parsed


def fitted(name: str, options: argparse.Namespace) -> None:
    """Fit one set and say how it goes."""
    problem = load(name, Path(options.data))
    X, y = problem.linear[0]
    kind, more = MODELS[options.model]
    kind(problem.hierarchy, tol=0.5, max_iter=3, n_jobs=options.jobs, **more).fit(X[:100], y[:100])  # compiles
    cpu = time.process_time()

    def told(record: dict[str, Any]) -> bool:
        gap = f"{'proved' if record['certified'] else 'estimated'} gap {record['gap']:.4f}"
        spent = f"{record['seconds']:7.1f} s, {time.process_time() - cpu:7.1f} of the processor"
        values = f"primal {record['primal']:.0f}  dual {record['dual']:.0f}"
        print(f"{record['iteration']:>4} {spent}  {gap}  {values}", flush=True)
        return bool(record["seconds"] > options.limit)

    print(f"{name}, {options.model}, C = {options.C:g}: {X.shape[0]} samples, {problem.hierarchy.n_nodes} nodes")
    model = kind(problem.hierarchy, options.C, tol=options.tol, n_jobs=options.jobs, callback=told, **more).fit(X, y)
    print(f"  proved gap {model.gap_:.4f} after {model.history_[-1]['seconds']:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--sets", nargs="+", choices=YEAST, default=[name for name in YEAST if name.endswith("_GO")])
    parser.add_argument("--model", choices=MODELS, default="NHSVM, max-min")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which no further pass begins")
    options = parsed(parser, sets=["cellcycle_GO"], tol=0.5)
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in options.sets:
        fitted(name, options)


if __name__ == "__main__":
    main()
