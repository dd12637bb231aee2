"""Which nodes to settle by the dual's word alone, in a dive for a good set."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.oracles._dag_core import FREE, OFF, ON, Core, States

_UNSURE = 0.5  # part of the free nodes that is left free


def leaning(core: Core, state: States, marginal: FloatArray) -> States:
    """A fate for the half of the nodes free in ``state`` with the largest marginals: what their signs say.

    Where a node to be left out is above one to be in, the weaker of the two is left free.
    """
    fate = state.copy()
    size = np.abs(marginal[fate == FREE])
    if len(size) == 0:
        return fate
    k = int(_UNSURE * len(size))
    _lean_kernel(
        core.links.child_ptr, core.links.child, core.links.parent_ptr, core.links.parent, marginal,
        np.partition(size, k)[k], fate,
    )  # fmt: skip
    return fate


@kernel
def _lean_kernel(child_ptr, child, parent_ptr, parent, marginal, least, fate):
    n = fate.shape[0]
    above, below = np.zeros(n), np.zeros(n)  # the surest to be left out above a node, and to be in below it
    for i in range(n):
        if fate[i] == FREE and marginal[i] <= -least:
            above[i] = -marginal[i]
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            above[i] = max(above[i], above[parent[q]])
    for i in range(n - 1, -1, -1):
        if fate[i] == FREE and marginal[i] >= least:
            below[i] = marginal[i]
        for e in range(child_ptr[i], child_ptr[i + 1]):
            below[i] = max(below[i], below[child[e]])
    for i in range(n):
        if fate[i] == FREE and abs(marginal[i]) >= least:
            if marginal[i] > above[i]:
                fate[i] = ON
            elif -marginal[i] >= below[i]:
                fate[i] = OFF
