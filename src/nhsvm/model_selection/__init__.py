"""Choosing parameters: a hold-out split for long-tailed labels, a warm-started path over C, the paper's protocol."""

from __future__ import annotations

from nhsvm.model_selection.grid import PAPER_LAMBDAS, paper_grid
from nhsvm.model_selection.path import regularization_path
from nhsvm.model_selection.result import Trial, Tuning, Untried
from nhsvm.model_selection.search import refit_best, tune
from nhsvm.model_selection.split import HoldOut, hold_out_split

__all__ = [
    "PAPER_LAMBDAS",
    "HoldOut",
    "Trial",
    "Tuning",
    "Untried",
    "hold_out_split",
    "paper_grid",
    "refit_best",
    "regularization_path",
    "tune",
]
