"""Checks of the options of generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from nhsvm.errors import OptionError


def whole_number(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise OptionError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise OptionError(f"{name} must be {limits}, not {value}")
    return int(value)


def number(value: Any, name: str, least: float, most: float = np.inf) -> float:
    """A finite number in a range."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise OptionError(f"{name} must be a number, not {value!r}")
    if not (np.isfinite(value) and least <= value <= most):
        limits = f"at least {least}" if most == np.inf else f"from {least} to {most}"
        raise OptionError(f"{name} must be {limits}, not {value}")
    return float(value)


def generator(random_state: Any) -> np.random.Generator:
    """A generator of random numbers; itself, if it is one."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise OptionError(
            f"random_state must be a whole number ≥ 0, a Generator or None, not {random_state!r}"
        ) from None
