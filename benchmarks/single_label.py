"""FlatSVM and NHSVM beside LIBLINEAR's Crammer-Singer: time to the same gap, prediction, memory, compilation.

    python benchmarks/single_label.py                                   # generated text and docstrings
    python benchmarks/single_label.py --data DIR                        # the real sets too
    python benchmarks/single_label.py --quick                           # a minute, to see that it works

How it is made fair. The objective is the same for ``LinearSVC(multi_class="crammer_singer")`` and ``FlatSVM``, and is
evaluated here, in double precision, from ``coef_`` and ``intercept_``. LIBLINEAR cannot be told a gap, so it gets the
loosest tolerance of a grid with which it comes within 1e-3 of the optimum (finding that tolerance is not timed), while
FlatSVM has to prove its 1e-3 by itself. The optimum is bounded from below by the dual of a FlatSVM fit to 1e-6 and from
above by LIBLINEAR at ``--tight`` (1e-6); the table shows how far apart the two are, and if a primal ever fell below the
dual, the run would stop. Times are the best of ``--repeat`` rounds in which everybody takes a turn; BLAS has as many
threads as the competitor; what a tiny fit compiles beforehand is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from rich.console import Console
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from data import Matrix, Problem, add_options, load_all
from generate import text_like
from nhsvm import NHSVM, FlatSVM
from nhsvm.losses import make_loss
from single_label_tables import GAP, show

TOLERANCES = (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 1e-5, 1e-6)
NHSVM_LOSS = "normalized"  # named, not "auto", because the objective is computed here
ROWS = 1000  # scores are computed for so many samples at a time

Floats = npt.NDArray[np.float64]


# -- the objective, independent of the library's own -------------------------------------------------------------------


def _batches(X: Matrix, coef: npt.ArrayLike, intercept: npt.ArrayLike) -> Iterator[tuple[slice, Floats]]:
    columns = np.ascontiguousarray(np.asarray(coef, dtype=np.float64).T)
    for start in range(0, X.shape[0], ROWS):
        part = slice(start, min(start + ROWS, X.shape[0]))
        yield part, np.asarray(X[part] @ columns) + np.asarray(intercept, dtype=np.float64)


def liblinear_objective(model: LinearSVC, X: Matrix, y: npt.ArrayLike, C: float) -> float:
    """½‖W‖² + ½‖b‖² + C Σ_i max_y [1(y ≠ y_i) + s_i(y) − s_i(y_i)]."""
    code = np.searchsorted(model.classes_, y)
    hinge = 0.0
    for part, score in _batches(X, model.coef_, model.intercept_):
        row = np.arange(len(score))
        own = score[row, code[part]].copy()
        score += 1
        score[row, code[part]] = own
        hinge += float((score.max(axis=1) - own).sum())
    return 0.5 * (np.vdot(model.coef_, model.coef_) + np.vdot(model.intercept_, model.intercept_)) + C * hinge


def node_objective(model: Any, X: Matrix, y: npt.ArrayLike, C: float, loss: str) -> float:
    """½ Σ_n ‖U_n‖²/α_n + C Σ_i max_y [Δ(y, y_i) + s_i(y) − s_i(y_i)], with the constant feature part of U."""
    h, alpha = model.hierarchy_, np.asarray(model.node_weights_, dtype=np.float64)
    U = np.column_stack([model.coef_, model.intercept_]).astype(np.float64)
    squared = np.einsum("nd,nd->n", U, U)
    if squared[alpha == 0].any():
        raise RuntimeError("a node of weight 0 has a vector that is not 0")
    distance = make_loss(loss, h, node_weights=alpha)
    up = sp.csr_matrix(h.graph.leaf_matrix(), dtype=np.float64)
    code = np.array([h.leaf_position(label) for label in np.asarray(y).tolist()])
    hinge = 0.0
    for part, score in _batches(X, U[:, :-1], U[:, -1]):
        leaf_score = np.ascontiguousarray((up @ score.T).T)
        own = leaf_score[np.arange(len(score)), code[part]]
        hinge += float(((leaf_score + distance.to_leaves(code[part])).max(axis=1) - own).sum())
    used = alpha > 0
    return 0.5 * float((squared[used] / alpha[used]).sum()) + C * hinge


# -- competitors -------------------------------------------------------------------------------------------------------


def linear_svc(tol: float, C: float) -> LinearSVC:
    return LinearSVC(multi_class="crammer_singer", C=C, tol=tol, max_iter=1_000_000, random_state=0)


def flat_svm(tol: float, C: float, n_jobs: int = 1) -> Any:
    return FlatSVM(C=C, tol=tol, n_jobs=n_jobs, max_iter=100_000, random_state=0)


def nh_svm(problem: Problem, tol: float, C: float, n_jobs: int = 1) -> Any:
    return NHSVM(
        hierarchy=problem.hierarchy,
        C=C,
        loss=NHSVM_LOSS,
        tol=tol,
        n_jobs=n_jobs,
        max_iter=100_000,
        random_state=0,
    )


class Seconds(NamedTuple):
    """By the clock on the wall, and of processor time: far apart when something else keeps the machine busy."""

    wall: float
    cpu: float


def fitted(model: Any, problem: Problem, n_threads: int = 1) -> tuple[Any, Seconds]:
    """The model and its seconds; BLAS gets as many threads as the competitor."""
    with threadpool_limits(n_threads, user_api="blas"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi_class.*", category=FutureWarning)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(problem.X_train, problem.y_train)
        return model, Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def tiny_like(problem: Problem) -> Problem:
    """Some samples of three classes, of the same types: compiles and loads what the real fit needs."""
    labels, code = np.unique(problem.y_train, return_inverse=True)
    few = np.flatnonzero(code < 3)[:30] if len(labels) > 3 else np.arange(min(30, len(code)))
    if len(np.unique(code[few])) < 2:
        few = np.concatenate([np.flatnonzero(code == c)[:10] for c in range(2)])
    X, y = problem.X_train[few], problem.y_train[few]
    return Problem("tiny", problem.hierarchy, X, y, X, y)


def warm_up(problem: Problem) -> None:
    tiny = tiny_like(problem)
    for n_jobs in (1, 2):
        for model in (flat_svm(0.1, 1.0, n_jobs), nh_svm(tiny, 0.1, 1.0, n_jobs)):
            fitted(model, tiny, n_jobs)[0].predict(tiny.X_test)


# -- time to the gap ---------------------------------------------------------------------------------------------------


@dataclass
class Reference:
    """Bounds on the optimum of the flat problem."""

    lower: float  # the dual of FlatSVM at 1e-6
    upper: float  # the primal of LIBLINEAR at the tight tolerance
    seconds: tuple[float, float] = (0.0, 0.0)  # ours, LIBLINEAR's

    def off(self, value: float) -> float:
        """(P − D*)/P; a primal below the dual proves one of them wrong."""
        if value < self.lower * (1 - 1e-9):
            raise RuntimeError(f"primal {value!r} below the claimed dual bound {self.lower!r}")
        return (value - self.lower) / value


def reference(problem: Problem, C: float, tight: float) -> Reference:
    ours, our_time = fitted(flat_svm(1e-6, C), problem)
    theirs, their_time = fitted(linear_svc(tight, C), problem)
    upper = liblinear_objective(theirs, problem.X_train, problem.y_train, C)
    found = Reference(float(ours.dual_objective_), upper, (our_time.wall, their_time.wall))
    found.off(upper)
    return found


def loosest(problem: Problem, C: float, best: Reference) -> float:
    """The loosest tolerance with which LIBLINEAR comes within the gap."""
    for tol in TOLERANCES:
        model, _ = fitted(linear_svc(tol, C), problem)
        if best.off(liblinear_objective(model, problem.X_train, problem.y_train, C)) <= GAP:
            return tol
    raise RuntimeError(f"{problem.name}: LIBLINEAR does not reach a gap of {GAP}")


@dataclass
class Run:
    """The best time of one competitor, and its model of the last round (all rounds give the same one)."""

    make: Callable[[], Any]
    n_threads: int = 1
    seconds: float = np.inf
    cpu: float = np.inf
    model: Any = None

    def go(self, problem: Problem) -> None:
        self.model = None  # the old model must not be in memory beside the new one
        self.model, seconds = fitted(self.make(), problem, self.n_threads)
        self.seconds, self.cpu = min(self.seconds, seconds.wall), min(self.cpu, seconds.cpu)


@dataclass
class Result:
    """All that was measured on one set."""

    problem: Problem
    best: Reference
    tol: float
    runs: dict[str, Run]
    off: dict[str, float] = field(default_factory=dict)
    accuracy: dict[str, float] = field(default_factory=dict)
    same_bits: bool = True  # whether one and two threads gave the same models
    predict: dict[str, dict[str, float]] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)

    def ratio(self, slow: str, fast: str) -> float:
        return self.runs[slow].seconds / self.runs[fast].seconds

    def busy(self) -> bool:
        """Whether one-threaded fits had to wait for a processor: then the ratios of processor time tell more."""
        return any(self.runs[name].seconds > 1.15 * self.runs[name].cpu for name in ("LinearSVC", "Flat", "NHSVM"))

    def release(self) -> None:
        """Drop the models: those of all sets together are gigabytes."""
        for run in self.runs.values():
            run.model = None


def compete(problem: Problem, C: float, tight: float, repeat: int) -> Result:
    best = reference(problem, C, tight)
    tol = loosest(problem, C, best)
    runs = {
        "LinearSVC": Run(lambda: linear_svc(tol, C)),
        "Flat": Run(lambda: flat_svm(GAP, C)),
        "Flat, 2 jobs": Run(lambda: flat_svm(GAP, C, 2), 2),
        "NHSVM": Run(lambda: nh_svm(problem, GAP, C)),
        "NHSVM, 2 jobs": Run(lambda: nh_svm(problem, GAP, C, 2), 2),
    }
    for _ in range(repeat):
        for run in runs.values():
            run.go(problem)
    result = Result(problem, best, tol, runs)
    judge(result, C)
    return result


def judge(result: Result, C: float) -> None:
    """Objectives, gaps and accuracies of the fitted models."""
    problem, best = result.problem, result.best
    X, y = problem.X_train, problem.y_train
    models = {name: run.model for name, run in result.runs.items()}
    result.off["LinearSVC"] = best.off(liblinear_objective(models["LinearSVC"], X, y, C))
    flat = node_objective(models["Flat"], X, y, C, "zero_one")
    result.off["Flat"] = best.off(flat)
    result.off["Flat to LIBLINEAR"] = flat / best.upper - 1
    result.off["claimed by Flat"] = float(models["Flat"].gap_)
    # LIBLINEAR does not know the hierarchical problem: the gap is the one to the model's own dual
    value = node_objective(models["NHSVM"], X, y, C, NHSVM_LOSS)
    result.off["NHSVM"] = (value - models["NHSVM"].dual_objective_) / value
    pairs = ((models[name], models[f"{name}, 2 jobs"]) for name in ("Flat", "NHSVM"))
    result.same_bits = all(np.array_equal(one.coef_, two.coef_) for one, two in pairs)
    for name in ("LinearSVC", "Flat", "NHSVM"):
        result.accuracy[name] = float(np.mean(np.asarray(models[name].predict(problem.X_test)) == problem.y_test))


# -- prediction --------------------------------------------------------------------------------------------------------


def compete_predict(result: Result, repeat: int) -> None:
    """Best of several; the test rows as they come, and in the other form (some of them, if dense rows are wide)."""
    X = result.problem.X_test
    other = X[:500].toarray() if sp.issparse(X) else sp.csr_matrix(X)
    forms = {"sparse": X, "dense": other} if sp.issparse(X) else {"dense": X, "sparse": other}
    with threadpool_limits(1, user_api="blas"):
        for form, rows in forms.items():
            times = dict.fromkeys(("LinearSVC", "Flat", "NHSVM"), np.inf)
            for _ in range(max(5, repeat)):
                for name in times:
                    start = time.perf_counter()
                    result.runs[name].model.predict(rows)
                    times[name] = min(times[name], time.perf_counter() - start)
            result.predict[form] = times


# -- memory ------------------------------------------------------------------------------------------------------------


def _resident() -> tuple[float, float]:
    """Megabytes in use now, and at the most since the last reset.

    On Linux from /proc, because ru_maxrss of a child starts at its parent's peak.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        return peak, peak
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    now, peak = (int(lines[key].split()[0]) * 1024 / 1e6 for key in ("VmRSS", "VmHWM"))
    return now, peak


def _reset_peak() -> None:
    with contextlib.suppress(OSError):  # not Linux, or not allowed: then the peak of loading is part of the figure
        Path("/proc/self/clear_refs").write_text("5")


def _bytes_of(X: Matrix) -> int:
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def peak_of_fit(path: Path, name: str, tol: float, C: float) -> dict[str, float]:
    """What a fit adds at its peak to a process that has loaded its data and everything it needs, in megabytes."""
    problem = Problem.load(path)
    make = {"LinearSVC": linear_svc, "Flat": flat_svm, "NHSVM": lambda *a: nh_svm(problem, *a)}[name]
    fitted(make(0.1, C), tiny_like(problem))
    _reset_peak()
    before, _ = _resident()
    model, _ = fitted(make(tol, C), problem)
    _, peak = _resident()
    return {"peak": peak - before, "coef": model.coef_.nbytes / 1e6, "X": _bytes_of(problem.X_train) / 1e6}


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def compete_memory(result: Result, C: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.pkl"
        result.problem.save(path)
        for name in ("LinearSVC", "Flat", "NHSVM"):
            tol = result.tol if name == "LinearSVC" else GAP
            result.memory[name] = in_fresh_process(peak_of_fit, path, name, tol, C)


# -- compilation -------------------------------------------------------------------------------------------------------


def compilations(path: Path) -> tuple[int, float]:
    """How many kernels the first fits and predictions in this process compile, and their seconds."""
    from numba.core import event

    problem = Problem.load(path)
    start = time.perf_counter()
    with event.install_recorder("numba:compile") as recorder:
        warm_up(problem)
    return sum(found.is_start for _, found in recorder.buffer), time.perf_counter() - start


def report_compilation(problem: Problem, console: Console) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.pkl"
        problem.save(path)
        in_fresh_process(compilations, path)  # fills the cache, if it was not
        count, seconds = in_fresh_process(compilations, path)
    console.print(f"{problem.name}: kernels compiled in a second process: {count} (first calls took {seconds:.2f} s)")


def report_import(console: Console) -> None:
    code = (
        "import sys, time, sklearn.svm; t = time.perf_counter(); import nhsvm; t = time.perf_counter() - t; "
        "print('numba' in sys.modules, round(t, 3))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    console.print(f"import nhsvm loads numba: {found[0]}; it takes {found[1]} s beyond scikit-learn's own")


# -- one command -------------------------------------------------------------------------------------------------------


def problems(options: argparse.Namespace, console: Console) -> Iterator[Problem]:
    for name in options.sets:
        if name == "generated":
            yield text_like(4_000, 10_000, 100) if options.quick else text_like()
        else:
            yield from load_all([name], options.data, console)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, extra=("generated",))
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best time counts")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tight", type=float, default=1e-6, help="LIBLINEAR's tolerance for the reference")
    parser.add_argument("--quick", action="store_true", help="the generated set only, and a small one")
    options = parser.parse_args()
    if options.quick:
        options.sets, options.repeat = ["generated"], 1
    console = Console(width=150, highlight=False)
    report_import(console)
    results = []
    for problem in problems(options, console):
        console.print(str(problem))
        report_compilation(problem, console)
        warm_up(problem)
        result = compete(problem, options.C, options.tight, options.repeat)
        ours, theirs = result.best.seconds
        console.print(f"  references: FlatSVM to 1e-6 {ours:.1f} s, LIBLINEAR to {options.tight:g} {theirs:.1f} s")
        if result.best.off(result.best.upper) > GAP / 10:
            console.print("  bounds on the optimum too far apart for a fair comparison: LIBLINEAR did more than asked")
        compete_predict(result, options.repeat)
        compete_memory(result, options.C)
        result.release()
        results.append(result)
        summary = ", ".join(f"{name} {run.seconds:.2f} s" for name, run in result.runs.items())
        console.print(f"  {summary}{'; the machine was busy' if result.busy() else ''}")  # at once: this takes minutes
    if results:
        show(results, console)


if __name__ == "__main__":
    main()
