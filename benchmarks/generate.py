"""Text-like data of any size: Zipf words, topic words for every node of a random label tree, long-tailed classes.

python benchmarks/generate.py                            # 20,000 documents, 50,000 words, 500 leaves; what comes out
python benchmarks/generate.py --leaves 5000 --samples 100000
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from rich.console import Console
from sklearn.feature_extraction.text import TfidfTransformer

from data import Problem
from nhsvm import Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def _zipf(n: int, exponent: float, shift: float = 0.0) -> Floats:
    p = (np.arange(1, n + 1) + shift) ** -exponent
    return p / p.sum()


def _draw(p: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Positions drawn with probabilities ``p``; much faster than ``rng.choice`` for millions."""
    return np.minimum(np.searchsorted(np.cumsum(p), rng.random(size), side="right"), len(p) - 1)


def _attach(n_children: int, n_parents: int, rng: np.random.Generator) -> Ints:
    """A parent for each child: one child for every parent first, the rest unevenly (Zipf)."""
    parent = np.concatenate([np.arange(n_parents), _draw(_zipf(n_parents, 0.7), n_children - n_parents, rng)])
    return rng.permutation(parent)


def _class_of_each(n: int, n_classes: int, exponent: float, rng: np.random.Generator) -> Ints:
    """Long-tailed classes, every one at least once if there is room; in random order."""
    sure = rng.permutation(n_classes)[:n]
    drawn = _draw(_zipf(n_classes, exponent, shift=2.0), n - len(sure), rng)
    return rng.permutation(np.concatenate([sure, drawn]))


def text_like(
    n_samples: int = 20_000,
    n_features: int = 50_000,
    n_leaves: int = 500,
    *,
    n_test: int | None = None,
    n_inner: tuple[int, int] | None = None,
    words_per_node: int = 60,
    mean_length: float = 125.0,
    topic_share: float = 0.15,
    class_exponent: float = 1.0,
    seed: int = 0,
) -> Problem:
    """A problem with the statistics of text that decide a linear solver's speed.

    Every token of a document comes from one of four places: the background (Zipf over all words, most likely) or the
    topic of one of the three nodes on its label's path. A topic is ``words_per_node`` words, Zipf again, drawn so that
    frequent words are more likely to be part of it, and topics overlap. How much of a document is on topic varies from
    document to document, and that makes some of them hard.

    Parameters
    ----------
    n_test : int, optional
        Further documents to test on; by default a quarter of ``n_samples``.
    n_inner : (int, int), optional
        Nodes on the first and second level; by default n_leaves to the powers 0.4 and 0.65: 12 and 57 for 500.
    mean_length : float
        Tokens in a document on average (log-normal); about 100 of the default 125 are distinct.
    topic_share : float
        Mean share of tokens that come from topics.
    class_exponent : float
        Class sizes fall like rank to the minus this.
    """
    rng = np.random.default_rng(seed)
    n_test = n_samples // 4 if n_test is None else n_test
    n_top, n_middle = n_inner or (max(1, round(n_leaves**0.4)), max(1, round(n_leaves**0.65)))
    middle_of, top_of = _attach(n_leaves, n_middle, rng), _attach(n_middle, n_top, rng)
    train, test = (_class_of_each(n, n_leaves, class_exponent, rng) for n in (n_samples, n_test))
    leaf = np.concatenate([train, test])
    path = np.column_stack([top_of[middle_of[leaf]], n_top + middle_of[leaf], n_top + n_middle + leaf])
    topics = _draw(_zipf(n_features, 0.6), (n_top + n_middle + n_leaves) * words_per_node, rng)
    counts = _documents(path, topics.reshape(-1, words_per_node), n_features, mean_length, topic_share, rng)
    weighting = TfidfTransformer(sublinear_tf=True).fit(counts[:n_samples])
    X = weighting.transform(counts).tocsr()

    names = np.array([f"leaf{i:0{len(str(n_leaves))}d}" for i in range(n_leaves)])
    edges = [(f"top{t}", f"middle{m}") for m, t in enumerate(top_of)]
    edges += [(f"middle{m}", str(names[i])) for i, m in enumerate(middle_of)]
    return Problem(
        "text-like",
        Hierarchy.from_edges(edges),
        X[:n_samples],
        names[train],
        X[n_samples:],
        names[test],
        f"generated, seed {seed}",
    )


def _documents(
    path: Ints, topics: Ints, n_features: int, mean_length: float, topic_share: float, rng: np.random.Generator
) -> sp.csr_matrix:
    """Word counts; all tokens of all documents at once."""
    n = len(path)
    spread = 0.6
    length = np.maximum(rng.lognormal(np.log(mean_length) - spread**2 / 2, spread, n), 3).astype(np.int64)
    row = np.repeat(np.arange(n), length)
    on_topic = rng.random(len(row)) < rng.beta(2, 2 / topic_share - 2, n)[row]
    word = np.empty(len(row), dtype=np.int64)
    word[~on_topic] = _draw(_zipf(n_features, 1.0, shift=2.0), int((~on_topic).sum()), rng)
    source = row[on_topic]
    node = path[source, rng.integers(3, size=len(source))]
    word[on_topic] = topics[node, _draw(_zipf(topics.shape[1], 0.7), len(source), rng)]
    counts = sp.coo_matrix((np.ones(len(row)), (row, word)), shape=(n, n_features)).tocsr()
    counts.sum_duplicates()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--leaves", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console(width=120, highlight=False)
    start = time.perf_counter()
    problem = text_like(options.samples, options.features, options.leaves, seed=options.seed)
    sizes = np.sort(np.unique(problem.y_train, return_counts=True)[1])
    console.print(f"{problem}\n{time.perf_counter() - start:.1f} s")
    console.print(f"class sizes: smallest {sizes[0]}, median {int(np.median(sizes))}, largest {sizes[-1]}")


if __name__ == "__main__":
    main()
