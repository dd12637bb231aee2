"""The label hierarchy G: graph, labels, label spaces, the minimal graph."""

from nhsvm.hierarchy.graph import Graph, Ragged
from nhsvm.hierarchy.hierarchy import Hierarchy
from nhsvm.hierarchy.labels import LabelSpace, VirtualLeaf
from nhsvm.hierarchy.minimal import duplicate_classes

__all__ = ["Graph", "Hierarchy", "LabelSpace", "Ragged", "VirtualLeaf", "duplicate_classes"]
