"""The two synthetic sets of the paper, Section 8.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from nhsvm.datasets.base import Dataset, generator, whole_number
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]


def make_balanced(
    n_samples: int = 8_000,
    n_features: int = 1_000,
    *,
    levels: int = 4,
    assign: str = "sum",
    random_state: Any = None,
) -> Dataset:
    """The balanced synthetic set: labels of highest potential in a complete binary tree.

    Nodes have vectors W_n and samples an x, all standard normal.

    Parameters
    ----------
    n_samples, n_features : int
    levels : int
        Of the tree, root and leaves included.
    assign : {"sum", "signs", "top_down"}
        How the label of x is found. ``"sum"``: the leaf with the highest potential Σ W_n·x over the leaf and all above
        it (Eq. 1). The others use the vectors of inner nodes only: ``"signs"`` takes the leaf with the highest
        Σ ±W_n·x over the nodes above it, minus where its path goes left and plus where it goes right; ``"top_down"``
        goes right where W_n·x > 0, node by node, so that every vector is a hyperplane that cuts what its node holds.
    random_state : seed or numpy Generator

    Returns
    -------
    Dataset
        Nodes are numbered as in a heap: 1 is the root, 2n and 2n + 1 are below n.

    Notes
    -----
    The paper contradicts itself: its text has 2³ − 1 vectors and 15,000 samples, its Table 2 has 15 nodes, 8 leaves and
    8,000 samples. The defaults are the table's. How many of these samples it trained on, it does not say. Going to the
    child with the larger W_c·x, with vectors for all 15 nodes, gives data of the same distribution as ``"top_down"``:
    differences of standard normal vectors are normal hyperplanes. ``nhsvm reproduce readings`` compares accuracies.

    Examples
    --------
    >>> data = make_balanced(100, 5, random_state=0)
    >>> data.hierarchy
    Hierarchy(tree, 15 nodes, 8 leaves, 1 root, 4 levels)
    """
    n_samples, n_features = whole_number(n_samples, "n_samples"), whole_number(n_features, "n_features")
    levels = whole_number(levels, "levels", 2, 20)
    if assign not in ("sum", "signs", "top_down"):
        raise OptionError(f"assign must be 'sum', 'signs' or 'top_down', not {assign!r}")
    rng = generator(random_state)
    n_nodes = 2**levels - 1
    hierarchy = Hierarchy.from_edges([(k // 2, k) for k in range(2, n_nodes + 1)])
    W = rng.standard_normal((n_nodes, n_features))
    X = rng.standard_normal((n_samples, n_features))
    potential = X @ W.T
    first_leaf = 2 ** (levels - 1)
    if assign == "top_down":
        return Dataset(_led_down(potential, levels - 1), hierarchy, X)
    if assign == "signs":
        potential = _signed(potential)
    for node in range(1, n_nodes):  # parents before children
        potential[:, node] += potential[:, (node - 1) // 2]
    return Dataset(first_leaf + potential[:, first_leaf - 1 :].argmax(axis=1), hierarchy, X)


def _signed(products: Floats) -> Floats:
    """−W_p·x for the left and W_p·x for the right child of every node p, nothing for the root."""
    made = np.zeros_like(products)
    inner = products.shape[1] // 2
    made[:, 1::2], made[:, 2::2] = -products[:, :inner], products[:, :inner]
    return made


def _led_down(products: Floats, steps: int) -> npt.NDArray[np.int64]:
    """The leaf, numbered from 1 at the root, that signs lead to."""
    node, samples = np.ones(len(products), dtype=np.int64), np.arange(len(products))
    for _ in range(steps):
        node = 2 * node + (products[samples, node - 1] > 0)
    return node


def make_unbalanced(
    n_samples: int = 10_000,
    n_features: int = 1_000,
    *,
    depth: int = 10,
    share: float | str = 0.5,
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
    share : float between 0 and 1, or "random"
        Of all samples, those on a leaf's side of its cut. With a share other than a half, hyperplanes miss the origin.
        With ``"random"`` the offset of a hyperplane is standard normal like the entries of its vector, and the leaf is
        what has fewer of the samples that are cut: a data set then has shares of its own, and leaves may be empty.
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
    drawn = isinstance(share, str) and share == "random"
    if not drawn and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1):
        raise OptionError(f"share must be a number between 0 and 1 or 'random', not {share!r}")
    if share not in (0.5, "random") and n_features < 2:
        raise OptionError("a share other than 0.5 needs at least 2 features: on a line, samples have two places only")
    rng = generator(random_state)
    spaces, leaves = [f"space{k}" for k in range(depth)], [f"leaf{k + 1}" for k in range(depth + 1)]
    edges = [(spaces[k], child) for k in range(depth) for child in (leaves[k], *spaces[k + 1 : k + 2])]
    hierarchy = Hierarchy.from_edges([*edges, (spaces[-1], leaves[-1])])
    X: Floats = rng.standard_normal((n_samples, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    normals = rng.standard_normal((n_features, depth))
    if isinstance(share, str):
        return Dataset(np.array(leaves, dtype=object)[_cut_off(X @ normals > rng.standard_normal(depth))], hierarchy, X)
    beyond = X @ normals > _offset(share, n_features) * np.linalg.norm(normals, axis=0)
    leaf = np.where(beyond.all(axis=1), depth, beyond.argmin(axis=1))  # the first cut that it is not beyond of
    return Dataset(np.array(leaves, dtype=object)[leaf], hierarchy, X)


def _cut_off(sides: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The number of the cut, a column a cut, at which a sample is on the side with fewer of those that are left."""
    n_samples, n_cuts = sides.shape
    leaf, left = np.full(n_samples, n_cuts), np.arange(n_samples)
    for cut in range(n_cuts):
        off = sides[left, cut]
        if 2 * np.count_nonzero(off) > len(left):
            off = ~off
        leaf[left[off]] = cut
        left = left[~off]
    return leaf


def _offset(share: float, n_features: int) -> float:
    """The height below which that share of a sphere is: with t a coordinate, (1 + t)/2 is Beta((d−1)/2, (d−1)/2)."""
    if share == 0.5:
        return 0.0
    half = (n_features - 1) / 2
    return 2 * float(betaincinv(half, half, share)) - 1
