"""One fit at size: every pass as it goes, the proved gap, peak memory, accuracy, answers a second.

python benchmarks/scale/run.py --shape tree7k --tol 0.01 --jobs 2
python benchmarks/scale/run.py --shape wiki --size 0.1 --tol 0.05 --jobs 2 --model HSVM
python benchmarks/scale/run.py --shape tree7k --size 0.2 --times samples=2     # twice the documents of that size
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from shapes import SHAPES, Problem, factor, make, positive
from sklearn.exceptions import ConvergenceWarning

import nhsvm
from nhsvm.metrics import example_jaccard


def peak() -> float:
    """Peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def in_use() -> float:
    """Memory of this process in GB now, from which its peak begins anew; where that is not possible, the peak so far.

    Drawing the data and compiling may have taken more than a small fit, and so may a fit before this one.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return peak()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1e6


def warmed(kind: Any, problem: Problem, model: Any) -> None:
    """Compile what the fit will need, on a few samples and with the same kind of weights."""
    X, y = problem.X[:200], problem.y[:200]
    expected = nhsvm.estimate_memory(problem.X, problem.y, problem.hierarchy, model=model)
    print(expected, flush=True)
    small = kind(problem.hierarchy, tol=0.5, max_iter=2, leaf_offset=model.leaf_offset, allow_empty=model.allow_empty)
    if expected.weights < expected.table:
        small.set_params(memory_limit=nhsvm.estimate_memory(X, y, problem.hierarchy, model=small).table - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        small.fit(X, y).predict(problem.X_test[:2])


def answers(model: Any, X: Any, jobs: int, **how: Any) -> dict[str, float]:
    """Documents a second in a batch, and seconds for one document, the median of a hundred."""
    model.set_params(n_jobs=jobs)
    start = time.perf_counter()
    model.predict(X, **how)
    batch = X.shape[0] / (time.perf_counter() - start)
    model.set_params(n_jobs=1)
    single = []
    for k in range(min(100, X.shape[0])):
        start = time.perf_counter()
        model.predict(X[k : k + 1], **how)
        single.append(time.perf_counter() - start)
    return {"documents_a_second": batch, "milliseconds_for_one": 1000 * float(np.median(single))}


def small(model: Any, problem: Problem, jobs: int) -> list[dict[str, Any]]:
    """The same model kept in fewer bytes, and asked with a beam."""
    found = []
    model.set_params(callback=None, n_jobs=jobs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nhsvm"

        def row(what: str, kept: Any, precision: str | None = None, beam: int | None = None) -> None:
            kept.save(path, precision=precision)
            start = time.perf_counter()
            loaded = nhsvm.load(path)
            took = time.perf_counter() - start
            loaded.predict(problem.X_test[:64], beam=beam)
            loaded.predict(problem.X_test, beam=beam)  # a file is read when it is first needed
            said = answers(loaded, problem.X_test, jobs, beam=beam)
            right = float((loaded.predict(problem.X_test, beam=beam) == problem.y_test).mean())
            size, spent = path.stat().st_size / 1e6, 1000 * took
            found.append({"model": what, "file_mb": size, "load_ms": spent, "accuracy": right, **said})
            print(found[-1], flush=True)

        row("as learned", model)
        for precision in ("float16", "int8"):
            row(precision, model, precision)
        for beam in (1, 3, 10):
            row(f"beam {beam}", model, beam=beam)
        for share in (0.5, 0.8):
            row(f"{share:.0%} pruned, int8", nhsvm.prune(model, share=share).model, "int8")
    return found


def run(options: argparse.Namespace) -> dict[str, Any]:
    shape = SHAPES[options.shape].scaled(options.size).times(**dict(options.times))
    problem = make(shape, seed=options.seed)
    kind = getattr(nhsvm, options.model)
    passes: list[dict[str, Any]] = []

    def told(record: dict[str, Any]) -> None:
        passes.append(record)
        gap = f"{'proved' if record['certified'] else 'estimated'} gap {record['gap']:.4f}"
        print(f"{record['iteration']:>4} {record['seconds']:8.1f} s  {gap}  peak {peak():.2f} GB", flush=True)

    model = kind(
        problem.hierarchy, options.C, tol=options.tol, max_iter=options.passes, n_jobs=options.jobs, callback=told,
        memory_limit=options.memory, leaf_offset=options.leaf_offset, allow_empty=options.allow_empty,
        intercept_scaling=options.intercept_scaling,
    )  # fmt: skip
    if options.rows:
        table = nhsvm.estimate_memory(problem.X, problem.y, problem.hierarchy, model=model).table
        model.set_params(memory_limit=table - 1)
    warmed(kind, problem, model)
    before = in_use()
    start, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(problem.X, problem.y)
    wall, cpu, after = time.perf_counter() - start, time.process_time() - cpu, peak()
    print(f"fit {wall:.0f} s, {cpu:.0f} s of the processor, peak {after:.2f} GB", flush=True)
    X_test, y_test = problem.X_test[: options.ask], problem.y_test[: options.ask]
    several = not isinstance(problem.y, np.ndarray)
    how = {"exact": False} if several else {}  # label sets on a DAG within a budget: proofs take longer
    found = model.predict(X_test, **how)
    right = example_jaccard(y_test, found, hierarchy=problem.hierarchy) if several else (found == y_test).mean()
    samples, features = problem.X.shape
    return {
        "shape": options.shape, "size": options.size, "model": options.model, "C": options.C, "jobs": options.jobs,
        "samples": samples, "features": features, "nodes": problem.hierarchy.n_nodes,
        "leaves": len(problem.hierarchy.leaves), "labels": shape.labels, "entries": int(problem.X.nnz),
        "seconds": wall, "cpu_seconds": cpu, "passes": model.n_iter_, "gap": model.gap_,
        "data_gb": before, "peak_gb": after, "added_gb": after - before,
        "jaccard" if several else "accuracy": float(right), **answers(model, X_test, options.jobs, **how),
        **({"small": small(model, problem, options.jobs)} if options.small else {}),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="tree7k")
    parser.add_argument("--size", type=positive, default=1.0)
    parser.add_argument("--times", nargs="*", type=factor, default=[], help="such as samples=2 nodes=0.5")
    parser.add_argument("--model", default="NHSVM")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=0.01)
    parser.add_argument("--passes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory", default=None, help="such as 6GB")
    parser.add_argument("--rows", action="store_true", help="weights in rows, also where a table would do")
    parser.add_argument("--intercept-scaling", type=float, default=1.0, help="value of the constant feature")
    parser.add_argument("--leaf-offset", type=float, default=0.0, help="of label sets")
    parser.add_argument("--allow-empty", action="store_true", help="label sets may be empty")
    parser.add_argument("--small", action="store_true", help="also with fewer bytes and with a beam; single labels")
    parser.add_argument("--ask", type=int, default=None, help="documents to judge by; all that are made, if not given")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.small and SHAPES[options.shape].labels > 1:
        parser.error(f"--small is for one label a document, which {options.shape} does not have")
    print(json.dumps(run(options), indent=1))


if __name__ == "__main__":
    main()
