"""``nhsvm inspect``: a hierarchy file or a model file in numbers and as a drawing, blocks in numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nhsvm.cli.models import LoadedModel, TrustOptions, load_model
from nhsvm.cli.options import JsonFlag, option
from nhsvm.cli.output import broken, print_json
from nhsvm.errors import OptionError, UnknownLabelError
from nhsvm.options import AUTO
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.typing import Array, Estimator, FloatArray, Label, LabelsLike, Matrix, Record

_RUNNING = ("hierarchy", "verbose", "callback", "n_jobs", "warm_start")  # options that say nothing of the result


@dataclass(frozen=True)
class InspectOptions:
    """How much to show."""

    weights: str | None = option(help="Scheme of weights of a hierarchy; maxmin if not said.")
    features: int = option(min=0, default=5, help="Strongest features to show for every node of a model.")
    node: list[str] | None = option(metavar="NODE", help="Show this node only; may be repeated.")
    max_nodes: int = option(min=1, default=40, help="Nodes to show at the most.")
    max_bytes: str | None = option(
        metavar="SIZE", help="Memory for a model beside its file.", shown="in proportion to the file"
    )


def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Model file, blocks, or hierarchy: LSHTC, TSV, CSV, JSON.")
    ],
    options: InspectOptions,
    *,
    json: JsonFlag = False,
) -> None:
    """Describe a hierarchy file, blocks, or a model file: what it has learned, how well, and how large it is.

    Examples: nhsvm inspect cat_hier.txt --weights power; nhsvm inspect papers.nhsvm --node physics --features 10
    """
    weights, node = options.weights, options.node
    if _is_model(file):
        if weights is not None:
            raise OptionError("--weights is for hierarchies; a model has its own")
        result, text = _model(file, options)
    elif file.is_dir():
        if weights is not None or node:
            wrong, what = ("node", "models") if node else ("weights", "hierarchies")
            raise OptionError(f"--{wrong} is for {what}; {file} is a folder, so it can only be blocks")
        result, text = _blocks(file)
    else:
        if node:
            raise OptionError(f"--node is for models, and {file} is none")
        result, text = _hierarchy(file, weights or "maxmin", options.max_nodes)
    if json:
        print_json(result)
    else:
        typer.echo(broken(text))


def _is_model(file: Path) -> bool:
    """Whether a file begins like a model, which no text does: its length in eight bytes, then JSON."""
    if file.suffix == ".nhsvm":
        return True
    if not file.is_file():  # said by whoever opens it
        return False
    with file.open("rb") as stream:
        start = stream.read(9)
    return len(start) == 9 and start[7] == 0 and start[8:] == b"{"


def _lines(rows: Mapping[str, str | None]) -> str:
    """Names and values, aligned; what is None is left out."""
    shown = {name: value for name, value in rows.items() if value is not None}
    wide = max(map(len, shown))
    return "\n".join(f"{name:<{wide}}  {value}" for name, value in shown.items())


# -- hierarchies -------------------------------------------------------------------------------------------------------


def _hierarchy(file: Path, weights: str, max_nodes: int) -> tuple[Record, str]:
    """Counts and weights of a hierarchy file; the same as text, with a drawing."""
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.weights import node_weights

    h = Hierarchy.read(file)
    alpha = node_weights(h, weights)
    counts = _counts(h)
    result = counts | {
        "kind": "hierarchy",
        "file": str(file),
        "weights": weights,
        "nodes": [
            {"node": label, "depth": depth, "weight": weight}
            for label, depth, weight in zip(h.nodes, h.graph.level.tolist(), alpha.tolist(), strict=True)
        ],
    }
    return result, f"{_summary(counts)}\n\n{drawing_with_columns(h, {weights: alpha}, max_nodes)}"


def _counts(h: Hierarchy) -> Record:
    """A hierarchy in numbers."""
    import numpy as np

    graph = h.graph
    depth, leaves = np.unique(graph.level[graph.leaves], return_counts=True)
    return {
        "hierarchy": repr(h),
        "is_tree": h.is_tree,
        "n_nodes": h.n_nodes,
        "n_leaves": h.n_leaves,
        "n_roots": graph.n_roots,
        "n_levels": graph.n_levels,
        "several_parents": int((graph.parents.sizes() > 1).sum()),
        "duplicated": h.n_nodes - h.minimal().n_nodes,
        "leaves_by_depth": dict(zip(depth.tolist(), leaves.tolist(), strict=True)),
    }


def _summary(counts: Record) -> str:
    """The counts as text."""
    return (
        f"{counts['hierarchy']}\n"
        f"nodes with several parents: {counts['several_parents']}\n"
        f"duplicated nodes (M(G) merges them): {counts['duplicated']}\n"
        "leaves by depth: " + ", ".join(f"{d}: {n}" for d, n in counts["leaves_by_depth"].items())
    )


def drawing_with_columns(hierarchy: Hierarchy, columns: Mapping[str, FloatArray], max_nodes: int = 60) -> str:
    """The drawing of a hierarchy with one number a column behind every node, under the columns' names."""
    width = max(7, *map(len, columns)) + 2
    notes = {
        node: "".join(f"{values[i]:{width}.3f}" for values in columns.values())
        for i, node in enumerate(hierarchy.nodes)
    }
    drawing = hierarchy.draw(notes=notes, max_nodes=max_nodes)
    indent = len(drawing.splitlines()[0]) - len(notes[hierarchy.nodes[0]])
    return " " * indent + "".join(f"{name:>{width}}" for name in columns) + "\n" + drawing


# -- blocks ------------------------------------------------------------------------------------------------------------


def _blocks(folder: Path) -> tuple[Record, str]:
    """Counts of samples, features and labels, and the same as text; the rows themselves are not read."""
    import scipy.sparse as sp

    from nhsvm.datasets import open_blocks

    data = open_blocks(folder, verify=False)
    X: Matrix = data.X
    y: LabelsLike = data.y
    several = isinstance(y, list)
    labels = [] if y is None else [label for row in y for label in row] if several else y.tolist()
    n_samples, n_features, n_classes = data.n_samples, int(X.shape[1]), len(set(labels))
    entries = int(X.nnz) if sp.issparse(X) else None
    a_sample = len(labels) / n_samples if several and n_samples else None
    n_bytes = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    known: Record = {} if data.hierarchy is None else _counts(data.hierarchy)
    result = known | {
        "kind": "blocks",
        "file": str(folder),
        "samples": n_samples,
        "features": n_features,
        "entries": entries,
        "precision": str(X.dtype),
        "classes": n_classes,
        "labels_a_sample": a_sample,
        "bytes": n_bytes,
    }
    width = "dense" if entries is None else f"{entries / max(1, n_samples):.1f} of them a sample"
    lines = {
        "samples": f"{n_samples:,}",
        "features": f"{n_features:,}, {width}, {X.dtype}",
        "labels": f"{n_classes:,} classes{'' if a_sample is None else f', {a_sample:.1f} a sample'}",
        "hierarchy": known.get("hierarchy", "none: labels are flat, unless a file says otherwise"),
        "folder": f"{folder}, {readable_bytes(n_bytes)}",
    }
    return result, _lines(lines if n_classes else lines | {"labels": "none"})


# -- models ------------------------------------------------------------------------------------------------------------


def _model(file: Path, options: InspectOptions) -> tuple[Record, str]:
    """Everything there is to say of a model file; nodes as far as they are asked for, or the topmost ones."""
    # a pattern is shown, and never used
    loaded = load_model(file, TrustOptions(trust_patterns=True, max_bytes=options.max_bytes))
    svm, h = loaded.svm, loaded.svm.hierarchy_
    nodes = _Nodes(loaded, options.features)
    chosen = _chosen(h, options.node) if options.node else h.nodes[: options.max_nodes]
    shown = [nodes.described(node) for node in chosen]
    counts, parameters = _counts(h), _parameters(svm)
    (convergence, proof), (memory, sizes) = _convergence(svm), _memory(file, loaded)
    steps, patterns = [type(step).__name__ for step in loaded.steps], _patterns(loaded)
    result = counts | {
        "kind": "model",
        "file": str(file),
        "estimator": type(svm).__name__,
        "steps": steps,
        "patterns": patterns,
        "labels": "sets" if loaded.is_multilabel else "one a sample",
        "n_classes": len(svm.classes_),
        "n_features": svm.n_features_in_,
        "parameters": parameters,
        "convergence": convergence,
        "memory": memory,
        "nodes": shown,
    }
    after = f" after {', '.join(steps)}" if steps else ""
    labels = "label sets" if loaded.is_multilabel else "one label a sample"
    head = f"{type(svm).__name__}{after}: {labels}, {len(svm.classes_):,} classes, {svm.n_features_in_:,} features"
    quoted = "; ".join(map(repr, patterns))
    lines = {
        "parameters": ", ".join(f"{name}={value!r}" for name, value in parameters.items()),
        "pattern": f"{quoted}: not scikit-learn's own; used only with --trust-patterns" if patterns else None,
        "convergence": proof,
        **sizes,
    }
    drawing = _details(shown) if options.node else h.draw(notes=nodes, max_nodes=options.max_nodes)
    return result, f"{head}\n{_summary(counts)}\n\n{_lines(lines)}\n\n{drawing}"


def _patterns(loaded: LoadedModel) -> list[str]:
    """The regular expressions that a model brings to split texts by, but for scikit-learn's own."""
    from nhsvm.model.steps import PATTERNS

    found = [getattr(step, "token_pattern", None) for step in loaded.steps]
    return [pattern for pattern in found if pattern not in PATTERNS]


class _Nodes(Mapping["Label", str]):
    """Notes behind the nodes of a drawing, made when they are drawn: there may be many more nodes than are."""

    def __init__(self, loaded: LoadedModel, n_features: int) -> None:
        self._svm, self._n_features = loaded.svm, n_features
        self._names = _feature_names(loaded)
        self._intercepts = self._svm.intercept_

    def __getitem__(self, node: Label) -> str:
        part = self.described(node)
        features = ", ".join(f"{name} {weight:.2f}" for name, weight in part["features"])
        return f"α {part['weight']:.3f}  |U| {part['norm']:6.3f}  {features}"

    def described(self, node: Label) -> Record:
        """A node as numbers."""
        from nhsvm.hierarchy.labels import VirtualLeaf, public

        svm, number = self._svm, self._svm.hierarchy_.number(node)
        features = svm.strongest_features(node, None, feature_names=self._names)
        squares = sum(weight * weight for _, weight in features)
        intercept = float(self._intercepts[number])
        return {
            "node": public(node),
            "itself": isinstance(node, VirtualLeaf),
            "depth": int(svm.hierarchy_.graph.level[number]),
            "weight": float(svm.node_weights_[number]),
            "norm": math.sqrt(squares + intercept**2),
            "intercept": intercept,
            "n_weights": len(features),
            "features": features[: self._n_features],
        }

    def __iter__(self) -> Iterator[Label]:
        return iter(self._svm.hierarchy_.nodes)

    def __len__(self) -> int:
        return int(self._svm.hierarchy_.n_nodes)


def _chosen(hierarchy: Hierarchy, asked: list[str]) -> list[Label]:
    """Nodes by the texts of their labels, each with its virtual leaf."""
    from nhsvm.hierarchy.labels import public

    by_text: dict[str, list[Label]] = {}
    for node in hierarchy.nodes:
        by_text.setdefault(str(public(node)), []).append(node)
    for text in asked:
        if text not in by_text:
            raise UnknownLabelError([text], by_text)
    return [node for text in asked for node in by_text[text]]


def _details(nodes: list[Record]) -> str:
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


def _feature_names(loaded: LoadedModel) -> range | Array | list[str] | None:
    """Words of a vectoriser, names of columns, or numbers of a data file; None if nothing is known."""
    from nhsvm.explanation import features_of

    names: Array | list[str] | None = features_of(loaded.model)
    note = loaded.note
    if names is None and not loaded.steps:
        if "first_feature" in note:
            return range(note["first_feature"], note["first_feature"] + note["n_features"])
        return note.get("feature_names", note.get("feature_numbers"))
    return names


def _parameters(svm: Estimator) -> Record:
    """C, and all options that are not at their defaults."""
    defaults = {name: parameter.default for name, parameter in signature(type(svm)).parameters.items()}
    given = svm.get_params(deep=False)
    kept = {name: value for name, value in given.items() if name not in _RUNNING and value != defaults[name]}
    return {"C": svm.C_ if svm.C == AUTO else svm.C} | kept


def _convergence(svm: Estimator) -> tuple[Record, str]:
    gap, n_passes = svm.gap_, svm.n_iter_
    seconds = svm.history_[-1].get("seconds") if svm.history_ else None
    tol = svm.model_.training.tol
    if tol is None:  # in files of versions that did not keep it
        tol = float(getattr(svm.solver, "tol", svm.tol))  # an instance has its own
    converged = bool(gap <= tol)
    result = {
        "objective": svm.objective_,
        "gap": gap,
        "certified": svm.certified_,
        "tol": tol,
        "converged": converged,
        "passes": n_passes,
        "seconds": seconds,
    }
    passes = f"{n_passes} pass{'es' * (n_passes != 1)}{'' if seconds is None else f', {seconds:.1f} s'}"
    if not math.isfinite(gap):
        return result, f"no gap was measured; {passes}"
    reached, kind = "reached" if converged else "NOT reached", "proved" if svm.certified_ else "estimated"
    return result, f"objective {svm.objective_:.6g}, {kind} gap {gap:.2e} (tol {tol:g} {reached}); {passes}"


def _memory(file: Path, loaded: LoadedModel) -> tuple[Record, dict[str, str]]:
    """Bytes of the file and of what is in memory when the model is in use; the same in lines."""
    import numpy as np

    from nhsvm.explanation import features_of

    weights, graph = loaded.svm.model_.weights, loaded.svm.hierarchy_.graph
    filled, stored = weights.count_nonzero(), np.dtype(weights.precision)
    zeros, if_sparse = 1.0 - filled / max(1, math.prod(weights.shape)), filled * (stored.itemsize + 4)
    lists = [graph.parents, graph.children, graph.ancestors, graph.leaf_ancestors]
    hierarchy = sum(part.indptr.nbytes + part.indices.nbytes for part in lists)
    words = features_of(loaded.model) if loaded.reads_text else None
    text = 0 if words is None else int(sum(map(sys.getsizeof, words))) + 100 * len(words)  # with their dictionary
    result: Record = {
        "file": file.stat().st_size,
        "weights": weights.nbytes,
        "shape": list(weights.shape),
        "dtype": str(stored),
        "zeros": zeros,
        "weights_if_sparse": if_sparse,
        "hierarchy": hierarchy,
        "words": text,
        "in_use": weights.nbytes + hierarchy + text,
    }
    shape, table = " × ".join(f"{width:,}" for width in weights.shape), readable_bytes(weights.nbytes)
    parts = [f"weights {table}, mapped from the file", f"hierarchy {readable_bytes(hierarchy)}"]
    if text:
        parts.append(f"words about {readable_bytes(text)}")
    return result, {
        "file": f"{readable_bytes(result['file'])} on disk",
        "weights": f"{shape} {stored}, {table}; {zeros:.1%} are zero ({readable_bytes(if_sparse)} if stored sparse)",
        "memory": f"{readable_bytes(result['in_use'])} in use: {'; '.join(parts)}",
    }
