"""What an explanation holds: the score of a label as a table of nodes and features that adds up both ways."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from nhsvm.hierarchy import VirtualLeaf
from nhsvm.hierarchy.graph import FloatArray

Label = Hashable


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

    def plot(self, axes: Any = None) -> Any:
        """Draw what nodes and features add: see :func:`nhsvm.plots.plot_explanation`."""
        from nhsvm.plots import plot_explanation

        return plot_explanation(self, axes)

    def __str__(self) -> str:
        from nhsvm.explanation.text import as_text

        return as_text(self)


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

    def plot(self) -> Any:
        """Draw all of them, one below the other: see :func:`nhsvm.plots.plot_explanation`.

        Returns
        -------
        matplotlib figure
        """
        from nhsvm.plots import plot_explanation

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
