"""Labels that make dictionaries slow.

Python hashes text with a secret, but numbers without one: all k·(2⁶¹ − 1) have the same hash, and so have tuples and
frozensets of them. A dictionary of n such labels takes n² steps, so that a file of 20,000 labels would take many
seconds. Here they are counted before a dictionary is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType

import numpy as np

from nhsvm.typing import Label

MOST_EQUAL = 100  # labels of the same hash; by chance, there are hardly two
# of text and bytes the hash is secret; of numbers in 64 bits and of floats, only a few have the same
_HARMLESS = frozenset((str, bytes, bool, NoneType, float))
_PRIME = 2**61 - 1  # the hash of an int below it is the int itself


class Hashes:
    """Counts distinct labels by their hashes.

    Examples
    --------
    >>> hashes = Hashes()
    >>> [hashes.crowded(k * (2**61 - 1)) for k in range(1, 102)].index(True)
    100
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def crowded(self, label: Label) -> bool:
        """Count a label that has not come before; whether there are too many of its hash now."""
        if _is_harmless(label):
            return False
        found = self._counts[hash(label)] = self._counts.get(hash(label), 0) + 1
        return found > MOST_EQUAL


def first_crowded(labels: Iterable[Label]) -> str:
    """What is wrong with labels, some of which may come again, if too many have the same hash; "" if nothing is."""
    hashes, seen = Hashes(), set[Label]()
    for label in labels:
        if _is_harmless(label) or label in seen:
            continue
        seen.add(label)
        if hashes.crowded(label):
            return too_many(label)
    return ""


def too_many(label: Label) -> str:
    """The message about a label that is one too many."""
    return (
        f"more than {MOST_EQUAL} labels have the same hash as {label!r}, which makes dictionaries of them slow beyond "
        "use; give labels as text"
    )


def _is_harmless(label: Label) -> bool:
    if type(label) is int:
        return -_PRIME < label < _PRIME
    return type(label) in _HARMLESS or isinstance(label, np.generic)
