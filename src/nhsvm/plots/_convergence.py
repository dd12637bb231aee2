"""How fits approach the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nhsvm.errors import NHSVMError
from nhsvm.plots._pyplot import pyplot


def plot_convergence(models: Any, ax: Any = None) -> Any:
    """The relative gap of fits against time, on logarithmic axes.

    Parameters
    ----------
    models : fitted estimator, or mapping of names to fitted estimators
        Anything with a ``history_``.
    ax : matplotlib axes, optional

    Returns
    -------
    axes

    Notes
    -----
    Filled marks are certified: primal and dual were measured exactly. Open ones are estimates from what a pass met.
    """
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise NHSVMError("no model to plot")
    for name, model in named.items():
        if not getattr(model, "history_", None):
            raise NHSVMError(f"{name!r} has no history_: fit it first")
    axes: Any = ax if ax is not None else pyplot().subplots(layout="constrained")[1]
    for name, model in named.items():
        seconds = [record["seconds"] for record in model.history_]
        gaps = [record["gap"] for record in model.history_]
        line = axes.plot(seconds, gaps, "-o", label=name, fillstyle="none", markersize=4)[0]
        certified = [record for record in model.history_ if record["certified"]]
        axes.plot(
            [record["seconds"] for record in certified],
            [record["gap"] for record in certified],
            "o",
            color=line.get_color(),
        )
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="(primal − dual) / primal")
    axes.grid(alpha=0.3)
    axes.legend()
    return axes
