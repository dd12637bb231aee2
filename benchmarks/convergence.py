"""Draw the gap against time for the three models, on generated text.

python benchmarks/convergence.py docs/images/convergence.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

from generate import text_like
from nhsvm import HSVM, NHSVM, FlatSVM
from nhsvm.plots import plot_convergence
from quick import parsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--samples", type=int, default=4_000)
    options = parsed(parser, samples=200)
    mpl.use("Agg")
    problem = text_like(n_samples=options.samples, n_features=10_000, n_leaves=options.samples // 40)
    h = problem.hierarchy
    models = {
        "FlatSVM": FlatSVM(h, tol=options.tol),
        "HSVM": HSVM(h, tol=options.tol),
        "NHSVM": NHSVM(h, tol=options.tol),
        "NHSVM, Eq. 13": NHSVM(h, margin="normalized", tol=options.tol),
        "FlatSVM, sgd": FlatSVM(h, solver="sgd", tol=1e-4, max_iter=200),
    }
    for model in models.values():
        model.fit(problem.X_train[:200], problem.y_train[:200])  # compiles
        model.fit(problem.X_train, problem.y_train)
    axes = plot_convergence(models)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.set_size_inches(7, 4)
    axes.figure.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
