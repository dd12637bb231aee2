"""Our accuracy after every pass beside that of PECOS, on the same generated documents.

python benchmarks/peers/setup.py                                       # PECOS's environment, once
python benchmarks/scale/beside_pecos.py --shape tree7k --scratch DIR

PECOS is trained with every C and constant feature on the given tree and on its own, each in a process of its own. Ours
is trained with one C, and ``max_iter=k`` for k passes, without and with a proof of the gap at the end (``certify``).
Seconds are those of the whole fit. All are judged by test documents.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import run as scale
from shapes import SHAPES, make, positive
from sklearn.exceptions import ConvergenceWarning

import nhsvm

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "peers"
sys.path += [str(PEERS), str(HERE.parent)]

from prepare import write  # noqa: E402

from data import Problem  # noqa: E402


def prepared(options: argparse.Namespace) -> tuple[Problem, Path]:
    """The documents, and the folder where PECOS finds them."""
    shape = SHAPES[options.shape].scaled(options.size)
    if options.topic is not None:
        shape = replace(shape, topic=options.topic)
    made = make(shape, seed=options.seed)
    problem = Problem(options.shape, made.hierarchy, made.X, made.y, made.X_test, made.y_test)
    folder = options.scratch / f"{options.shape}-{options.size:g}-{options.seed}-{shape.topic:g}"
    if not (folder / "facts.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write(problem, None, folder)
    return problem, folder


def pecos(task: Path, model: str, C: float, bias: float, truth: Any, options: argparse.Namespace) -> dict[str, Any]:
    """One fit of PECOS."""
    scratch = options.scratch / "pecos"
    scratch.mkdir(parents=True, exist_ok=True)
    command = [options.envs / "pecos" / "bin" / "python", PEERS / "worker_pecos.py", "--task", task, "--model", model]
    command += ["--scratch", scratch, "--out", scratch / "out.json", "--setting", json.dumps({"C": C, "bias": bias})]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    found = json.loads((scratch / "out.json").read_text())
    classes = np.array(json.loads((task / "facts.json").read_text())["classes"])
    right = float((classes[np.load(scratch / "predicted.npy")] == truth).mean())
    return {
        "model": f"PECOS, {model} tree, C = {C:g}, constant {bias:g}", "accuracy": right, "seconds": found["fit_wall"],
        "cpu_seconds": found["fit_cpu"], "added_gb": found["fit_added_mb"] / 1000,
    }  # fmt: skip


def ours(problem: Problem, passes: int, bias: float, certify: bool, options: argparse.Namespace) -> dict[str, Any]:
    """One fit of NHSVM that ends after some passes."""
    model = nhsvm.NHSVM(
        problem.hierarchy, options.C, intercept_scaling=bias, tol=1e-3, max_iter=passes, certify=certify, n_jobs=2
    )
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(problem.X_train, problem.y_train)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    right = float((model.predict(problem.X_test) == problem.y_test).mean())
    name = f"NHSVM, {passes} pass{'es' * (passes > 1)}, constant {bias:g}{', proved' * certify}"
    gap = model.gap_ if certify else None
    return {"model": name, "accuracy": right, "seconds": wall, "cpu_seconds": cpu, "gap": gap}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="tree7k")
    parser.add_argument("--size", type=positive, default=1.0)
    parser.add_argument("--topic", type=float, help="share of words that tell of the label; the less the harder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--C", type=float, default=1.0, help="of ours")
    parser.add_argument("--grid", type=float, nargs="+", default=[0.3, 1.0, 3.0], help="C of PECOS")
    parser.add_argument("--constants", type=float, nargs="+", default=[1.0], help="values of the constant feature")
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--scratch", type=Path, required=True, help="folder for prepared data")
    parser.add_argument("--envs", type=Path, default=PEERS / "envs", help="folder of environments")
    options = parser.parse_args()
    problem, task = prepared(options)
    print(problem, flush=True)
    for model in ("given", "own"):
        for bias, C in itertools.product(options.constants, options.grid):
            print(json.dumps(pecos(task, model, C, bias, problem.y_test, options)), flush=True)
    scale.warmed(nhsvm.NHSVM, scale.Problem(*_parts(problem)), nhsvm.NHSVM(problem.hierarchy, options.C))
    for passes in options.passes:
        for bias, certify in itertools.product(options.constants, (False, True)):
            print(json.dumps(ours(problem, passes, bias, certify, options)), flush=True)


def _parts(problem: Problem) -> tuple[Any, ...]:
    return problem.hierarchy, problem.X_train, problem.y_train, problem.X_test, problem.y_test


if __name__ == "__main__":
    main()
