"""Answers with the best expected value of a measure, from calibrated probabilities.

**One label a sample.** P(l|x) is the distribution of the true label, so the expected value of every answer is known. A
measure that counts nodes needs only P(n|x), the sum over the labels at or below n, since E|Y ∩ Ŷ| = Σ_{n∈Ŷ} P(n|x).
Others (means of every sample's ratio, distances on a DAG) take a table of their values for all pairs of labels.

**Label sets.** Only probabilities of nodes are known, not which go together. Measures that are sums over nodes, and
ratios of sums over samples, need no more: an oracle finds the set with the largest Σ_{n∈y} r_n, where r_n is what n is
worth. Means of every sample's ratio need more. Over labels, these are taken to be independent given x: then the best
set of k labels has the k most probable ones, and its expected value follows from how many of these, and of the others,
are true. Over nodes, which are anything but independent, the ratio of the sample's expectations is taken in its place;
of F1 it is the same where |Y| is certain.

**Ratios** N/D are made as large as they can be by Dinkelbach's method: whatever has the largest N − tD for some t has
a ratio of at least t, or no answer has; with that ratio as the next t this ends, after a few rounds, at the best one.
Of counts, N − tD is a sum over nodes: of 2P(n|x) − t for F1.

References
----------
W. Dinkelbach (1967). On nonlinear fractional programming. Management Science 13.
D. Lewis (1995). Evaluating and optimizing autonomous text classification systems. SIGIR.
N. Ye, K. Chai, W. Lee, H. Chieu (2012). Optimizing F-measures: a tale of two approaches. ICML.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import METRICS
from nhsvm.metrics.distances import path_lengths
from nhsvm.metrics.measures import MEASURES, Measure, combined, measures
from nhsvm.model.sets import SetForm, SetInference
from nhsvm.threads import Team
from nhsvm.typing import Array, BoolArray, ByteArray, FloatArray, IntArray, PtrArray

EXACT = "exact_match"
"""Of label sets: what ``predict`` aims at in any case."""
_CLOSE = 1e-12  # ratios that differ by less are equal
_PAIRS = 2**27  # values of pairs of labels that are kept: 1 GiB
_NUMBERS = 2**20  # probabilities of nodes at work at a time


# -- names -------------------------------------------------------------------------------------------------------------


def measure_names(*, sets: bool, partial: bool = False) -> list[str]:
    """What ``for_measure`` can be, for one label a sample or for label sets; ``partial`` for answers on inner nodes."""
    if sets:
        return [EXACT, *map(_plain, MEASURES)]
    counted = {_plain(name): measure for name, measure in measures(single=True).items()}
    found = {name: True for name, measure in counted.items() if measure.average != "macro"}
    if partial:  # by labels, no inner node is right
        found = {name: True for name in found if counted[name].nodes}
    found |= dict.fromkeys(_distances(), True)
    return [*found] if partial else ["accuracy", *found]


def check_measure(name: object, *, sets: bool, partial: bool = False) -> str:
    """The name without ``neg_``, which scorers of errors have; an OptionError if it cannot be aimed at."""
    names = measure_names(sets=sets, partial=partial)
    plain = _plain(name) if isinstance(name, str) else None
    if plain is None or plain not in names:
        kind = "label sets" if sets else "answers on inner nodes" if partial else "one label a sample"
        raise OptionError(f"for_measure must be one of {names} for {kind}, not {name!r}")
    return plain


def _plain(name: str) -> str:
    return name.removeprefix("neg_")


def _distances() -> dict[str, Callable[[FloatArray], FloatArray]]:
    """Measures of the distance of two labels."""
    return {
        _plain(name): metric.of_distance
        for metric in METRICS.specs.values()
        if metric.of_distance is not None
        for name in metric.scorers
    }


# -- ratios ------------------------------------------------------------------------------------------------------------


class Ratio(NamedTuple):
    """An answer, with numerators and denominators of expected values."""

    answer: Array
    part: FloatArray
    whole: FloatArray


def best_ratio(solve: Callable[[FloatArray], Ratio], n: int) -> Array:
    """The answer with the largest part / whole, for n ratios at once; ``solve(t)`` has the largest part − t whole.

    Dinkelbach's method, from t = 0: ratios only grow. 0/0 is no improvement.
    """
    t = np.zeros(n)
    while True:
        answer, part, whole = solve(t)
        reached = np.divide(part, whole, out=np.zeros(n), where=whole > 0)
        grows = reached > t + _CLOSE
        if not grows.any():
            return answer
        t = np.where(grows, reached, t)  # and not what rounding has changed


# -- one label a sample ------------------------------------------------------------------------------------------------


class Rule(ABC):
    """How one label a sample is chosen; probabilities come some samples at a time, and in any order."""

    @abstractmethod
    def see(self, rows: slice, proba: FloatArray) -> None:
        """Probabilities of the classes for some samples."""

    @abstractmethod
    def answers(self) -> PtrArray:
        """Positions among the candidates, once all samples were seen."""


def make_rule(name: str, hierarchy: Hierarchy, class_leaves: IntArray, nodes: IntArray, n_samples: int) -> Rule:
    """The rule for a measure.

    Parameters
    ----------
    name : str
        One of :func:`measure_names`.
    hierarchy : Hierarchy
    class_leaves : array of n_classes
        Positions of the classes among the leaves.
    nodes : array
        The candidates: leaves of the classes, or all nodes.
    n_samples : int
    """
    measure = next((m for key, m in measures(single=True).items() if _plain(key) == name), None)
    if name == "accuracy" or (measure is not None and not measure.nodes):
        return MostProbable(n_samples)
    linear = measure is not None and (measure.ratio.denominator is None or measure.average == "micro")
    of_distance = _distances().get(name)
    if measure is not None and linear and (of_distance is None or hierarchy.graph.is_tree):
        return ByCounts(measure, Closures.of(measure, hierarchy, class_leaves, nodes), n_samples)
    n_classes = len(class_leaves)
    if n_classes * len(nodes) > _PAIRS:
        raise OptionError(
            f"for_measure={name!r} compares all pairs of {n_classes:,} classes and {len(nodes):,} answers, too many "
            "here; 'hierarchical_f1' and 'hamming_distance_nodes' are sums over nodes and need no pairs"
        )
    if of_distance is not None:
        table = of_distance(_all_distances(hierarchy, class_leaves, nodes))
    else:
        assert measure is not None
        closures = Closures.of(measure, hierarchy, class_leaves, nodes)
        both = (closures.true @ closures.pred.T).toarray()
        table = np.asarray(measure.of(both, closures.true_sizes[:, None], closures.pred_sizes))
    return ByPairs(table, n_samples)


class Closures(NamedTuple):
    """What is counted of the classes and of the candidates: 0/1 matrices over all nodes, and their row sums."""

    true: sp.csr_array
    pred: sp.csr_array
    true_sizes: FloatArray
    pred_sizes: FloatArray

    @classmethod
    def of(cls, measure: Measure, hierarchy: Hierarchy, class_leaves: IntArray, nodes: IntArray) -> Closures:
        """For a measure over nodes."""
        counted = measure.counted(hierarchy)
        true, pred = (_closures(hierarchy, counted, some) for some in (hierarchy.graph.leaves[class_leaves], nodes))
        return cls(true, pred, true.sum(axis=1), pred.sum(axis=1))


def _closures(hierarchy: Hierarchy, counted: BoolArray, nodes: IntArray) -> sp.csr_array:
    """Each of the nodes with what is above it, as far as it counts: (n, n_nodes)."""
    above = hierarchy.graph.ancestors.rows(nodes)
    found = sp.csr_array(
        (counted[above.indices].astype(np.float64), above.indices, above.indptr), (len(nodes), hierarchy.n_nodes)
    )
    found.eliminate_zeros()
    return found


def _all_distances(hierarchy: Hierarchy, class_leaves: IntArray, nodes: IntArray) -> FloatArray:
    """Edges from every class to every candidate; a virtual leaf is the node it stands for."""
    graph = hierarchy.graph
    stands_for = np.arange(graph.n_nodes, dtype=np.int32)
    virtual = np.flatnonzero(hierarchy.is_virtual)
    stands_for[virtual] = graph.parents.rows(virtual).indices  # it has one parent
    true, pred = stands_for[graph.leaves[class_leaves]], stands_for[nodes]
    found = np.empty((len(true), len(pred)))
    step = max(1, _NUMBERS // len(pred))
    for lo in range(0, len(true), step):
        some = true[lo : lo + step]
        lengths = path_lengths(graph, np.repeat(some, len(pred)), np.tile(pred, len(some)))
        found[lo : lo + step] = lengths.reshape(len(some), len(pred))
    return found


class MostProbable(Rule):
    """The most probable class: for measures by which a label is right or wrong."""

    def __init__(self, n_samples: int) -> None:
        self._best = np.zeros(n_samples, dtype=np.int64)

    def see(self, rows: slice, proba: FloatArray) -> None:
        self._best[rows] = proba.argmax(axis=1)

    def answers(self) -> PtrArray:
        return self._best


class ByPairs(Rule):
    """The candidate with the largest Σ_l P(l|x) v(l, candidate), from a table of v."""

    def __init__(self, table: FloatArray, n_samples: int) -> None:
        self._table = sp.csr_array(table.T)  # whose sums do not depend on the samples beside, as those of BLAS do
        self._best = np.zeros(n_samples, dtype=np.int64)

    def see(self, rows: slice, proba: FloatArray) -> None:
        self._best[rows] = (self._table @ proba.T).argmax(axis=0)

    def answers(self) -> PtrArray:
        return self._best


class ByCounts(Rule):
    """For what depends on E|Y ∩ Ŷ|, E|Y| and |Ŷ|: of the candidates of one size, the one with the largest E|Y ∩ Ŷ|.

    So little is kept of a sample, and the rounds of a ratio over all samples need no more.
    """

    def __init__(self, measure: Measure, closures: Closures, n_samples: int) -> None:
        self._measure, self._closures = measure, closures
        self._sizes, group = np.unique(closures.pred_sizes, return_inverse=True)
        self._groups = [np.flatnonzero(group == k) for k in range(len(self._sizes))]
        self._both = np.zeros((n_samples, len(self._sizes)))
        self._which = np.zeros((n_samples, len(self._sizes)), dtype=np.int64)
        self._true = np.zeros(n_samples)

    def see(self, rows: slice, proba: FloatArray) -> None:
        nodes = self._closures.true.T @ proba.T
        both = self._closures.pred @ nodes
        self._true[rows] = nodes.sum(axis=0)
        for k, group in enumerate(self._groups):
            best = group[both[group].argmax(axis=0)]
            self._which[rows, k] = best
            self._both[rows, k] = both[best, np.arange(len(best))]

    def answers(self) -> PtrArray:
        ratio, every = self._measure.ratio, np.arange(len(self._true))
        counts = self._both, self._true[:, None], self._sizes
        part = np.asarray(combined(ratio.numerator, *counts))
        if ratio.denominator is None:
            return np.asarray(self._which[every, part.argmax(axis=1)])
        whole = np.asarray(combined(ratio.denominator, *counts))

        def solve(t: FloatArray) -> Ratio:
            best = (part - t * whole).argmax(axis=1)
            return Ratio(best, part[every, best].sum(keepdims=True), whole[every, best].sum(keepdims=True))

        return np.asarray(self._which[every, best_ratio(solve, 1)])


# -- label sets --------------------------------------------------------------------------------------------------------


def best_sets(
    name: str, hierarchy: Hierarchy, form: SetForm, proba: FloatArray, *, exact: bool = True, n_threads: int = 1
) -> tuple[PtrArray, IntArray]:
    """Label sets for a measure: lists of positions of leaves in CSR form, (indptr, positions).

    Parameters
    ----------
    name : str
        One of :func:`measure_names`.
    hierarchy : Hierarchy
    form : SetForm
    proba : array of (n_samples, n_nodes)
        P(n|x).
    exact : bool
        On a DAG, prove every set to be the best.
    n_threads : int
    """
    measure = next(m for key, m in MEASURES.items() if _plain(key) == name)
    return SetDecision(measure, hierarchy, form, proba, exact, n_threads).best()


class SetDecision:
    """The search for the best label sets of all samples."""

    def __init__(
        self, measure: Measure, hierarchy: Hierarchy, form: SetForm, proba: FloatArray, exact: bool, n_threads: int
    ) -> None:
        graph = hierarchy.graph
        self._measure, self._graph, self._form, self._proba, self._n_threads = measure, graph, form, proba, n_threads
        self._counted = measure.counted(hierarchy).astype(np.float64)
        ratio = measure.ratio
        self._numerator, self._denominator = ratio.numerator, ratio.denominator or (0.0, 1.0, 0.0)  # any, as t stays 0
        # the ratio of a sample whose set is empty is looked at by itself
        self._may_be_empty = form.allow_empty and not (ratio.denominator and measure.average == "samples")
        nodes = np.arange(graph.n_nodes, dtype=np.int32)
        self._search = SetInference(graph, nodes, self._may_be_empty, exact=exact, oracle=form.oracle)

    def best(self) -> tuple[PtrArray, IntArray]:
        """Lists of positions of leaves, in CSR form."""
        sizes, leaves = self._search.leaves(self._chosen())
        return np.concatenate([[0], np.cumsum(sizes)]), leaves

    def _chosen(self) -> ByteArray:
        n = len(self._proba)
        if self._measure.ratio.denominator is None:
            return self._all(np.zeros(1)).answer
        if self._measure.average == "micro":
            return np.asarray(best_ratio(self._all, 1))
        if self._measure.average == "macro":
            return self._of_labels()
        chosen = np.empty(self._proba.shape, np.uint8)
        of_samples = self._of_samples if self._measure.nodes else self._of_independent

        def use(rows: slice) -> None:
            chosen[rows] = of_samples(self._proba[rows])

        self._each(n, use)
        return chosen

    def _all(self, t: FloatArray) -> Ratio:
        """All samples, with one t."""
        n = len(self._proba)
        chosen, part, whole = np.empty(self._proba.shape, np.uint8), np.empty(n), np.empty(n)

        def use(rows: slice) -> None:
            proba = self._proba[rows]
            chosen[rows], part[rows], whole[rows] = self._solved(proba, np.full(len(proba), t[0]))

        self._each(n, use)
        return Ratio(chosen, part.sum(keepdims=True), whole.sum(keepdims=True))

    def _of_samples(self, proba: FloatArray) -> ByteArray:
        """The largest ratio of every sample; an empty set is right if the truth is empty."""
        ratios = np.zeros(len(proba))

        def solve(t: FloatArray) -> Ratio:
            found = self._solved(proba, t)
            np.divide(found.part, found.whole, out=ratios, where=found.whole > 0)
            return found

        chosen = np.asarray(best_ratio(solve, len(proba)))
        if self._form.allow_empty:
            roots = proba[:, : self._graph.n_roots]
            chosen[np.prod(1.0 - roots, axis=1) > ratios] = 0
        return chosen

    def _of_independent(self, proba: FloatArray) -> ByteArray:
        """The most probable labels of every sample, as many as have the best expected ratio."""
        from nhsvm.oracles.independent import best_numbers

        proba = proba[:, self._graph.leaves]
        order = np.argsort(-proba, axis=1, kind="stable")
        falling = np.take_along_axis(proba, order, axis=1)
        number = best_numbers(falling, self._numerator, self._denominator, may_be_empty=self._form.allow_empty)
        first = np.zeros(proba.shape, np.uint8)
        np.put_along_axis(first, order, np.arange(proba.shape[1]) < number[:, None], axis=1)
        chosen = np.zeros((len(proba), self._graph.n_nodes), np.uint8)
        chosen[:, self._graph.leaves] = first
        return chosen

    def _of_labels(self) -> ByteArray:
        """The largest ratio of every label over all samples; a sample that must not be empty then gets its best one."""
        leaves = self._graph.leaves
        proba = self._proba[:, leaves]
        true = proba.sum(axis=0)

        def solve(t: FloatArray) -> Ratio:
            chosen = self._worth(proba, t) > 0.0
            counts = (proba * chosen).sum(axis=0), true, chosen.sum(axis=0)
            return Ratio(t, *(np.asarray(combined(f, *counts)) for f in (self._numerator, self._denominator)))

        worth = self._worth(proba, np.asarray(best_ratio(solve, len(leaves))))
        found = np.zeros(self._proba.shape, np.uint8)
        found[:, leaves] = _positive(worth, self._form.allow_empty)
        return found

    def _solved(self, proba: FloatArray, t: FloatArray) -> Ratio:
        """For some samples, sets with the largest part − t whole, and these of every sample."""
        worth = self._worth(proba, t[:, None]) * self._counted
        if self._measure.nodes:
            chosen = self._search.best(worth, np.zeros(self._graph.n_nodes))[1]
        else:
            leaves = self._graph.leaves
            chosen = np.zeros(proba.shape, np.uint8)
            chosen[:, leaves] = _positive(worth[:, leaves], self._may_be_empty)
        counted = chosen * self._counted
        counts = (proba * counted).sum(axis=1), proba @ self._counted, counted.sum(axis=1)
        part, whole = (np.asarray(combined(f, *counts)) for f in (self._numerator, self._denominator))
        return Ratio(chosen, part, whole)

    def _worth(self, proba: FloatArray, t: FloatArray) -> FloatArray:
        """What a node adds to part − t whole."""
        (both, _, pred), (both_below, _, pred_below) = self._numerator, self._denominator
        found: FloatArray = both * proba + pred - t * (both_below * proba + pred_below)
        return found

    def _each(self, n: int, use: Callable[[slice], None]) -> None:
        step = max(1, _NUMBERS // self._graph.n_nodes)

        def work(lo: int, hi: int) -> None:
            for k in range(lo, hi, step):
                use(slice(k, min(hi, k + step)))

        with Team(self._n_threads) as team:
            team.split(n, work)


def _positive(worth: FloatArray, may_be_empty: bool) -> ByteArray:
    """Leaves of which each is worth something, and the best one where none is."""
    chosen = (worth > 0.0).astype(np.uint8)
    if not may_be_empty:
        alone = np.flatnonzero(~chosen.any(axis=1))
        chosen[alone, worth[alone].argmax(axis=1)] = 1
    return chosen
