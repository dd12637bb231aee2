"""The paper's way to learn weights, vectors and weights in turn (Eq. 14, Eq. 20), beside the solved joint problem.

python benchmarks/alternations.py

On the paper's unbalanced set, with the sizes of ``nhsvm reproduce synthetic``: accuracy on test samples and the joint
objective after every round. Round 0 is NHSVM with the weights that the alternation starts from.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from nhsvm import NHSVM, SSVM
from nhsvm.paper.synthetic import SETS
from nhsvm.weights import Shared
from quick import parsed


def settings(loss: str) -> dict[str, str]:
    """Of NHSVM, for a round."""
    return {"margin": "normalized"} if loss == "Eq. 13" else {"loss": loss}


def rounds(options: argparse.Namespace, seed: int, loss: str) -> tuple[list[float], list[float]]:
    """Accuracy in percent and objective of every round; the joint optimum, where there is one, comes last."""
    sizes = SETS["unbalanced"]
    data = sizes.make((options.seed, seed))
    n = min(sizes.n_train, options.samples)
    X, y = np.asarray(data.X)[:n], np.asarray(data.y)[:n]
    X_test, y_test = np.asarray(data.X)[sizes.n_train :], np.asarray(data.y)[sizes.n_train :]
    scores, objectives = [], []
    weights = options.start
    for _ in range(options.rounds + 1):
        model = NHSVM(data.hierarchy, options.C, weights=weights, tol=options.tol, **settings(loss)).fit(X, y)
        scores.append(100 * float(model.score(X_test, y_test)))
        objectives.append(float(model.objective_))
        vectors = np.column_stack([model.coef_, model.intercept_])
        weights = Shared(squared_norms=np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if loss == "Eq. 13":
        return scores, objectives  # not convex in both, so that no optimum can be proved
    joint = SSVM(data.hierarchy, options.C, loss=loss, tol=options.tol).fit(X, y)
    return [*scores, 100 * float(joint.score(X_test, y_test))], [*objectives, float(joint.objective_)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="data sets")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--samples", type=int, default=10**9, help="training samples, at most")
    parser.add_argument("--C", type=float, default=5.0)
    parser.add_argument("--tol", type=float, default=0.01)
    parser.add_argument("--start", default="power", help="weights of the first round")
    parser.add_argument("--losses", nargs="+", default=["zero_one", "hamming", "Eq. 13"])
    parser.add_argument("--seed", type=int, default=0)
    options = parsed(parser, repeats=1, rounds=1, samples=100)
    for loss in options.losses:
        found = [rounds(options, k, loss) for k in range(options.repeats)]
        table = Table(title=f"{loss}, mean of {options.repeats} data sets")
        for name in ("round", "accuracy", "objective"):
            table.add_column(name, justify="right")
        means = np.mean(found, axis=0).T
        for k, (accuracy, objective) in enumerate(means):
            name = str(k) if k <= options.rounds else "joint optimum"
            table.add_row(name, f"{accuracy:.1f}", f"{objective:.4g}")
        Console().print(table)


if __name__ == "__main__":
    main()
