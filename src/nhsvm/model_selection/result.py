"""What a search has found: every fit, the best, a table, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nhsvm.errors import NHSVMError
from nhsvm.model_selection.grid import Plan, show

DONE, OPEN, UNPROVED, CUT = "done", "gap above tol", "gap not proved", "out of time"


@dataclass(frozen=True)
class Trial:
    """One fit.

    Attributes
    ----------
    params : dict
        For ``set_params``, with C.
    shown : dict
        The same by the names of the grid, without C.
    C : float
    scores : dict of str to float
        Of the held-out samples; higher is better.
    seconds : float
        Of training alone.
    passes : int
        Over the training samples.
    gap : float
        Certified (primal − dual) / primal; infinite if ``certify=False`` left it out.
    n_train : int
        Samples learned from.
    state : {"done", "gap above tol", "gap not proved", "out of time"}
        How it ended: as it should, at ``max_iter``, at ``max_iter`` with ``certify=False``, or with the time budget.
    """

    params: dict[str, Any]
    shown: dict[str, Any]
    C: float
    scores: dict[str, float]
    seconds: float
    passes: int
    gap: float
    n_train: int
    state: str = DONE

    @property
    def lam(self) -> float:
        """The paper's λ = 1/(2C)."""
        return 1 / (2 * self.C)

    def line(self, scoring: str) -> str:
        """The fit in one line."""
        setting = "".join(f"{name}={show(value)}  " for name, value in self.shown.items())
        more = "" if self.state == DONE else f"  ({self.state})"
        return f"{setting}C={self.C:g}  {scoring} {self.scores[scoring]:.4f}  {self.seconds:.1f} s{more}"


@dataclass(frozen=True)
class Untried:
    """A fit that was not made, or not ended, and why."""

    shown: dict[str, Any]
    C: float
    reason: str


@dataclass(frozen=True)
class Tuning:
    """The result of :func:`nhsvm.model_selection.tune`.

    Attributes
    ----------
    scoring : str
        Name of the score that decides.
    best : Trial
    model : fitted estimator, or None
        With the best parameters, refitted on all training samples; None without ``refit``, or if interrupted.
    records : tuple of Trial
        Every fit, in the order of the grid.
    untried : tuple of Untried
        What the time budget, Ctrl-C or a score that had fallen left out.
    n_held_out : int
    interrupted : bool
    refit_seconds : float
    plan : Plan
        The settings of the grid, and under ``refused`` the combinations that the estimator refuses.
    """

    scoring: str
    best: Trial
    records: tuple[Trial, ...]
    untried: tuple[Untried, ...] = ()
    n_held_out: int = 0
    interrupted: bool = False
    model: Any = None
    refit_seconds: float = 0.0
    plan: Plan = field(default_factory=Plan, repr=False)

    @property
    def best_params(self) -> dict[str, Any]:
        """For ``set_params``."""
        return dict(self.best.params)

    @property
    def best_score(self) -> float:
        return self.best.scores[self.scoring]

    @property
    def edge(self) -> str | None:
        """Whether the best C is the "smallest" or "largest" of several: the optimum may be beyond. Else None."""
        tried = next((s.Cs for s in self.plan.settings if s.shown == self.best.shown), (self.best.C,))
        if len(tried) == 1 or self.best.C not in (tried[0], tried[-1]):
            return None
        return "smallest" if tried[0] == self.best.C else "largest"

    def to_frame(self) -> Any:
        """All fits as a pandas DataFrame: a row each, with a column for every parameter of the grid and every score."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError as error:
            raise NHSVMError("to_frame needs pandas: pip install pandas; or use records") from error
        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """All fits as plain dicts of numbers and text, for tables and files."""
        return [
            {name: _plain(trial.shown.get(name)) for name in self.plan.names}
            | {"C": trial.C, "lambda": trial.lam}
            | trial.scores
            | {"seconds": trial.seconds, "passes": trial.passes, "gap": trial.gap, "n_train": trial.n_train}
            | {"state": trial.state, "best": trial is self.best}
            for trial in self.records
        ]

    def plot(self, ax: Any = None) -> Any:
        """The held-out score against C, a line a setting, the best marked; returns the matplotlib axes."""
        from nhsvm.model_selection._plot import plot_tuning

        return plot_tuning(self, ax)

    def __str__(self) -> str:
        from nhsvm.model_selection._table import table

        return table(self)


def choose(records: Sequence[Trial], scoring: str) -> Trial:
    """The best score among the fits that came to their end; ties go to the smaller C, then to the earlier setting."""
    ended = [trial for trial in records if trial.state != CUT] or list(records)
    scored = [trial for trial in ended if trial.scores[scoring] == trial.scores[scoring]]
    if not scored:
        raise NHSVMError(f"{scoring!r} is not a number (NaN) for any of the {len(ended)} fits, so none is the best")
    return min(scored, key=lambda trial: (-trial.scores[scoring], trial.C))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else show(value)
