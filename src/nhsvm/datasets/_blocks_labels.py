"""Labels as numbers on disk and a table of names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import DataError, LabelError
from nhsvm.hierarchy import Hierarchy

Codes = npt.NDArray[np.int32]


def storable(label: Hashable) -> str | int:
    """A label as JSON has it: text or a whole number."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (int, np.integer)) and not isinstance(label, (bool, np.bool_)):
        return int(label)
    raise LabelError(f"blocks hold labels that are text or whole numbers, not {label!r}, a {type(label).__name__}")


class LabelTable:
    """Numbers labels in the order in which they come.

    Examples
    --------
    >>> table = LabelTable()
    >>> table.take(["dog", "cat", "dog"]), table.take([["oak"], ["cat", "dog"]])
    ((array([0, 1, 0], dtype=int32), array([1, 1, 1])), (array([2, 1, 0], dtype=int32), array([1, 2])))
    >>> table.names, table.kind
    (['dog', 'cat', 'oak'], 'sets')
    """

    def __init__(self) -> None:
        self._code: dict[Hashable, int] = {}
        self.names: list[str | int] = []
        self.kind: str | None = None
        self.dtype = "object"

    def take(self, y: Any) -> tuple[Codes, npt.NDArray[np.int64]]:
        """(codes of all labels, labels of every sample) of ``y`` as in a ``Dataset``."""
        if y is None or self.kind == "none":
            if (y is None) != (self.kind in (None, "none")):
                raise DataError("some parts of the data have labels, and others have none")
            self.kind = "none"
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        if isinstance(y, list) and any(isinstance(labels, list) for labels in y):
            self.kind = "sets"
            flat = list(chain.from_iterable(y))
            sizes = np.fromiter(map(len, y), dtype=np.int64, count=len(y))
        else:
            if self.kind is None:
                self.kind = "one"
                self.dtype = "int64" if isinstance(y, np.ndarray) and y.dtype.kind == "i" else "object"
            flat, sizes = y, np.ones(len(y), dtype=np.int64)
        return self._codes(flat), sizes

    def _codes(self, flat: Any) -> Codes:
        if isinstance(flat, np.ndarray) and flat.dtype.kind == "i":
            distinct, places = np.unique(flat, return_inverse=True)
            return self._numbered(distinct.tolist())[places]
        return self._numbered(flat)

    def _numbered(self, labels: Iterable[Hashable]) -> Codes:
        found = []
        for label in labels:
            code = self._code.get(label)
            if code is None:
                name = storable(label)
                code = self._code.setdefault(name, len(self.names))
                self.names.append(name)
            found.append(code)
        return np.array(found, dtype=np.int32)


def hierarchy_parts(hierarchy: Hierarchy) -> tuple[list[str | int], Codes, Codes]:
    """(names of the nodes by number, parents, children)."""
    parent, child = hierarchy.graph.edges()
    return [storable(node) for node in hierarchy.nodes], parent.astype(np.int32), child.astype(np.int32)


def labels_of(kind: str, dtype: str, names: list[str | int], codes: Any, indptr: Any) -> Any:
    """``y`` of a data set: an array of labels, or a list of lists."""
    table = np.empty(len(names), dtype=object)
    table[:] = names
    if dtype == "int64" and kind == "one":
        if not all(type(name) is int and -(2**63) <= name < 2**63 for name in names):
            raise LabelError("labels of the type int64 that are no whole numbers of 64 bits")
        table = table.astype(np.int64)
    if kind == "one":
        return table[codes]
    flat, ends = table[codes].tolist(), indptr.tolist()
    return [flat[a:b] for a, b in pairwise(ends)]
