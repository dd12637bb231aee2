"""Names for the types of annotations, each said once.

scipy.sparse, pandas and scikit-learn have no types that mypy could check; the names say what is meant all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# -- arrays ------------------------------------------------------------------------------------------------------------

Array: TypeAlias = npt.NDArray[Any]
"""An array of any type."""
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
"""float32 or float64."""
IntArray: TypeAlias = npt.NDArray[np.int32]
"""Numbers of nodes, leaves, columns."""
PtrArray: TypeAlias = npt.NDArray[np.int64]
"""Numbers of samples, and offsets into other arrays."""
DType: TypeAlias = np.dtype[Any]

# -- what users give ---------------------------------------------------------------------------------------------------

Matrix: TypeAlias = Any
"""Samples × features: a csr_array or a two-dimensional array."""
MatrixLike: TypeAlias = Any
"""Samples × features as users have them: arrays, sparse matrices, data frames, blocks."""
LabelsLike: TypeAlias = Any
"""One label a sample, a set of labels a sample, or an indicator matrix."""
Label: TypeAlias = Hashable
SampleWeights: TypeAlias = npt.ArrayLike | None
Seed: TypeAlias = int | np.random.RandomState | None
"""As ``random_state`` of scikit-learn, and so of the estimators, takes it."""
AnySeed: TypeAlias = Seed | np.random.Generator
"""As generators of data and splits take it."""

# -- what has no types of its own --------------------------------------------------------------------------------------

Estimator: TypeAlias = Any
"""An estimator, transformer or pipeline of scikit-learn's kind."""
Frame: TypeAlias = Any
"""A data frame of pandas or polars."""
JSON: TypeAlias = Any
"""None, a bool, an int, a float, a str, a list of JSON, or a dict from str to JSON."""
Record: TypeAlias = dict[str, Any]
"""Values by name, such as those of a pass in a history."""
Options: TypeAlias = dict[str, Any]
"""Options by name."""
Callback: TypeAlias = Callable[[Record], object]
"""Called with the record of every pass; a true result ends the fit."""
