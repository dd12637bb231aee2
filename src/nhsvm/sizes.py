"""Numbers: what counts as one, and bytes as people say them."""

from __future__ import annotations

from numbers import Real
from typing import TypeGuard


def readable_bytes(count: float) -> str:
    """A number of bytes, rounded.

    Examples
    --------
    >>> readable_bytes(1_234_567)
    '1.2 MB'
    >>> readable_bytes(999_999)
    '1.0 MB'
    """
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if round(count, 1) < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def two_sizes(one: int, other: int) -> tuple[str, str]:
    """Two numbers of bytes that differ, so that one sees it.

    Examples
    --------
    >>> two_sizes(2_500_000, 1_000_000)
    ('2.5 MB', '1.0 MB')
    >>> two_sizes(1_000_001, 1_000_000)
    ('1,000,001 bytes', '1,000,000 bytes')
    """
    found = readable_bytes(one), readable_bytes(other)
    return found if found[0] != found[1] else (f"{one:,} bytes", f"{other:,} bytes")


def is_number(value: object) -> TypeGuard[float]:
    """A real number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)
