"""Why a model gives a label its score: nodes × features, exactly.

A score is a sum over the nodes of a label and over features, so it can be taken apart without any approximation:
``model.explain(x)`` of every estimator gives :class:`Explanations`, and :func:`explain` does it for a pipeline, with
the words of a text as features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.hierarchy.labels import public
from nhsvm.pipelines import pipeline_parts
from nhsvm.plots import plot_explanation
from nhsvm.sizes import is_count
from nhsvm.storage.samples import Samples
from nhsvm.typing import JSON, Array, BoolArray, Estimator, FloatArray, IntArray, Label, LabelsLike, Matrix, MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nhsvm.model import Model

__all__ = ["Explanation", "Explanations", "NodePart", "explain", "features_of"]

FeatureNames = Sequence[str] | Array | None
_COLUMNS = 6  # nodes side by side; the others make one column
_NAME = 28  # characters of a feature
_HEAD = 24  # characters of a node


def explain(
    model: Estimator, X: MatrixLike | Sequence[str] | str, labels: LabelsLike = None, *, against: Label | None = None,
    feature_names: FeatureNames = None, top: int | None = 10,
) -> Explanations:  # fmt: skip
    """Explain the predictions of an estimator, or of a pipeline that ends in one, as its ``explain`` does.

    Parameters
    ----------
    model : estimator of nhsvm, or Pipeline that ends in one
        Fitted.
    X : text, texts or samples
        What the model takes; a single text need not be in a list.
    labels, against, top
        See ``NHSVM.explain``.
    feature_names : sequence of n_features, optional
        By default what the pipeline's steps call them (words, for a vectoriser); features are numbered, ``x17``, if a
        step does not name them, as a hashing vectoriser.

    Returns
    -------
    Explanations

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from nhsvm import FlatSVM
    >>> model = make_pipeline(TfidfVectorizer(), FlatSVM(fit_intercept=False, tol=1e-9))
    >>> model = model.fit(["it barks", "it purrs"], ["dog", "cat"])
    >>> print(explain(model, "who barks?"))
    dog: score 0.614 (predicted)
              dog     sum
    barks   0.614   0.614
    sum     0.614   0.614
    """
    steps, estimator = _split(model)
    if isinstance(X, str):
        X = [X]
    if steps is not None:
        if feature_names is None:
            feature_names = features_of(model)
        X = steps.transform(X)
    found: Explanations = estimator.explain(X, labels, against=against, feature_names=feature_names, top=top)
    return found


def features_of(model: Estimator) -> Array | None:
    """Names of the features that the last step of a pipeline, or an estimator, has learned from; None without names.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.
    """
    steps, estimator = _split(model)
    if steps is None:
        names: Array | None = estimator.model_.feature_names
        return names
    named = all(hasattr(step, "get_feature_names_out") for _, step in steps.steps if not isinstance(step, str))
    return steps.get_feature_names_out() if named else None


def _split(model: Estimator) -> tuple[Estimator | None, Estimator]:
    """(what comes before the estimator, or None; the estimator)."""
    steps, estimator, _ = pipeline_parts(model)
    if not hasattr(estimator, "explain"):
        kind = type(estimator).__name__
        raise OptionError(f"only an estimator of nhsvm, or a pipeline that ends in one, can be explained, not {kind}")
    return steps, estimator


# -- what an explanation holds -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodePart:
    """A node on the way to a label.

    Attributes
    ----------
    node : label
        As in ``hierarchy_.nodes``; the virtual leaf of an inner node that is a class of its own is named
        "(node itself)" by ``str``.
    weight : float
        α of the node; without weight it has no vector and adds nothing.
    level : int
        Its depth.
    score : float
        What it adds: U_n·x, with intercept and offset. Negative of this for the label that is argued against.
    against : bool
        Whether it belongs to the label that is argued against.
    """

    node: Label
    weight: float
    level: int
    score: float
    against: bool = False

    def __str__(self) -> str:
        return f"({self.node.of} itself)" if isinstance(self.node, VirtualLeaf) else str(self.node)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The score of one label for one sample, taken apart.

    Attributes
    ----------
    row : int
        Which sample.
    label, against : label
        Whose score it is; if ``against`` is not None, the difference of the scores of the two.
    predicted : bool
        Whether the model predicts the label.
    score : float
        The sum of everything below. One label a sample: γ(x, l), an entry of ``decision_function`` (of a model with
        more than two classes). Label sets: what the label adds to the predicted set, as in ``decision_function``.
    nodes : tuple of NodePart
        The nodes that count, from the top; then those of ``against``.
    shared : tuple of NodePart
        Nodes with weight that do not: those of both labels, which cancel; or those that the predicted set has for other
        labels too.
    features : tuple of str
        Names of the strongest features, by what they add over all nodes.
    values : array of n_features
        Their values in the sample.
    contributions : array of (n_nodes, n_features)
        U_nj·x_j of the nodes that count and these features.
    rest : array of n_nodes
        The sum over all other features.
    n_rest : int
        How many of these are not zero in the sample.
    intercepts, offsets : arrays of n_nodes
        What nodes add for any sample: the constant feature; and, for label sets, ``leaf_offset`` and ``offsets_``.
    """

    row: int
    label: Label
    against: Label | None
    predicted: bool
    score: float
    nodes: tuple[NodePart, ...]
    shared: tuple[NodePart, ...]
    features: tuple[str, ...]
    values: FloatArray
    contributions: FloatArray
    rest: FloatArray
    n_rest: int
    intercepts: FloatArray
    offsets: FloatArray

    @property
    def feature_scores(self) -> FloatArray:
        """What every one of the strongest features adds over all nodes."""
        return np.asarray(self.contributions.sum(axis=0))

    def to_dict(self) -> dict[str, JSON]:
        """The same as numbers, texts, lists and dicts, for JSON."""
        per_node = zip(self.nodes, self.contributions, self.rest, self.intercepts, self.offsets, strict=True)
        names, totals = self.features, self.feature_scores.tolist()
        return {
            "row": self.row,
            "label": _plain(self.label),
            "against": _plain(self.against),
            "predicted": self.predicted,
            "score": self.score,
            "nodes": [
                _node_dict(node)
                | {
                    "features": dict(zip(names, parts.tolist(), strict=True)),
                    "other_features": float(rest),
                    "intercept": float(intercept),
                    "offset": float(offset),
                }
                for node, parts, rest, intercept, offset in per_node
            ],
            "shared": [_node_dict(node) for node in self.shared],
            "features": [
                {"name": name, "value": value, "score": total}
                for name, value, total in zip(names, self.values.tolist(), totals, strict=True)
            ],
            "n_other_features": self.n_rest,
        }

    def plot(self, axes: tuple[Axes, Axes] | None = None) -> Figure:
        """Draw what nodes and features add: see :func:`nhsvm.plots.plot_explanation`."""
        return plot_explanation(self, axes)

    def __str__(self) -> str:
        what = "predicted" if self.predicted else "not predicted"
        if self.against is None:
            lines = [f"{self.label}: score {self.score:.3f} ({what})"]
        else:
            lines = [f"{self.label} ({what}) rather than {self.against}: difference of scores {self.score:.3f}"]
        weighty = [k for k, node in enumerate(self.nodes) if node.weight > 0]
        if weighty:
            lines += _table(self, weighty)
        if self.shared:
            shared = ", ".join(f"{node} {node.score:.3f}" for node in self.shared)
            lines.append(f"shared, so not counted: {shared}")
        if len(weighty) < len(self.nodes):
            lines.append("without weight: " + ", ".join(str(node) for node in self.nodes if not node.weight > 0))
        return "\n".join(lines)


class Explanations(Sequence[Explanation]):
    """Explanations of samples, one after the other, each with those of its labels.

    ``print`` shows them, :meth:`to_dict` is for JSON, :meth:`plot` draws them.

    Parameters
    ----------
    items : sequence of Explanation
    n_rows : int
        Samples asked about. One whose predicted label set is empty has no explanation.
    """

    def __init__(self, items: Sequence[Explanation], n_rows: int) -> None:
        self._items, self.n_rows = tuple(items), n_rows

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Explanation, ...]: ...

    def __getitem__(self, index: int | slice) -> Explanation | tuple[Explanation, ...]:
        return self._items[index]

    def of_row(self, row: int) -> Iterator[Explanation]:
        """Those of one sample."""
        return (item for item in self._items if item.row == row)

    def to_dict(self) -> dict[str, JSON]:
        """All of them for JSON, as ``{"explanations": [...]}``."""
        return {"explanations": [item.to_dict() for item in self._items]}

    def plot(self) -> Figure:
        """Draw all of them, one below the other: see :func:`nhsvm.plots.plot_explanation`.

        Returns
        -------
        matplotlib figure
        """
        return plot_explanation(self)

    def __str__(self) -> str:
        parts = []
        for row in range(self.n_rows):
            found = [str(item) for item in self.of_row(row)] or ["no label: the best label set is empty"]
            parts.append("\n\n".join(([f"sample {row}"] if self.n_rows > 1 else []) + found))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"<{len(self)} explanations of {self.n_rows} samples: print() shows them>"


def _node_dict(part: NodePart) -> dict[str, JSON]:
    return {
        "node": _plain(public(part.node)),
        "itself": isinstance(part.node, VirtualLeaf),
        "against": part.against,
        "weight": part.weight,
        "score": part.score,
    }


def _plain(label: object) -> JSON:
    """A label as JSON can have it: tuples are lists, and what JSON does not know is its text."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [_plain(part) for part in label]
    return label if label is None or isinstance(label, (str, bool, int, float)) else str(label)


# -- as an aligned table: a row a feature, a column a node, sums at the end of both ------------------------------------


def _table(e: Explanation, weighty: list[int]) -> list[str]:
    """The lines of the table; nodes beyond the strongest few are summed up in one column."""
    size = np.abs([e.nodes[k].score for k in weighty])
    kept = np.sort(np.argsort(-size, kind="stable")[:_COLUMNS])
    shown = [weighty[k] for k in kept]
    hidden = [k for k in weighty if k not in shown]
    heads = ["-" * e.nodes[k].against + _shortened(str(e.nodes[k]), _HEAD) for k in shown]
    heads += [f"{len(hidden)} more nodes"] * bool(hidden) + ["sum"]
    rows: list[tuple[str, FloatArray]] = [
        (_shortened(name, _NAME), column) for name, column in zip(e.features, e.contributions.T, strict=True)
    ]
    if e.n_rest:
        rows.append((f"{e.n_rest} more feature{'s' * (e.n_rest != 1)}", e.rest))
    if e.intercepts.any():
        rows.append(("intercept", e.intercepts))
    if e.offsets.any():
        rows.append(("offset", e.offsets))
    rows.append(("sum", np.array([node.score for node in e.nodes])))
    wide = max(len(name) for name, _ in rows)
    widths = [max(8, len(head) + 2) for head in heads]
    lines = [" " * wide + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for name, values in rows:
        cells = [*values[shown], *([values[hidden].sum()] * bool(hidden)), values.sum()]
        rounded = [round(float(cell), 3) + 0.0 for cell in cells]  # without -0
        lines.append(f"{name:<{wide}}" + "".join(f"{v:>{w}.3f}" for v, w in zip(rounded, widths, strict=True)))
    return lines


def _shortened(text: str, length: int) -> str:
    """Text of one line and at most so long; its end, which is what tells most paths apart, stays."""
    text = " ".join(text.split()) or repr(text)
    return text if len(text) <= length else "…" + text[1 - length :]


# -- made by a model ---------------------------------------------------------------------------------------------------


def explained(
    model: Model, X: MatrixLike | Samples, labels: LabelsLike, against: Label | None, names: FeatureNames,
    top: int | None, n_threads: int,
) -> Explanations:  # fmt: skip
    """Explanations of some labels of every sample, or of those that are predicted; as :meth:`Model.explain` says."""
    samples = model.samples(X if isinstance(X, Samples) else as_matrix(X))
    _check_top(top)
    names = _names(model, names)
    parts, leaves = _Parts(model), model.hierarchy.graph.leaves
    asked = None if labels is None else [parts.node_of(label) for label in _several(labels, model.hierarchy)]
    other = None if against is None else parts.node_of(against)
    if model.sets is not None:
        indptr, found = model.best_leaves(samples, n_threads=n_threads)
    else:
        found = model.class_leaves[model.best_classes(samples, n_threads=n_threads)]
        indptr = np.arange(len(found) + 1)
    items: list[Explanation] = []
    for row in range(samples.n_samples):
        predicted = leaves[found[indptr[row] : indptr[row + 1]]]
        sample = _Sample(row, predicted, *_entries(samples.X, row))
        labelled = predicted.tolist() if asked is None else asked
        items += [parts.explanation(sample, label, other, names, top) for label in labelled]
    return Explanations(items, samples.n_samples)


def strongest_features(model: Model, node: Label, top: int | None, names: FeatureNames) -> list[tuple[str, float]]:
    """The features with the largest weights of one node; see :meth:`Model.strongest_features`."""
    _check_top(top)
    names = _names(model, names)
    column = np.flatnonzero(model.columns.nodes == model.hierarchy.number(node))
    if not len(column):  # no weight, so no vector
        return []
    weights = model.weights.column(int(column[0]))
    used = np.flatnonzero(weights)
    if top is not None and top < len(used):
        used = np.sort(used[np.argpartition(-np.abs(weights[used]), top - 1)[:top]])
    used = used[_strongest(weights[used])]
    return [(_name(names, j), float(weights[j])) for j in used.tolist()]


def as_matrix(X: MatrixLike) -> MatrixLike:
    """One sample as a matrix of one row."""
    if sp.issparse(X):
        return X.reshape(1, -1) if X.ndim == 1 else X
    if hasattr(X, "to_frame") and getattr(X, "ndim", 2) == 1 and hasattr(X, "index"):  # a row of a pandas frame
        return X.to_frame().T
    return np.asarray(X)[None] if np.ndim(X) == 1 else X


class _Sample(NamedTuple):
    """A sample: the leaves that are predicted, as nodes, and the features that are not zero."""

    row: int
    predicted: IntArray
    used: IntArray
    x: FloatArray


class _Parts:
    """What nodes and features add to the scores of a model."""

    def __init__(self, model: Model) -> None:
        self.model, self.graph = model, model.hierarchy.graph
        self._intercepts = model.intercept().astype(np.float64)
        self._offsets = np.zeros_like(self._intercepts) if model.sets is None else model.all_offsets()

    def explanation(
        self, sample: _Sample, label: int, against: int | None, names: FeatureNames, top: int | None
    ) -> Explanation:
        """Of the score of a node, or of its difference to that of another one."""
        ends = [label] if against is None else [label, against]
        own, *others = (self._counted(end, sample.predicted) for end in ends)
        other = others[0] if others else np.zeros(0, np.int32)
        mine, theirs = np.setdiff1d(own, other), np.setdiff1d(other, own)  # ascending: from the top
        nodes, sign = np.concatenate([mine, theirs]), np.repeat([1.0, -1.0], [len(mine), len(theirs)])
        shared = np.setdiff1d(self._closure(np.array(ends)), nodes)
        shared = shared[self.model.node_weights[shared] > 0]
        parts = sign[:, None] * self._products(nodes, sample)
        intercepts, offsets = sign * self._intercepts[nodes], sign * self._offsets[nodes]
        best = _strongest(parts.sum(axis=0))[:top]
        chosen = parts[:, best]
        rest = np.delete(parts, best, axis=1).sum(axis=1)
        scores = chosen.sum(axis=1) + rest + intercepts + offsets
        totals = self._products(shared, sample).sum(axis=1) + self._intercepts[shared] + self._offsets[shared]
        known = self.model.hierarchy.nodes
        return Explanation(
            row=sample.row,
            label=public(known[label]),
            against=None if against is None else public(known[against]),
            predicted=bool(np.isin(label, self._closure(sample.predicted))),
            score=float(scores.sum()),
            nodes=self._described(nodes, scores, sign < 0),
            shared=self._described(shared, totals, np.zeros(len(shared), dtype=bool)),
            features=tuple(_name(names, j) for j in sample.used[best].tolist()),
            values=sample.x[best],
            contributions=chosen,
            rest=rest,
            n_rest=len(sample.used) - len(best),
            intercepts=intercepts,
            offsets=offsets,
        )

    def _counted(self, node: int, predicted: IntArray) -> IntArray:
        """The nodes whose scores make up that of a label, ascending.

        All of Ā(l); of label sets, those that no other predicted leaf has: what the label adds to the set, unless its
        score does not depend on what else is predicted.
        """
        graph, sets = self.graph, self.model.sets
        own = graph.ancestors.row(node)
        if sets is None or sets.independent:
            return own
        others = [leaf for leaf in predicted.tolist() if node not in graph.ancestors.row(leaf)]
        return np.setdiff1d(own, self._closure(np.array(others, dtype=np.int32)))

    def _closure(self, nodes: IntArray) -> IntArray:
        return np.unique(self.graph.ancestors.rows(nodes).indices)

    def _products(self, nodes: IntArray, sample: _Sample) -> FloatArray:
        """U_nj·x_j of some nodes and the features that are not zero; 0 for nodes without weight."""
        columns = self.model.columns.nodes
        place = np.minimum(np.searchsorted(columns, nodes), len(columns) - 1)
        has = np.flatnonzero(columns[place] == nodes)
        values = self.model.weights.block(sample.used, place[has]).T
        out = np.zeros((len(nodes), len(sample.used)))
        out[has] = values.astype(np.float64) * sample.x
        return out

    def _described(self, nodes: IntArray, scores: FloatArray, against: BoolArray) -> tuple[NodePart, ...]:
        h, alpha = self.model.hierarchy, self.model.node_weights
        return tuple(
            NodePart(h.nodes[n], float(alpha[n]), int(h.graph.level[n]), float(score), bool(flag))
            for n, score, flag in zip(nodes.tolist(), scores, against, strict=True)
        )

    def node_of(self, label: Label) -> int:
        """The leaf of a class, or an inner node."""
        h = self.model.hierarchy
        return h.number(VirtualLeaf(label) if VirtualLeaf(label) in h else label)


def _names(model: Model, given: FeatureNames) -> FeatureNames:
    """Names of all features, or None without names."""
    names = model.feature_names if given is None else given
    if names is None:
        return None
    sized = hasattr(names, "__len__") and hasattr(names, "__getitem__") and not isinstance(names, (str, dict))
    if not sized or len(names) != model.n_features:
        what = f"{len(names)} names" if sized else repr(names)
        raise OptionError(f"feature_names must be a sequence of {model.n_features} names, one a feature, not {what}")
    return names


def _name(names: FeatureNames, feature: int) -> str:
    return f"x{feature}" if names is None else str(names[feature])


def _check_top(top: int | None) -> None:
    """Raise unless it is a number of features, or None for all."""
    if top is not None and not is_count(top):
        raise OptionError(f"top must be a whole number of at least 1, or None for all features, not {top!r}")


def _several(labels: LabelsLike, hierarchy: Hierarchy) -> list[Label]:
    """Labels in a list, set or array, or the only one; a tuple is one label, and so is a frozenset that is a node."""
    if not isinstance(labels, (list, set, frozenset, np.ndarray)):
        return [labels]
    if isinstance(labels, frozenset) and labels in hierarchy:
        return [labels]
    found = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if not found:
        raise OptionError("labels is empty: name at least one, or leave it out for the predicted ones")
    return sorted(found, key=hierarchy.number) if isinstance(labels, (set, frozenset)) else found


def _entries(X: Matrix, row: int) -> tuple[IntArray, FloatArray]:
    """(features, values) of a sample where it is not zero."""
    if sp.issparse(X):
        here = slice(X.indptr[row], X.indptr[row + 1])
        used, x = X.indices[here], X.data[here]
        return used[x != 0], x[x != 0].astype(np.float64)
    used = np.flatnonzero(X[row])
    return used.astype(np.int32), X[row, used].astype(np.float64)


def _strongest(values: Array) -> IntArray:
    """Positions by absolute value, the largest first; values that differ by rounding only stay in their order."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    return np.argsort(-np.round(size / (size.max(initial=0.0) or 1.0), 9), kind="stable").astype(np.int32)
