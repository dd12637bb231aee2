"""Text-like data of the shapes of the paper's Table 2, of any size.

python benchmarks/scale/shapes.py --shape dmoz10 --size 0.1      # what comes out
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from nhsvm import Hierarchy

Ints = npt.NDArray[np.int64]
FACTORS = ("nodes", "features", "samples", "labels")  # what may be made larger or smaller
_CHUNK = 20_000  # documents whose words are drawn at a time


@dataclass(frozen=True)
class Shape:
    """A row of Table 2, and what it does not say: depth, words a document, edges beyond a tree's."""

    nodes: int
    leaves: int
    features: int
    samples: int
    labels: float = 1.0  # a sample, on average
    extra_edges: float = 0.0  # a node; 0 is a tree
    depth: int = 5
    words: float = 125.0  # tokens of a document, on average
    topic: float = 0.4  # share of them that come from the topics of its nodes

    def scaled(self, size: float) -> Shape:
        """Nodes, leaves, features and samples times ``size``."""
        return self.times(nodes=size, features=size, samples=size)

    def times(self, nodes: float = 1.0, features: float = 1.0, samples: float = 1.0, labels: float = 1.0) -> Shape:
        """Each of these times a factor; leaves are as many of the nodes as before."""
        leaves, inner = max(8, round(self.leaves * nodes)), max(2, round((self.nodes - self.leaves) * nodes))
        return replace(
            self,
            nodes=leaves + inner,
            leaves=leaves,
            features=max(8, round(self.features * features)),
            samples=max(8, round(self.samples * samples)),
            labels=self.labels * labels,
        )


SHAPES = {
    "ipc": Shape(553, 451, 228_000, 75_000, depth=3),
    "wiki_d5": Shape(1_512, 1_218, 1_000, 41_000, labels=1.1, extra_edges=0.5),
    "imagenet": Shape(1_676, 1_000, 51_000, 100_000, extra_edges=0.1, depth=8),
    "dmoz10": Shape(17_221, 12_294, 165_000, 163_000),
    "wiki": Shape(50_312, 36_504, 346_000, 456_000, labels=1.8, extra_edges=0.5),
    "tree7k": Shape(7_000, 5_000, 150_000, 100_000, depth=3),  # no row of the table: the usual size of a large taxonomy
}


class Problem(NamedTuple):
    """Samples to learn from and to judge by; labels are names, or lists of names."""

    hierarchy: Hierarchy
    X: sp.csr_matrix
    y: Any
    X_test: sp.csr_matrix
    y_test: Any


def make(shape: Shape, n_test: int | None = None, seed: int = 0) -> Problem:
    """Draw a hierarchy, topics of its nodes, labels with a long tail, and documents with Zipf words."""
    rng = np.random.default_rng(seed)
    hierarchy = _hierarchy(shape, rng)
    n_test = max(1000, shape.samples // 20) if n_test is None else n_test
    n = shape.samples + n_test
    leaf = _long_tail(n, shape.leaves, rng)
    more = rng.poisson(shape.labels - 1, n) if shape.labels > 1 else np.zeros(n, dtype=np.int64)
    indptr = np.concatenate([[0], np.cumsum(1 + more)])
    labels = np.repeat(leaf, 1 + more)
    extra = np.setdiff1d(np.arange(len(labels)), indptr[:-1])
    labels[extra] = _long_tail(len(extra), shape.leaves, rng)
    counts = _documents(hierarchy, shape, indptr, labels, rng)
    weighting = TfidfTransformer(sublinear_tf=True).fit(counts[: shape.samples])
    X = weighting.transform(counts, copy=False).tocsr()
    names = np.array(hierarchy.leaves, dtype=object)
    if shape.labels > 1:
        y: Any = [sorted(set(names[labels[a:b]])) for a, b in itertools.pairwise(indptr)]
    else:
        y = names[labels].astype(str)
    return Problem(hierarchy, X[: shape.samples], y[: shape.samples], X[shape.samples :], y[shape.samples :])


def _hierarchy(shape: Shape, rng: np.random.Generator) -> Hierarchy:
    """Inner nodes on levels that grow by the same factor, leaves below the last ones and a few higher up."""
    inner = shape.nodes - shape.leaves
    levels = max(1, shape.depth - 1)
    growth = max(1.0, inner) ** (1 / levels)
    cuts = np.unique(np.minimum(np.ceil(growth ** np.arange(1, levels + 1)), inner).astype(int))
    cuts[-1] = inner
    begin = np.concatenate([[0], cuts])
    edges = []
    for k in range(1, len(begin) - 1):
        below = np.arange(begin[k], begin[k + 1])
        parents = begin[k - 1] + _zipf_draw(begin[k] - begin[k - 1], len(below), 0.5, rng)
        edges += [(f"n{p}", f"n{c}") for p, c in zip(parents, below, strict=True)]
    last = np.arange(begin[-2], begin[-1])
    up = last[_zipf_draw(len(last), shape.leaves, 0.5, rng)]
    up[: len(last)] = last[: shape.leaves]  # none without a leaf
    without = np.setdiff1d(np.arange(begin[-2]), [int(p[1:]) for p, _ in edges])
    up[len(up) - len(without) :] = without  # the same for nodes higher up
    edges += [(f"n{p}", f"leaf{c}") for c, p in enumerate(up)]
    extra = round(shape.extra_edges * shape.nodes)
    if extra and inner > 1:
        child, parent = rng.integers(shape.leaves, size=extra), rng.integers(inner, size=extra)
        edges += [(f"n{p}", f"leaf{c}") for c, p in zip(child, parent, strict=True)]
    return Hierarchy.from_edges(list(dict.fromkeys(edges)))


def _documents(
    hierarchy: Hierarchy, shape: Shape, indptr: Ints, labels: Ints, rng: np.random.Generator
) -> sp.csr_matrix:
    """Word counts, some documents at a time: a token is a background word, or one of a node above a label."""
    topics = _zipf_draw(shape.features, hierarchy.n_nodes * 60, 0.6, rng).reshape(-1, 60)
    above = hierarchy.graph.leaf_ancestors
    background = np.cumsum(_zipf(shape.features, 1.0, 2.0))
    word_of_topic = np.cumsum(_zipf(60, 0.7))
    parts = []
    n = len(indptr) - 1
    for lo in range(0, n, _CHUNK):
        hi = min(n, lo + _CHUNK)
        length = np.maximum(rng.lognormal(np.log(shape.words) - 0.18, 0.6, hi - lo), 3).astype(np.int64)
        row = np.repeat(np.arange(hi - lo), length)
        on_topic = rng.random(len(row)) < rng.beta(2, 2 / shape.topic - 2, hi - lo)[row]
        word = np.searchsorted(background, rng.random(len(row))).clip(0, shape.features - 1)
        at = np.flatnonzero(on_topic)
        document = row[at] + lo
        label = labels[indptr[document] + (rng.random(len(at)) * np.diff(indptr)[document]).astype(np.int64)]
        size = np.diff(above.indptr)[label]
        node = above.indices[above.indptr[label] + (rng.random(len(at)) * size).astype(np.int64)]
        word[at] = topics[node, np.searchsorted(word_of_topic, rng.random(len(at))).clip(0, 59)]
        ones = np.ones(len(row), dtype=np.float32)
        parts.append(sp.coo_matrix((ones, (row, word)), shape=(hi - lo, shape.features)).tocsr())
    return sp.vstack(parts, format="csr")


def _zipf(n: int, exponent: float, shift: float = 0.0) -> npt.NDArray[np.float64]:
    p = (np.arange(1, n + 1) + shift) ** -exponent
    return p / p.sum()


def _zipf_draw(n: int, size: int, exponent: float, rng: np.random.Generator) -> Ints:
    """``size`` of n things, the first most often, in an order of no meaning."""
    drawn = np.searchsorted(np.cumsum(_zipf(n, exponent)), rng.random(size)).clip(0, n - 1)
    return rng.permutation(n)[drawn]


def _long_tail(n: int, n_leaves: int, rng: np.random.Generator) -> Ints:
    sure = rng.permutation(n_leaves)[:n]
    rest = _zipf_draw(n_leaves, max(0, n - len(sure)), 1.0, rng)
    return rng.permutation(np.concatenate([sure, rest]))


def positive(text: str) -> float:
    """A size, or a factor of one, as it is typed."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be above 0, and finite, not {text}")
    return number


def factor(text: str) -> tuple[str, float]:
    """What is multiplied, and by how much, as it is typed: samples=2."""
    name, _, number = text.partition("=")
    if name not in FACTORS:
        raise argparse.ArgumentTypeError(f"must be NAME=NUMBER with one of {', '.join(FACTORS)}, not {text}")
    return name, positive(number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="dmoz10")
    parser.add_argument("--size", type=positive, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    problem = make(SHAPES[options.shape].scaled(options.size), seed=options.seed)
    print(problem.hierarchy)
    n, d = problem.X.shape
    print(f"{n:,} documents, {d:,} words, {problem.X.nnz / n:.0f} a document; {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
