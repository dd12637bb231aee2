"""What an evaluation holds: numbers and names, no model and no data."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from nhsvm.typing import JSON, BoolArray, FloatArray, Record

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Counts for every node that is, or is above, a class of the model or a label of the samples.

    Arrays over these nodes, parents before children. A label is "below" a node if it is the node or under it.

    Attributes
    ----------
    name, short : tuples of str
        The label as text, and without what repeats the parent's name.
    parent, n_parents, depth : arrays of int
        Position of the first parent (-1: none), number of parents, edges on the longest way from a root.
    is_inner, is_class, is_known : arrays of bool
        Has nodes below; is a class of the model; is a class or above one.
    n_classes : array of int
        Classes below.
    samples, predicted, both : arrays of int
        Samples with a true label below, with a predicted label below, and with both.
    labels, found, said : arrays of int
        True labels below, those of them that were predicted, and predicted labels below. With one label a sample,
        ``labels`` is ``samples``.
    own, own_found, own_said : arrays of int
        The same of the label that is the node itself.
    left : array of int
        Missed labels (``labels - found``) of samples without any predicted label below: they left the branch.
    weight : array of float
        α of the model; NaN where it has none.
    """

    name: tuple[str, ...]
    short: tuple[str, ...]
    parent: Counts
    n_parents: Counts
    depth: Counts
    is_inner: BoolArray
    is_class: BoolArray
    is_known: BoolArray
    n_classes: Counts
    samples: Counts
    predicted: Counts
    both: Counts
    labels: Counts
    found: Counts
    said: Counts
    own: Counts
    own_found: Counts
    own_said: Counts
    left: Counts
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.name)

    @property
    def accuracy(self) -> FloatArray:
        """The share of the true labels below that were predicted; NaN where there is none."""
        return share(self.found, self.labels)

    @property
    def f1(self) -> FloatArray:
        """2 · found / (labels + said): micro F1 of the labels below."""
        return share(2 * self.found, self.labels + self.said)

    @property
    def recall(self) -> FloatArray:
        """The share of the samples of a branch whose prediction is in the branch too."""
        return share(self.both, self.samples)

    @property
    def precision(self) -> FloatArray:
        """The share of the samples predicted into a branch that belong there."""
        return share(self.both, self.predicted)

    @property
    def leaving(self) -> FloatArray:
        """The share of missed labels whose sample was predicted outside of the branch."""
        return share(self.left, self.labels - self.found)

    def path(self, node: int) -> list[str]:
        """Short names from a root down to a node, by first parents."""
        names = []
        while node >= 0:
            names.append(self.short[node])
            node = int(self.parent[node])
        return names[::-1]


@dataclass(frozen=True)
class Depth:
    """One level. Only samples with true nodes at this depth count."""

    depth: int
    nodes: int
    samples: int
    accuracy: float
    """Share of these samples whose nodes at this depth are exactly right."""
    precision: float
    recall: float
    f1: float
    """Micro averages over the nodes at this depth, of all samples."""
    first_errors: int
    """Samples that are right above, and wrong here."""


@dataclass(frozen=True)
class Confusion:
    """A label that was true, another that was predicted in its place, and how often."""

    true: str
    predicted: str
    count: int
    share: float
    """Of the samples with this true label."""
    distance: float
    """Edges between the two."""


@dataclass(frozen=True)
class Example:
    """A sample whose prediction is wrong."""

    id: str
    true: list[list[str]]
    """Paths of the true labels."""
    predicted: list[list[str]]
    distance: float
    """Edges between them; NaN for label sets."""
    margin: float
    """How sure the model was; NaN if unknown."""
    text: str


@dataclass(frozen=True)
class Reliability:
    """Whether probabilities are what they say: decisions in bins of probability, without bins that are empty."""

    of: str
    """What was decided: "label", or "node"."""
    confidence: list[float]
    """Mean probability of every bin."""
    observed: list[float]
    """Share of its decisions that are true."""
    count: list[int]
    error: float
    """Expected calibration error: the mean of |confidence - observed|, weighted by count."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What :func:`nhsvm.report.evaluate` finds; :func:`nhsvm.report.write_report` makes a page of it.

    Attributes
    ----------
    kind : {"single", "sets"}
        One label a sample, or label sets.
    n_samples, n_wrong : int
        Samples, and those whose label, or any of whose labels, is wrong.
    metrics, lshtc : dict of str to float
        All measures of :data:`nhsvm.report.measures.MEASURES` that fit; those of the LSHTC challenges apart.
    depths : list of Depth
    nodes : Nodes
    confusions : list of Confusion
        The most frequent first. In label sets, a missed label is confused with every wrong one of the same sample.
    n_confusions : int
        How many different pairs there are.
    reliability : Reliability or None
        None for a model without probabilities.
    examples : list of Example
        Those with the largest margins first, at most one for a pair of labels that are confused.
    history : list of dict
        The model's record of its training.
    facts : dict
        About the model: its type, options, sizes, gap.
    notes : list of str
        What a reader must know, such as labels that training has not seen.
    """

    kind: Literal["single", "sets"]
    n_samples: int
    n_wrong: int
    metrics: dict[str, float]
    lshtc: dict[str, float]
    depths: list[Depth]
    nodes: Nodes
    confusions: list[Confusion]
    n_confusions: int
    reliability: Reliability | None
    examples: list[Example]
    history: list[Record]
    facts: Record
    notes: list[str]

    def to_dict(self) -> dict[str, JSON]:
        """Everything as dicts, lists, numbers, text and None (for NaN and infinity), ready for ``json.dump``."""
        found: dict[str, JSON] = plain(self)
        names = ("accuracy", "f1", "recall", "precision", "leaving")
        found["nodes"] |= {name: plain(getattr(self.nodes, name)) for name in names}
        return found

    def branches(self) -> Counts:
        """Positions in ``nodes`` of inner nodes that have samples, or predictions: most samples first."""
        nodes = self.nodes
        inner = np.flatnonzero(nodes.is_inner & (nodes.samples + nodes.predicted > 0))
        return inner[np.lexsort((inner, -nodes.samples[inner]))]

    def labels(self) -> Counts:
        """Positions in ``nodes`` of labels that are true or predicted in some sample: most missed first."""
        nodes = self.nodes
        used = np.flatnonzero(nodes.own + nodes.own_said > 0)
        return used[np.lexsort((used, -nodes.own_said[used], (nodes.own_found - nodes.own)[used]))]


def plain(value: object) -> JSON:
    """A value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def share(part: Counts, whole: Counts) -> FloatArray:
    """Part of a whole; NaN where that is nothing."""
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
