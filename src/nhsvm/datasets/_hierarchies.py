"""The hierarchy that comes with samples: given, read, or without its artificial root."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import Any

from nhsvm.errors import FileFormatError, HierarchyError, OptionError, UnknownLabelError
from nhsvm.hierarchy import Hierarchy


def given_hierarchy(hierarchy: Any, label_type: type | None, drop_root: bool) -> Hierarchy | None:
    """A hierarchy that was given as such, or as a file."""
    if isinstance(hierarchy, (str, PathLike)):
        try:
            hierarchy = Hierarchy.read(hierarchy, label_type=label_type)
        except OSError as error:
            raise FileFormatError(str(hierarchy), None, f"cannot be read: {error.strerror or error}") from error
    if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
        raise OptionError(f"hierarchy must be a Hierarchy or the path of a file, not {hierarchy!r}")
    return without_root(hierarchy) if drop_root and hierarchy is not None else hierarchy


def without_root(hierarchy: Hierarchy) -> Hierarchy:
    """The hierarchy without its root, which is above every label and so tells none of them apart.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("root", "animal"), ("root", "plant"), ("animal", "dog")])
    >>> without_root(h)
    Hierarchy(forest, 3 nodes, 2 leaves, 2 roots, 2 levels)
    """
    if len(hierarchy.roots) != 1:
        return hierarchy
    root = hierarchy.roots[0]
    if hierarchy.is_leaf(root):
        raise HierarchyError(f"the hierarchy has only one node, {root!r}, so it cannot be dropped as a root")
    edges = list(hierarchy.edges())
    return Hierarchy.from_edges([e for e in edges if e[0] != root], nodes=[c for p, c in edges if p == root])


def unknown(label: Hashable, hierarchy: Hierarchy, brief: bool) -> str:
    """What to say of a label that is not in the hierarchy; looking for similar ones takes its time."""
    return f"not in the hierarchy: {label!r}" if brief else str(UnknownLabelError([label], hierarchy.nodes))
