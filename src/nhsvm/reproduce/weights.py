"""What each scheme of weights does to example hierarchies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.reproduce._page import figure, made_by, table, write_page
from nhsvm.weights import Flat, Maxmin, Power, Scheme, Uniform, node_weights

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


def write(out: Path) -> list[Path]:
    """Compute the weights, and write the page and its picture."""
    found = {name: {s: node_weights(h, scheme) for s, scheme in SCHEMES.items()} for name, h in examples().items()}
    return write_page(out, "weights", _text(found), _picture(found))


def _text(found: dict[str, dict[str, FloatArray]]) -> str:
    known = examples()
    parts = []
    for name, by_scheme in found.items():
        rows = [
            [f"`{label}`", *(f"{a[k]:.3f}" for a in by_scheme.values())] for k, label in enumerate(known[name].nodes)
        ]
        sums = [path_sums(known[name], a) for a in by_scheme.values()]
        rows.append(["*sum on a path*", *(_range(s) for s in sums)])
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


def _range(sums: FloatArray) -> str:
    low, high = f"{sums.min():g}", f"{sums.max():g}"
    return low if abs(sums.max() - sums.min()) < 1e-9 else f"{low} to {high}"


def _picture(found: dict[str, dict[str, FloatArray]]) -> Any:
    known = examples()
    made = figure(13, 6)
    image = None
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
