"""Table 1: four norms in four situations, computed, beside the closed forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.paper import NORMS, Note
from nhsvm.paper.tables import COLOURS, figure, made_by, open_frame, table, write_page
from nhsvm.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def reproduce(out: Path, note: Note, seed: int) -> list[Path]:
    """Compute the table, and write its page and picture."""
    found = [(case, case.computed()) for case in cases(seed)]
    return write_page(out, "norms", _text(found, seed), _picture(found))


def _text(found: list[tuple[Case, list[float]]], seed: int) -> str:
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


def _picture(found: list[tuple[Case, list[float]]]) -> Figure:
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
