"""Theorem 1 and Figure 1: copies of nodes change HSVM's decisions, and stop to change NHSVM's as ρ → 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.attributes import label_penalty
from nhsvm.estimators import HSVM, NHSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.reproduce._page import COLOURS, figure, made_by, table, write_page
from nhsvm.weights import Maxmin, Power, node_weights

Floats = npt.NDArray[np.float64]

COPIES = (0, 1, 2, 4, 8, 16)
RHOS = (4.0, 3.0, 2.0, 1.5, 1.3, 1.2, 1.15, 1.1, 1.05)
_EDGES = (("animal", "dog"), ("animal", "cat"), ("plant", "oak"), ("plant", "rose"))
_TREE = Hierarchy.from_edges(_EDGES)


def copied(copies: int) -> Hierarchy:
    """Two groups of two, with so many copies of "animal" in a row below it, and of "dog" above it."""
    groups = ["animal", *(f"animal {k}" for k in range(copies))]
    dogs = [*(f"dog {k}" for k in range(copies)), "dog"]
    return Hierarchy.from_edges(
        [*pairwise(groups), (groups[-1], dogs[0]), *pairwise(dogs), (groups[-1], "cat"), *_EDGES[2:]]
    )


@dataclass(frozen=True)
class Data:
    """Noisy points of four classes in the plane, and a grid to see decisions on."""

    X: Floats
    y: npt.NDArray[Any]
    grid: Floats


def make_data(seed: int, n: int = 80) -> Data:
    """Four overlapping clouds."""
    rng = np.random.default_rng(seed)
    centres = {"dog": (-1.0, 1.0), "cat": (-1.0, -0.6), "oak": (1.0, 0.8), "rose": (0.8, -1.0)}
    y = np.array(list(centres))[np.arange(n) % 4]
    X = np.array([centres[label] for label in y]) + 0.7 * rng.normal(size=(n, 2))
    side = np.linspace(-3, 3, 201)
    return Data(X, y, np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))


def model(scheme: str, hierarchy: Hierarchy, rho: float = 2.0) -> Any:
    """HSVM ("uniform") or NHSVM with a scheme of weights, solved to high accuracy."""
    options: dict[str, Any] = {"C": 0.1, "tol": 1e-6, "max_iter": 20_000}
    if scheme == "uniform":
        return HSVM(hierarchy, **options)
    return NHSVM(hierarchy, weights=Maxmin() if scheme == "maxmin" else Power(rho=rho), **options)


def changed(scheme: str, data: Data, copies: int, rho: float = 2.0) -> float:
    """Share of the grid that the model with copies puts into another class than the model without, in percent."""
    before, after = (model(scheme, h, rho).fit(data.X, data.y).predict(data.grid) for h in (_TREE, copied(copies)))
    return 100 * float((before != after).mean())


def write(
    out: Path, seed: int = 0, *, copies: Sequence[int] = COPIES, rhos: Sequence[float] = RHOS, quick: bool = False
) -> list[Path]:
    """Measure, and write the page and its picture."""
    data = make_data(seed)
    by_copies = {
        "HSVM": [changed("uniform", data, k) for k in copies],
        "NHSVM, ρ = 2": [changed("power", data, k) for k in copies],
        "NHSVM, ρ = 1.2": [changed("power", data, k, 1.2) for k in copies],
        "NHSVM, max-min": [changed("maxmin", data, k) for k in copies],
    }
    by_rho = [changed("power", data, 4, rho) for rho in rhos]
    command = f"nhsvm reproduce invariance --seed {seed}" + (" --quick" if quick else "")
    text = _text(made_by(command, f"Seed {seed} for the points."), copies, by_copies, rhos, by_rho)
    return write_page(out, "invariance", text, _picture(data, copies, by_copies, rhos, by_rho))


def penalties() -> list[tuple[str, float, float]]:
    """Figure 1: (model, penalty of y1 without, and with a node below it) for the vector (3, 4)."""
    before = Hierarchy.from_edges([], nodes=["y1", "y2"])
    after = Hierarchy.from_edges([("copy", "y1")], nodes=["copy", "y2"])
    vectors = {"y1": [3.0, 4.0], "y2": [0.0, 0.0]}

    def penalty(h: Hierarchy, scheme: str) -> float:
        return label_penalty(h, node_weights(h, scheme), [vectors[str(leaf)] for leaf in h.leaves])

    schemes = (("HSVM", "uniform"), ("NHSVM, max-min", "maxmin"), ("NHSVM, ρ = 2", "power"))
    return [(name, penalty(before, scheme), penalty(after, scheme)) for name, scheme in schemes]


def _percent(value: float) -> str:
    return f"{value:.2f} %"


def _text(
    opening: str, copies: Sequence[int], by_copies: dict[str, list[float]], rhos: Sequence[float], by_rho: list[float]
) -> str:
    rows = [[str(k), *(_percent(values[i]) for values in by_copies.values())] for i, k in enumerate(copies)]
    figure_1 = [[name, f"{one:.1f}", f"{two:.1f}"] for name, one, two in penalties()]
    largest = {name: _percent(values[-1]) for name, values in by_copies.items()}
    return f"""# Theorem 1 and Figure 1: copies of nodes

{opening}

## Figure 1: what a copy does to the penalty

Two labels, y1 with the vector (3, 4) and y2 with zero; then a node is put above y1 alone. Nothing about the problem
has changed. Least penalty for the same decisions:

{table(["", "without", "with the node"], figure_1)}

HSVM charges half, as the paper's figure says; normalised weights charge the same.

## Theorem 1: what copies do to decisions

Four classes in two groups (dog, cat; oak, rose), 80 points in the plane, C = 0.1, gaps of 1e-6. Then k copies of
"animal" are put below it, and k of "dog" above it. The number is the share of the square [−3, 3]² that changes class
(201 × 201 places): 0 is the same classifier.

{table(["copies k", *by_copies], rows)}

With k = 4 copies, NHSVM with `power` weights (Eq. 6), as ρ comes down to 1:

{table(["ρ", *(f"{rho:g}" for rho in rhos)], [["change", *map(_percent, by_rho)]])}

![Changes against copies and ρ, and decision boundaries](../images/invariance.png)

**In words.** HSVM's classifier depends on how often a node is written down: {copies[-1]} copies change its answer on
{largest["HSVM"]} of the square. Deep labels are charged less and asked for more margin, so they win ground. NHSVM is
not exactly invariant for a fixed ρ either: copies together get more weight than the one node would, and the answer
changes on
{largest["NHSVM, ρ = 2"]} at ρ = 2 and on {largest["NHSVM, ρ = 1.2"]} at ρ = 1.2. As ρ → 1 the change goes to zero,
not steadily but in the end, which is Theorem 1. The max-min weights, the paper's "ρ = 1", are **not** that limit:
every inner node has the same weight, so copies do change them ({largest["NHSVM, max-min"]}). Whoever wants exact
invariance for any weights fits on `hierarchy.minimal()`, which merges copies first. ρ close to 1 has a price: nearly
all weight goes to the top of the hierarchy, and training takes many more passes. On some DAGs the theorem does not
hold, see [paper.md](../paper.md).
"""


def _picture(
    data: Data, copies: Sequence[int], by_copies: dict[str, list[float]], rhos: Sequence[float], by_rho: list[float]
) -> Any:
    made = figure(10, 7)
    (left, right), (below, beside) = made.subplots(2, 2)
    for (name, values), colour in zip(by_copies.items(), COLOURS, strict=False):
        left.plot(copies, values, marker="o", label=name, color=colour)
    left.set(
        xlabel="copies of two nodes",
        ylabel="area that changes class, %",
        title="The more copies …",
        ylim=(0, 1.3 * max(map(max, by_copies.values())) + 0.1),
    )
    left.legend(frameon=False, ncols=2, loc="upper left", fontsize=8)
    right.plot([rho - 1 for rho in rhos], by_rho, marker="o", color=COLOURS[2])
    right.set(
        xscale="log",
        xlabel="ρ − 1",
        ylabel="area that changes class, %",
        title="… and as ρ → 1 (NHSVM, 4 copies)",
        ylim=(0, None),
    )
    right.invert_xaxis()
    for ax, name, scheme, rho in (
        (below, "HSVM", "uniform", 2.0),
        (beside, f"NHSVM, ρ = {rhos[-1]:g}", "power", rhos[-1]),
    ):
        _boundaries(ax, data, scheme, rho, copies[-1])
        ax.set_title(f"{name}: without copies (areas), with {copies[-1]} (lines)", fontsize=10)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return made


def _boundaries(ax: Any, data: Data, scheme: str, rho: float, copies: int) -> None:
    classes = sorted(set(data.y))
    n = round(len(data.grid) ** 0.5)
    x, y = data.grid[:n, 0], data.grid[::n, 1]
    areas, lines = (
        np.searchsorted(classes, model(scheme, h, rho).fit(data.X, data.y).predict(data.grid)).reshape(n, n)
        for h in (_TREE, copied(copies))
    )
    ax.contourf(x, y, areas, levels=np.arange(5) - 0.5, colors=COLOURS[:4], alpha=0.3)
    for k, label in enumerate(classes):
        ax.contour(x, y, lines == k, levels=[0.5], colors="black", linewidths=1)
        ax.scatter(*data.X[data.y == label].T, s=9, color=COLOURS[k], label=label)
    ax.legend(loc="lower left", fontsize=8, framealpha=0.9)
    ax.set_aspect("equal")
