"""Arrays that grow in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """A one-dimensional array to append to.

    It grows by an eighth at a time and is resized in place, which moves pages instead of copying them: memory stays
    within that eighth of the result, where a list of parts would need all of it twice in the end.

    Examples
    --------
    >>> found = Growing(np.int64, [3])
    >>> found.append([1, 4])
    >>> found.array()
    array([3, 1, 4])
    """

    def __init__(self, dtype: Any, start: npt.ArrayLike = ()) -> None:
        self._array: npt.NDArray[Any] = np.array(start, dtype=dtype)
        self._n = len(self._array)

    def append(self, items: npt.ArrayLike) -> None:
        new = np.asarray(items)
        end = self._n + len(new)
        if end > len(self._array):
            self._array.resize(max(end, self._n + self._n // 8 + 1024), refcheck=False)  # nobody else holds it
        self._array[self._n : end] = new
        self._n = end

    def last(self) -> Any:
        return self._array[self._n - 1]

    def array(self) -> npt.NDArray[Any]:
        """The result; nothing is appended after."""
        self._array.resize(self._n, refcheck=False)
        return self._array
