"""Labels as vectors over the nodes: class attributes, their kernel, and the penalty they imply."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.checks import matrix, node_values
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy


def class_attributes(hierarchy: Hierarchy, node_weights: npt.ArrayLike) -> sp.csr_array:
    """Eq. 5:  [∧̃(l)]_n = √α_n if n ∈ Ā(l), else 0, one row a leaf.

    With α = 1 everywhere these are the class attributes ∧(y) of Eq. 1. The joint feature of a sample x with label l is
    the Kronecker product of row l and x.

    Parameters
    ----------
    hierarchy : Hierarchy
    node_weights : array of n_nodes
        α, aligned with ``hierarchy.nodes``.

    Returns
    -------
    sparse array of shape (n_leaves, n_nodes)
    """
    return (
        hierarchy.graph.leaf_matrix() @ sp.diags_array(np.sqrt(node_values(node_weights, hierarchy, "node_weights")))
    ).tocsr()


def label_kernel(hierarchy: Hierarchy, node_weights: npt.ArrayLike) -> sp.csr_array:
    """Inner products of the class attributes:  K[l, l'] = Σ_{n ∈ Ā(l) ∩ Ā(l')} α_n.

    A classifier that is linear in the joint feature depends on the hierarchy through this kernel alone: hierarchies
    with the same kernel give the same decision boundaries. Its diagonal is 1 when every path sums to 1 (Eq. 4). Sparse
    as long as no weighted node is above many leaves.

    Examples
    --------
    >>> from nhsvm import Hierarchy, node_weights
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> label_kernel(h, node_weights(h, "maxmin")).toarray()
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    A = hierarchy.graph.leaf_matrix()
    return (A @ sp.diags_array(node_values(node_weights, hierarchy, "node_weights")) @ A.T).tocsr()


def label_penalty(hierarchy: Hierarchy, node_weights: npt.ArrayLike, leaf_rows: npt.ArrayLike) -> float:
    """What a regulariser charges for given leaf vectors, at fixed α.

    The least Σ_n ‖U_n‖²/α_n (Eq. 11) over node rows with Σ_{n∈Ā(l)} U_n = ``leaf_rows[l]`` for every leaf l. It equals
    tr(Uᵀ K⁻¹ U) with K the :func:`label_kernel`. Leaf vectors that no node rows can give cost ``inf``; so do those that
    would need √α below about 1e-14 of the largest, which double precision cannot tell from rounding (``power`` weights
    with ρ near 1 get there). It works on the dense class attributes, so it is for up to some thousand nodes.

    Examples
    --------
    The paper's Figure 1: a copy of a node halves the penalty of HSVM, not that of NHSVM.

    >>> from nhsvm import Hierarchy, node_weights
    >>> before = Hierarchy.from_edges([], nodes=["y1", "y2"])
    >>> after = Hierarchy.from_edges([("copy of y1", "y1")], nodes=["copy of y1", "y2"])
    >>> u = {"y1": [3.0, 4.0], "y2": [0.0, 0.0]}
    >>> for scheme in ("uniform", "power"):
    ...     for h in (before, after):
    ...         penalty = label_penalty(h, node_weights(h, scheme), [u[leaf] for leaf in h.leaves])
    ...         print(scheme, round(penalty, 6))
    uniform 25.0
    uniform 12.5
    power 25.0
    power 25.0
    """
    U = matrix(leaf_rows, "leaf_rows")
    if len(U) != hierarchy.n_leaves:
        raise OptionError(f"leaf_rows must have {hierarchy.n_leaves} rows, one a leaf, but has {len(U)}")
    features = class_attributes(hierarchy, node_weights).toarray()
    # the least-norm V with features @ V = U; the penalty is its squared norm
    V, *_ = np.linalg.lstsq(features, U, rcond=None)
    if not np.allclose(features @ V, U, rtol=1e-9, atol=1e-9 * float(np.abs(U).max())):
        return float("inf")
    return float((V**2).sum())
