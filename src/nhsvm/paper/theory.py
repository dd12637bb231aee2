"""The theory in numbers: what norms charge (Table 1), what weights do, and copies of nodes (Theorem 1, Figure 1).

Copies change HSVM's decisions, and stop to change NHSVM's as ρ → 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nhsvm.estimators import HSVM, NHSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.paper import NORMS, Note
from nhsvm.paper.attributes import label_penalty
from nhsvm.paper.tables import COLOURS, figure, made_by, open_frame, table, write_page
from nhsvm.typing import Array, FloatArray
from nhsvm.weights import Flat, Maxmin, Power, Scheme, Uniform, node_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# -- Table 1: four norms in four situations, computed, beside the closed forms -----------------------------------------

COLUMNS = ("shared", "structured shared", "Frobenius", "trace")
_TOL = 1e-8


@dataclass(frozen=True)
class Case:
    """A row of Table 1.

    Attributes
    ----------
    name, what : str
    U : array of n_leaves × n_columns
    hierarchy : Hierarchy
    forms : four closed forms, as the paper writes them; "" where it has none
    expected : their values
    """

    name: str
    what: str
    U: FloatArray
    hierarchy: Hierarchy
    forms: tuple[str, str, str, str]
    expected: tuple[float | None, float | None, float | None, float | None]

    def computed(self) -> list[float]:
        """The norms of ``COLUMNS`` by the general methods, which know nothing of the case."""
        given = {"hierarchy": self.hierarchy, "tol": _TOL}
        return [
            NORMS[name](self.U, **{option: given[option] for option in NORMS.spec(name).options}) for name in COLUMNS
        ]


def cases(seed: int = 0) -> Iterator[Case]:
    """The four rows, with random vectors, for six classes below two groups and a root."""
    rng = np.random.default_rng(seed)
    n, d = 6, 8
    groups = [("root", "left"), ("root", "right")]
    tree = Hierarchy.from_edges([*groups, *((("left", "right")[k // 3], f"class{k}") for k in range(n))])
    forest = Hierarchy.from_edges([], nodes=[f"class{k}" for k in range(n)])
    u, a, rows = rng.normal(size=d), rng.normal(size=n), rng.normal(size=(n, d))
    own = np.kron(np.eye(n), np.ones((1, 2))) * rng.normal(size=2 * n)
    length, root = float(np.linalg.norm(u)), float(np.sqrt(n))
    whole, lengths = float(np.sqrt((rows**2).sum())), np.sqrt((own**2).sum(axis=1))
    disjoint, scale = float(np.sqrt((lengths**2).sum())), float(np.sqrt((a**2).sum()))
    yield Case(
        "Full sharing", "every class has the same vector u, and a root is above all", np.tile(u, (n, 1)), tree,
        ("‖u‖", "‖u‖", "√Y ‖u‖", "√Y ‖u‖"), (length, length, root * length, root * length),
    )  # fmt: skip
    yield Case(
        "No sharing", "random vectors, and no node is above two classes", rows, forest,
        ("", "‖U‖_F", "‖U‖_F", ""), (None, whole, whole, None),
    )  # fmt: skip
    yield Case(
        "Disjoint features", "no feature is used by two classes", own, tree,
        ("√Σ‖u_l‖²", "√Σ‖u_l‖²", "√Σ‖u_l‖²", "Σ‖u_l‖"), (disjoint, disjoint, disjoint, float(lengths.sum())),
    )  # fmt: skip
    yield Case(
        "Factor scaling", "class i has the vector a_i u", np.outer(a, u), tree,
        (r"max \|a_i\| ‖u‖", "", "√Σa_i² ‖u‖", "√Σa_i² ‖u‖"),
        (float(np.abs(a).max()) * length, None, scale * length, scale * length),
    )  # fmt: skip


def reproduce_norms(out: Path, note: Note, seed: int) -> list[Path]:
    """Compute the table, and write its page and picture."""
    found = [(case, case.computed()) for case in cases(seed)]
    return write_page(out, "norms", _norms_text(found, seed), _norms_picture(found))


def _norms_text(found: list[tuple[Case, list[float]]], seed: int) -> str:
    rows, worst = [], 0.0
    for case, values in found:
        cells = [case.name]
        for form, expected, value in zip(case.forms, case.expected, values, strict=True):
            cells.append(f"{value:.4f}" + (f" ({form} = {expected:.4f})" if expected is not None else " (none)"))
            worst = max(worst, 0.0 if expected is None else abs(value / expected - 1))
        rows.append(cells)
    (_, full), (_, disjoint), (_, scaled) = found[0], found[2], found[3]
    bound = 10.0 ** np.ceil(np.log10(max(worst, 1e-16)))
    return f"""# Table 1: what the norms charge

{made_by(f"nhsvm reproduce norms --seed {seed}", f"Seed {seed} for the vectors.")}

Six classes with vectors of random numbers; in brackets the paper's closed form and its value. The shared norms are
computed by the general methods of `nhsvm.paper`, which know nothing of the situation; each is proved by a bound from
below to a relative {_TOL:g}.

{table(["situation", *(NORMS.spec(name).symbol for name in COLUMNS)], rows)}

{chr(10).join(f"- **{case.name}**: {case.what}." for case, _ in found)}

All closed forms agree with the computed values to {bound:.0e}, relative. Where the paper's table has a dot, there is
no closed form, and the number is ours.

![The four norms in the four situations](../images/norms.png)

**In words.** What classes have in common is charged once by the shared norms and once for every class by the others:
with full sharing they are
{full[2] / full[0]:.2f} (√6) times smaller than the Frobenius and the trace norm. Where classes have nothing in
common, sharing gives nothing away either: with disjoint features both shared norms equal the Frobenius norm, that of
a flat SVM, while the trace norm is {disjoint[3] / disjoint[2]:.2f} times larger, since it charges for rank. That is
the sense in which Shared SVM is never worse than a flat one at the same C: its penalty is smaller or equal. The
structured norm only shares along the hierarchy. With factor scaling it is {scaled[1] / scaled[0]:.2f} times the
unstructured one, because nodes have one weight for all classes below, so a vector cannot be taken times a_i: the
price of following a given tree.
"""


def _norms_picture(found: list[tuple[Case, list[float]]]) -> Figure:
    made = figure(8, 3.6)
    ax = made.subplots()
    at = np.arange(len(found))
    for k, label in enumerate(COLUMNS):
        ax.bar(at + 0.2 * (k - 1.5), [v[k] / v[2] for _, v in found], 0.19, label=label, color=COLOURS[k])
    ax.axhline(1, color="0.4", linewidth=0.8, zorder=0)
    ax.set_xticks(at, [case.name.lower() for case, _ in found])
    ax.set(ylabel="norm / Frobenius norm", ylim=(0, None))
    ax.legend(frameon=False, ncols=2, loc="upper left")
    open_frame(ax)
    return made


# -- schemes on example hierarchies ------------------------------------------------------------------------------------

SCHEMES: dict[str, Scheme] = {
    "flat": Flat(),
    "uniform (HSVM)": Uniform(),
    "power, ρ = 1.2": Power(rho=1.2),
    "power, ρ = 2": Power(rho=2.0),
    "power, ρ = 2, directional": Power(rho=2.0, directional=True),
    "maxmin": Maxmin(),
}


def examples() -> dict[str, Hierarchy]:
    """Hierarchies of four kinds: even, one-sided, a small shop, and a DAG."""
    chain = [(f"s{k}", child) for k in range(1, 4) for child in (f"leaf{k + 1}", f"s{k + 1}")]
    one_sided = [*chain[:-1], ("s3", "leaf5")]
    shop = [("tools", "garden"), ("tools", "hammers"), ("garden", "mowers"), ("garden", "saws")]
    return {
        "balanced": Hierarchy.from_edges([(g, f"{g}{k}") for g in "ab" for k in range(1, 5)]),
        "one-sided": Hierarchy.from_edges(one_sided, nodes=["leaf1", "s1"]),
        "lopsided": Hierarchy.from_edges([*shop, ("books", "crime"), ("books", "poetry")]),
        "DAG": Hierarchy.from_edges([("mammal", "cat"), ("mammal", "bat"), ("flyer", "bat"), ("flyer", "gull")]),
    }


def path_sums(hierarchy: Hierarchy, alpha: FloatArray) -> FloatArray:
    """Σ_{n∈Ā(l)} α_n of every leaf."""
    return np.asarray(hierarchy.graph.leaf_matrix() @ alpha)


def above_leaves(hierarchy: Hierarchy, alpha: FloatArray) -> float:
    """The share of a label's weight that it has in common with others: on inner nodes, a mean over leaves."""
    inner = alpha.copy()
    inner[[hierarchy.number(leaf) for leaf in hierarchy.leaves]] = 0.0
    return float((path_sums(hierarchy, inner) / path_sums(hierarchy, alpha)).mean())


def reproduce_weights(out: Path, note: Note) -> list[Path]:
    """Compute the weights, and write the page and its picture."""
    found = {name: {s: node_weights(h, scheme) for s, scheme in SCHEMES.items()} for name, h in examples().items()}
    return write_page(out, "weights", _weights_text(found), _weights_picture(found))


def _weights_text(found: dict[str, dict[str, FloatArray]]) -> str:
    known = examples()
    parts = []
    for name, by_scheme in found.items():
        rows = [
            [f"`{label}`", *(f"{a[k]:.3f}" for a in by_scheme.values())] for k, label in enumerate(known[name].nodes)
        ]
        sums = [path_sums(known[name], a) for a in by_scheme.values()]
        ranges = [f"{s.min():g}" if np.ptp(s) < 1e-9 else f"{s.min():g} to {s.max():g}" for s in sums]
        rows.append(["*sum on a path*", *ranges])
        rows.append(["*on inner nodes*", *(f"{100 * above_leaves(known[name], a):.0f} %" for a in by_scheme.values())])
        parts.append(f"## {name}\n\n```\n{known[name].draw()}\n```\n\n{table(['node', *by_scheme], rows)}")
    shares = {s: [above_leaves(known[name], found[name][s]) for name in known] for s in SCHEMES}
    span = {s: f"{100 * min(v):.0f} to {100 * max(v):.0f} %" for s, v in shares.items()}
    deepest = path_sums(known["one-sided"], found["one-sided"]["uniform (HSVM)"])
    return f"""# What the weights do

{made_by("nhsvm reproduce weights", "No random numbers.")}

α_n says how much of a label's vector may live at node n. *Sum on a path* is Σ α over a leaf and all above it: one for
every leaf if the scheme is normalised (Eq. 4). *On inner nodes* is the share of it that is above the leaf, where
other labels can share it; a mean over leaves.

{(chr(10) * 2).join(parts)}

![Weights of every scheme on every hierarchy](../images/weights.png)

**In words.** `flat` shares nothing, and is an ordinary SVM. `uniform` (HSVM) is not normalised: on the one-sided
tree a deep leaf has {deepest.max():.0f} times the weight of a shallow one, so its vector is charged that much less.
All others give every leaf the same sum. They differ in where it is. `power` puts it where most labels share it, at
the top: {span["power, ρ = 2"]} of a label's weight is on inner nodes at ρ = 2, and {span["power, ρ = 1.2"]} at ρ =
1.2. `maxmin` gives every inner node the same weight and leaves the rest to the leaves: {span["maxmin"]}. On trees,
`power` with directional constraints has the same path sums with weights that never fall towards the leaves, and does
not depend on ρ; where all paths below a node are as long as each other or the tree is one-sided, it gives the
max-min weights. On the DAG, `power` leaves `bat` nothing of its own, since its two parents fill its path already.
Which is better is a matter of the data: on the paper's unbalanced set, whose top cuts are the important ones,
`power` wins; on its balanced set, `maxmin` ([Table 3](synthetic.md)); and so it does on text
([accuracy](accuracy.md)).
"""


def _weights_picture(found: dict[str, dict[str, FloatArray]]) -> Figure:
    known = examples()
    made = figure(13, 6)
    for ax, (name, by_scheme) in zip(made.subplots(1, len(found)), found.items(), strict=True):
        values = np.array(list(by_scheme.values())).T
        image = ax.imshow(values, cmap="viridis_r", vmin=0, vmax=1, aspect="auto")
        hierarchy = known[name]
        order = [f"{'  ' * hierarchy.depth(node)}{node}" for node in hierarchy.nodes]
        ax.set_yticks(range(len(order)), order, fontsize=8)
        ax.set_xticks(range(len(by_scheme)), by_scheme, rotation=60, ha="right", fontsize=8)
        ax.set_title(name)
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.55 else "black"
            ax.text(column, row, f"{value:.2f}".replace("0.", "."), ha="center", va="center", fontsize=7, color=colour)
    made.colorbar(image, ax=made.axes, label="weight α", shrink=0.6)
    return made


# -- copies of nodes ---------------------------------------------------------------------------------------------------

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

    X: FloatArray
    y: Array
    grid: FloatArray


def make_data(seed: int, n: int = 80) -> Data:
    """Four overlapping clouds."""
    rng = np.random.default_rng(seed)
    centres = {"dog": (-1.0, 1.0), "cat": (-1.0, -0.6), "oak": (1.0, 0.8), "rose": (0.8, -1.0)}
    y = np.array(list(centres))[np.arange(n) % 4]
    X = np.array([centres[label] for label in y]) + 0.7 * rng.normal(size=(n, 2))
    side = np.linspace(-3, 3, 201)
    return Data(X, y, np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))


def model(scheme: str, hierarchy: Hierarchy, rho: float = 2.0) -> HSVM | NHSVM:
    """HSVM ("uniform") or NHSVM with a scheme of weights, solved to high accuracy."""
    weights = Maxmin() if scheme == "maxmin" else Power(rho=rho)
    made: HSVM | NHSVM = HSVM(hierarchy) if scheme == "uniform" else NHSVM(hierarchy, weights=weights)
    made.set_params(C=0.1, tol=1e-6, max_iter=20_000)
    return made


def decided(scheme: str, data: Data, copies: int, rho: float) -> Iterator[Array]:
    """Classes of the grid by the model without copies, and by the one with them."""
    return (model(scheme, h, rho).fit(data.X, data.y).predict(data.grid) for h in (_TREE, copied(copies)))


def changed(scheme: str, data: Data, copies: int, rho: float = 2.0) -> float:
    """Share of the grid that the model with copies puts into another class than the model without, in percent."""
    before, after = decided(scheme, data, copies, rho)
    return 100 * float((before != after).mean())


@dataclass(frozen=True)
class Changes:
    """Shares of the grid that change class, in percent: of every model by the number of copies, of NHSVM by ρ."""

    copies: tuple[int, ...]
    by_copies: dict[str, list[float]]
    rhos: tuple[float, ...]
    by_rho: list[float]


def reproduce_invariance(out: Path, note: Note, seed: int, quick: bool) -> list[Path]:
    """Measure, and write the page and its picture."""
    data = make_data(seed)
    copies, rhos = (COPIES[:2], RHOS[2:4]) if quick else (COPIES, RHOS)
    by_copies = {
        "HSVM": [changed("uniform", data, k) for k in copies],
        "NHSVM, ρ = 2": [changed("power", data, k) for k in copies],
        "NHSVM, ρ = 1.2": [changed("power", data, k, 1.2) for k in copies],
        "NHSVM, max-min": [changed("maxmin", data, k) for k in copies],
    }
    found = Changes(copies, by_copies, rhos, [changed("power", data, 4, rho) for rho in rhos])
    command = f"nhsvm reproduce invariance --seed {seed}" + (" --quick" if quick else "")
    text = _copies_text(made_by(command, f"Seed {seed} for the points."), found)
    return write_page(out, "invariance", text, _copies_picture(data, found))


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


def _copies_text(opening: str, found: Changes) -> str:
    copies, by_copies, rhos = found.copies, found.by_copies, found.rhos
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

{table(["ρ", *(f"{rho:g}" for rho in rhos)], [["change", *map(_percent, found.by_rho)]])}

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


def _copies_picture(data: Data, found: Changes) -> Figure:
    copies, by_copies, rhos = found.copies, found.by_copies, found.rhos
    made = figure(10, 7)
    (left, right), (below, beside) = made.subplots(2, 2)
    for (name, values), colour in zip(by_copies.items(), COLOURS, strict=False):
        left.plot(copies, values, marker="o", label=name, color=colour)
    highest = 1.3 * max(map(max, by_copies.values())) + 0.1
    left.set(xlabel="copies of two nodes", title="The more copies …", ylim=(0, highest))
    left.legend(frameon=False, ncols=2, loc="upper left", fontsize=8)
    right.plot([rho - 1 for rho in rhos], found.by_rho, marker="o", color=COLOURS[2])
    right.set(xscale="log", xlabel="ρ − 1", title="… and as ρ → 1 (NHSVM, 4 copies)", ylim=(0, None))
    right.invert_xaxis()
    shown = ((below, "HSVM", "uniform", 2.0), (beside, f"NHSVM, ρ = {rhos[-1]:g}", "power", rhos[-1]))
    for ax, name, scheme, rho in shown:
        _boundaries(ax, data, scheme, rho, copies[-1])
        ax.set_title(f"{name}: without copies (areas), with {copies[-1]} (lines)", fontsize=10)
    for ax in (left, right):
        ax.set_ylabel("area that changes class, %")
        open_frame(ax)
    return made


def _boundaries(ax: Axes, data: Data, scheme: str, rho: float, copies: int) -> None:
    classes = sorted(set(data.y))
    n = round(len(data.grid) ** 0.5)
    x, y = data.grid[:n, 0], data.grid[::n, 1]
    areas, lines = (np.searchsorted(classes, found).reshape(n, n) for found in decided(scheme, data, copies, rho))
    ax.contourf(x, y, areas, levels=np.arange(5) - 0.5, colors=COLOURS[:4], alpha=0.3)
    for k, label in enumerate(classes):
        ax.contour(x, y, lines == k, levels=[0.5], colors="black", linewidths=1)
        ax.scatter(data.X[data.y == label, 0], data.X[data.y == label, 1], s=9, color=COLOURS[k], label=label)
    ax.legend(loc="lower left", fontsize=8, framealpha=0.9)
    ax.set_aspect("equal")
