"""What every label adds to a label set, all other labels being as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph, IntArray


def label_gains(
    graph: Graph, scores: FloatArray, chosen: npt.NDArray[np.uint8], which: IntArray | None = None
) -> FloatArray:
    """s(ŷ ∪ Ā(l)) − s(ŷ without l), for s(y) = Σ_{n∈y} s_n and leaves l.

    That is Σ s_n over the nodes of Ā(l) that are not in ŷ; and for a leaf that is in ŷ, over those that no other leaf
    of ŷ lies below. Where ŷ is the best of all label sets, no leaf outside has a gain above 0, and no leaf inside one
    below, but for the only leaf of a set that must not be empty.

    Parameters
    ----------
    graph : Graph
    scores : float64 array of (batch, n_nodes)
        s.
    chosen : uint8 array of (batch, n_nodes)
        1 for the nodes of ŷ, the closure of some leaves.
    which : array, optional
        Positions of the leaves l; all by default.

    Returns
    -------
    array of (batch, len(which))

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> scores, chosen = np.array([[-1.0, -2.0, 3.0, -1.0, 1.0]]), np.array([[1, 0, 1, 0, 0]], np.uint8)
    >>> label_gains(h.graph, scores, chosen)
    array([[ 2., -1., -1.]])
    """
    which = np.arange(graph.n_leaves, dtype=np.int32) if which is None else np.asarray(which, dtype=np.int32)
    _check(graph, scores, chosen, which)
    out = np.empty((len(scores), len(which)))
    _gains_kernel(scores, chosen, graph.leaves, *graph.leaf_ancestors, which, out)
    return out


def _check(graph: Graph, scores: FloatArray, chosen: npt.NDArray[Any], which: IntArray) -> None:
    """Raise unless a kernel can trust the sizes."""
    shape = (len(scores), graph.n_nodes)
    for name, array, kind in (("scores", scores, np.float64), ("chosen", chosen, np.uint8)):
        if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous:
            raise OptionError(
                f"{name} must be a C-ordered {np.dtype(kind)} array of shape {shape}, "
                f"not {array.dtype} of shape {array.shape}"
            )
    if len(which) and not 0 <= which.min() <= which.max() < graph.n_leaves:
        raise OptionError(f"which must be positions below {graph.n_leaves}, the number of leaves")


@kernel
def _gains_kernel(scores, chosen, leaves, indptr, indices, which, out):
    below = np.empty(scores.shape[1], np.int32)  # how many leaves of ŷ are at or below a node
    for t in range(scores.shape[0]):
        below[:] = 0
        for k in range(leaves.shape[0]):
            if chosen[t, leaves[k]]:
                for e in range(indptr[k], indptr[k + 1]):
                    below[indices[e]] += 1
        for j in range(which.shape[0]):
            k = which[j]
            own = chosen[t, leaves[k]]  # nodes that l alone holds, or would bring
            total = 0.0
            for e in range(indptr[k], indptr[k + 1]):
                n = indices[e]
                if below[n] == own:
                    total += scores[t, n]
            out[t, j] = total
