"""The two synthetic sets of the paper, Section 8.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._options import generator, whole_number
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]


def make_balanced(
    n_samples: int = 8_000, n_features: int = 1_000, *, levels: int = 4, random_state: Any = None
) -> Dataset:
    """The balanced synthetic set: labels of highest potential in a complete binary tree.

    Every node has a vector W_n and every sample an x, both standard normal. The label of x is the leaf with the highest
    potential Σ W_n·x over the leaf and all above it (Eq. 1).

    Parameters
    ----------
    n_samples, n_features : int
    levels : int
        Of the tree, root and leaves included.
    random_state : seed or numpy Generator

    Returns
    -------
    Dataset
        Nodes are numbered as in a heap: 1 is the root, 2n and 2n + 1 are below n.

    Notes
    -----
    The paper contradicts itself: its text has 2³ − 1 nodes and 15,000 samples, its Table 2 has 15 nodes, 8 leaves and
    8,000 samples. The defaults are the table's. How many of these samples it trained on, it does not say.

    Examples
    --------
    >>> data = make_balanced(100, 5, random_state=0)
    >>> data.hierarchy
    Hierarchy(tree, 15 nodes, 8 leaves, 1 root, 4 levels)
    """
    n_samples, n_features = whole_number(n_samples, "n_samples"), whole_number(n_features, "n_features")
    levels = whole_number(levels, "levels", 2, 20)
    rng = generator(random_state)
    n_nodes = 2**levels - 1
    hierarchy = Hierarchy.from_edges([(k // 2, k) for k in range(2, n_nodes + 1)])
    W = rng.standard_normal((n_nodes, n_features))
    X = rng.standard_normal((n_samples, n_features))
    potential = X @ W.T
    for node in range(1, n_nodes):  # parents before children
        potential[:, node] += potential[:, (node - 1) // 2]
    first_leaf = 2 ** (levels - 1)
    return Dataset(first_leaf + potential[:, first_leaf - 1 :].argmax(axis=1), hierarchy, X)


def make_unbalanced(
    n_samples: int = 10_000,
    n_features: int = 1_000,
    *,
    depth: int = 10,
    share: float = 0.5,
    random_state: Any = None,
) -> Dataset:
    """The unbalanced synthetic set: space cut by random hyperplanes, each time only on one side of the last cut.

    Samples are standard normal, scaled to length one. By default hyperplanes go through the origin, so that every cut
    halves what it cuts: the leaf at depth k has about 2^-k of the samples.

    Parameters
    ----------
    n_samples, n_features : int
    depth : int
        Cuts; the deepest two leaves are that many edges below the root.
    share : float between 0 and 1
        Of all samples, those on a leaf's side of its cut. With a share other than a half, hyperplanes miss the origin.
    random_state : seed or numpy Generator

    Returns
    -------
    Dataset
        ``"space0"`` is the root, cut into ``"leaf1"`` and ``"space1"``, and so on.

    Notes
    -----
    The paper's depth 10, 19 nodes and 11 leaves cannot all hold: ten cuts make 21 nodes and 11 leaves. The defaults
    keep the depth and the number of leaves.

    Examples
    --------
    >>> print(make_unbalanced(100, 5, depth=2, random_state=0).hierarchy.draw())
    space0
    ├── leaf1
    └── space1
        ├── leaf2
        └── leaf3
    """
    n_samples, n_features = whole_number(n_samples, "n_samples"), whole_number(n_features, "n_features")
    depth = whole_number(depth, "depth", 1, 1000)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise OptionError(f"share must be a number between 0 and 1, not {share!r}")
    if share != 0.5 and n_features < 2:
        raise OptionError("a share other than 0.5 needs at least 2 features: on a line, samples have two places only")
    rng = generator(random_state)
    spaces, leaves = [f"space{k}" for k in range(depth)], [f"leaf{k + 1}" for k in range(depth + 1)]
    edges = [(spaces[k], child) for k in range(depth) for child in (leaves[k], *spaces[k + 1 : k + 2])]
    hierarchy = Hierarchy.from_edges([*edges, (spaces[-1], leaves[-1])])
    X: Floats = rng.standard_normal((n_samples, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    normals = rng.standard_normal((n_features, depth))
    beyond = X @ normals > _offset(share, n_features) * np.linalg.norm(normals, axis=0)
    leaf = np.where(beyond.all(axis=1), depth, beyond.argmin(axis=1))  # the first cut that it is not beyond of
    return Dataset(np.array(leaves, dtype=object)[leaf], hierarchy, X)


def _offset(share: float, n_features: int) -> float:
    """The height below which that share of a sphere is: with t a coordinate, (1 + t)/2 is Beta((d−1)/2, (d−1)/2)."""
    if share == 0.5:
        return 0.0
    half = (n_features - 1) / 2
    return 2 * float(betaincinv(half, half, share)) - 1
