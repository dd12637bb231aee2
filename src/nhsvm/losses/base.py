"""What a loss is: one number for two label sets, and the two forms in which an oracle asks for it; ``make_loss``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.checks import node_values
from nhsvm.errors import LabelError, OptionError
from nhsvm.hierarchy import Hierarchy, LabelSpace
from nhsvm.losses import LOSSES
from nhsvm.typing import FloatArray, Floats, IntArray, LabelsLike, PtrArray


class NodeLoss(NamedTuple):
    """A loss against one true label as a sum over nodes: Δ(y, y_true) = constant + Σ_{n∈y} rewards[n]."""

    rewards: FloatArray
    constant: float


class LossRows(NamedTuple):
    """Losses of every leaf against some true leaves, t = 0, 1, …: a row of losses each, and where that is not right.

    Leaves that have nothing in common with the true one are most of all, and many true leaves have the same row of
    them. So few rows serve all, and stay near the processor.
    """

    rows: FloatArray  # (any, n_leaves)
    which: IntArray  # row of t
    indptr: PtrArray  # t has other losses than its row says, ``values``, at ``leaves``, from here on
    leaves: IntArray
    values: FloatArray


class Loss(ABC):
    """Δ(y, y'), a distance between label sets of one hierarchy.

    Parameters
    ----------
    hierarchy : Hierarchy
        With a virtual leaf for every inner node that is a label.
    node_weights : array of n_nodes, optional
        α, for losses with ``needs_weights``; the others leave it aside, so callers need not ask.

    Attributes
    ----------
    name : str
        The option's name.
    needs_weights : bool
        Whether Δ depends on α. Such a loss cannot be used where α is learned.

    Notes
    -----
    A new loss gives :meth:`between` and :meth:`_fill`, and overrides :meth:`decomposes` and :meth:`per_node` if it is a
    sum over nodes in the multi-label space too. A line in ``LOSSES`` registers it, a twin in
    ``tests/reference/losses.py`` says what it should be, and the contract tests do the rest.
    """

    name: ClassVar[str]
    needs_weights: ClassVar[bool] = False
    # why there is no sum over nodes in the multi-label space, for the error message
    indivisible: ClassVar[str] = "it depends on the label set as a whole"

    def __init__(self, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> None:
        self.hierarchy = hierarchy
        self.graph = hierarchy.graph

    @abstractmethod
    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        """Δ(y, z) of two label sets, each given as the numbers of its nodes (a closure Ā, in any order)."""

    def distance(self, a: LabelsLike, b: LabelsLike) -> float:
        """Δ of two labels, or sets of labels, of the user's."""
        return self.between(self._closure(a), self._closure(b))

    def to_leaves(self, leaf_positions: npt.ArrayLike, out: Floats | None = None) -> Floats:
        """Δ(Ā(l), Ā(t)) of every leaf l and each true leaf t: what a single-label oracle adds to its scores.

        Parameters
        ----------
        leaf_positions : array of n
            The true leaves, as positions in ``hierarchy.leaves``.
        out : float array of (n, n_leaves), optional
            Filled and returned. The result is dense, 8 · n · n_leaves bytes, so go through many samples in batches
            (256 at a time need 75 MB at 36,504 leaves) and use one ``out`` for all.

        Returns
        -------
        array of (n, n_leaves)
            Row i is against the i-th true leaf, and exactly zero there.
        """
        positions = self._positions(leaf_positions)
        shape = (len(positions), self.graph.n_leaves)
        if out is None:
            out = np.empty(shape)
        if out.shape != shape or not np.issubdtype(out.dtype, np.floating):
            raise OptionError(f"out must be a float array of shape {shape}, not {out.dtype} of shape {out.shape}")
        self._fill(positions, out)
        return out

    @abstractmethod
    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
        """Write Δ of every leaf against each of the given leaves into ``out``."""

    def _positions(self, leaf_positions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return checked_numbers(leaf_positions, self.graph.n_leaves, "leaf position")

    def by_rows(self, leaf_positions: npt.ArrayLike) -> LossRows:
        """The same in less memory, if there is a way; else a row for every leaf that is queried."""
        distinct, which = np.unique(leaf_positions, return_inverse=True)
        return whole_rows(self.to_leaves(distinct), which.astype(np.int32))

    @classmethod
    def decomposes(cls, multilabel: bool) -> bool:
        """Whether Δ(·, y_true) is a sum over nodes on Y_m, or on Y_s.

        On Y_s, where a label has exactly one leaf, every loss is: the leaf carries all of it.
        """
        return not multilabel

    def per_node(self, true_nodes: npt.ArrayLike, *, multilabel: bool) -> NodeLoss:
        """Node rewards r and a constant c with Δ(y, y_true) = c + Σ_{n∈y} r_n for every y of the label space.

        Parameters
        ----------
        true_nodes : array of node numbers
            y_true, with everything above its leaves.
        multilabel : bool
            Whether y runs over Y_m (closures of any leaves) or over Y_s (of one leaf).

        Raises
        ------
        OptionError
            If there is no such sum; ask :meth:`decomposes` first.
        """
        if multilabel:
            raise OptionError(
                f"loss {self.name!r} is no sum over nodes for multi-label data: {self.indivisible}; "
                "use loss='leaf_hamming', as the paper does, or 'hamming'"
            )
        nodes = checked_numbers(true_nodes, self.graph.n_nodes, "node number")
        leaf = np.unique(nodes[self.graph.is_leaf[nodes]])
        if len(leaf) != 1:
            raise LabelError(f"a single label has one leaf, but this true label has {len(leaf)}")
        rewards = np.zeros(self.graph.n_nodes)
        rewards[self.graph.leaves] = self.to_leaves(np.searchsorted(self.graph.leaves, leaf))[0]
        return NodeLoss(rewards, 0.0)

    def _closure(self, label: LabelsLike) -> IntArray:
        several = LabelSpace.for_labels(self.hierarchy, [label]).multilabel
        if several and not len(label):
            raise LabelError("a label set with no label in it")
        # asked of this hierarchy: that of the space may have gained virtual leaves, which this loss does not know
        leaves = np.array([self.hierarchy.leaf_position(one) for one in (label if several else [label])])
        return np.unique(self.graph.leaf_ancestors.rows(leaves).indices)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.hierarchy!r})"


def make_loss(loss: str | type[Loss] | Loss, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> Loss:
    """The loss of that name, over a hierarchy.

    Parameters
    ----------
    loss : str, class or Loss
        A name in ``LOSSES``; a :class:`Loss` class; or a ready loss of this very hierarchy, which comes back as it is,
        with its own node weights.
    hierarchy : Hierarchy
        With a virtual leaf for every inner node that is a label.
    node_weights : array of n_nodes, optional
        α, aligned with ``hierarchy.nodes``. Losses that do not depend on α leave it aside.
    """
    if isinstance(loss, Loss):
        # equal hierarchies may number their nodes differently, and then arrays do not fit
        if loss.hierarchy.nodes != hierarchy.nodes or loss.hierarchy != hierarchy:
            raise OptionError(
                f"loss {loss.name!r} was made for {loss.hierarchy!r}, not for {hierarchy!r}; give its name or class"
            )
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        return loss(hierarchy, node_weights)
    return LOSSES[LOSSES.spec(loss).name](hierarchy, node_weights)


def whole_rows(rows: Floats, which: IntArray) -> LossRows:
    """Rows that are right as they are."""
    none = np.zeros(len(which) + 1, np.int64), np.empty(0, np.int32), np.empty(0)
    return LossRows(np.asarray(rows, np.float64), which, *none)


def checked_numbers(values: npt.ArrayLike, limit: int, what: str) -> npt.NDArray[np.int64]:
    """A flat array of whole numbers in ``0 .. limit - 1``."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise LabelError(f"expected a flat array of {what}s, not {numbers.dtype} of shape {numbers.shape}")
    bad = numbers[(numbers < 0) | (numbers >= limit)]
    if len(bad):
        raise LabelError(f"{what} {bad[0]} is outside 0..{limit - 1}")
    return numbers.astype(np.int64)


def checked_weights(given: npt.ArrayLike | None, hierarchy: Hierarchy, name: str) -> FloatArray:
    """α as a frozen array of its own."""
    if given is None:
        raise OptionError(f"loss {name!r} depends on the node weights α: give node_weights, aligned with the nodes")
    alpha = node_values(given, hierarchy, "node_weights")
    alpha.flags.writeable = False
    return alpha
