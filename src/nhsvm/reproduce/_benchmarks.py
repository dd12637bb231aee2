"""One set of Table 4: every model's settings chosen on held-out samples, then learned with and tested once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from nhsvm.estimators import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import example_jaccard, f1, hierarchical_f1
from nhsvm.model_selection import paper_grid, tune
from nhsvm.model_selection.grid import show
from nhsvm.reproduce._compare import mcnemar, paired
from nhsvm.reproduce._outcomes import MODELS, Effort, Outcome, Pair, SetResult
from nhsvm.reproduce._problem import Problem

HELD_OUT = 0.2  # of the training samples
_KINDS: dict[str, Any] = {"FlatSVM": FlatSVM, "HSVM": HSVM, "NHSVM": NHSVM, "SSVM": SSVM}


def run_set(
    problem: Problem, effort: Effort, seed: int, versions: str, note: Callable[[str], Any] = lambda _: None
) -> SetResult:
    """Every model on one set; ``note`` is told of every fit."""
    with threadpool_limits(1), warnings.catch_warnings():  # the last bits of a product depend on the threads of BLAS
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is in the table
        found = {model: _run(model, problem, effort, seed, note) for model in MODELS}
    right = {model: values for model, (_, values) in found.items()}
    outcomes = {model: outcome for model, (outcome, _) in found.items()}
    pairs = tuple(_pairs(right, problem.multilabel))
    return SetResult(facts_of(problem), effort, seed, outcomes, pairs, versions)


def facts_of(problem: Problem) -> dict[str, Any]:
    """What a table of data sets says."""
    X, y = problem.whole
    h = problem.hierarchy
    return {
        "n_train": int(X.shape[0]),
        "n_test": int(problem.test[0].shape[0]),
        "n_features": int(X.shape[1]),
        "features": problem.features,
        "n_nodes": h.n_nodes,
        "n_leaves": h.n_leaves,
        "is_tree": bool(h.is_tree),
        "multilabel": problem.multilabel,
        "labels": float(np.mean([len(labels) for labels in y])) if problem.multilabel else 1.0,
        "chosen_on": "validation samples" if problem.validation is not None else "held-out training samples",
    }


def variants(model: str, problem: Problem, effort: Effort) -> list[dict[str, list[Any]]] | None:
    """The grid of a model, but λ: what the paper tries for NHSVM, both losses that SSVM can have; None if one."""
    if model == "SSVM" and not problem.multilabel and not effort.few:
        return [{"loss": ["zero_one", "hamming"]}]
    if model != "NHSVM":
        return None
    grid = paper_grid(problem.hierarchy, multilabel=problem.multilabel)
    return [part for part in grid if not effort.few or part["weights"] == ["maxmin"]]


def _run(model: str, problem: Problem, effort: Effort, seed: int, note: Callable[[str], Any]) -> tuple[Outcome, Any]:
    estimator = _KINDS[model](problem.hierarchy, tol=effort.tol, max_iter=effort.search_iter, random_state=seed)
    shown = "jaccard" if problem.multilabel else "accuracy"
    scoring: Any = {shown: partial(_jaccard, problem.hierarchy)} if problem.multilabel else shown
    found = tune(
        estimator, *problem.train, grid=variants(model, problem, effort), lam=effort.lambdas, scoring=scoring,
        test_size=HELD_OUT, validation=problem.validation, refit=False, search_tol=effort.tol, patience=effort.patience,
        random_state=seed,
        progress=lambda trial, made, planned: note(f"{model} {made}/{planned} {trial.line(shown)}"),
    )  # fmt: skip
    began = process_time()
    fitted = estimator.set_params(**found.best_params, max_iter=effort.max_iter).fit(*problem.whole)
    seconds = process_time() - began
    note(f"{model} chosen: C={fitted.C:g}, {seconds:.1f} s, gap {fitted.gap_:.1e}")
    X, y = problem.test
    predicted, h = fitted.predict(X, exact=False), problem.hierarchy
    scores = _per_sample(y, predicted, problem.multilabel)
    outcome = Outcome(
        _words(found.best.shown), found.best.lam, 100 * found.best_score, 100 * _accuracy(y, predicted),
        100 * float(example_jaccard(y, predicted, hierarchy=h)),
        100 * float(f1(y, predicted, hierarchy=h, average="macro")),
        100 * float(hierarchical_f1(y, predicted, hierarchy=h)), seconds, int(fitted.n_iter_), float(fitted.gap_),
    )  # fmt: skip
    return outcome, scores


def _jaccard(hierarchy: Hierarchy, estimator: Any, X: Any, y: Any) -> float:
    """Of sets that are not proved to be the best on a DAG, since that can take seconds a sample."""
    return float(example_jaccard(y, estimator.predict(X, exact=False), hierarchy=hierarchy))


def _accuracy(y: Any, predicted: Any) -> float:
    return float(np.mean([_as_set(a) == _as_set(b) for a, b in zip(y, predicted, strict=True)]))


def _per_sample(y: Any, predicted: Any, multilabel: bool) -> Any:
    """Whether each label is right; of label sets, the Jaccard index of each."""
    if not multilabel:
        return np.asarray(y) == np.asarray(predicted)
    sets = [(_as_set(a), _as_set(b)) for a, b in zip(y, predicted, strict=True)]
    return np.array([len(a & b) / len(a | b) if a | b else 1.0 for a, b in sets])


def _as_set(labels: Any) -> frozenset[Any]:
    return frozenset(labels) if isinstance(labels, (list, tuple, set, frozenset)) else frozenset([labels])


def _pairs(scores: dict[str, Any], multilabel: bool) -> Iterator[Pair]:
    for first, second in permutations(MODELS, 2):
        a, b = scores[first], scores[second]
        p = paired(a, b).p if multilabel else mcnemar(a, b)
        yield Pair(first, second, 100 * float(np.mean(a) - np.mean(b)), p)


def _words(shown: dict[str, Any]) -> str:
    """A setting as a table has it."""
    names = {"weights": "", "margin": "", "loss": "", "rho": "ρ=", "total": "T="}
    equations = {"loss": "Eq. 10", "normalized": "Eq. 13"}
    parts = []
    for key, value in shown.items():
        if key == "directional":
            parts += ["directional"] * bool(value)
        elif key == "margin":
            parts.append(equations[value])
        else:
            parts.append(f"{names[key]}{show(value[1] if key == 'total' else value)}")
    return ", ".join(parts) or "–"
