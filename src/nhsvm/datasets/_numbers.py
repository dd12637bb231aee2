"""Single numbers, for whatever kernels do not decide."""

from __future__ import annotations

import math
import re

_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # float() would also take 1_000 and nan


def finite(text: str) -> float | None:
    """A finite decimal number, or None.

    Examples
    --------
    >>> finite("1e-3"), finite("1_000"), finite("nan"), finite("1e999")
    (0.001, None, None, None)
    """
    value = float(text) if _FLOAT.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None
