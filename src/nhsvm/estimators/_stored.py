"""Fitted models to files and back; a mixin."""

from __future__ import annotations

from copy import copy
from os import PathLike
from typing import Any

from nhsvm.columns import Columns, make_columns
from nhsvm.errors import LabelError
from nhsvm.estimators._curves import Curves
from nhsvm.estimators._label_sets import FORMS
from nhsvm.estimators._options import check_options
from nhsvm.estimators._sets import SetModel
from nhsvm.hierarchy.graph import IntArray
from nhsvm.packed import Packed, pack
from nhsvm.persistence.checks import CURVES, ROWS, check_fitted
from nhsvm.rows import StoredRows


class Stored:
    """What :mod:`nhsvm.persistence` asks of an estimator."""

    def save(self, path: str | PathLike[str], *, precision: str | None = None) -> None:
        """Write the fitted model to a file, for :func:`nhsvm.load`.

        Parameters
        ----------
        path : path
        precision : {"float16", "int8"}, optional
            Of the weights in the file, and of the model that is loaded from it; as they are by default. See
            :func:`nhsvm.save`.
        """
        from nhsvm.persistence import save

        save(self, path, precision=precision)

    def _packed(self: Any, precision: str) -> Any:
        """The same model with weights of lower precision."""
        return with_weights(self, pack(self._values, self._by_feature, precision), self._by_feature)

    def _fitted_state(self: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        state = {
            "n_features_in": self.n_features_in_,
            "by_feature": self._by_feature,
            "bias": self._bias,
            "objective": self.objective_,
            "dual_objective": self.dual_objective_,
            "gap": self.gap_,
            "history": self.history_,
            "n_iter": self.n_iter_,
            "temperature": getattr(self, "temperature_", None),
            "sets": None if self._sets is None else self._sets._asdict(),
        }
        arrays = {"node_weights": self.node_weights_, "class_leaves": self._class_leaves}
        values = self._values
        if isinstance(values, Packed):
            state["precision"] = values.precision
            arrays["scale"], values = values.scale, values.codes
        if isinstance(values, StoredRows):
            arrays |= {ROWS + name: array for name, array in values.fields().items()}
        else:
            arrays["values"] = values
        if hasattr(self, "offsets_"):
            arrays["offsets"] = self.offsets_
        if hasattr(self, "_curves"):
            arrays |= {CURVES + name: array for name, array in self._curves._asdict().items()}
        return state, arrays

    def _restore(self: Any, state: dict[str, Any], arrays: dict[str, Any]) -> None:
        check_options(self)
        found = check_fitted(state, arrays, self.hierarchy_.n_nodes, self.hierarchy_.n_leaves, FORMS)
        if len(self.classes_) != self.hierarchy_.n_leaves:
            raise LabelError(f"{len(self.classes_)} classes, but {self.hierarchy_.n_leaves} leaves of the hierarchy")
        self.n_features_in_, self._by_feature, self._bias = found.n_features, found.by_feature, found.bias
        self.objective_, self.dual_objective_, self.gap_ = found.objective, found.dual_objective, found.gap
        self.history_, self.n_iter_ = found.history, found.n_iter
        self._values, self.node_weights_, self._class_leaves = found.weights, found.node_weights, found.class_leaves
        self._sets = None if found.sets is None else SetModel(**found.sets)
        if found.temperature is not None:
            self.temperature_ = found.temperature
        if found.offsets is not None:
            self.offsets_ = found.offsets
        if found.curves is not None:
            self._curves = Curves(**found.curves)
        self._columns = by_class(make_columns(self.hierarchy_.graph, self.node_weights_), self._class_leaves)
        self._planes = self._stream = self._fitted_truth = self._fitted_costs = None


def with_weights(model: Any, values: Any, by_feature: bool) -> Any:
    """A copy of a fitted model that answers with other weights; it has no dual variables to go on from."""
    made = copy(model)
    made._values, made._by_feature = values, by_feature
    made._planes = made._stream = made._fitted_truth = made._fitted_costs = None
    return made


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
