"""Models of ``multilabel.py``: ours on one or several kinds of features, and one-vs-rest LinearSVC."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.estimators.calibration import fit_curves
from nhsvm.weights import Power

MODELS: dict[str, Any] = {
    "FlatSVM": (FlatSVM, {}),
    "HSVM": (HSVM, {}),
    "HSVM, loss over nodes": (HSVM, {"loss": "hamming"}),
    "NHSVM, max-min": (NHSVM, {}),
    "NHSVM, power 2": (NHSVM, {"weights": Power(rho=2.0)}),
    "NHSVM, power 2, T=1.5": (NHSVM, {"weights": Power(rho=2.0, total=(1.0, 1.5))}),
}
ONE_VS_REST = "LinearSVC, one-vs-rest"


def members(hierarchy: Hierarchy, y: list[list[str]]) -> Any:
    """Whether a sample has a node: itself, or a label below it."""
    number = {node: k for k, node in enumerate(hierarchy.nodes)}
    found = np.zeros((len(y), hierarchy.n_nodes), dtype=bool)
    for i, labels in enumerate(y):
        for label in labels:
            found[i, hierarchy.graph.ancestors.row(number[label])] = True
    return found


def lowest(hierarchy: Hierarchy, on: Any) -> list[list[Any]]:
    """Label sets: of the nodes that are predicted with all above them, those with none below."""
    graph, nodes = hierarchy.graph, hierarchy.nodes
    on = on.copy()
    for n in range(graph.n_roots, graph.n_nodes):
        on[:, n] &= on[:, graph.parents.row(n)].all(axis=1)
    below = on.copy()
    for n in range(graph.n_nodes):
        if len(graph.children.row(n)):
            below[:, n] &= ~on[:, graph.children.row(n)].any(axis=1)
    return [[nodes[n] for n in np.flatnonzero(row)] for row in below]


class Ours:
    """One of :data:`MODELS` for every kind of features; probabilities are means over them."""

    def __init__(self, name: str, hierarchy: Hierarchy, **options: Any) -> None:
        self.kind, self.more = MODELS[name]
        self.hierarchy, self.options = hierarchy, options

    def fit(self, Xs: list[Any], y: list[list[str]]) -> Ours:
        self.models = [
            self.kind(self.hierarchy, probability=True, cv=3, **self.more, **self.options).fit(X, y) for X in Xs
        ]
        self.seconds = sum(model.history_[-1]["seconds"] for model in self.models)  # without the folds
        self.gap = max(model.gap_ for model in self.models)
        return self

    def node_proba(self, Xs: list[Any]) -> Any:
        number = {node: k for k, node in enumerate(self.hierarchy.nodes)}
        found = np.zeros((Xs[0].shape[0], self.hierarchy.n_nodes))  # what was never seen has no chance
        for model, X in zip(self.models, Xs, strict=True):
            own = model.hierarchy_
            real = [k for k in range(own.n_nodes) if not own.is_virtual[k]]
            found[:, [number[own.nodes[k]] for k in real]] += model.node_proba(X)[:, real] / len(self.models)
        return found

    def predict(self, Xs: list[Any]) -> Any:
        """The best sets; of several models, what is more probable than not."""
        if len(self.models) == 1:
            return self.models[0].predict(Xs[0], exact=False)
        return lowest(self.hierarchy, self.node_proba(Xs) >= 0.5)


class OneVsRest:
    """LinearSVC for every node that the training data have, with ancestors as labels, and curves of held-out scores."""

    gap = float("nan")

    def __init__(self, hierarchy: Hierarchy, C: float) -> None:
        self.hierarchy, self.C = hierarchy, C

    def fit(self, Xs: list[Any], y: list[list[str]]) -> OneVsRest:
        (X,) = Xs
        Y = members(self.hierarchy, y)
        self.nodes = np.flatnonzero(Y.any(axis=0))
        held, true = [], []
        for k in range(3):
            out = np.arange(len(y)) % 3 == k
            held.append(self._machines(X[~out], Y[~out]).decision_function(X[out]))
            true.append(Y[out][:, self.nodes])
        scores = np.vstack(held)
        self.curves = fit_curves(scores, np.vstack(true), np.ones(len(y)), scores)
        began = time.perf_counter()
        self.machines = self._machines(X, Y)
        self.seconds = time.perf_counter() - began
        return self

    def _machines(self, X: Any, Y: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels that all or none of a fold have
            return OneVsRestClassifier(LinearSVC(C=self.C), n_jobs=1).fit(X, Y[:, self.nodes].astype(int))

    def node_proba(self, Xs: list[Any]) -> Any:
        found = np.zeros((Xs[0].shape[0], self.hierarchy.n_nodes))
        scores = self.machines.decision_function(Xs[0])
        a, b, directions, shares = self.curves
        found[:, self.nodes] = expit(scores * a + b + scores @ directions @ shares)
        return found

    def predict(self, Xs: list[Any]) -> list[list[Any]]:
        on = np.zeros((Xs[0].shape[0], self.hierarchy.n_nodes), dtype=bool)
        on[:, self.nodes] = self.machines.predict(Xs[0]) > 0
        return lowest(self.hierarchy, on)
