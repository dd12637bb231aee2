"""U in half precision or in bytes, as a fitted model keeps it to be small."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import IntArray
from nhsvm.rows import StoredRows

Floats = npt.NDArray[Any]
PRECISIONS = ("float16", "int8")
_HALF = 15  # the largest weight of a feature is just below 2 to this power: far from both ends of half precision
_TINY = 2.0**-14  # smaller halves have fewer digits and are slow to read; they are 1e-9 of the feature's largest
_BYTE = 127
_BLOCK = 2**22  # weights that are packed, or widened, at a time


@dataclass(frozen=True, eq=False)
class Packed:
    """U_nf = scale_f · code_fn, with codes of one or two bytes.

    Attributes
    ----------
    codes : array or StoredRows
        float16 or int8; otherwise as weights of full precision: a table with a row a feature if ``by_feature``, else
        with a row a column; the constant feature is the last.
    scale : float32 array of n_features + 1
        Powers of two for float16, whose codes have all digits of half precision.
    by_feature : bool
    """

    codes: Any
    scale: npt.NDArray[np.float32]
    by_feature: bool

    @property
    def shape(self) -> tuple[int, int]:
        found: tuple[int, int] = self.codes.shape
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """What scores are computed in."""
        return np.dtype(np.float32)

    @property
    def precision(self) -> str:
        """What weights are stored in."""
        return str(self.codes.dtype)

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.scale.nbytes)

    def count_nonzero(self) -> int:
        """Weights that are not zero."""
        rows = isinstance(self.codes, StoredRows)
        return int(self.codes.count_nonzero() if rows else np.count_nonzero(self.codes))

    def raw(self) -> Any:
        """The codes as kernels take them: those of float16 as uint16, see :func:`nhsvm._jit.widened`."""
        if self.precision != "float16":
            return self.codes
        if isinstance(self.codes, StoredRows):
            return self.codes.mapped(lambda part: part.view(np.uint16))
        return self.codes.view(np.uint16)

    def widened(self) -> Any:
        """The same in single precision: a table, or rows."""
        if isinstance(self.codes, StoredRows):
            return _scaled_rows(self.codes, lambda part, scale: part.astype(np.float32) * scale, self.scale)
        factors = self.scale[:, None] if self.by_feature else self.scale
        wide = self.codes.astype(np.float32)
        wide *= factors
        return wide

    def column(self, column: int) -> Floats:
        """The weights of one column for every feature but the constant one."""
        if isinstance(self.codes, StoredRows):
            found = self.codes.column(column)
        else:
            found = self.codes[:-1, column] if self.by_feature else self.codes[column, :-1]
        wide: Floats = found.astype(np.float32) * self.scale[:-1]
        return wide

    def block(self, features: IntArray, columns: IntArray) -> Floats:
        """The weights of some features (rows) and columns."""
        if isinstance(self.codes, StoredRows):
            found = self.codes.block(features, columns)
        else:
            codes = self.codes if self.by_feature else self.codes.T
            found = codes[np.ix_(features, columns)]
        wide: Floats = found.astype(np.float32) * self.scale[features][:, None]
        return wide

    @property
    def constant(self) -> Floats:
        """The weights of the constant feature."""
        if isinstance(self.codes, StoredRows):
            found = self.codes.constant
        else:
            found = self.codes[-1] if self.by_feature else self.codes[:, -1]
        wide: Floats = found.astype(np.float32) * self.scale[-1]
        return wide


def pack(values: Any, by_feature: bool, precision: str) -> Packed:
    """Weights in less room; those that are packed already are widened first, unless they are what is asked for.

    Parameters
    ----------
    values : array, StoredRows or Packed
    by_feature : bool
        Whether rows of a table are features.
    precision : {"float16", "int8"}

    Raises
    ------
    OptionError
        For another precision, or weights out of the range of single precision.
    """
    if precision not in PRECISIONS:
        raise OptionError(f"precision must be one of {PRECISIONS}, or None for that of the model, not {precision!r}")
    if isinstance(values, Packed):
        if values.precision == precision:
            return values
        values = values.widened()
    rows = isinstance(values, StoredRows)
    largest = values.largest() if rows else np.abs(values).max(axis=1 if by_feature else 0, initial=0.0)
    scale = _scales(largest, precision)

    def code(part: Floats, factors: Floats) -> Floats:
        exact = np.divide(part, factors, out=np.zeros(part.shape, part.dtype), where=factors > 0)
        if precision == "int8":
            return np.rint(exact).astype(np.int8)
        return np.where(np.abs(exact) < _TINY, 0.0, exact).astype(np.float16)

    if rows:
        return Packed(_scaled_rows(values, code, scale), scale, True)
    codes = np.empty(values.shape, np.dtype(precision), order="C")
    step = max(1, _BLOCK // max(1, values.shape[1]))
    for lo in range(0, len(values), step):
        part = slice(lo, lo + step)
        codes[part] = code(values[part], scale[part, None] if by_feature else scale[None])
    return Packed(codes, scale, by_feature)


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


def _scaled_rows(rows: StoredRows, use: Any, scale: Floats) -> StoredRows:
    """``use(weights, scales of their features)`` of all parts."""
    return replace(
        rows,
        value=use(rows.value, scale[rows.owners()]),
        full=use(rows.full, scale[rows.full_owners()][:, None]),
        constant=use(rows.constant, scale[-1:]),
    )
