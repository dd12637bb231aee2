"""The steps of a batch of samples: one loop for boxes, marginals and levels.

The samples take their block steps in order, several sweeps, and each sees the exact effect of the others: what a step
adds to the score of a column for another sample is known from their inner product. The changes of a column have a row
of ``corrections``, from its first change on; ``row_of`` says which, −1 is none.

What a block does is in two functions, which numba picks by the type of the block's named tuple. (Planes have a kernel
of their own, in :mod:`nhsvm.engine.dual.plane_step`: in this one their sums would be rounded otherwise.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel


class Sweeps(NamedTuple):
    """How often the samples of a batch are visited."""

    most: int
    slow: float = 0.0  # the last sweep is one that gains no more than this share of what all have; 0: none has changed


class Corrections(NamedTuple):
    """What the steps so far have added to scores."""

    row_of: npt.NDArray[np.int32]  # by column
    values: npt.NDArray[Any]  # (rows, samples of the batch)


def workspace_of(block: Any) -> Any:
    """(arrays of its own, columns, changes) for :func:`step`, the latter with room for what one step changes."""
    raise NotImplementedError


def step(block: Any, t: int, sweep: int, corrections: Corrections, work: Any) -> tuple[float, int]:
    """The block step of the t-th sample; (gain, how many columns change, which ``work`` then lists)."""
    raise NotImplementedError


@kernel
def batch_kernel(block, gram, values, n_columns, sweeps):
    """Block steps for the samples of a batch; returns the gain of the dual."""
    n_batch = gram.shape[0]
    corrections = Corrections(np.full(n_columns, -1, np.int32), values)
    row_of, n_rows = corrections.row_of, 0
    work = workspace_of(block)
    _, columns, changes = work
    total = 0.0
    for sweep in range(sweeps.most):
        changed, gained = False, 0.0
        last = sweep == sweeps.most - 1  # what it changes is for the samples after it only
        for t in range(n_batch):
            gain, n = step(block, t, sweep, corrections, work)
            if sweeps.slow > 0.0:
                gained += gain
            else:
                total += gain
            earliest = t + 1 if last else 0
            products = gram[t, earliest:]
            for k in range(n):
                changed = True
                if row_of[columns[k]] < 0:
                    row_of[columns[k]] = n_rows
                    values[n_rows, :] = 0.0
                    n_rows += 1
                row = values[row_of[columns[k]], earliest:]  # a loop from zero is one that LLVM vectorises
                c = gram.dtype.type(changes[k])
                for u in range(row.shape[0]):
                    row[u] += c * products[u]
        total += gained
        if not changed or (sweeps.slow > 0.0 and gained <= sweeps.slow * total):
            break
    return total
