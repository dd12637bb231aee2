"""What was learned from samples and labels, and what it answers for others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax, softmax

from nhsvm.columns import Columns, make_columns
from nhsvm.errors import LabelError, OptionError
from nhsvm.explanation import Explanations, FeatureNames, explained, strongest_features
from nhsvm.hierarchy import Hierarchy
from nhsvm.model.sets import (
    Collected,
    Curves,
    Gains,
    Inference,
    SetForm,
    along_directions,
    decoded,
    node_margins,
    on_leaves,
)
from nhsvm.sizes import is_count, is_number, readable_bytes
from nhsvm.storage import StoredRows, Table, Weights, pack, score_in_chunks
from nhsvm.storage.samples import Samples
from nhsvm.storage.scoring import Use, as_sparse, scoring_precision
from nhsvm.threads import Team
from nhsvm.typing import (
    Array,
    FloatArray,
    Floats,
    IntArray,
    Label,
    LabelsLike,
    Matrix,
    MatrixLike,
    PtrArray,
    Record,
)

_NOT_LARGE = 2**28  # bytes
_ROUNDING = 1e-9  # by which a sum of probabilities may fall short
_NUMBERS = 2**22  # probabilities of nodes at work at a time


class Training(NamedTuple):
    """How the fit ended."""

    objective: float
    """Primal value."""
    dual_objective: float
    """A lower bound of the optimum."""
    gap: float
    """(primal − dual) / primal; infinite if it was not measured."""
    n_iter: int
    history: list[Record]
    """One record a pass."""
    certified: bool = True
    """Whether the gap is proved; otherwise it, and the values, are estimates."""
    C: float | None = None
    """Cost of errors; None in files of versions that did not keep it."""
    tol: float | None = None
    """The gap to reach; the same holds for it."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A fitted model: immutable, and all that answers need.

    Methods take samples as an array or a sparse matrix of (n_samples, n_features), which they check, or as
    :class:`~nhsvm.storage.samples.Samples`, which somebody has checked. ``n_threads`` never changes an answer.

    Attributes
    ----------
    hierarchy : Hierarchy
        Restricted to the classes and what is above them.
    classes : array of n_classes
        Labels, in the order of the scores; the first of equals wins.
    class_leaves : array of n_classes
        Position of every class among the leaves of the hierarchy.
    node_weights : array of n_nodes
        α.
    columns : Columns
        The nodes with α > 0, with the leaves in the order of ``classes``.
    weights : Weights
        U, one column for each of these nodes.
    bias : float
        Value of the constant feature.
    training : Training
    sets : SetForm, optional
        What label sets look like; None for one label a sample.
    offsets : array of n_nodes, optional
        Tuned for label sets, and added to the scores of nodes.
    temperature : float, optional
        T of P(l|x) = softmax(score / T), for one label a sample.
    curves : Curves, optional
        Probabilities of nodes, for label sets.
    feature_names : array of n_features, optional
    """

    hierarchy: Hierarchy
    classes: Array
    class_leaves: IntArray
    node_weights: FloatArray
    columns: Columns
    weights: Weights
    bias: float
    training: Training
    sets: SetForm | None = None
    offsets: FloatArray | None = None
    temperature: float | None = None
    curves: Curves | None = None
    feature_names: Array | None = None

    @classmethod
    def make(
        cls, hierarchy: Hierarchy, classes: Array, class_leaves: IntArray, node_weights: FloatArray, **learned: Any
    ) -> Model:
        """A model whose columns follow from the hierarchy, the classes and α; ``learned`` are the other attributes."""
        if len(classes) != hierarchy.n_leaves:
            raise LabelError(f"{len(classes)} classes, but {hierarchy.n_leaves} leaves of the hierarchy")
        columns = by_class(make_columns(hierarchy.graph, node_weights), class_leaves)
        return cls(hierarchy, classes, class_leaves, node_weights, columns, **learned)

    def __repr__(self) -> str:
        labels = "one label a sample" if self.sets is None else "label sets"
        return (
            f"Model of {len(self.classes):,} classes, {self.n_nodes:,} nodes and {self.n_features:,} features, "
            f"{labels}; weights {readable_bytes(self.weights.nbytes)}, {self.weights.precision}"
        )

    # -- what was learned ----------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        return self.weights.n_features

    @property
    def n_nodes(self) -> int:
        return self.hierarchy.n_nodes

    @property
    def class_nodes(self) -> IntArray:
        """The leaf of every class as a node."""
        return self.hierarchy.graph.leaves[self.class_leaves]

    def coef(self) -> Matrix:
        """U, one row a node: (n_nodes, n_features), zero for nodes without weight.

        A sparse array if weights did not fit into memory as a table.
        """
        found: Matrix = self.weights.to_array()
        if sp.issparse(found):
            if self.columns.n_columns < self.n_nodes:
                nodes = self.columns.nodes.astype(np.int32)[found.indices]
                found = sp.csc_array((found.data, nodes, found.indptr), shape=(self.n_nodes, found.shape[1]))
            return found.tocsr()
        if self.columns.n_columns == self.n_nodes:
            return found
        full = np.zeros((self.n_nodes, found.shape[1]), dtype=found.dtype)
        full[self.columns.nodes] = found
        return full

    def intercept(self) -> Floats:
        """What the constant feature adds to the score of every node: (n_nodes,)."""
        last = self.weights.constant
        full = np.zeros(self.n_nodes, dtype=last.dtype)
        full[self.columns.nodes] = last * self.bias
        return full

    def all_offsets(self) -> FloatArray:
        """What is added to the scores of nodes for label sets, by ``leaf_offset`` and ``offsets``: (n_nodes,)."""
        fixed = on_leaves(self.hierarchy.graph, self._label_sets().leaf_offset)
        return fixed if self.offsets is None else self.offsets + fixed

    def packed(self, precision: str) -> Model:
        """The same with weights of lower precision, "float16" or "int8"."""
        return replace(self, weights=pack(self.weights, precision))

    def pruned(self, share: float | None = None, threshold: float | None = None) -> Model:
        """The same without the smallest weights, as rows; those of the constant feature stay.

        Parameters
        ----------
        share : float, optional
            Of the weights that are not zero, what is dropped.
        threshold : float, optional
            Or: drop all whose absolute value is smaller.
        """
        lists = self.weights.lists()
        size = np.abs(lists.value)
        least = float(threshold or 0.0)
        if share is not None:
            drop = int(share * len(size))
            least = float(np.partition(size, drop)[drop]) if drop else 0.0
        return replace(self, weights=StoredRows.largest_of(lists, least))

    # -- scores --------------------------------------------------------------------------------------------------------

    def node_scores(self, X: MatrixLike, *, n_threads: int = 1) -> Floats:
        """U_n·x of every node: (n_samples, n_nodes), without offsets."""
        samples = self.samples(X)
        out = np.zeros((samples.n_samples, self.n_nodes), dtype=self.weights.dtype)

        def store(part: slice, scores: Floats) -> None:
            out[part, self.columns.nodes] = scores

        self.score_columns(samples, store, n_threads=n_threads)
        return out

    def class_scores(self, X: MatrixLike, *, n_threads: int = 1) -> Floats:
        """γ(x, l) of Eq. 1 for every class: (n_samples, n_classes)."""
        from nhsvm.oracles.leaves import leaf_scores

        samples, columns = self.samples(X), self.columns
        out = np.empty((samples.n_samples, columns.n_leaves), dtype=self.weights.dtype)

        def direct(part: slice, scores: Floats) -> None:
            out[part] = scores

        self._score_leaves(samples, direct, lambda part, s: leaf_scores(columns, s, out[part]), n_threads)
        return out

    def best_classes(self, X: MatrixLike, *, n_threads: int = 1) -> IntArray:
        """Position of the class with the highest score of every sample; the first of equals."""
        from nhsvm.oracles.leaves import best_leaves

        samples, columns = self.samples(X), self.columns
        best = np.empty(samples.n_samples, dtype=np.int32)

        def direct(part: slice, scores: Floats) -> None:
            best[part] = scores.argmax(axis=1)

        self._score_leaves(samples, direct, lambda part, s: best_leaves(columns, s, best[part]), n_threads)
        return best

    def _score_leaves(self, samples: Samples, use_leaves: Use, use_columns: Use, n_threads: int) -> None:
        """Scores of leaves where these come at once, else of columns: the same for scores and for the best of them."""
        along = self.along_paths(samples.X)
        if along is not None:
            score_in_chunks(samples.X, along, self.bias, use_leaves, n_threads=n_threads)
        else:
            self.score_columns(samples, use_columns, n_threads=n_threads)

    def beam_classes(self, X: MatrixLike, beam: int, *, n_threads: int = 1) -> IntArray:
        """Position of the best class below one of the ``beam`` best nodes of every level of a tree.

        Levels are those of columns: nodes without weight are passed through. Only the weights of nodes next below those
        that are kept are read, but of rows that are not full all, which is no more work.
        """
        from nhsvm.oracles.leaves import beam_kernel, column_tree
        from nhsvm.storage.samples import Entries, prepare

        self.check_beam(beam)
        X, columns = self.samples(X).X, self.columns
        dtype = scoring_precision(X, self.weights, self.bias)
        X, kept, bias = self.weights.plain(as_sparse(X), self.bias)
        samples, rows = Entries.of(prepare(X)), kept.as_rows().for_kernels
        tree = column_tree(columns)
        out = np.empty(X.shape[0], dtype=np.int32)
        room = min(beam, columns.n_columns)

        def work(lo: int, hi: int) -> None:
            beam_kernel(lo, hi, samples, rows, bias, tree, room, np.zeros(columns.n_columns, dtype), out)

        with Team(n_threads) as team:
            team.split(X.shape[0], work)
        return out

    def score_columns(self, X: MatrixLike, use: Use, *, n_threads: int = 1, width: int | None = None) -> None:
        """``use(rows, scores of the columns)`` for all samples; see :func:`~nhsvm.storage.score_in_chunks`."""
        score_in_chunks(self.samples(X).X, self.weights, self.bias, use, n_threads=n_threads, width=width)

    def samples(self, X: MatrixLike) -> Samples:
        """Samples that this model can answer about."""
        return Samples.checked(X, self.n_features)

    def along_paths(self, X: MatrixLike) -> Table | None:
        """Σ_{n∈Ā(l)} U_n of every leaf l, if that pays: the scores of inner nodes are then not needed.

        It does for dense samples, whose products with the weights of inner nodes are saved, if they are enough for
        that, and the sums, which take less memory than the weights, take no more than the samples or are not large.
        """
        from nhsvm.oracles.leaves import leaf_scores

        table, columns = self.weights.table, self.columns
        if sp.issparse(X) or table is None:
            return None
        values, n_paths = table.values, len(columns.paths.indices)
        saved = (columns.n_columns - columns.n_leaves) * X.shape[0]
        room = columns.n_leaves * X.shape[1] * values.itemsize
        if not (saved > 2 * n_paths and room <= max(X.nbytes, _NOT_LARGE)):
            return None
        if table.by_feature:  # the weights of a feature are summed as the scores of a sample are
            sums = np.empty((len(values), columns.n_leaves), dtype=values.dtype)
            leaf_scores(columns, values, sums)
            return Table(sums, by_feature=True)
        return Table(columns.path_matrix(values.dtype) @ values, by_feature=False)

    # -- answers -------------------------------------------------------------------------------------------------------

    def decision_function(self, X: MatrixLike, *, n_threads: int = 1) -> Floats:
        """Scores of the classes: (n_samples, n_classes); for one of two labels a sample, (n_samples,).

        Of label sets, what a label, with what is above it, adds to the predicted set when all others stay as they are.
        """
        if self.sets is not None:
            return self.gains(X, n_threads=n_threads).gains
        scores = self.class_scores(X, n_threads=n_threads)
        return scores[:, 1] - scores[:, 0] if len(self.classes) == 2 else scores

    def predict(
        self,
        X: MatrixLike,
        *,
        beam: int | None = None,
        exact: bool = True,
        for_measure: str | None = None,
        n_threads: int = 1,
    ) -> LabelsLike:
        """The label, or label set, of every sample: with the highest score, or the best expected value of a measure.

        Parameters
        ----------
        X : samples
        beam : int, optional
            Nodes kept a level, for one label a sample on a tree: faster, approximate.
        exact : bool
            Label sets on a DAG: prove each to be the best.
        for_measure : str, optional
            Such as "hierarchical_f1"; see :mod:`nhsvm.model.decisions`. Needs probabilities.
        n_threads : int
        """
        if beam is not None:
            if for_measure is not None:
                raise OptionError("beam looks at a few labels, and for_measure at all: leave one of them out")
            return self.classes[self.beam_classes(X, beam, n_threads=n_threads)]
        if self.sets is None:
            if for_measure is None:
                return self.classes[self.best_classes(X, n_threads=n_threads)]
            name = self.check_measure(for_measure)
            return self.classes[self._chosen(X, name, self.class_nodes, n_threads)]
        found = self.best_leaves(X, exact=exact, for_measure=for_measure, n_threads=n_threads)
        return decoded(self.classes, self.class_leaves, self.sets.form, *found)

    def check_measure(self, name: str, *, partial: bool = False) -> str:
        """The measure's own name; an OptionError unless this model can aim at it."""
        from nhsvm.model.decisions import EXACT, check_measure

        found = check_measure(name, sets=self.sets is not None, partial=partial)
        if found != EXACT and not self.has_probabilities:
            raise OptionError(
                f"for_measure={name!r} needs probabilities, which this model was fitted without; fit it again with "
                "probability=True"
            )
        return found

    def _chosen(self, X: MatrixLike, name: str, nodes: IntArray, n_threads: int) -> PtrArray:
        """Positions among the candidate nodes, for a measure of one label a sample."""
        from nhsvm.model.decisions import make_rule
        from nhsvm.oracles.leaves import leaf_scores

        samples, columns = self.samples(X), self.columns
        rule = make_rule(name, self.hierarchy, self.class_leaves, nodes, samples.n_samples)

        def direct(part: slice, scores: Floats) -> None:
            rule.see(part, softmax(self._over_temperature(scores.astype(self.weights.dtype, copy=False)), axis=1))

        def of_columns(part: slice, scores: Floats) -> None:
            found = np.empty((len(scores), columns.n_leaves), dtype=self.weights.dtype)
            leaf_scores(columns, scores, found)
            direct(part, found)

        self._score_leaves(samples, direct, of_columns, n_threads)
        return rule.answers()

    def predict_topk(self, X: MatrixLike, k: int = 5, *, n_threads: int = 1) -> Array:
        """The k classes with the highest scores, best first: (n_samples, k), or all classes if there are fewer.

        Of label sets, the labels that are predicted come first. Equal scores are in the order of ``classes``.
        """
        if not is_count(k):
            raise OptionError(f"k must be a whole number of at least 1, not {k!r}")
        if self.sets is None:
            order = np.argsort(-self.class_scores(X, n_threads=n_threads), axis=1, kind="stable")
        else:
            gains, inside, _ = self.gains(X, n_threads=n_threads)
            order = np.lexsort((-gains, ~inside), axis=1)
        return self.classes[order[:, :k]]

    def check_beam(self, beam: int) -> None:
        """Raise unless this model can go down with a beam of that width."""
        if not is_count(beam):
            raise OptionError(f"beam must be None or a whole number of at least 1, not {beam!r}")
        if self.sets is not None:
            raise OptionError("beam is for one label a sample; label sets are searched for exactly")
        if not self.hierarchy.graph.is_tree:
            raise OptionError("beam goes down a tree, but a node of this hierarchy has several parents")

    # -- label sets ----------------------------------------------------------------------------------------------------

    def inference(self, *, exact: bool = True) -> Inference:
        """What finds the best label sets under scores of the columns."""
        return self._label_sets().inference(self.hierarchy.graph, self.columns, self.class_leaves, exact=exact)

    def best_leaves(
        self, X: MatrixLike, *, exact: bool = True, for_measure: str | None = None, n_threads: int = 1
    ) -> tuple[PtrArray, IntArray]:
        """Leaves of the best label set of every sample, (indptr, positions), in CSR form."""
        if for_measure is not None:
            from nhsvm.model.decisions import EXACT, best_sets

            form, name = self._label_sets(), self.check_measure(for_measure)
            if name != EXACT:
                proba = self.node_proba(X, n_threads=n_threads)
                return best_sets(name, self.hierarchy, form, proba, exact=exact, n_threads=n_threads)
        samples, inference, offsets = self.samples(X), self.inference(exact=exact), self.all_offsets()
        sets = Collected(samples.n_samples)

        def use(part: slice, scores: Floats) -> None:
            sets.add(part, *inference.leaves(inference.best(scores, offsets)[1]))

        self.score_columns(samples, use, n_threads=n_threads, width=self.n_nodes)
        return sets.all()

    def gains(self, X: MatrixLike, *, exact: bool = True, n_threads: int = 1) -> Gains:
        """What every class adds to the best label set."""
        from nhsvm.oracles.dag.primal import label_gains

        samples, inference, offsets = self.samples(X), self.inference(exact=exact), self.all_offsets()
        graph, own, n = self.hierarchy.graph, self.class_nodes, samples.n_samples
        directions = np.zeros((self.columns.n_columns, 0)) if self.curves is None else self.curves.directions
        found = Gains(np.empty((n, len(own))), np.empty((n, len(own)), bool), np.empty((n, directions.shape[1])))

        def use(part: slice, scores: Floats) -> None:
            full, chosen = inference.best(scores, offsets)
            found.gains[part] = label_gains(graph, full, chosen, self.class_leaves)
            found.inside[part] = chosen[:, own]
            found.along[part] = along_directions(scores, directions)

        self.score_columns(samples, use, n_threads=n_threads, width=self.n_nodes)
        return found

    def margins(self, gains: FloatArray) -> FloatArray:
        """Of all nodes, the most that a class at or below adds to the best set, from the gains of classes."""
        leaves = np.empty_like(gains)
        leaves[:, self.class_leaves] = gains
        return node_margins(self.hierarchy.graph, leaves)

    def _label_sets(self) -> SetForm:
        if self.sets is None:
            raise OptionError("this model gives one label a sample, and no label sets")
        return self.sets

    # -- probabilities -------------------------------------------------------------------------------------------------

    @property
    def has_probabilities(self) -> bool:
        return (self.temperature if self.sets is None else self.curves) is not None

    def predict_proba(self, X: MatrixLike, *, n_threads: int = 1) -> FloatArray:
        """Probabilities of the classes: (n_samples, n_classes).

        For one label a sample, softmax of the scores over ``temperature``; for label sets, where they do not add up to
        one, those of :meth:`node_proba`.
        """
        if self.sets is not None:
            return self.node_proba(X, n_threads=n_threads)[:, self.class_nodes]
        return np.asarray(softmax(self._logits(X, n_threads), axis=1))

    def predict_log_proba(self, X: MatrixLike, *, n_threads: int = 1) -> FloatArray:
        """Logarithms of :meth:`predict_proba`."""
        if self.sets is not None:
            return np.log(self.predict_proba(X, n_threads=n_threads))
        return np.asarray(log_softmax(self._logits(X, n_threads), axis=1))

    def node_proba(self, X: MatrixLike, *, n_threads: int = 1) -> FloatArray:
        """Probabilities of the nodes: (n_samples, n_nodes).

        For one label a sample, the sum over the classes at or below. For label sets, ``curves`` of what a node adds to
        the best label set, found as those that the curves were learned from.
        """
        if self.sets is None:
            return self._sum_up(self.predict_proba(X, n_threads=n_threads))
        if self.curves is None:
            raise self._no_probabilities()
        gains, _, along = self.gains(X, exact=False, n_threads=n_threads)
        return self.curves.probabilities(self.margins(gains), along, self.hierarchy.graph)

    def predict_partial(
        self, X: MatrixLike, threshold: float | None = None, *, for_measure: str | None = None, n_threads: int = 1
    ) -> Array:
        """An answer as fine as it is safe: the deepest node that is probable enough, or the best one for a measure.

        Among nodes of equal depth the more probable one, then the first; None where no node passes. The threshold is
        0.5 by default.
        """
        name = self.check_partial(threshold, for_measure)
        if name is not None:
            nodes = np.flatnonzero(~self.hierarchy.is_virtual).astype(np.int32)
            return _node_labels(self.hierarchy)[nodes[self._chosen(X, name, nodes, n_threads)]]
        threshold = 0.5 if threshold is None else threshold
        proba = self.predict_proba(X, n_threads=n_threads)
        graph = self.hierarchy.graph
        step = max(1, _NUMBERS // graph.n_nodes)
        best = np.empty(len(proba), dtype=np.int64)
        for lo in range(0, len(proba), step):
            found = self._sum_up(proba[lo : lo + step])
            passes = (found >= threshold - _ROUNDING) & ~self.hierarchy.is_virtual  # whose node passes with them
            rank = np.where(passes, 2.0 * graph.level + found, -1.0)  # by depth, then by probability, which is ≤ 1
            here = rank.argmax(axis=1)
            best[lo : lo + step] = np.where(passes[np.arange(len(here)), here], here, graph.n_nodes)
        return _node_labels(self.hierarchy)[best]

    def check_partial(self, threshold: float | None = None, for_measure: str | None = None) -> str | None:
        """Raise unless :meth:`predict_partial` can be asked that; the measure's own name."""
        if self.sets is not None:
            raise OptionError("predict_partial is for one label a sample; for label sets take the nodes of node_proba")
        if threshold is not None and (not is_number(threshold) or not 0 < threshold <= 1):
            raise OptionError(f"threshold must be above 0 and at most 1, not {threshold!r}")
        if for_measure is None:
            return None
        if threshold is not None:
            raise OptionError("threshold and for_measure are two ways to choose a node: leave one of them out")
        return self.check_measure(for_measure, partial=True)

    def _sum_up(self, proba: FloatArray) -> FloatArray:
        leaves = np.empty_like(proba)
        leaves[:, self.class_leaves] = proba
        return np.ascontiguousarray((self.hierarchy.graph.leaf_matrix().T @ leaves.T).T)

    def _logits(self, X: MatrixLike, n_threads: int) -> FloatArray:
        if self.temperature is None:
            raise self._no_probabilities()
        return self._over_temperature(self.class_scores(X, n_threads=n_threads))

    def _over_temperature(self, scores: Floats) -> FloatArray:
        assert self.temperature is not None
        found: FloatArray = np.divide(scores, self.temperature, dtype=np.float64)
        return found

    def _no_probabilities(self) -> OptionError:
        return OptionError("this model was fitted without probabilities; fit it again with probability=True")

    # -- explanations --------------------------------------------------------------------------------------------------

    def explain(
        self, X: MatrixLike, labels: LabelsLike = None, *, against: Label | None = None,
        feature_names: FeatureNames = None, top: int | None = 10, n_threads: int = 1,
    ) -> Explanations:  # fmt: skip
        """What every node on the way and every feature adds to scores; see ``explain`` of the estimators."""
        return explained(self, X, labels, against, feature_names, top, n_threads)

    def strongest_features(
        self, node: Label, top: int | None = 10, *, feature_names: FeatureNames = None
    ) -> list[tuple[str, float]]:
        """The features with the largest weights of one node, by their absolute values: (name, weight)."""
        return strongest_features(self, node, top, feature_names)


def by_class(columns: Columns, class_leaves: IntArray) -> Columns:
    """The same columns, with the leaves in the order of the classes: for answers, where the first of equals wins."""
    last = columns.leaf_column
    return Columns(
        columns.nodes,
        columns.alpha,
        columns.paths.rows(class_leaves),
        columns.parent,
        last[class_leaves] if len(last) else last,
    )


def _node_labels(hierarchy: Hierarchy) -> Array:
    """Labels by node number; the last entry stands for no node."""
    labels = [None if virtual else node for node, virtual in zip(hierarchy.nodes, hierarchy.is_virtual, strict=True)]
    kinds = {type(label) for label in labels if label is not None}
    plain = len(kinds) == 1 and kinds <= {str, int, float, bool}
    if plain and hierarchy.graph.n_roots == 1:  # whose probability is 1, so that None is never looked up
        first = hierarchy.nodes[0]
        return np.array([*(first if label is None else label for label in labels), first])
    array = np.empty(len(labels) + 1, dtype=object)
    array[:-1] = labels
    return array
