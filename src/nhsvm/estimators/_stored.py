"""Fitted models to files and back; a mixin."""

from __future__ import annotations

from copy import copy
from os import PathLike
from typing import Any

import numpy as np

from nhsvm.columns import Columns, make_columns
from nhsvm.estimators._curves import Curves
from nhsvm.estimators._sets import SetModel
from nhsvm.hierarchy.graph import IntArray
from nhsvm.packed import PRECISIONS, Packed, pack
from nhsvm.rows import StoredRows

_ROWS = "rows/"  # before the names of arrays of weights that are no table
_CURVES = "curves/"  # before those of curves of probabilities


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
            arrays |= {_ROWS + name: array for name, array in values.fields().items()}
        else:
            arrays["values"] = values
        if hasattr(self, "offsets_"):
            arrays["offsets"] = self.offsets_
        if hasattr(self, "_curves"):
            arrays |= {_CURVES + name: array for name, array in self._curves._asdict().items()}
        return state, arrays

    def _restore(self: Any, state: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.n_features_in_ = int(state["n_features_in"])
        self._by_feature, self._bias = bool(state["by_feature"]), float(state["bias"])
        self.objective_, self.dual_objective_ = float(state["objective"]), float(state["dual_objective"])
        self.gap_, self.history_, self.n_iter_ = float(state["gap"]), list(state["history"]), int(state["n_iter"])
        self._values, self.node_weights_ = _weights(arrays, self._by_feature), arrays["node_weights"]
        self._class_leaves = arrays["class_leaves"]
        if state.get("temperature") is not None:
            self.temperature_ = float(state["temperature"])
            if not 0 < self.temperature_ < np.inf:
                raise ValueError(f"a temperature of {self.temperature_}")
        self._sets = None if state.get("sets") is None else SetModel(**state["sets"]).checked()
        if "offsets" in arrays:
            self.offsets_ = arrays["offsets"]
            fits = self.offsets_.shape == (self.hierarchy_.n_nodes,) and self.offsets_.dtype == np.float64
            if self._sets is None or not fits:
                raise ValueError("the offsets of nodes do not fit the model")
        if self.node_weights_.shape != (self.hierarchy_.n_nodes,):
            raise ValueError("the weights of nodes do not fit the hierarchy")
        columns = make_columns(self.hierarchy_.graph, self.node_weights_)
        if len(self._class_leaves) != len(self.classes_):
            raise ValueError("the classes do not fit the hierarchy")
        if not np.array_equal(np.sort(self._class_leaves), np.arange(columns.n_leaves)):
            raise ValueError("the classes are not the leaves of the hierarchy")
        self._columns = by_class(columns, self._class_leaves)
        shape = (self.n_features_in_ + 1, columns.n_columns)
        if self._values.shape != (shape if self._by_feature else shape[::-1]):
            raise ValueError(f"weights of shape {self._values.shape} do not fit {shape}")
        curves = _curves(arrays, self.hierarchy_.n_nodes, columns.n_columns)
        if curves is not None:
            if self._sets is None:
                raise ValueError("curves of probabilities, but no label sets")
            self._curves = curves
        self._planes = self._stream = self._fitted_truth = self._fitted_costs = None


def _curves(arrays: dict[str, Any], n_nodes: int, n_columns: int) -> Curves | None:
    """Those of a file, if it has some; before there were directions, slopes and intercepts were all."""
    if "curves" in arrays:
        slope, intercept = arrays["curves"]
        found = Curves(slope, intercept, np.zeros((n_columns, 0)), np.zeros((0, n_nodes)))
    elif any(name.startswith(_CURVES) for name in arrays):
        found = Curves(**{name: arrays[_CURVES + name] for name in Curves._fields})
    else:
        return None
    found.check(n_nodes, n_columns)
    return found


def _weights(arrays: dict[str, Any], by_feature: bool) -> Any:
    """A table, or rows if the model has these; packed if there are scales."""
    kinds = PRECISIONS if "scale" in arrays else ("float32", "float64")
    values = arrays.get("values")
    if values is None:
        values = StoredRows(**{name: arrays[_ROWS + name] for name in StoredRows.__dataclass_fields__})
        values.check(kinds)
    elif values.dtype not in kinds or values.ndim != 2:
        raise ValueError(f"weights of type {values.dtype} in {values.ndim} dimensions")
    if "scale" not in arrays:
        return values
    packed = Packed(values, arrays["scale"], by_feature)
    packed.check()
    return packed


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
