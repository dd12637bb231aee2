"""Pictures, one a file, for which matplotlib must be installed (``pip install 'nhsvm[plot]'``)."""

from nhsvm.plots._convergence import plot_convergence
from nhsvm.plots._explanation import plot_explanation
from nhsvm.plots._weights import plot_weights

__all__ = ["plot_convergence", "plot_explanation", "plot_weights"]
