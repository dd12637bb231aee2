"""Other readings of Section 8.1, where the paper leaves open how its synthetic sets and SSVM were made.

Algorithm 1 is here as the paper prints it, with the alternation that it is a part of (Section 7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from nhsvm.checks import node_values
from nhsvm.datasets import Dataset, make_balanced, make_unbalanced
from nhsvm.engine import Sgd
from nhsvm.estimators import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.paper import Note
from nhsvm.paper.synthetic import PAPER, Svm
from nhsvm.paper.tables import COLOURS, Repeated, counted, figure, open_frame, same_bits, table, wrapped, write_page
from nhsvm.typing import JSON, Array, FloatArray, Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOL = 0.05
PASSES = 20  # of the stochastic method
ROUNDS = 2  # of the alternation, after the fit with max-min weights
LAMBDAS = {"balanced": (10.0,), "unbalanced": (0.1, 0.01)}
SOLVERS = ("dual", "sgd")
START, POWER = "NHSVM, max-min", "NHSVM, power"
LEARNED, LITERAL = "SSVM, √α printed", "SSVM, α printed"
COLUMNS = ("FlatSVM", "HSVM", START, POWER, "SSVM", LEARNED, LITERAL)


def columns(solver: str) -> tuple[str, ...]:
    """What a solver can do: the joint problem of SSVM takes the dual one."""
    return tuple(column for column in COLUMNS if (column, solver) != ("SSVM", "sgd"))


@dataclass(frozen=True)
class Reading:
    """One way to make the data.

    Attributes
    ----------
    kind : {"balanced", "unbalanced"}
    how : str or float
        ``assign`` of :func:`~nhsvm.datasets.make_balanced`, ``share`` of :func:`~nhsvm.datasets.make_unbalanced`.
    n_train, n_test, n_features : int
    """

    kind: str
    how: str | float
    n_train: int
    n_test: int
    n_features: int = 1_000

    def make(self, seed: Sequence[int]) -> Dataset:
        """Training and test samples, in this order."""
        rng, n = np.random.default_rng(list(seed)), self.n_train + self.n_test
        if self.kind == "balanced":
            return make_balanced(n, self.n_features, assign=str(self.how), random_state=rng)
        return make_unbalanced(n, self.n_features, share=self.how, random_state=rng)


READINGS = (
    Reading("balanced", "sum", 5_500, 2_500),
    Reading("balanced", "signs", 5_500, 2_500),
    Reading("balanced", "top_down", 10_000, 5_000),
    Reading("unbalanced", 0.4, 8_000, 2_000),
    Reading("unbalanced", "random", 8_000, 2_000),
)
_QUICK = (Reading("balanced", "top_down", 100, 50, 10), Reading("unbalanced", "random", 100, 50, 10))


Found = dict[tuple[Reading, str], dict[str, list[list[float]]]]  # (reading, solver) -> column -> (data sets, λ)


@dataclass(frozen=True)
class Results(Repeated):
    """Accuracies in percent.

    Attributes
    ----------
    found : dict of (Reading, solver) to dict of column to (data sets, λ) accuracies
    """

    experiment = "readings"

    found: Found

    def plain(self) -> dict[str, JSON]:
        found = [{"reading": asdict(r), "solver": solver, **rows} for (r, solver), rows in self.found.items()]
        return {**self.head(), "readings": found}

    @classmethod
    def read(cls, plain: JSON) -> Results:
        found = {
            (Reading(**r["reading"]), str(r["solver"])): {
                column: [[float(a) for a in row] for row in r[column]] for column in columns(r["solver"])
            }
            for r in plain["readings"]
        }
        results = cls(*cls.read_head(plain), found)
        wanted = {(reading, solver) for reading, _ in plan(2, quick=results.quick) for solver in SOLVERS}
        if set(found) != wanted:
            raise ValueError("its readings are not those of this version")
        return results

    def best(self, reading: Reading, solver: str, column: str) -> list[float]:
        """Accuracies of every data set of a reading, with the λ of the highest mean."""
        values = np.array(self.found[reading, solver][column])
        return [float(a) for a in values[:, values.mean(axis=0).argmax()]]


def plan(repeats: int, *, quick: bool = False) -> list[tuple[Reading, int]]:
    """(reading, number of its data set): twice as many where every data set has cuts of its own."""
    readings = _QUICK if quick else READINGS
    return [(r, k) for r in readings for k in range(2 * repeats if r.how == "random" else repeats)]


def run(
    repeats: int = 3,
    seed: int = 0,
    *,
    quick: bool = False,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> Results:
    """Every column on ``repeats`` data sets of every reading."""
    tasks = plan(repeats, quick=quick)
    found: Found = {
        (reading, solver): {column: [] for column in columns(solver)}
        for reading in dict.fromkeys(reading for reading, _ in tasks)
        for solver in SOLVERS
    }
    for done, (reading, k) in enumerate(tasks, start=1):
        for solver in SOLVERS:
            for column, accuracies in on_one_set(reading, (seed, k), solver).items():
                found[reading, solver][column].append(accuracies)
        progress(done, len(tasks))
    return Results(seed, repeats, quick, found)


def on_one_set(reading: Reading, seed: tuple[int, int], solver: str) -> dict[str, list[float]]:
    """Accuracies in percent of all columns, one a λ."""
    data, n = reading.make(seed), reading.n_train
    X, y = np.asarray(data.X), np.asarray(data.y)
    found: dict[str, list[float]] = {column: [] for column in columns(solver)}
    with same_bits():  # the stochastic method is meant to stop early
        for lam in LAMBDAS[reading.kind]:
            for column, model in fitted(data.hierarchy, X[:n], y[:n], lam, solver):
                found[column].append(100 * float(model.score(X[n:], y[n:])))
    return found


def fitted(hierarchy: Hierarchy | None, X: FloatArray, y: Array, lam: float, solver: str) -> Iterator[tuple[str, Svm]]:
    """Every column's model."""
    method = "dual" if solver == "dual" else Sgd(tol=0.0, max_iter=PASSES)
    usual: Options = {"C": 1 / (2 * lam), "solver": method, "tol": TOL}
    yield "FlatSVM", FlatSVM(hierarchy, **usual).fit(X, y)
    yield "HSVM", HSVM(hierarchy, **usual).fit(X, y)
    start = NHSVM(hierarchy, margin="normalized", **usual).fit(X, y)
    yield START, start
    yield POWER, NHSVM(hierarchy, weights="power", margin="normalized", **usual).fit(X, y)
    if solver == "dual":
        yield "SSVM", SSVM(hierarchy, C=1 / (2 * lam), loss="hamming", tol=TOL).fit(X, y)
    for column, root in ((LEARNED, True), (LITERAL, False)):
        yield column, alternated(start, X, y, root=root, rounds=ROUNDS)


# -- Algorithm 1 as printed --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Printed:
    """Weights by Algorithm 1 as printed, of a tree. They are not those of Eq. 20: :class:`nhsvm.weights.Shared` is.

    E_n is computed after N_n is overwritten, so that it is (√B + √S)/(√B + 2√S) and not √B/(√B + √S): every node takes
    at least half of what is left for its subtree, whatever its vector. The root has no weight but takes its share.
    One thing must be added, since else no leaf has a weight: E_n = 1 on the leaves.

    Parameters
    ----------
    squared_norms : array of n_nodes
        B_n = ‖U_n‖², aligned with ``hierarchy.nodes``.
    root : bool
        What the last loop gives, √(L_p E_n), is the factor √α_n of Eq. 5; else it is α_n.
    """

    squared_norms: npt.ArrayLike
    root: bool = True

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        norms = node_values(self.squared_norms, hierarchy, "squared_norms")
        graph = hierarchy.graph
        below = [graph.children.rows(np.array([n])).indices for n in range(graph.n_nodes)]
        cost, share = norms.copy(), np.ones(graph.n_nodes)
        for n in reversed(range(graph.n_nodes)):  # children come after their parent
            if len(below[n]):
                mine, theirs = np.sqrt(cost[n]), np.sqrt(cost[below[n]].sum())
                cost[n] = (mine + theirs) ** 2
                share[n] = (mine + theirs) / (mine + 2 * theirs) if mine + theirs > 0 else 0.0
        left, alpha = 1 - share, np.zeros(graph.n_nodes)  # of a root, L = 1 − E
        for n in range(graph.n_nodes):
            alpha[below[n]] = left[n] * share[below[n]]
            left[below[n]] *= left[n]
        return alpha if self.root else np.sqrt(alpha)


def alternated(model: NHSVM, X: FloatArray, y: Array, *, root: bool, rounds: int) -> NHSVM:
    """SSVM by the paper's alternation, from a fitted model: weights by :class:`Printed`, then vectors, and so on."""
    for _ in range(rounds):
        vectors = np.column_stack([model.coef_, model.intercept_])
        norms = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        model = clone(model).set_params(weights=Printed(norms, root)).fit(X, y)
    return model


# -- the page ----------------------------------------------------------------------------------------------------------

Gains = Mapping[str, float] | Mapping[str, list[float]]  # points from another model, by name; of the paper one each

SAID = {
    "sum": "15 vectors, highest sum",
    "signs": "7 vectors, highest sum of ±",
    "top_down": "7 hyperplanes, top-down",
    "random": "random offsets",
}
METHOD = {"dual": f"gap {100 * TOL:.0f} %", "sgd": f"SGD, {PASSES} passes"}


def reproduce(out: Path, note: Note, repeats: int, seed: int, quick: bool, stored: Path | None) -> list[Path]:
    """Run, or take what a run has stored, and write the page, its picture and the results."""
    if stored is not None:
        results = Results.from_file(stored)
    else:
        results = run(repeats, seed, quick=quick, progress=counted(note))
    return write_page(out, "readings", text_of(results), picture_of(results), results.to_json())


def text_of(results: Results) -> str:
    """The page."""
    return f"""# Table 3, read otherwise

{results.opening(f"Data set k of a reading has the seeds ({results.seed}, k).")}

[Our Table 3](synthetic.md) differs from the paper's in three ways: HSVM and NHSVM gain less on the balanced set, HSVM
is not below the flat SVM on the unbalanced one, and SSVM is below NHSVM, not above. The paper leaves open how the data
were drawn and how long its stochastic method ran, and prints an Algorithm 1 that does not give the optimum it is meant
to. This page tries what the text can also mean. `--from results/readings.json` rewrites it from stored results.

{words(results)}## Differences

Mean test accuracy of FlatSVM in percent, and differences in points on the same data sets, mean and range. NHSVM has
the better of its two kinds of weights.

{table(_HEAD, _differences(results), left=2)}

![Differences to the flat SVM on every data set, and the paper's](../images/readings.png)

## What was tried

{_TRIED}
## Accuracies

Mean over the data sets, in percent.

{table(["data", "method", *COLUMNS], _accuracies(results), left=2)}
"""


_GRID = {kind: " and ".join(f"{lam:g}" for lam in lambdas) for kind, lambdas in LAMBDAS.items()}
_HEAD = ["data", "method", "FlatSVM", "HSVM − FlatSVM", "NHSVM − FlatSVM", "SSVM − NHSVM", "SSVM printed − NHSVM"]

_TRIED = f"""- **Balanced, 15 vectors**: every node has a vector, and a leaf's potential is the sum along its path (the
  reading of Table 3; 5,500 of 8,000 samples for training).
- **Balanced, 7 vectors, ±**: the text's n ∈ [2³ − 1] are the inner nodes; a leaf's potential is Σ ±W_n·x.
- **Balanced, 7 hyperplanes**: the same 7 vectors, and the signs of W_n·x lead from the root to a leaf, as hyperplanes
  do in the unbalanced set. Going to the child with the larger W_c·x, with 15 vectors, draws the same kind of data.
  Training has 10,000 of the text's 15,000 samples, a number chosen for FlatSVM's accuracy; 5,000 are for testing.
- **Unbalanced, 40 %**: every cut gives 40 % to its leaf (the reading of Table 3).
- **Unbalanced, random offsets**: a hyperplane is a standard normal vector with a standard normal offset, and the
  larger side is cut further. Twice as many data sets, since every one has shares of its own.
- **SSVM** is the joint optimum with the Hamming loss. **SSVM printed** is the paper's alternation: vectors with given
  weights (max-min at first, Eq. 13), then weights by Algorithm 1 as printed, {ROUNDS} rounds. E_n is there computed
  after N_n is overwritten, so every node takes at least half of what is left. Literally, no leaf has a weight; E_n = 1
  on leaves is added. What its last loop calls α_n is a square root: it is taken for the factor √α_n of Eq. 5 (√α
  printed, the one in the table above), or for α_n itself (α printed).
- **SGD**: Pegasos with {PASSES} passes, mean of the last steps, for all models but the joint SSVM.
- λ is {_GRID["balanced"]} on the balanced sets; on the unbalanced ones the better of {_GRID["unbalanced"]}, one for all
  data sets of a reading, by mean test accuracy, for each column. NHSVM has Eq. 13. Nothing else is chosen.
"""


def _differences(results: Results) -> list[list[str]]:
    rows = []
    for kind in PAPER:
        rows.append([f"{kind}: paper", "", *_cells(paper_gains(kind))])
        for reading, solver in results.found:
            if reading.kind == kind:
                rows.append([name_of(reading), METHOD[solver], *_cells(gains(results, reading, solver))])
    return rows


def _cells(values: Gains) -> list[str]:
    names = ("HSVM", "NHSVM", "SSVM", LEARNED)
    return [f"{np.mean(values['FlatSVM']):.1f}", *(spread(values[n]) if n in values else "–" for n in names)]


def _accuracies(results: Results) -> list[list[str]]:
    rows = []
    for (reading, solver), accuracies in results.found.items():
        cells = [f"{np.mean(results.best(reading, solver, c)):.1f}" if c in accuracies else "–" for c in COLUMNS]
        rows.append([name_of(reading), METHOD[solver], *cells])
    return rows


def picture_of(results: Results) -> Figure:
    """Differences of every data set as dots, the paper's as crosses."""
    made = figure(9, 4)
    names = ("HSVM", "NHSVM")
    for ax, kind in zip(made.subplots(1, 2, width_ratios=(3, 2)), PAPER, strict=True):
        rows = [reading for reading, solver in results.found if reading.kind == kind and solver == "dual"]
        for place, reading in enumerate(rows):
            found = gains(results, reading, "dual")
            learned = np.add(found["NHSVM"], found[LEARNED])
            for k, values in enumerate([*(found[n] for n in names), np.add(found["NHSVM"], found["SSVM"]), learned]):
                ax.scatter(np.full(len(values), place + 0.15 * (k - 1.5)), values, s=14, color=COLOURS[k])
            if not results.quick:
                want = paper_gains(kind)
                crosses = [want["HSVM"], want["NHSVM"], *[want["NHSVM"] + want["SSVM"]] * 2]
                ax.scatter(place + 0.15 * (np.arange(4) - 1.5), crosses, marker="x", color="black", s=20, zorder=3)
        ax.axhline(0, color="grey", linewidth=0.8)
        ax.set_xticks(range(len(rows)), [name_of(r).split(": ")[1].replace(", ", "\n") for r in rows], fontsize=7)
        ax.set(title=kind, ylabel="points from FlatSVM")
        open_frame(ax)
    for k, name in enumerate([*names, "SSVM", "SSVM printed"]):
        ax.scatter([], [], color=COLOURS[k], label=name)
    ax.legend(fontsize=7)
    made.suptitle("Dots: data sets" + ("" if results.quick else ", crosses: the paper's means"), fontsize=10)
    return made


# -- the page in words -------------------------------------------------------------------------------------------------


def name_of(reading: Reading) -> str:
    """A row's."""
    return f"{reading.kind}: {_how(reading)}, {reading.n_train:,} + {reading.n_test:,}"


def _how(reading: Reading) -> str:
    return SAID[reading.how] if isinstance(reading.how, str) else f"{100 * reading.how:.0f} % a cut"


def paper(kind: str, model: str) -> float:
    """Its accuracy."""
    return float(PAPER[kind][model].split()[0])


def gains(results: Results, reading: Reading, solver: str) -> dict[str, list[float]]:
    """Of every data set: HSVM and NHSVM from FlatSVM, learned weights from NHSVM, with its better weights."""

    def of(column: str) -> FloatArray:
        return np.array(results.best(reading, solver, column))

    flat, nhsvm = of("FlatSVM"), of(max((START, POWER), key=lambda c: float(of(c).mean())))
    learned = {c: of(c) - nhsvm for c in ("SSVM", LEARNED, LITERAL) if c in results.found[reading, solver]}
    found = {"FlatSVM": flat, "HSVM": of("HSVM") - flat, "NHSVM": nhsvm - flat, **learned}
    return {name: [float(v) for v in values] for name, values in found.items()}


def paper_gains(kind: str) -> dict[str, float]:
    """The same of the paper's means; its SSVM is compared with all of ours."""
    flat, nhsvm, learned = (paper(kind, m) for m in ("FlatSVM", "NHSVM", "SSVM"))
    both = dict.fromkeys(("SSVM", LEARNED, LITERAL), learned - nhsvm)
    return {"FlatSVM": flat, "HSVM": paper(kind, "HSVM") - flat, "NHSVM": nhsvm - flat, **both}


def spread(values: float | list[float]) -> str:
    """Mean and range, or the one value."""
    if isinstance(values, float):
        return f"{values:+.1f}"
    return f"{np.mean(values):+.1f} ({min(values):+.1f} to {max(values):+.1f})"


def words(results: Results) -> str:
    """What explains what."""
    if results.quick:
        return ""
    said = (_balanced(results), _unbalanced(results), _shared(results), _remains(results))
    return "".join(f"{wrapped(text)}\n\n" for text in said)


def _of(results: Results, how: str | float, solver: str = "dual") -> dict[str, list[float]]:
    return gains(results, next(r for r, _ in results.found if r.how == how), solver)


def _two(found: Gains) -> str:
    return f"{np.mean(found['HSVM']):+.1f} and {np.mean(found['NHSVM']):+.1f}"


def _balanced(results: Results) -> str:
    led = next(r for r, _ in results.found if r.how == "top_down")
    flat, hsvm, *both = (np.mean(results.best(led, "dual", c)) for c in ("FlatSVM", "HSVM", START, POWER))
    given = ", ".join(f"{paper('balanced', m):.1f}" for m in ("FlatSVM", "HSVM", "NHSVM"))
    return f"""**Balanced set.** HSVM and NHSVM are {_two(_of(results, "top_down"))} points from the flat SVM if 7
vectors are hyperplanes that lead down the tree, {_two(_of(results, "sum"))} if 15 vectors are summed, and
{_two(_of(results, "signs"))} with 7 vectors and signs (paper: {_two(paper_gains("balanced"))}). The hyperplanes have
FlatSVM {flat:.1f}, HSVM {hsvm:.1f}, NHSVM {both[0]:.1f} with max-min and {both[1]:.1f} with power weights
(paper: {given}). By {PASSES} passes of SGD the gains are {_two(_of(results, "top_down", "sgd"))},
{_two(_of(results, "sum", "sgd"))}, and {_two(_of(results, "signs", "sgd"))}."""


def _unbalanced(results: Results) -> str:
    draws, given = _of(results, "random"), paper_gains("unbalanced")
    below = f"{sum(v < 0 for v in draws['HSVM'])} of {len(draws['HSVM'])} data sets"
    inside = [_inside(given[m], draws[m]) for m in ("HSVM", "NHSVM")]
    return f"""**HSVM on the unbalanced set.** With random offsets HSVM is {spread(draws["HSVM"])} points from the flat
SVM, below it on {below}, and NHSVM {spread(draws["NHSVM"])}. The paper's {given["HSVM"]:+.1f} is {inside[0]} and its
{given["NHSVM"]:+.1f} {inside[1]} the range of these draws; FlatSVM itself has
{np.mean(draws["FlatSVM"]):.1f} ({min(draws["FlatSVM"]):.1f} to {max(draws["FlatSVM"]):.1f}), the paper's
{given["FlatSVM"]:.1f}. With 40 % a cut they are {_two(_of(results, 0.4))}, by SGD
{_two(_of(results, 0.4, "sgd"))}. That the paper's ± are too small
for new data in every repeat ([Table 3](synthetic.md)) suggests that it had one draw of its cuts."""


def _inside(value: float, values: list[float]) -> str:
    return "within" if min(values) <= value <= max(values) else "outside"


def _shared(results: Results) -> str:
    hows: tuple[str | float, ...] = ("sum", "top_down", 0.4, "random")
    rows = {c: [np.mean(_of(results, how)[c]) for how in hows] for c in ("SSVM", LEARNED, LITERAL)}
    said = {c: ", ".join(f"{v:+.1f}" for v in values) for c, values in rows.items()}
    sgd = ", ".join(f"{np.mean(_of(results, how, 'sgd')[LEARNED]):+.1f}" for how in hows)
    given = [paper_gains(kind)[LEARNED] for kind in PAPER]
    return f"""**SSVM.** In this order: 15 vectors, 7 hyperplanes, 40 % a cut, random offsets. The joint optimum is
{said["SSVM"]} points from NHSVM. Algorithm 1 as printed, read as √α, has {said[LEARNED]}, and by SGD {sgd}; read as α
it has {said[LITERAL]} (paper: {given[0]:+.1f} on the balanced, {given[1]:+.1f} on the unbalanced set). The printed
algorithm is not one that lowers the objective: every node takes at least half of what is left for its subtree,
whatever the vectors, so that weights never grow on the way down. So it is with power weights; the optimum's can."""


def _remains(results: Results) -> str:
    said = []
    for kind in PAPER:
        want = paper_gains(kind)
        missed = {
            (reading, solver): [
                float(np.mean(gains(results, reading, solver)[m])) - want[m] for m in ("HSVM", "NHSVM", LEARNED)
            ]
            for reading, solver in results.found
            if reading.kind == kind
        }
        near, solver = min(missed, key=lambda of: float(np.abs(missed[of]).mean()))
        parts = ", ".join(f"{v:+.1f}" for v in missed[near, solver])
        said.append(f"on the {kind} set by {parts} ({_how(near)}; {METHOD[solver]})")
    led = next(r for r, _ in results.found if r.how == "top_down")
    over = [f"{np.mean(results.best(led, 'dual', c)) - paper('balanced', 'NHSVM'):+.1f}" for c in (START, POWER)]
    found = [gains(results, reading, solver) for reading, solver in results.found if reading.kind == "unbalanced"]
    largest = max(float(np.mean(of[c])) for of in found for c in ("SSVM", LEARNED, LITERAL) if c in of)
    return f"""**What remains.** The rows nearest to the paper miss its HSVM − FlatSVM, NHSVM − FlatSVM and SSVM −
NHSVM, with the printed algorithm, {said[0]}, and {said[1]}. That a reading comes nearer does not show that it is
what the authors did. With the hyperplanes, NHSVM is {over[0]} points from the paper's with max-min and
{over[1]} with power weights, which it tried too, and of all means of SSVM − NHSVM on the unbalanced sets the largest
is {largest:+.1f} (paper: {want["SSVM"]:+.1f})."""
