"""Vocabularies as arrays: all terms one after the other in UTF-8, and where each of them ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.persistence._malformed import Malformed
from nhsvm.persistence.checks import Budget, check_words

Arrays = dict[str, npt.NDArray[Any]]


def pack_words(words: Sequence[str]) -> Arrays:
    """Words as two arrays.

    Examples
    --------
    >>> pack_words(["dog", "é"])
    {'utf8': array([100, 111, 103, 195, 169], dtype=uint8), 'ends': array([3, 5])}
    """
    raw = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in raw], dtype=np.int64)
    return {"utf8": np.frombuffer(b"".join(raw), dtype=np.uint8), "ends": ends}


def unpack_words(arrays: Mapping[str, npt.NDArray[Any]], budget: Budget) -> list[str]:
    """The words again; raises :class:`Malformed` for arrays that are none."""
    utf8, ends = check_words(arrays, budget)
    raw = utf8.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends.tolist()])]
    except UnicodeDecodeError as error:
        raise Malformed(f"a term of a vocabulary is not UTF-8: {error.reason}") from None


def ordered(vocabulary: Mapping[Any, Any]) -> list[str] | None:
    """The terms of a vocabulary by their numbers, or None if it has others than text and the numbers from 0."""
    found: list[Any] = [None] * len(vocabulary)
    for term, number in vocabulary.items():
        if type(term) is not str or not isinstance(number, (int, np.integer)) or not 0 <= number < len(found):
            return None
        found[number] = term
    return None if any(term is None for term in found) else found


def numbered(words: Sequence[str]) -> dict[str, int]:
    """A vocabulary of distinct terms."""
    found = {word: number for number, word in enumerate(words)}
    if len(found) < len(words):
        raise Malformed("a term stands twice in a vocabulary")
    return found
