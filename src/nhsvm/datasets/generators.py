"""Data that is always at hand: the two synthetic sets of the paper, made-up text, and docstrings as a text set."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv

from nhsvm.checks import a_hierarchy
from nhsvm.datasets.dataset import Dataset, generator, number, objects, split, whole_number
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.labels import public
from nhsvm.typing import AnySeed, BoolArray, FloatArray, PtrArray

CHUNK = 20_000  # documents made at a time
_SPREAD = 0.6  # of the logarithm of lengths


def make_balanced(
    n_samples: int = 8_000,
    n_features: int = 1_000,
    *,
    levels: int = 4,
    assign: str = "sum",
    random_state: AnySeed = None,
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
    if assign == "signs":  # of the product of a node, minus for its left child and plus for its right one
        products = potential[:, : n_nodes // 2]
        potential = np.zeros_like(potential)
        potential[:, 1::2], potential[:, 2::2] = -products, products
    for node in range(1, n_nodes):  # parents before children
        potential[:, node] += potential[:, (node - 1) // 2]
    return Dataset(first_leaf + potential[:, first_leaf - 1 :].argmax(axis=1), hierarchy, X)


def _led_down(products: FloatArray, steps: int) -> PtrArray:
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
    random_state: AnySeed = None,
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
    X: FloatArray = rng.standard_normal((n_samples, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    normals = rng.standard_normal((n_features, depth))
    if isinstance(share, str):
        return Dataset(np.array(leaves, dtype=object)[_cut_off(X @ normals > rng.standard_normal(depth))], hierarchy, X)
    beyond = X @ normals > _offset(share, n_features) * np.linalg.norm(normals, axis=0)
    leaf = np.where(beyond.all(axis=1), depth, beyond.argmin(axis=1))  # the first cut that it is not beyond of
    return Dataset(np.array(leaves, dtype=object)[leaf], hierarchy, X)


def _cut_off(sides: BoolArray) -> PtrArray:
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


# -- made-up text: Zipf words, topic words of every node, long-tailed classes ------------------------------------------


def make_text(
    hierarchy: Hierarchy,
    n_samples: int = 10_000,
    n_features: int = 20_000,
    *,
    labels_per_sample: float = 1.0,
    inner_share: float = 0.0,
    mean_length: float = 100.0,
    topic_share: float = 0.2,
    words_per_node: int = 50,
    class_exponent: float = 1.0,
    output: str = "counts",
    random_state: AnySeed = None,
) -> Dataset:
    """Text-like samples for the classes of a hierarchy, with the statistics that decide how hard learning is.

    A word of a document comes from the background, where word frequencies fall like 1/rank (Zipf), or from the topic of
    a node: its label's, or one above. A topic is a few words, drawn so that frequent words are more likely, and topics
    overlap. How much of a document is on topic differs from document to document, which makes some of them hard.

    Parameters
    ----------
    hierarchy : Hierarchy
        Tree or DAG.
    n_samples : int
        Documents. Every class comes at least once if there are enough.
    n_features : int
        Words there are.
    labels_per_sample : float
        More than 1 makes a multi-label set: 1 and a Poisson number of further labels, of which equal ones are one.
    inner_share : float
        Share of labels that stand for a node above the drawn leaf instead of the leaf.
    mean_length : float
        Words in a document on average; lengths are log-normal.
    topic_share : float
        Share of the words that are on topic, on average, between 0 and 1.
    words_per_node : int
        Words of a topic.
    class_exponent : float
        Class sizes fall like rank to the minus this: 0 makes equal classes.
    output : {"counts", "texts"}
        X with the counts of words, or texts of words ``w0`` (the most frequent), ``w1``, ….
    random_state : seed or numpy Generator

    Returns
    -------
    Dataset
        Counts are CSR float64.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> data = make_text(h, 50, 100, random_state=0)
    >>> data.X.shape, sorted(set(data.y))
    ((50, 100), ['cat', 'dog', 'oak'])
    >>> make_text(h, 3, 10, mean_length=4, output="texts", random_state=1).texts
    ['w4 w4 w0', 'w6 w4', 'w8 w6 w4 w0 w0']
    """
    a_hierarchy(hierarchy)
    n_samples, n_features = whole_number(n_samples, "n_samples"), whole_number(n_features, "n_features")
    words_per_node = whole_number(words_per_node, "words_per_node")
    number(labels_per_sample, "labels_per_sample", 1)
    number(inner_share, "inner_share", 0, 1)
    number(mean_length, "mean_length", 1)
    number(class_exponent, "class_exponent", 0)
    if not 0 < number(topic_share, "topic_share", 0, 1) < 1:
        raise OptionError(f"topic_share must be between 0 and 1, not {topic_share}")
    if output not in ("counts", "texts"):
        raise OptionError(f"output must be 'counts' or 'texts', not {output!r}")
    rng = generator(random_state)
    topics = _draw(_zipf(n_features, 0.6), hierarchy.n_nodes * words_per_node, rng).reshape(-1, words_per_node)
    ptr, nodes = _labels(hierarchy, n_samples, labels_per_sample - 1, inner_share, class_exponent, rng)
    chunks = _documents(hierarchy, ptr, nodes, topics, n_features, mean_length, topic_share, rng)
    labels = objects([public(node) for node in hierarchy.nodes])[nodes]
    y = split(labels.tolist(), ptr.tolist()) if labels_per_sample > 1 else labels
    if output == "texts":
        texts = [text for row, word in chunks for text in _texts(row, word)]
        return Dataset(y, hierarchy, texts=texts)
    X = sp.vstack([_counts(row, word, n_features) for row, word in chunks], format="csr")
    return Dataset(y, hierarchy, X, feature_names=np.array([f"w{k}" for k in range(n_features)], dtype=object))


def _zipf(n: int, exponent: float, shift: float = 0.0) -> FloatArray:
    p: FloatArray = (np.arange(1, n + 1, dtype=np.float64) + shift) ** -exponent
    total: FloatArray = p / p.sum()
    return total


def _draw(p: FloatArray, size: int, rng: np.random.Generator) -> PtrArray:
    """Positions drawn with probabilities ``p``; much faster than ``rng.choice`` for millions."""
    return np.minimum(np.searchsorted(np.cumsum(p), rng.random(size), side="right"), len(p) - 1)


def _labels(
    hierarchy: Hierarchy, n: int, further: float, inner_share: float, exponent: float, rng: np.random.Generator
) -> tuple[PtrArray, PtrArray]:
    """Nodes that are labels: sample i has nodes[ptr[i] : ptr[i + 1]], all different."""
    leaves = hierarchy.graph.leaves
    sizes = 1 + (rng.poisson(further, n) if further else np.zeros(n, dtype=np.int64))
    total = int(sizes.sum())
    rank = rng.permutation(len(leaves))
    sure = rank[:total]
    drawn = rank[_draw(_zipf(len(leaves), exponent, shift=2.0), total - len(sure), rng)]
    nodes = leaves[rng.permutation(np.concatenate([sure, drawn]))].astype(np.int64)
    moved = np.flatnonzero(rng.random(total) < inner_share)
    above = hierarchy.graph.ancestors.rows(nodes[moved])
    n_above = np.maximum(above.sizes() - 1, 1)  # the node itself comes last, and stays if there is nothing above it
    nodes[moved] = above.indices[above.indptr[:-1] + (rng.random(len(moved)) * n_above).astype(np.int64)]
    row = np.repeat(np.arange(n), sizes)
    pairs = np.unique(row * hierarchy.n_nodes + nodes)  # a label drawn twice is one
    ptr = np.concatenate([[0], np.cumsum(np.bincount(pairs // hierarchy.n_nodes, minlength=n))])
    return ptr, pairs % hierarchy.n_nodes


def _documents(
    hierarchy: Hierarchy,
    ptr: PtrArray,
    nodes: PtrArray,
    topics: PtrArray,
    n_features: int,
    mean_length: float,
    topic_share: float,
    rng: np.random.Generator,
) -> Iterator[tuple[PtrArray, PtrArray]]:
    """Words, and the documents they are in, some documents at a time."""
    background, within = np.cumsum(_zipf(n_features, 1.0, shift=2.0)), _zipf(topics.shape[1], 0.7)
    above = hierarchy.graph.ancestors
    for start in range(0, len(ptr) - 1, CHUNK):
        n = min(CHUNK, len(ptr) - 1 - start)
        length = np.maximum(rng.lognormal(np.log(mean_length) - _SPREAD**2 / 2, _SPREAD, n), 1).astype(np.int64)
        row = np.repeat(np.arange(n), length)
        on_topic = rng.random(len(row)) < rng.beta(2, 2 / topic_share - 2, n)[row]
        word = np.minimum(np.searchsorted(background, rng.random(len(row)), side="right"), n_features - 1)
        of = start + row[on_topic]
        label = nodes[ptr[of] + (rng.random(len(of)) * (ptr[of + 1] - ptr[of])).astype(np.int64)]
        begin, size = above.indptr[label], above.indptr[label + 1] - above.indptr[label]
        node = above.indices[begin + (rng.random(len(of)) * size).astype(np.int64)]
        word[on_topic] = topics[node, _draw(within, len(of), rng)]
        yield row, word


def _counts(row: PtrArray, word: PtrArray, n_features: int) -> sp.csr_matrix:
    shape = (int(row[-1]) + 1, n_features)  # every document has a word
    return sp.coo_matrix((np.ones(len(row)), (row, word)), shape=shape).tocsr()


def _texts(row: PtrArray, word: PtrArray) -> Iterator[str]:
    words = [f"w{k}" for k in word.tolist()]
    return map(" ".join, split(words, np.concatenate([[0], np.cumsum(np.bincount(row))]).tolist()))


# -- docstrings --------------------------------------------------------------------------------------------------------

_PACKAGES = ("numpy", "scipy", "sklearn")
_LEFT_OUT = ("tests", "conftest", "setup", "mypy_plugin", "__main__")
_VARYING = re.compile(r"# may vary|argument\(s\) ``\{")
_LEAST = 5  # words of a text
_MEMBERS = (property, classmethod, staticmethod)


def load_docstrings() -> Dataset:
    """Docstrings of the installed numpy, scipy and scikit-learn, labelled by the public module they are found in.

    About 7,000 different texts in about 200 modules, as a tree: ``"scipy.sparse.linalg"`` is below ``"scipy.sparse"``.
    Classes are long-tailed, and inner modules are labels as well. What it has exactly depends on the versions that
    are installed. The first call takes some seconds, since it imports all modules but tests; later ones are quick.

    Returns
    -------
    Dataset
        With texts, in an order that does not change.

    Notes
    -----
    What a private module has, ``scipy.optimize._zeros_py``, is labelled by the public one above it. The same text in
    several modules counts once, in the public module with the shortest path: that is where a user finds it. Digits all
    become 0, since scipy puts fresh random numbers into the docstrings of its distributions. Texts of fewer than five
    words are left out.

    Examples
    --------
    >>> data = load_docstrings()
    >>> data.hierarchy.roots
    ('numpy', 'scipy', 'sklearn')
    >>> "scipy.sparse.linalg" in data.y
    True
    """
    pairs, hierarchy = _collected()
    return Dataset(objects([module for _, module in pairs]), hierarchy, texts=[text for text, _ in pairs])


@lru_cache(1)
def _collected() -> tuple[tuple[tuple[str, str], ...], Hierarchy]:
    """Texts with their modules, and the tree of the modules."""
    module_of: dict[str, str] = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # old names that a package still has
        for package in _PACKAGES:
            modules = dict(_modules(package))
            for name in sorted(modules, key=lambda name: (name != _public(name), name.count("."), name)):
                for text in map(_cleaned, _docstrings(modules[name], package)):
                    if len(text.split()) >= _LEAST:
                        module_of.setdefault(text, _public(name))
    pairs = tuple(sorted(module_of.items()))  # some modules list names in an order that changes from run to run
    paths = [module.split(".") for module in sorted({module for _, module in pairs})]
    steps = [[".".join(path[: k + 1]) for k in range(len(path))] for path in paths]
    return pairs, Hierarchy.from_paths(steps)


def _cleaned(text: str) -> str:
    """A docstring without what is different every time it is made."""
    return re.sub(r"\d+", "0", "\n".join(line for line in text.strip().splitlines() if not _VARYING.search(line)))


def _public(name: str) -> str:
    """The part of a module's path before anything private."""
    return name.partition("._")[0]


def _modules(package: str) -> Iterator[tuple[str, ModuleType]]:
    """All public modules, and the private ones of public packages below the first; nothing that tests need."""
    root = importlib.import_module(package)
    yield package, root
    stack = [(package, root)]
    while stack:
        above, parent = stack.pop()
        for found in pkgutil.iter_modules(parent.__path__, above + "."):
            last = found.name.rpartition(".")[2]
            if last in _LEFT_OUT or (last.startswith("_") and (found.ispkg or parent is root or "test" in last)):
                continue
            try:
                module = importlib.import_module(found.name)
            except (Exception, SystemExit):  # noqa: BLE001 - something optional that is not installed, or a script
                continue
            yield found.name, module
            if found.ispkg:
                stack.append((found.name, module))


def _docstrings(module: ModuleType, package: str) -> Iterator[str]:
    """Docstrings of a module and of the functions and classes it offers, each class followed by its members."""
    yield module.__doc__ or ""
    listed = set(getattr(module, "__all__", ()))
    for name in sorted(listed | vars(module).keys()):
        thing = inspect.getattr_static(module, name, None)
        if name.startswith("_") or not callable(thing):
            continue
        if name in listed or _is_of(thing, package):  # not what it imports from elsewhere for its own use
            yield _own(thing)
            if inspect.isclass(thing):
                yield from _members(thing, package)


def _members(thing: type, package: str) -> Iterator[str]:
    """Docstrings of methods and properties, also of those inherited from classes of the same package."""
    for base in thing.__mro__:
        if _is_of(base, package):
            for name, member in sorted(vars(base).items()):
                if not name.startswith("_") and (callable(member) or isinstance(member, _MEMBERS)):
                    yield _own(member)


def _is_of(thing: object, package: str) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] == package


def _own(thing: object) -> str:
    text = getattr(thing, "__doc__", None)
    return text if isinstance(text, str) else ""
