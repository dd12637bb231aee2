"""Checks of options."""

from __future__ import annotations

import numpy as np

from nhsvm.errors import OptionError


def choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise unless the value is among those allowed; True is not 1 here."""
    if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
        raise OptionError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def a_number(name: str, value: object, *, nan: bool = False) -> float:
    """``value`` as a float between 0 and 1."""
    if not isinstance(value, bool) and isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
        if 0 <= number <= 1 or (nan and np.isnan(number)):
            return number
    raise OptionError(f"{name} must be a number from 0 to 1{' or nan' if nan else ''}, not {value!r}")


def positive(name: str, value: object) -> float:
    """``value`` as a finite float above 0."""
    if not isinstance(value, bool) and isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
        if 0 < number < np.inf:
            return number
    raise OptionError(f"{name} must be a finite number above 0, not {value!r}")
