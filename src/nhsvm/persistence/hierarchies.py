"""A hierarchy as JSON (the labels) and arrays (the edges)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import HierarchyError
from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.persistence._malformed import JSON, Malformed, expect, reading
from nhsvm.persistence.checks import Budget, check_edges
from nhsvm.persistence.labels import decode_labels, encode_labels


def hierarchy_to_parts(hierarchy: Hierarchy) -> tuple[dict[str, JSON], dict[str, npt.NDArray[Any]]]:
    """The labels as JSON, and the arrays ``parent`` and ``child`` of node numbers, ordered by child.

    Raises
    ------
    LabelError
        For a label that a file cannot hold.

    Examples
    --------
    >>> hierarchy_to_parts(Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")]))[0]
    {'labels': ['animal', 'dog', 'cat']}
    """
    parent, child = hierarchy.graph.edges()
    return {"labels": encode_labels(hierarchy.nodes)}, {"parent": parent, "child": child}


def hierarchy_from_parts(
    part: Mapping[str, JSON], arrays: Mapping[str, npt.NDArray[Any]], path: str | PathLike[str] = "a model file"
) -> Hierarchy:
    """The hierarchy, with the same numbers for the same nodes.

    Parameters
    ----------
    part, arrays : as :func:`hierarchy_to_parts` gave them
    path : path
        Where they were read, for messages.

    Raises
    ------
    FileFormatError
        If they do not make a hierarchy.
    """
    with reading(path):
        return decode_hierarchy(dict(part), arrays, Budget(sum(array.nbytes for array in arrays.values())))


def decode_hierarchy(part: JSON, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget) -> Hierarchy:
    """As :func:`hierarchy_from_parts`, for callers that know the file."""
    labels = decode_labels(expect(part, dict, "a hierarchy").get("labels"))
    parent, child = check_edges(len(labels), arrays, budget)
    if len(set(labels)) < len(labels):
        raise Malformed("its hierarchy has the same label twice")
    try:
        hierarchy = Hierarchy(labels, np.array(parent), np.array(child))
    except HierarchyError as error:
        raise Malformed(f"its hierarchy is wrong: {error}") from None
    # compared one by one, and not by value, for True == 1
    if any(a is not b for a, b in zip(hierarchy.nodes, labels, strict=True)):
        raise Malformed("the nodes of its hierarchy are in another order than that of this library")
    _check_virtual_leaves(hierarchy)
    return hierarchy


def _check_virtual_leaves(hierarchy: Hierarchy) -> None:
    """Each is a leaf, right below the node it stands for and no other."""
    graph, nodes = hierarchy.graph, hierarchy.nodes
    for number in np.flatnonzero(hierarchy.is_virtual):
        leaf, above = nodes[number], graph.parents.row(number)
        assert isinstance(leaf, VirtualLeaf)
        if len(above) != 1 or nodes[above[0]] != leaf.of or not graph.is_leaf[number]:
            raise Malformed(f"a virtual leaf of its hierarchy is not where it belongs, below {leaf.of!r}")
