"""What ``nhsvm inspect`` says of a model."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nhsvm.cli._inspect_hierarchy import counts, summary
from nhsvm.cli._models import LoadedModel, ModelOptions, load_model
from nhsvm.errors import UnknownLabelError
from nhsvm.explanation import features_of
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.labels import VirtualLeaf, public
from nhsvm.sizes import readable_bytes

_RUNNING = ("hierarchy", "verbose", "callback", "n_jobs", "warm_start")  # options that say nothing of the result


def describe(
    file: Path, features: int, asked: list[str], max_nodes: int, max_bytes: str | None = None
) -> dict[str, Any]:
    """Everything there is to say of a model file; nodes as far as they are asked for, or the topmost ones."""
    # a pattern is shown, and never used
    loaded = load_model(file, ModelOptions(trust_patterns=True, max_bytes=max_bytes))
    svm = loaded.svm
    nodes = _Nodes(loaded, features)
    chosen = _chosen(svm.hierarchy_, asked) if asked else svm.hierarchy_.nodes[:max_nodes]
    shown = [nodes.described(node) for node in chosen]
    return counts(svm.hierarchy_) | {
        "kind": "model",
        "file": str(file),
        "estimator": type(svm).__name__,
        "steps": [type(step).__name__ for _, step in loaded.model.steps[:-1]] if hasattr(loaded.model, "steps") else [],
        "patterns": patterns_of(loaded.model),
        "labels": "sets" if loaded.is_multilabel else "one a sample",
        "n_classes": len(svm.classes_),
        "n_features": svm.n_features_in_,
        "parameters": _parameters(svm),
        "convergence": _convergence(svm),
        "memory": _memory(file, loaded),
        "nodes": shown,
        "drawing": _details(shown) if asked else svm.hierarchy_.draw(notes=nodes, max_nodes=max_nodes),
    }


def show(result: dict[str, Any]) -> str:
    """All of it as text."""
    from nhsvm.cli.inspect import lines

    after = f" after {', '.join(result['steps'])}" if result["steps"] else ""
    labels = "label sets" if result["labels"] == "sets" else "one label a sample"
    head = (
        f"{result['estimator']}{after}: {labels}, {result['n_classes']:,} classes, {result['n_features']:,} features\n"
        f"{summary(result)}"
    )
    options = ", ".join(f"{name}={value!r}" for name, value in result["parameters"].items())
    patterns = "; ".join(map(repr, result["patterns"]))
    rows = {
        "parameters": options,
        "pattern": f"{patterns}: not scikit-learn's own; used only with --trust-patterns" if patterns else None,
        "convergence": _convergence_text(result["convergence"]),
        "file": f"{readable_bytes(result['memory']['file'])} on disk",
        "weights": _weights_text(result["memory"]),
        "memory": _memory_text(result["memory"]),
    }
    return f"{head}\n\n{lines(rows)}\n\n{result['drawing']}"


def patterns_of(model: Any) -> list[str]:
    """The regular expressions that a model brings to split texts by, but for scikit-learn's own."""
    from nhsvm.model.steps import PATTERNS

    steps = [step for _, step in model.steps] if hasattr(model, "steps") else []
    found = [getattr(step, "token_pattern", None) for step in steps]
    return [pattern for pattern in found if pattern not in PATTERNS]


class _Nodes(Mapping[Any, str]):
    """Notes behind the nodes of a drawing, made when they are drawn: there may be many more nodes than are."""

    def __init__(self, loaded: LoadedModel, n_features: int) -> None:
        self.svm, self._n_features = loaded.svm, n_features
        self._names = _feature_names(loaded)
        self._intercepts = self.svm.intercept_

    def __getitem__(self, node: Any) -> str:
        part = self.described(node)
        features = ", ".join(f"{name} {weight:.2f}" for name, weight in part["features"])
        return f"α {part['weight']:.3f}  |U| {part['norm']:6.3f}  {features}"

    def described(self, node: Any) -> dict[str, Any]:
        """A node as numbers."""
        svm, number = self.svm, self.svm.hierarchy_.number(node)
        features = svm.strongest_features(node, None, feature_names=self._names)
        squares = sum(weight * weight for _, weight in features)
        return {
            "node": public(node),
            "itself": isinstance(node, VirtualLeaf),
            "depth": int(svm.hierarchy_.graph.level[number]),
            "weight": float(svm.node_weights_[number]),
            "norm": math.sqrt(squares + float(self._intercepts[number]) ** 2),
            "intercept": float(self._intercepts[number]),
            "n_weights": len(features),
            "features": features[: self._n_features],
        }

    def __iter__(self) -> Iterator[Any]:
        return iter(self.svm.hierarchy_.nodes)

    def __len__(self) -> int:
        return int(self.svm.hierarchy_.n_nodes)


def _chosen(hierarchy: Hierarchy, asked: list[str]) -> list[Any]:
    """Nodes by the texts of their labels, each with its virtual leaf."""
    by_text: dict[str, list[Any]] = {}
    for node in hierarchy.nodes:
        by_text.setdefault(str(public(node)), []).append(node)
    for text in asked:
        if text not in by_text:
            raise UnknownLabelError([text], by_text)
    return [node for text in asked for node in by_text[text]]


def _details(nodes: list[dict[str, Any]]) -> str:
    parts = []
    for node in nodes:
        name = f"({node['node']} itself)" if node["itself"] else str(node["node"])
        head = (
            f"{name}: depth {node['depth']}, α {node['weight']:.3f}, |U| {node['norm']:.3f}, "
            f"intercept {node['intercept']:.3f}, {node['n_weights']:,} weights that are not zero"
        )
        wide = max((len(feature) for feature, _ in node["features"]), default=0)
        parts.append("\n".join([head, *(f"  {feature:<{wide}} {weight:8.3f}" for feature, weight in node["features"])]))
    return "\n\n".join(parts)


def _feature_names(loaded: LoadedModel) -> Any:
    """Words of a vectoriser, names of columns, or numbers of a data file; None if nothing is known."""
    names = features_of(loaded.model)
    note = loaded.note
    if names is None and not hasattr(loaded.model, "steps"):
        if "first_feature" in note:
            return range(note["first_feature"], note["first_feature"] + note["n_features"])
        names = note.get("feature_names", note.get("feature_numbers"))
    return names


def _parameters(svm: Any) -> dict[str, Any]:
    """C, and all options that are not at their defaults."""
    defaults = {name: p.default for name, p in inspect.signature(type(svm)).parameters.items()}
    given = svm.get_params(deep=False)
    kept = {name: value for name, value in given.items() if name not in _RUNNING and value != defaults[name]}
    return {"C": svm.C} | kept


def _convergence(svm: Any) -> dict[str, Any]:
    last = svm.history_[-1] if svm.history_ else {}
    tol = float(getattr(svm.solver, "tol", svm.tol))
    return {
        "objective": svm.objective_,
        "gap": svm.gap_,
        "tol": tol,
        "converged": bool(svm.gap_ <= tol),
        "passes": svm.n_iter_,
        "seconds": last.get("seconds"),
    }


def _convergence_text(found: dict[str, Any]) -> str:
    seconds = "" if found["seconds"] is None else f", {found['seconds']:.1f} s"
    passes = f"{found['passes']} pass{'es' * (found['passes'] != 1)}{seconds}"
    if not math.isfinite(found["gap"]):
        return f"no proved gap; {passes}"
    reached = "reached" if found["converged"] else "NOT reached"
    return (
        f"objective {found['objective']:.6g}, proved gap {found['gap']:.2e} (tol {found['tol']:g} {reached}); {passes}"
    )


def _memory(file: Path, loaded: LoadedModel) -> dict[str, Any]:
    """Bytes of the file and of what is in memory when the model is in use."""
    weights = loaded.svm.model_.weights
    filled, stored = weights.count_nonzero(), np.dtype(weights.precision)
    graph = loaded.svm.hierarchy_.graph
    lists = [graph.parents, graph.children, graph.ancestors, graph.leaf_ancestors]
    hierarchy = sum(part.indptr.nbytes + part.indices.nbytes for part in lists)
    words = features_of(loaded.model) if loaded.reads_text else None
    text = 0 if words is None else int(sum(map(sys.getsizeof, words))) + 100 * len(words)  # with their dictionary
    return {
        "file": file.stat().st_size,
        "weights": weights.nbytes,
        "shape": list(weights.shape),
        "dtype": str(stored),
        "zeros": 1.0 - filled / max(1, math.prod(weights.shape)),
        "weights_if_sparse": filled * (stored.itemsize + 4),
        "hierarchy": hierarchy,
        "words": text,
        "in_use": weights.nbytes + hierarchy + text,
    }


def _weights_text(memory: dict[str, Any]) -> str:
    shape = " × ".join(f"{size:,}" for size in memory["shape"])
    dense, sparse = readable_bytes(memory["weights"]), readable_bytes(memory["weights_if_sparse"])
    return f"{shape} {memory['dtype']}, {dense}; {memory['zeros']:.1%} are zero ({sparse} if stored sparse)"


def _memory_text(memory: dict[str, Any]) -> str:
    parts = [f"weights {readable_bytes(memory['weights'])}, mapped from the file"]
    parts.append(f"hierarchy {readable_bytes(memory['hierarchy'])}")
    if memory["words"]:
        parts.append(f"words about {readable_bytes(memory['words'])}")
    return f"{readable_bytes(memory['in_use'])} in use: " + "; ".join(parts)
