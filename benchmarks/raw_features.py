"""Features as they come: time and gap of fits whose columns were not scaled, beside LIBLINEAR's Crammer-Singer.

    python benchmarks/raw_features.py                     # three sets, a minute
    python benchmarks/raw_features.py --quick             # smaller, to see that it works

``FlatSVM`` and ``LinearSVC(multi_class="crammer_singer")`` have the same objective. The gap of the latter is measured
here: its objective against the dual that a FlatSVM fit to 1e-6 has proved. Seconds are of the processor, the least of
``--repeat`` rounds in which everybody takes a turn; what kernels take to compile is not counted. LIBLINEAR stops at its
own tolerance or after 100,000 passes, of which its Crammer-Singer solver cannot be told another number.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.svm import LinearSVC

from nhsvm import NHSVM, FlatSVM
from quick import parsed

Floats = npt.NDArray[np.float64]


class Data(NamedTuple):
    """Samples and labels."""

    X: Floats
    y: npt.NDArray[np.int64]


def data_sets(quick: bool) -> dict[str, Data]:
    """By name."""
    n = 150 if quick else 600
    X, y = make_classification(n, 20, n_informative=8, n_classes=6, random_state=0)
    sets = {"wine": Data(*load_wine(return_X_y=True)), "make_classification x 1000": Data(X * 1000.0, y)}
    if not quick:
        sets["digits"] = Data(*load_digits(return_X_y=True))
    return sets


def objective(model: LinearSVC, data: Data, C: float) -> float:
    """½‖W‖² + ½‖b‖² + C Σ_i max_y [1(y ≠ y_i) + s_i(y) − s_i(y_i)]."""
    scores = data.X @ model.coef_.T + model.intercept_
    rows, code = np.arange(len(scores)), np.searchsorted(model.classes_, data.y)
    slack = (scores + (np.arange(scores.shape[1]) != code[:, None])).max(axis=1) - scores[rows, code]
    return 0.5 * float((model.coef_**2).sum() + (model.intercept_**2).sum()) + C * float(slack.sum())


def timed(model: Any, data: Data) -> float:
    """Seconds of the processor that a fit takes."""
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        model.fit(data.X, data.y)
    return time.process_time() - start


def main() -> None:
    """One row a set and model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--repeat", type=int, default=3)
    options = parsed(parser, repeat=1)
    table = Table("set", "model", "seconds", "gap", "passes", "training error")
    for name, data in data_sets(options.quick).items():
        models: dict[str, Any] = {
            "NHSVM": NHSVM(C=options.C, tol=options.tol),
            "FlatSVM": FlatSVM(C=options.C, tol=options.tol),
            "LinearSVC": LinearSVC(C=options.C, multi_class="crammer_singer", random_state=0),
        }
        least = FlatSVM(C=options.C, tol=1e-6).fit(data.X, data.y).dual_objective_
        NHSVM(C=options.C, max_iter=1, certify=False).fit(data.X, data.y)  # compiles
        rounds = [{key: timed(model, data) for key, model in models.items()} for _ in range(options.repeat)]
        for key, model in models.items():
            if key == "LinearSVC":
                upper = objective(model, data, options.C)
                gap = (upper - least) / upper
            else:
                gap = model.gap_
            error = float((model.predict(data.X) != data.y).mean())
            seconds = min(one[key] for one in rounds)
            table.add_row(name, key, f"{seconds:.2f}", f"{gap:.1e}", str(np.max(model.n_iter_)), f"{error:.3f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
