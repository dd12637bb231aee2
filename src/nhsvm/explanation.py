"""Why a model gives a label its score: nodes × features, exactly.

A score is a sum over the nodes of a label and over features, so it can be taken apart without any approximation:
``model.explain(x)`` of every estimator gives :class:`Explanations`, and :func:`explain` does it for a pipeline, with
the words of a text as features.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.hierarchy import VirtualLeaf
from nhsvm.plots import plot_explanation
from nhsvm.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Explanation", "Explanations", "NodePart", "explain", "features_of"]

Label = Hashable
_COLUMNS = 6  # nodes side by side; the others make one column
_NAME = 28  # characters of a feature
_HEAD = 24  # characters of a node


def explain(
    model: Any, X: Any, labels: Any = None, *, against: Any = None, feature_names: Any = None, top: int | None = 10
) -> Explanations:
    """Explain the predictions of an estimator, or of a pipeline that ends in one, as its ``explain`` does.

    Parameters
    ----------
    model : FlatSVM, HSVM, NHSVM, SSVM, or Pipeline
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


def features_of(model: Any) -> Any:
    """Names of the features that the last step of a pipeline, or an estimator, has learned from; None without names.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.
    """
    steps, estimator = _split(model)
    if steps is None:
        return getattr(estimator, "feature_names_in_", None)
    named = all(hasattr(step, "get_feature_names_out") for _, step in steps.steps if not isinstance(step, str))
    return steps.get_feature_names_out() if named else None


def _split(model: Any) -> tuple[Any, Any]:
    """(what comes before the estimator, or None; the estimator)."""
    steps, estimator = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    if not hasattr(estimator, "explain"):
        kind = type(estimator).__name__
        raise OptionError(f"only FlatSVM, HSVM, NHSVM, SSVM and pipelines that end in one can be explained, not {kind}")
    return (steps if steps is None or len(steps) else None), estimator


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
        total: FloatArray = self.contributions.sum(axis=0)
        return total

    def to_dict(self) -> dict[str, Any]:
        """The same as numbers, texts, lists and dicts, for JSON."""
        per_node = zip(self.nodes, self.contributions, self.rest, self.intercepts, self.offsets, strict=True)
        names, totals = self.features, self.feature_scores.tolist()
        return {
            "row": self.row,
            "label": plain(self.label),
            "against": plain(self.against),
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
        return _as_text(self)


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

    def to_dict(self) -> dict[str, Any]:
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


def _node_dict(part: NodePart) -> dict[str, Any]:
    virtual = isinstance(part.node, VirtualLeaf)
    return {
        "node": plain(part.node.of if isinstance(part.node, VirtualLeaf) else part.node),
        "itself": virtual,
        "against": part.against,
        "weight": part.weight,
        "score": part.score,
    }


def plain(label: Any) -> Any:
    """A label as JSON can have it: tuples are lists, and what JSON does not know is its text."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [plain(part) for part in label]
    return label if label is None or isinstance(label, (str, bool, int, float)) else str(label)


# -- as an aligned table: a row a feature, a column a node, sums at the end of both ------------------------------------


def _as_text(e: Explanation) -> str:
    lines = [_headline(e)]
    weighty = [k for k, node in enumerate(e.nodes) if node.weight > 0]
    if weighty:
        lines += _table(e, weighty)
    lines += _notes(e)
    return "\n".join(lines)


def _headline(e: Explanation) -> str:
    what = "predicted" if e.predicted else "not predicted"
    if e.against is None:
        return f"{e.label}: score {e.score:.3f} ({what})"
    return f"{e.label} ({what}) rather than {e.against}: difference of scores {e.score:.3f}"


def _table(e: Explanation, weighty: list[int]) -> list[str]:
    """The lines of the table; nodes beyond the strongest few are summed up in one column."""
    size = np.abs([e.nodes[k].score for k in weighty])
    kept = np.sort(np.argsort(-size, kind="stable")[:_COLUMNS])
    shown = [weighty[k] for k in kept]
    hidden = [k for k in weighty if k not in shown]
    heads = [_head(e.nodes[k]) for k in shown]
    heads += [f"{len(hidden)} more nodes"] * bool(hidden)
    heads.append("sum")
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
        lines.append(f"{name:<{wide}}" + "".join(f"{_rounded(v):>{w}.3f}" for v, w in zip(cells, widths, strict=True)))
    return lines


def _notes(e: Explanation) -> list[str]:
    notes = []
    if e.shared:
        notes.append("shared, so not counted: " + ", ".join(f"{node} {node.score:.3f}" for node in e.shared))
    without = [str(node) for node in e.nodes if not node.weight > 0]
    if without:
        notes.append("without weight: " + ", ".join(without))
    return notes


def _head(node: NodePart) -> str:
    name = _shortened(str(node), _HEAD)
    return f"-{name}" if node.against else name


def _rounded(value: float) -> float:
    """To the digits shown, without -0."""
    return round(float(value), 3) + 0.0


def _shortened(text: str, length: int) -> str:
    """Text of one line and at most so long; its end, which is what tells most paths apart, stays."""
    text = " ".join(text.split()) or repr(text)
    return text if len(text) <= length else "…" + text[1 - length :]
