"""Would an exact search down the tree read less than all weights? What Cauchy–Schwarz bounds leave to be read.

python benchmarks/bounded_search.py

Below node n no label can score more than the path to n does, plus ‖x‖ max_l ‖Σ U_m‖ over the nodes m from n (without
it) to a leaf l. A best-first search with these bounds is exact, and reads the weights of a node unless the bound of a
node above it is below the best score. This counts what even a search that knew the best score beforehand would have to
read, for test documents of a trained model.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from generate import text_like
from nhsvm import NHSVM
from quick import parsed

Floats = npt.NDArray[np.float64]


def below(model: NHSVM) -> Floats:
    """max_l ‖Σ U_m‖ of every node: over the paths from it down to its leaves, without itself."""
    h = model.hierarchy_
    most = np.zeros(h.n_nodes)
    for leaf in range(h.n_nodes):
        if h.graph.children.rows(np.array([leaf])).sizes()[0]:
            continue
        total = np.zeros(model.coef_.shape[1] + 1)
        at = leaf
        while True:
            total += np.append(model.coef_[at], model.intercept_[at])
            up = h.graph.parents.rows(np.array([at])).indices
            if not len(up):
                break
            at = int(up[0])
            most[at] = max(most[at], float(np.linalg.norm(total)))
    return most


def needed(model: NHSVM, X: npt.ArrayLike) -> float:
    """Share of the nodes whose weights have to be read, on average over documents."""
    parents = model.hierarchy_.graph.parents
    scores = model.node_scores(X).astype(np.float64)
    best = model.decision_function(X).max(axis=1)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel() + 1.0)  # type: ignore[attr-defined]
    bound = below(model)
    read = np.ones_like(scores, dtype=bool)
    for n in range(scores.shape[1]):  # parents come first
        up = parents.rows(np.array([n])).indices
        if len(up):
            scores[:, n] += scores[:, up[0]]
            read[:, n] = read[:, up[0]] & (scores[:, up[0]] + norms * bound[up[0]] >= best)
    return float(read.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(sizes=[(20_000, 50_000, 500), (20_000, 50_000, 2_000)])
    for n_samples, n_features, n_leaves in parsed(parser, sizes=[(600, 2_000, 30)]).sizes:
        problem = text_like(n_samples, n_features, n_leaves, n_test=500)
        model = NHSVM(problem.hierarchy, tol=1e-2).fit(problem.X_train, problem.y_train)
        share = needed(model, problem.X_test)
        print(
            f"{model.hierarchy_.n_nodes:,} nodes: an exact search down the tree has to read {100 * share:.1f} % of them"
        )


if __name__ == "__main__":
    main()
