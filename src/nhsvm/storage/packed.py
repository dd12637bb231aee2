"""U in half precision or in bytes, as a fitted model keeps it to be small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.storage.rows import StoredRows
from nhsvm.storage.table import Table
from nhsvm.storage.weights import Lists, Weights
from nhsvm.typing import IntArray

Floats = npt.NDArray[Any]
PRECISIONS = ("float16", "int8")
_HALF = 15  # the largest weight of a feature is just below 2 to this power: far from both ends of half precision
_TINY = 2.0**-14  # smaller halves have fewer digits and are slow to read; they are 1e-9 of the feature's largest
_BYTE = 127


@dataclass(frozen=True, eq=False)
class Packed:
    """U_nf = scale_f · code_fn, with codes of one or two bytes.

    Attributes
    ----------
    codes : Table or StoredRows
        Of float16 or int8.
    scale : float32 array of n_features + 1
        Powers of two for float16, whose codes have all digits of half precision.
    """

    codes: Table | StoredRows
    scale: npt.NDArray[np.float32]

    table = None

    @property
    def n_features(self) -> int:
        return self.codes.n_features

    @property
    def n_columns(self) -> int:
        return self.codes.n_columns

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape

    @property
    def by_feature(self) -> bool:
        return self.codes.by_feature

    @property
    def dtype(self) -> np.dtype[Any]:
        """What scores are computed in."""
        return np.dtype(np.float32)

    @property
    def precision(self) -> str:
        """What weights are stored in."""
        return self.codes.precision

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scale.nbytes

    @property
    def takes_dense(self) -> bool:
        return self.codes.takes_dense

    @property
    def constant(self) -> Floats:
        """The weights of the constant feature."""
        wide: Floats = self.codes.constant.astype(np.float32) * self.scale[-1]
        return wide

    def count_nonzero(self) -> int:
        """Weights that are not zero."""
        return self.codes.count_nonzero()

    def widened(self) -> Table | StoredRows:
        """The same in single precision."""
        return self.codes.scaled(lambda part, scale: part.astype(np.float32) * scale, self.scale, np.float32)

    def to_array(self) -> Floats | sp.csc_array:
        """U in single precision, without the constant feature, as (n_columns, n_features)."""
        return self.widened().to_array()

    def column(self, column: int) -> Floats:
        """The weights of one column for every feature but the constant one."""
        wide: Floats = self.codes.column(column).astype(np.float32) * self.scale[:-1]
        return wide

    def block(self, features: IntArray, columns: IntArray) -> Floats:
        """The weights of some features (rows) and columns."""
        found = self.codes.block(features, columns)
        wide: Floats = found.astype(np.float32) * self.scale[features][:, None]
        return wide

    def lists(self) -> Lists:
        """The weights that are not zero."""
        return self.widened().lists()

    def dense_table(self) -> Floats:
        """U in single precision as (n_columns, n_features + 1)."""
        return self.widened().dense_table()

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, Table | StoredRows, float]:
        """Samples times the scales, and codes as kernels take them: a large model is not copied.

        Those of float16 are the bits of halves, as uint16: numba has no half precision on processors.
        """
        scaled = sp.csr_array((X.data * self.scale[X.indices], X.indices, X.indptr), shape=X.shape)
        codes = self.codes.viewed(np.uint16) if self.precision == "float16" else self.codes
        return scaled, codes, bias * float(self.scale[-1])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a file holds, by name."""
        return {"scale": self.scale} | self.codes.arrays()


def pack(weights: Weights, precision: str) -> Weights:
    """Weights in less room; those that are packed already are widened first, unless they are what is asked for.

    Parameters
    ----------
    weights : Table, StoredRows or Packed
    precision : {"float16", "int8"}

    Raises
    ------
    OptionError
        For another precision, or weights out of the range of single precision.
    """
    if precision not in PRECISIONS:
        raise OptionError(f"precision must be one of {PRECISIONS}, or None for that of the model, not {precision!r}")
    if weights.precision == precision:
        return weights
    full = weights.widened()
    scale = _scales(full.largest(), precision)

    def code(part: Floats, factors: Floats) -> Floats:
        exact = np.divide(part, factors, out=np.zeros(part.shape, part.dtype), where=factors > 0)
        if precision == "int8":
            return np.rint(exact).astype(np.int8)
        return np.where(np.abs(exact) < _TINY, 0.0, exact).astype(np.float16)

    return Packed(full.scaled(code, scale, precision), scale)


def _scales(largest: Floats, precision: str) -> npt.NDArray[np.float32]:
    """What the codes of every feature are multiplied by."""
    if precision == "int8":
        exact = largest.astype(np.float64) / _BYTE
    else:
        exact = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - _HALF), 0.0)
    with np.errstate(over="ignore", under="ignore"):
        scale = exact.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(scale) | ((scale < np.finfo(np.float32).tiny) & (largest > 0)))
    if len(bad):
        raise OptionError(
            f"precision={precision!r} is for weights between about 1e-30 and 1e+30, but the largest of feature "
            f"{bad[0]} is {largest[bad[0]]:.3g}: scale the features, or keep the precision"
        )
    return scale
