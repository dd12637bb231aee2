"""Nothing is worth having: the best label set is then the closure of one leaf, and all of them can be tried."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import FloatArray, Graph


def best_leaf(graph: Graph, rewards: FloatArray, chosen: npt.NDArray[np.uint8]) -> None:
    """Fill in the best closure Ā(l) of a leaf l, for rewards ≤ 0; the first of equals."""
    _best_leaf_kernel(graph.parents.indptr, graph.parents.indices, graph.leaves, rewards, chosen)


@kernel
def _best_leaf_kernel(parent_ptr, parent, leaves, rewards, chosen):
    # sums only fall, so a leaf is given up as soon as it is worse than the best so far
    n = rewards.shape[0]
    mark = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    top = -1e308
    best = leaves[0]
    for k in range(leaves.shape[0] + 1):  # the last time, the best once more, to keep its closure
        last = k == leaves.shape[0]
        leaf = best if last else leaves[k]
        queue[0] = leaf
        mark[leaf] = k
        size, at, total = 1, 0, 0.0
        while at < size and (total > top or last):
            j = queue[at]
            at += 1
            total += rewards[j]
            for q in range(parent_ptr[j], parent_ptr[j + 1]):
                p = parent[q]
                if mark[p] != k:
                    mark[p] = k
                    queue[size] = p
                    size += 1
        if not last and at == size and total > top:
            top = total
            best = leaf
    chosen[:] = 0
    for k in range(size):
        chosen[queue[k]] = 1
