"""Labels on inner nodes, and the label spaces Y_s and Y_m of Section 3: user labels ↔ leaf positions ↔ node sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.graph import Ragged
from nhsvm.hierarchy.hashes import Hashes, too_many
from nhsvm.typing import IntArray, Label, LabelsLike, MatrixLike

if TYPE_CHECKING:
    from nhsvm.hierarchy.hierarchy import Hierarchy


@dataclass(frozen=True)
class VirtualLeaf:
    """The name, among ``Hierarchy.nodes``, of the leaf that stands for "this inner node itself"."""

    of: Label


def public(label: Label) -> Label:
    """The label a user knows: the inner node in place of its virtual leaf."""
    return label.of if isinstance(label, VirtualLeaf) else label


class LabelSpace:
    """Y_s = {Ā(l) : l a leaf}, or Y_m = {Ā(L) : L a non-empty set of leaves}.

    Parameters
    ----------
    hierarchy : Hierarchy
        Its leaves are the classes. An inner node is a class if it has a virtual leaf.
    multilabel : bool
        Y_m instead of Y_s.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> space = LabelSpace(h)
    >>> {"animal", "dog"} in space
    True
    >>> space.why_not({"dog"})
    "'dog' is in the set, but its parent 'animal' is not"
    >>> space.decode(space.encode(["oak", "dog"]))
    ['oak', 'dog']
    """

    def __init__(self, hierarchy: Hierarchy, *, multilabel: bool = False) -> None:
        self.hierarchy = hierarchy
        self.multilabel = multilabel

    @classmethod
    def for_labels(cls, hierarchy: Hierarchy, y: LabelsLike) -> LabelSpace:
        """The space that ``y`` needs: Y_m if it holds label sets, with a virtual leaf for every inner node used.

        A label set names classes, and what is above them is understood. One with its ancestors written out, such as
        ``{"animal", "dog"}``, therefore makes the inner node a class of its own: "dog, and animal itself".
        """
        given = samples(y)
        is_set = [_is_label_set(item, hierarchy) for item in given]
        multilabel = any(is_set)
        if multilabel and not all(is_set):
            one, several = is_set.index(False), is_set.index(True)
            raise LabelError(
                f"sample {one} has one label, {given[one]!r}, but sample {several} a set of labels, "
                f"{given[several]!r}; give every sample a set, or none"
            )
        used: dict[Label, None] = {}
        hashes = Hashes()
        for i, item in enumerate(given):
            try:
                for label in item if multilabel else [item]:
                    if label not in used and hashes.crowded(label):
                        raise LabelError(f"sample {i}: {too_many(label)}")
                    used[label] = None
            except TypeError:
                raise LabelError(f"sample {i}: a label must be hashable, unlike those in {item!r}") from None
        unknown = [label for label in used if label not in hierarchy]
        if unknown:
            raise UnknownLabelError(unknown, hierarchy.nodes)
        return cls(hierarchy.with_virtual_leaves(used), multilabel=multilabel)

    @property
    def classes(self) -> tuple[Label, ...]:
        """What a label can be, in leaf order."""
        return self.hierarchy.leaves

    def encode(self, y: LabelsLike) -> IntArray | sp.csr_array:
        """Leaf positions (single-label), or a 0/1 matrix over the leaves (multi-label)."""
        if not self.multilabel:
            return np.array([self._position(label, i) for i, label in enumerate(samples(y))], dtype=np.int32)
        found = [self._leaves(labels, i) for i, labels in enumerate(samples(y))]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in found], dtype=np.int64)]).astype(np.int64)
        indices = np.array([i for row in found for i in row], dtype=np.int32)
        shape = (len(found), self.hierarchy.n_leaves)
        return sp.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=shape)

    def decode(self, codes: LabelsLike) -> list[Label]:
        """Labels (single-label) or tuples of labels (multi-label) of what :meth:`encode` gave."""
        if not self.multilabel:
            return [self._class(code, i) for i, code in enumerate(collection(codes, LabelError, "leaf positions"))]
        matrix = self._indicators(codes)
        return [tuple(self.classes[j] for j in matrix.indices[a:b]) for a, b in pairwise(matrix.indptr)]

    def closures(self, y: LabelsLike) -> Ragged:
        """Ā of every label as node numbers, ascending."""
        graph = self.hierarchy.graph
        if not self.multilabel:
            return graph.leaf_ancestors.rows(np.asarray(self.encode(y)))
        found = sp.csr_array(self.encode(y)).astype(bool) @ graph.leaf_matrix().astype(bool)
        found.sort_indices()
        return Ragged(found.indptr.astype(np.int64), found.indices.astype(np.int32))

    def _position(self, label: Label, sample: int) -> int:
        try:
            return self.hierarchy.leaf_position(label)
        except UnknownLabelError as error:
            raise UnknownLabelError(error.labels, text=f"sample {sample}: {error}") from None
        except LabelError as error:
            raise LabelError(f"sample {sample}: {error}") from None

    def _leaves(self, labels: object, sample: int) -> list[int]:
        """Leaf positions of a label set, ascending."""
        if not _is_label_set(labels, self.hierarchy):
            raise LabelError(f"sample {sample}: expected a set of labels, not {labels!r}")
        if not len(labels):
            raise LabelError(f"sample {sample} has no label")
        return sorted({self._position(label, sample) for label in labels})

    def _class(self, code: object, sample: int) -> Label:
        n = self.hierarchy.n_leaves
        if isinstance(code, bool) or not isinstance(code, (int, np.integer)) or not 0 <= code < n:
            raise LabelError(
                f"sample {sample}: expected a leaf position, a whole number from 0 to {n - 1}, not {code!r}"
            )
        return self.classes[code]

    def _indicators(self, codes: MatrixLike) -> sp.csr_array:
        """A checked copy of a 0/1 matrix over the leaves: sorted, without stored zeros."""
        wanted = f"expected a 0/1 matrix with {self.hierarchy.n_leaves} columns, one a leaf"
        try:
            given = codes if sp.issparse(codes) else np.asarray(codes)
        except ValueError:
            raise LabelError(f"{wanted}, not rows of different lengths") from None
        if given.ndim != 2 or given.shape[1] != self.hierarchy.n_leaves:
            raise LabelError(f"{wanted}, not shape {given.shape}")
        if given.dtype.kind not in "biuf":
            raise LabelError(f"{wanted}, not values of type {given.dtype}")
        matrix = sp.csr_array(given, copy=True)
        matrix.sum_duplicates()  # sorts too
        matrix.eliminate_zeros()
        bad = np.flatnonzero(matrix.data != 1)
        if len(bad):
            sample = np.searchsorted(matrix.indptr, bad[0], side="right") - 1
            label, value = self.classes[matrix.indices[bad[0]]], matrix.data[bad[0]]
            raise LabelError(f"sample {sample}: expected 0 or 1 for {label!r}, not {value}")
        return matrix

    def __contains__(self, nodes: Collection[Label]) -> bool:
        return self.why_not(nodes) is None

    def why_not(self, nodes: Collection[Label]) -> str | None:
        """Why a set of nodes is no label of this space, in words; None if it is one.

        A set is in Y_m when it is not empty, holds every parent of its nodes, and holds with every inner node a child
        of it (the constraints of Eq. 19); it is in Y_s when it also holds exactly one leaf. A node that has a virtual
        leaf may stand without any of its other children.
        """
        h = self.hierarchy
        inside = np.zeros(h.n_nodes, dtype=bool)
        inside[h.numbers(list(collection(nodes, LabelError)))] = True
        if not inside.any():
            return "the set is empty"
        for n in np.flatnonzero(inside):  # a node that stands alone does so through its virtual leaf
            down = h.graph.children.row(n)
            if not inside[down].any():
                inside[down[h.is_virtual[down]]] = True
        for n in np.flatnonzero(inside):
            up, down = h.graph.parents.row(n), h.graph.children.row(n)
            if not inside[up].all():
                missing = h.nodes[up[~inside[up]][0]]
                return f"{public(h.nodes[n])!r} is in the set, but its parent {missing!r} is not"
            if len(down) and not inside[down].any():
                return f"{h.nodes[n]!r} is in the set, but none of its children is"
        leaves = np.flatnonzero(inside & h.graph.is_leaf)
        if len(leaves) > 1 and not self.multilabel:
            names = [h.leaves[i] for i in np.searchsorted(h.graph.leaves, leaves[:2])]
            return f"it has {len(leaves)} leaves, such as {names[0]!r} and {names[1]!r}; a single label has one"
        return None


def samples(y: LabelsLike) -> list[LabelsLike]:
    """The labels, or the label sets, of all samples; not a matrix, whose rows may be 0/1 as well as labels."""
    if sp.issparse(y) or getattr(y, "ndim", 1) > 1:
        raise LabelError(
            f"labels cannot be a matrix ({type(y).__name__} of shape {getattr(y, 'shape', None)}): "
            "give label sets as lists, one a sample"
        )
    return list(collection(y, LabelError))


def _is_label_set(item: object, hierarchy: Hierarchy) -> TypeGuard[Collection[Label]]:
    """A set, list or array; a tuple too, unless that tuple is itself a label."""
    if isinstance(item, (tuple, frozenset)):
        return item not in hierarchy
    return isinstance(item, (set, list)) or (isinstance(item, np.ndarray) and item.ndim > 0)
