"""What a fit says while it runs."""

from __future__ import annotations

import sys
from math import isnan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the solvers load numba, which importing an estimator should not
    from nhsvm.engine.problem import Callback, Record


class Progress:
    """Prints one line a pass to stderr if ``verbose``, and hands the record on.

    Parameters
    ----------
    verbose : int
    callback : callable, optional
    """

    def __init__(self, verbose: int, callback: Callback | None) -> None:
        self.verbose, self.callback = verbose, callback

    def __call__(self, record: Record) -> Any:
        if self.verbose:
            mark = "certified" if record["certified"] else "estimated"
            error = record["training_error"]
            wrong = "" if isnan(error) else f"  training error {error:.2%}"  # of label sets, only certificates know it
            print(
                f"pass {record['iteration']:4d}  {record['seconds']:8.2f} s  primal {record['primal']:.6g}  "
                f"dual {record['dual']:.6g}  gap {record['gap']:.2e} ({mark}){wrong}",
                file=sys.stderr,
                flush=True,
            )
        return None if self.callback is None else self.callback(record)
