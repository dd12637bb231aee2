"""Label sets of samples: what is accepted as a multi-label ``y``, its classes, and predictions in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.estimators._set_input import array_of, is_matrix, is_set, items_of, read, row_of
from nhsvm.estimators._targets import Labels, unique, within
from nhsvm.hierarchy import Hierarchy
from nhsvm.model.sets import decoded, rows_of
from nhsvm.typing import IntArray, PtrArray


@dataclass(frozen=True)
class LabelSets:
    """Encoded label sets.

    Attributes
    ----------
    hierarchy : Hierarchy
        The classes and what is above them; an inner node that is a class has a virtual leaf. All leaves are classes.
    classes, class_leaves : arrays of n_classes
        Sorted as for single labels, or the columns of an indicator as they stand; positions among the leaves.
    indptr, indices : arrays
        Sample i has the leaves ``indices[indptr[i]:indptr[i + 1]]``: positions, ascending, all different.
    form : {"list", "tuple", "set", "frozenset", "dense", "sparse"}
        What the label sets were given as: containers, or an indicator.
    """

    hierarchy: Hierarchy
    classes: Labels
    class_leaves: IntArray
    indptr: PtrArray
    indices: IntArray
    form: str

    @property
    def n_samples(self) -> int:
        return len(self.indptr) - 1


def is_multilabel(y: Any, hierarchy: Hierarchy | None = None) -> bool:
    """Whether ``y`` has label sets, not labels: in containers, or as a matrix or DataFrame of several columns.

    Lists, sets and arrays are label sets. So are tuples and frozensets that are no nodes of the hierarchy; without a
    hierarchy, where all that is hashable can be a label, they are labels unless another sample has a list or set.

    Examples
    --------
    >>> is_multilabel([{"dog", "cat"}, {"oak"}]), is_multilabel(["dog", "oak"]), is_multilabel(np.eye(2))
    (True, False, True)
    """
    shape: tuple[int, ...] = getattr(y, "shape", (1,))
    if len(shape) == 2:
        return bool(sp.issparse(y) or shape[1] > 1)
    if len(shape) != 1 or sp.issparse(y) or isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        return False
    items = items_of(y)
    surely = any(issubclass(kind, (list, set, np.ndarray)) for kind in set(map(type, items)))
    return surely or (hierarchy is not None and any(is_set(item, hierarchy) for item in items))


def encode_sets(y: Any, hierarchy: Hierarchy | None, *, allow_empty: bool = False, classes: Any = None) -> LabelSets:
    """Check and encode label sets; ``hierarchy=None`` is the flat hierarchy over the classes.

    A label stands for itself and all above. A set that also names what is above, such as ``{"animal", "dog"}``, makes
    the inner node a class of its own, by a virtual leaf: "dog, and animal itself", as in ``LabelSpace``. So every set
    can come back as it was given; leave ancestors out that are only implied.

    Parameters
    ----------
    y : label sets, or indicator
        A list, tuple, set, frozenset or array of labels for every sample; or a matrix of 0 and 1 (dense, sparse or a
        DataFrame) with one column a class. It is called as in the DataFrame, or as in ``classes``, or like a leaf of
        the hierarchy, or 0, 1, ... without one. A DataFrame's 0, 1, ... are no names unless they are leaves.
    hierarchy : Hierarchy, optional
    allow_empty : bool
        Accept samples without a label.
    classes : array-like, optional
        All classes there will be, also those not in ``y``; for a matrix without names, what its columns are.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> sets = encode_sets([{"dog", "oak"}, {"animal"}], h)
    >>> sets.hierarchy.leaves, sets.indptr.tolist(), sets.indices.tolist()
    (('dog', 'animal', 'oak'), [0, 2, 3], [0, 2, 1])
    """
    names, codes, indptr, form = read(y, hierarchy, classes)
    if classes is not None:
        known = array_of(items_of(classes), "classes")
        known = known if is_matrix(y) else unique(known)[0]  # columns as they stand
        names, codes = known, within(names, codes, known)
    empty = np.flatnonzero(np.diff(indptr) == 0)
    if len(empty) and not allow_empty:
        raise LabelError(f"sample {empty[0]} has no label: drop such samples, or accept them with allow_empty=True")
    if len(indptr) == 1 or not len(names):
        raise LabelError("y has no labels; fitting needs at least 1 sample, but there is 0 sample(s) with a label")
    if hierarchy is None:
        hierarchy = Hierarchy.from_edges([], nodes=names.tolist())
    else:
        unknown = np.array([label not in hierarchy for label in names.tolist()])
        if unknown.any():
            error = UnknownLabelError(names[unknown].tolist(), hierarchy.nodes)
            where = [f"; first in sample {row_of(indptr, k)}" for k in np.flatnonzero(unknown[codes])[:1]]
            raise UnknownLabelError(error.labels, text="".join([str(error), *where]))
        hierarchy = hierarchy.with_virtual_leaves(names.tolist()).subset(names.tolist())
    positions = np.array([hierarchy.leaf_position(label) for label in names.tolist()], dtype=np.int32)
    rows = rows_of(positions[codes], indptr, len(names))
    return LabelSets(hierarchy, names, positions, rows.indptr.astype(np.int64), rows.indices.astype(np.int32), form)


def decode_sets(encoded: LabelSets, indptr: Any, leaves: Any) -> Any:
    """Label sets in the form of those that were encoded.

    Parameters
    ----------
    encoded : LabelSets
    indptr, leaves : arrays
        Sample i has the leaves ``leaves[indptr[i]:indptr[i + 1]]``, positions in any order.

    Returns
    -------
    array of objects, or indicator
        Containers as given, with labels in the order of the classes; lists for arrays and a mix of containers. Or an
        indicator with the classes as columns: sparse of int8, or dense of int64, also for a DataFrame.

    Examples
    --------
    >>> decode_sets(encode_sets([("b", "a"), ("c",)], None), [0, 2, 3, 3], [1, 0, 2])
    array([('a', 'b'), ('c',), ()], dtype=object)
    """
    return decoded(encoded.classes, encoded.class_leaves, encoded.form, indptr, leaves)


def matrix_of(y: Any, hierarchy: Hierarchy, classes: Labels) -> sp.csr_array:
    """Label sets as a 0/1 matrix with a column a class, and a last one for all labels that are no class.

    Parameters
    ----------
    y : label sets, or indicator
        As for :func:`encode_sets`; samples may be empty.
    hierarchy : Hierarchy
    classes : array
    """
    names, codes, indptr, _ = read(y, hierarchy, classes)
    place = {label: k for k, label in enumerate(classes.tolist())}
    columns = np.array([place.get(label, len(place)) for label in names.tolist()], dtype=np.int64)
    return rows_of(columns[codes], indptr, len(place) + 1)
