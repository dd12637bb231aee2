"""What fitted estimators answer: samples are validated as scikit-learn does, and the model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nhsvm.estimators.labels import as_labels, matrix_of
from nhsvm.estimators.options import n_threads
from nhsvm.estimators.problem import checked, checked_weights, same_length
from nhsvm.explanation import Explanations, as_matrix
from nhsvm.hierarchy import Hierarchy
from nhsvm.model import Model, save
from nhsvm.model.sets import rows_of
from nhsvm.storage.samples import Samples
from nhsvm.typing import (
    Array,
    BoolArray,
    FloatArray,
    Label,
    LabelsLike,
    Matrix,
    MatrixLike,
    Record,
    SampleWeights,
)

Learned = TypeVar("Learned")


def _asked(estimator: Answering) -> bool:
    if not estimator.probability:
        raise AttributeError(
            f"probabilities are learned only when asked for: give {type(estimator).__name__}(probability=True) and fit"
        )
    return True


class Answering:
    """An estimator that has a model, ``model_``, once it is fitted.

    Attributes
    ----------
    model_ : Model
        What was learned; the other fitted attributes are read from it.
    """

    model_: Model
    hierarchy: Hierarchy | None
    n_jobs: int | None
    oracle: str
    probability: bool
    _proves: bool = True
    """Whether label sets on a DAG are proved to be the best; not where samples are only scored to choose options."""

    @property
    def _is_fitted(self) -> bool:
        return "model_" in vars(self)

    # -- fitted attributes ---------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> Array:
        return self.model_.classes

    @property
    def hierarchy_(self) -> Hierarchy:
        return self.model_.hierarchy

    @property
    def node_weights_(self) -> FloatArray:
        return self.model_.node_weights

    @property
    def objective_(self) -> float:
        return self.model_.training.objective

    @property
    def dual_objective_(self) -> float:
        return self.model_.training.dual_objective

    @property
    def gap_(self) -> float:
        return self.model_.training.gap

    @property
    def certified_(self) -> bool:
        return self.model_.training.certified

    @property
    def C_(self) -> float | None:
        """C as it was used; None for a model of a file that does not tell it."""
        return self.model_.training.C

    @property
    def intercept_scaling_(self) -> float:
        """The value of the constant feature; 0 for none."""
        return self.model_.bias

    @property
    def leaf_offset_(self) -> float:
        """Added to the scores of leaves; 0 for one label a sample."""
        return 0.0 if self.model_.sets is None else self.model_.sets.leaf_offset

    @property
    def n_iter_(self) -> int:
        return self.model_.training.n_iter

    @property
    def history_(self) -> list[Record]:
        return self.model_.training.history

    @property
    def temperature_(self) -> float:
        """T, learned from held-out folds if ``probability``."""
        return _learned(self, "temperature_", self.model_.temperature)

    @property
    def offsets_(self) -> FloatArray:
        """Added to the scores of nodes; only if they were tuned."""
        return _learned(self, "offsets_", self.model_.offsets)

    @property
    def coef_(self) -> Matrix:
        """U, one row a node of ``hierarchy_``: zero for nodes without weight (n_nodes, n_features).

        A sparse array, made when asked for, if weights did not fit into memory as a table.
        """
        check_is_fitted(self)
        return self.model_.coef()

    @property
    def intercept_(self) -> Array:
        """What the constant feature adds to the score of every node (n_nodes,)."""
        check_is_fitted(self)
        return self.model_.intercept()

    # -- answers -------------------------------------------------------------------------------------------------------

    def decision_function(self, X: MatrixLike) -> Array:
        """Scores of the classes.

        One label a sample: γ(x, l) of Eq. 1, of shape (n_samples, n_classes), or for two classes (n_samples,).

        Label sets: what a label, with what is above it, adds to the score of the predicted set when all others stay as
        they are, (n_samples, n_classes). So it is positive for the labels that are predicted and negative for the
        others, unless a label is there only because a set must not be empty.
        """
        return self._model().decision_function(self._checked(X), n_threads=n_threads(self.n_jobs))

    def predict(
        self, X: MatrixLike, *, beam: int | None = None, exact: bool = True, for_measure: str | None = None
    ) -> LabelsLike:
        """The label, or label set, of every sample: with the highest score, or the best expected value of a measure.

        Parameters
        ----------
        X : samples
        beam : int, optional
            Go down the tree and keep so many nodes a level, instead of looking at all labels: quicker with sparse
            features and many nodes, and the label may not be the best one. For one label a sample, on trees.
        exact : bool
            Label sets on a DAG: prove each to be the best, which may take seconds a sample on a large one. Without a
            proof the search ends within a budget of work; the set may not be the best one then.
        for_measure : str, optional
            A measure, such as "hierarchical_f1", "example_jaccard" or "tree_distance": the answers with its best
            expected value, by the probabilities of the model. Needs ``probability=True``. An F1 from summed counts is
            that of all of ``X``, so there an answer depends on the other samples.

        Notes
        -----
        Label sets come in the form they were given to :meth:`fit` in: an array of lists, tuples, sets or frozensets, or
        an indicator, dense or sparse, with the columns of ``classes_``. Each is the best of all label sets, unless
        ``exact=False``; an empty one only with ``allow_empty=True``.
        """
        model = self._model()
        if for_measure is not None:
            model.check_measure(for_measure)
        exact = exact and self._proves
        return model.predict(
            self._checked(X), beam=beam, exact=exact, for_measure=for_measure, n_threads=n_threads(self.n_jobs)
        )

    def predict_topk(self, X: MatrixLike, k: int = 5) -> Array:
        """The k classes with the highest scores, best first: (n_samples, k), or all classes if there are fewer.

        Of label sets, the labels that are predicted come first, then the others, both by :meth:`decision_function`.
        Equal scores are in the order of ``classes_``.
        """
        return self._model().predict_topk(self._checked(X), k, n_threads=n_threads(self.n_jobs))

    def score(self, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights = None) -> float:
        """Share of samples with the right label, or with exactly the right set of labels.

        Labels may be of any type, such as tuples. A label that training has not seen is never right. For label sets
        this is scikit-learn's subset accuracy, 0 for a set that lacks one label of ten;
        :func:`nhsvm.metrics.example_jaccard` and others are less strict.
        """
        if self._model().sets is not None:
            right = self._right_sets(X, y)
        else:
            found, labels = self.predict(X).astype(object), as_labels(y).astype(object)
            same_length(len(found), len(labels))
            right = np.fromiter((a == b for a, b in zip(found, labels, strict=True)), dtype=bool, count=len(found))
        return float(np.average(right, weights=checked_weights(sample_weight, len(right))))

    def node_scores(self, X: MatrixLike) -> Array:
        """U_n·x of every node of ``hierarchy_``: (n_samples, n_nodes), without ``leaf_offset`` and ``offsets_``."""
        return self._model().node_scores(self._checked(X), n_threads=n_threads(self.n_jobs))

    def _right_sets(self, X: MatrixLike, y: LabelsLike) -> BoolArray:
        """Whether the label set of each sample is found: all of it, and no more."""
        model = self._model()
        true = matrix_of(y, model.hierarchy, model.classes)
        samples, threads = self._checked(X), n_threads(self.n_jobs)
        indptr, leaves = model.best_leaves(samples, exact=self._proves, n_threads=threads)
        same_length(len(indptr) - 1, true.shape[0])
        class_of = np.argsort(model.class_leaves)
        found = rows_of(class_of[leaves], indptr, true.shape[1])
        differ: BoolArray = np.diff(sp.csr_array(true != found).indptr) > 0
        return ~differ

    # -- probabilities -------------------------------------------------------------------------------------------------

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: MatrixLike) -> Array:
        """Probabilities of the classes: (n_samples, n_classes). Needs ``probability=True``.

        For one label a sample, softmax of the scores over ``temperature_``. For label sets, where they do not add up to
        one, those of :meth:`node_proba`.
        """
        return self._probable().predict_proba(self._checked(X), n_threads=n_threads(self.n_jobs))

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: MatrixLike) -> Array:
        """Logarithms of :meth:`predict_proba`."""
        return self._probable().predict_log_proba(self._checked(X), n_threads=n_threads(self.n_jobs))

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def node_proba(self, X: MatrixLike) -> Array:
        """Probabilities of the nodes of ``hierarchy_``: (n_samples, n_nodes). Needs ``probability=True``.

        For one label a sample, the sum over the classes at or below. For label sets, a logistic curve for every node,
        learned from held-out folds, of the most that a class at or below it adds to the best set and of the scores of
        all nodes; no node is more probable than what is above it.
        """
        return self._probable().node_proba(self._checked(X), n_threads=n_threads(self.n_jobs))

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict_partial(
        self, X: MatrixLike, threshold: float | None = None, *, for_measure: str | None = None
    ) -> Array:
        """An answer as fine as it is safe: the deepest node that is probable enough, or the best one for a measure.

        Among nodes of equal depth the more probable one, then the first. An inner node that is a class of its own is
        treated like any other inner node. Needs ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features)
        threshold : float, optional
            Least probability, in (0, 1]; 0.5 by default.
        for_measure : str, optional
            In place of a threshold, a measure over nodes, such as "hierarchical_f1": the node, inner or not, with its
            best expected value.

        Returns
        -------
        array of n_samples labels
            Nodes of ``hierarchy_``; None where no node passes a threshold, which happens only if it has several roots.
        """
        model = self._probable()
        model.check_partial(threshold, for_measure)
        return model.predict_partial(
            self._checked(X), threshold, for_measure=for_measure, n_threads=n_threads(self.n_jobs)
        )

    def _probable(self) -> Model:
        """The model, if it has probabilities."""
        model = self._model()
        if not model.has_probabilities:
            raise NotFittedError("this model was fitted without probabilities; fit it again with probability=True")
        return model

    # -- explanations --------------------------------------------------------------------------------------------------

    def explain(
        self,
        X: MatrixLike,
        labels: LabelsLike = None,
        *,
        against: Label = None,
        feature_names: Sequence[str] | None = None,
        top: int | None = 10,
    ) -> Explanations:
        """Why labels have their scores: what every node on the way and every feature adds, exactly.

        Parameters
        ----------
        X : array-like or sparse matrix of (n_samples, n_features), or one sample of n_features
        labels : label, or list, set or array of labels, optional
            Which to explain for every sample; by default what is predicted. An inner node that is no class is explained
            by the sum over itself and what is above it.
        against : label, optional
            Explain the difference to the score of this one: why A rather than B. Nodes of both cancel.
        feature_names : sequence of n_features, optional
            By default the names that :meth:`fit` has seen, or ``x0``, ``x1``, ...
        top : int or None
            Features to name, those that add the most or take the most away; the others are summed up. None is all.

        Returns
        -------
        Explanations
            One for every sample and label, in this order: ``print`` it, or see ``to_dict`` and ``plot``.

        Notes
        -----
        Of label sets, the score of a label is what it adds to the predicted set, as in :meth:`decision_function`. Nodes
        that the set has for other labels anyway are listed as shared and do not count.

        Examples
        --------
        >>> from nhsvm import HSVM, Hierarchy
        >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
        >>> X, y = [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], ["dog", "cat", "oak"]
        >>> model = HSVM(h, C=1, tol=1e-9, fit_intercept=False).fit(X, y)
        >>> print(model.explain([1, 1, 0, 0], feature_names=["legs", "barks", "purrs", "leaves"]))
        dog: score 2.091 (predicted)
               animal     dog     sum
        barks   0.273   1.000   1.273
        legs    0.545   0.273   0.818
        sum     0.818   1.273   2.091
        """
        samples = self._checked(as_matrix(X))
        return self._model().explain(
            samples, labels, against=against, feature_names=feature_names, top=top, n_threads=n_threads(self.n_jobs)
        )

    def strongest_features(
        self, node: Label, top: int | None = 10, *, feature_names: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """The features with the largest weights, U_nj, of one node, by their absolute values.

        Parameters
        ----------
        node : label
            A node of ``hierarchy_``, also an inner one; of ``hierarchy_.nodes``, virtual leaves too.
        top : int or None
            How many; None is all. Weights of zero are left out.
        feature_names : sequence of n_features, optional
            By default the names that :meth:`fit` has seen, or ``x0``, ``x1``, ...

        Returns
        -------
        list of (name, weight)

        Examples
        --------
        >>> from nhsvm import FlatSVM
        >>> model = FlatSVM(fit_intercept=False, tol=1e-9).fit([[2, 0], [0, 1]], ["dog", "cat"])
        >>> [(name, round(weight, 6)) for name, weight in model.strongest_features("dog")]
        [('x1', -0.5), ('x0', 0.25)]
        """
        return self._model().strongest_features(node, top, feature_names=feature_names)

    # -- the model -----------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str], *, precision: str | None = None) -> None:
        """Write the fitted model to a file, for :func:`nhsvm.load`.

        Parameters
        ----------
        path : path
        precision : {"float16", "int8"}, optional
            Of the weights in the file, and of the model that is loaded from it; as they are by default. See
            :func:`nhsvm.save`.
        """
        save(self, path, precision=precision)

    def _model(self) -> Model:
        """The model, with label sets proved as the option ``oracle`` says now."""
        check_is_fitted(self)
        model = self.model_
        if model.sets is None or model.sets.oracle == self.oracle:
            return model
        return replace(model, sets=model.sets._replace(oracle=self.oracle))

    def _checked(self, X: MatrixLike) -> Samples:
        check_is_fitted(self)
        return Samples(checked(self, X, bounded=False))


def _learned(estimator: Answering, name: str, value: Learned | None) -> Learned:
    if value is None:
        raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {name!r}: it was not learned")
    return value
