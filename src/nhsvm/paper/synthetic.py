"""Table 3: flat SVM, HSVM, NHSVM and SSVM on the paper's two synthetic sets (Section 8.1).

Every repeat draws its data, tries the paper's grid on held-out samples, and tests what was chosen once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from joblib import cpu_count
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from nhsvm.datasets import Dataset, make_balanced, make_unbalanced
from nhsvm.estimators import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.model_selection import PAPER_LAMBDAS, hold_out_split, regularization_path
from nhsvm.paper import Note
from nhsvm.paper.tables import (
    COLOURS,
    HELD_OUT,
    MODELS,
    PAIRS,
    Difference,
    Repeated,
    counted,
    figure,
    marks,
    mean_and_deviation,
    open_frame,
    paired,
    setting_in_words,
    table,
    write_page,
)
from nhsvm.typing import JSON, Array, FloatArray, PtrArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEARCH_TOL, TOL = 0.1, 0.02  # gaps of the fits on held-out samples, and of those on test samples
WHOLE_FROM = 0.5  # C up to which every path goes; beyond, it ends with the first value that is not better

Svm = FlatSVM | HSVM | NHSVM | SSVM
Variant = dict[str, str]

# Section 8.1 tries ρ = 2 with directional constraints as well, which on these two trees gives the max-min weights
_VARIANTS: dict[str, tuple[type[Svm], tuple[Variant, ...]]] = {
    "FlatSVM": (FlatSVM, ({},)),
    "HSVM": (HSVM, ({},)),
    "NHSVM": (NHSVM, tuple({"weights": w, "margin": m} for w in ("power", "maxmin") for m in ("loss", "normalized"))),
    "SSVM": (SSVM, ({"loss": "zero_one"}, {"loss": "hamming"})),
}


@dataclass(frozen=True)
class Sizes:
    """What the paper leaves open about one of its two sets.

    Attributes
    ----------
    kind : {"balanced", "unbalanced"}
    n_train, n_test, n_features : int
    share : float
        Of what a cut of the unbalanced set cuts, for the leaf.
    """

    kind: str
    n_train: int
    n_test: int
    n_features: int
    share: float = 0.5

    def make(self, seed: Sequence[int]) -> Dataset:
        """Training and test samples, in this order."""
        rng, n = np.random.default_rng(list(seed)), self.n_train + self.n_test
        if self.kind == "balanced":
            return make_balanced(n, self.n_features, random_state=rng)
        return make_unbalanced(n, self.n_features, share=self.share, random_state=rng)


SETS = {"balanced": Sizes("balanced", 5_500, 2_500, 1_000), "unbalanced": Sizes("unbalanced", 8_000, 2_000, 1_000, 0.4)}
"""The paper's N = 8,000 and N = 10,000 samples, and the split of each under which its numbers come out."""

OTHER_SIZES = (
    *(Sizes("balanced", n, 2_500, 1_000) for n in (4_000, 5_500, 7_000)),
    *(Sizes("unbalanced", n, 2_000, 1_000, share) for n, share in ((4_000, 0.5), (8_000, 0.5), (4_000, 0.4))),
    *(Sizes("unbalanced", 8_000, 2_000, 1_000, share) for share in (0.4, 0.3)),
)
"""What the numbers are compared at, to see how they move."""

_QUICK = {"balanced": Sizes("balanced", 150, 100, 20), "unbalanced": Sizes("unbalanced", 150, 100, 20, 0.4)}
_QUICK_OTHERS = (Sizes("balanced", 100, 100, 20), Sizes("unbalanced", 100, 100, 20, 0.5))
_C = {"balanced": 0.05, "unbalanced": 5.0}  # of the fits at other sizes, where nothing is chosen
_OTHER_REPEATS = 2


# -- one data set ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One data set: the whole protocol, or, if ``C`` is given, fits with that C and no choice."""

    sizes: Sizes
    seed: tuple[int, int]
    C: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Accuracy on test samples, in percent, the setting that was chosen, and its λ."""

    accuracy: float
    setting: str
    lam: float


def run_task(task: Task) -> dict[str, Outcome]:
    """Every model on the data of one task; the same bits in any process."""
    with threadpool_limits(1):  # the last bits of a product depend on the threads of BLAS
        return {model: _outcome(model, task) for model in MODELS}


def run_tasks(tasks: Sequence[Task], jobs: int) -> Iterator[dict[str, Outcome]]:
    """Results in the order of the tasks, as they come; ``jobs`` processes share the work, at most one a core."""
    if jobs == 1:
        yield from map(run_task, tasks)
        return
    jobs = max(1, min(jobs, len(tasks), cpu_count()))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_task, tasks)


def _outcome(name: str, task: Task) -> Outcome:
    data, n = task.sizes.make(task.seed), task.sizes.n_train
    samples, labels = np.asarray(data.X), np.asarray(data.y)
    X, y = samples[:n], labels[:n]
    kind, variants = _VARIANTS[name]
    if task.C is None:
        variant, C = _chosen(kind(data.hierarchy, tol=SEARCH_TOL), variants, X, y, task.seed[1])
    else:
        # one variant for all sizes, so that they can be compared
        weights = "power" if task.sizes.kind == "unbalanced" else "maxmin"
        fixed = {"NHSVM": {"weights": weights, "margin": "normalized"}, "SSVM": {"loss": "hamming"}}
        variant, C = fixed.get(name, {}), task.C
    model = kind(data.hierarchy, C, tol=TOL).set_params(**variant).fit(X, y)
    return Outcome(100 * float(model.score(samples[n:], labels[n:])), setting_in_words(variant), 1 / (2 * C))


def _chosen(estimator: Svm, variants: Sequence[Variant], X: FloatArray, y: Array, seed: int) -> tuple[Variant, float]:
    """(variant, C) with the best accuracy on held-out samples; of equals the earlier variant and the smaller C."""
    split = hold_out_split(y, test_size=HELD_OUT, random_state=seed)
    best, found = -1.0, (variants[0], 1.0)
    for variant in variants:
        for C, score in _scores(clone(estimator).set_params(**variant), X, y, split):
            if score > best:
                best, found = score, (variant, C)
    return found


def _scores(estimator: Svm, X: FloatArray, y: Array, split: tuple[PtrArray, PtrArray]) -> Iterator[tuple[float, float]]:
    """Along the paper's λ, from large to small, each fit going on from the one before."""
    train, test = split
    Cs = [1 / (2 * lam) for lam in PAPER_LAMBDAS]
    best = -1.0
    for C, model in regularization_path(estimator, X[train], y[train], Cs):
        score = float(model.score(X[test], y[test]))
        yield C, score
        if C > WHOLE_FROM and score <= best:
            return
        best = max(best, score)


# -- all data sets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Results(Repeated):
    """All accuracies.

    Attributes
    ----------
    sets : dict of str to Sizes
    outcomes : dict of (set, model) to list of Outcome
        One a repeat.
    others : list of (Sizes, dict of model to list of accuracies)
        With a fixed C and variant.
    """

    experiment = "synthetic"

    sets: dict[str, Sizes]
    outcomes: dict[tuple[str, str], list[Outcome]]
    others: list[tuple[Sizes, dict[str, list[float]]]]

    def plain(self) -> dict[str, JSON]:
        sets = {
            name: {"sizes": asdict(sizes)} | {m: [asdict(o) for o in self.outcomes[name, m]] for m in MODELS}
            for name, sizes in self.sets.items()
        }
        others = [{"sizes": asdict(sizes), **accuracies} for sizes, accuracies in self.others]
        return {**self.head(), "sets": sets, "other_sizes": others}

    @classmethod
    def read(cls, plain: JSON) -> Results:
        sets = {name: Sizes(**found["sizes"]) for name, found in plain["sets"].items()}
        outcomes = {(s, m): [Outcome(**o) for o in plain["sets"][s][m]] for s in sets for m in MODELS}
        others = [(Sizes(**o["sizes"]), {m: [float(a) for a in o[m]] for m in MODELS}) for o in plain["other_sizes"]]
        return cls(*cls.read_head(plain), sets, outcomes, others)

    def accuracies(self, name: str, model: str) -> list[float]:
        """In percent, one a repeat."""
        return [outcome.accuracy for outcome in self.outcomes[name, model]]


def plan(repeats: int = 20, seed: int = 0, *, quick: bool = False, compare_sizes: bool = False) -> list[Task]:
    """All data sets to be made, the table's first."""
    sets, others = (_QUICK, _QUICK_OTHERS) if quick else (SETS, OTHER_SIZES)
    main = [Task(sizes, (seed, repeat)) for repeat in range(repeats) for sizes in sets.values()]
    if not compare_sizes:
        return main
    own = tuple(sets.values())  # as often as in the table, to see what the choice of λ makes of them
    counts = {sizes: repeats if sizes in own else _OTHER_REPEATS for sizes in others}
    return main + [Task(sizes, (seed, k), _C[sizes.kind]) for sizes in others for k in range(counts[sizes])]


def run(
    repeats: int = 20,
    seed: int = 0,
    *,
    jobs: int = 1,
    quick: bool = False,
    compare_sizes: bool = False,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> Results:
    """Table 3: ``repeats`` data sets of each kind; repeat k has the random numbers of (seed, k).

    ``progress`` is called with (data sets done, data sets in all). The results are the same for any number of ``jobs``.
    """
    tasks = plan(repeats, seed, quick=quick, compare_sizes=compare_sizes)
    sets = {task.sizes.kind: task.sizes for task in tasks if task.C is None}
    outcomes: dict[tuple[str, str], list[Outcome]] = {(name, model): [] for name in sets for model in MODELS}
    others: dict[Sizes, dict[str, list[float]]] = {}
    for done, (task, found) in enumerate(zip(tasks, run_tasks(tasks, jobs), strict=True), start=1):
        for model, outcome in found.items():
            if task.C is None:
                outcomes[task.sizes.kind, model].append(outcome)
            else:
                others.setdefault(task.sizes, {m: [] for m in MODELS})[model].append(outcome.accuracy)
        progress(done, len(tasks))
    return Results(seed, repeats, quick, sets, outcomes, list(others.items()))


# -- the page ----------------------------------------------------------------------------------------------------------

PAPER = {
    "balanced": {"FlatSVM": "60 ± .24", "HSVM": "62.8 ± .39", "NHSVM": "63.3 ± .34 †", "SSVM": "63.4 ± .35"},
    "unbalanced": {"FlatSVM": "68.5 ± .1", "HSVM": "68.4 ± .07", "NHSVM": "74.1 ± .2 †", "SSVM": "74.9 ± .4 ‡"},
}


def reproduce(
    out: Path, note: Note, repeats: int, seed: int, jobs: int, quick: bool, compare_sizes: bool, stored: Path | None
) -> list[Path]:
    """Run, or take what a run has stored, and write the page, its picture and the results."""
    if stored is not None:
        results = Results.from_file(stored)
    else:
        results = run(repeats, seed, jobs=jobs, quick=quick, compare_sizes=compare_sizes, progress=counted(note))
    return write_page(out, "synthetic", text_of(results), picture_of(results), results.to_json())


def marks_of(results: Results, name: str, model: str) -> str:
    """† and ‡ by a paired test over the data sets."""
    return marks(model, lambda other: _of(results, name, model, other).better)


def text_of(results: Results) -> str:
    """The page."""
    seeds = f"Repeat k draws its data with the seeds ({results.seed}, k), k = 0 to {results.repeats - 1}."
    header = ["", *(f"{name}, {who}" for name in results.sets for who in ("ours", "paper"))]
    rows = []
    for model in reversed(MODELS):
        ours = {n: mean_and_deviation(results.accuracies(n, model)) + marks_of(results, n, model) for n in results.sets}
        rows.append([model, *(cell for name in results.sets for cell in (ours[name], PAPER[name][model]))])
    return f"""# Table 3: the synthetic sets

{results.opening(seeds, " --compare-sizes" if results.others else "")}

`--jobs 2` runs two data sets at a time and gives the same bytes. `--from results/synthetic.json` rewrites the page
from stored results.

Test accuracy in percent, mean ± standard deviation over {results.repeats} data sets. † is significantly better than
FlatSVM and HSVM, ‡ than NHSVM (paired t-test over the data sets, two-sided, 5 %).

{table(header, rows)}

![Accuracies of every repeat, ours and the paper's](../images/synthetic.png)

Differences on the same data, in points:

{table(["", *results.sets], [[f"{a} − {b}", *(str(_of(results, n, a, b)) for n in results.sets)] for a, b in PAIRS])}

{_words(results)}
## Protocol

{_protocol(results)}

## How often each variant was chosen

{table(["", *results.sets], [[m, *(_how_often(results, n, m) for n in results.sets)] for m in MODELS], left=3)}

## How the sizes were found, and how the numbers move with them

{_FOUND}{_moved(results)}
"""


_FOUND = """The paper gives d = 1,000 and N (8,000 and 10,000 in its Table 2), not how many samples it trained on,
nor how the hyperplanes of the unbalanced set lie. **We chose both by looking at accuracies**, on one to three data
sets of other seeds: FlatSVM's number first, then NHSVM's. So that those two agree with the paper is no evidence; the
rest may be.

- **Balanced** (4 sizes tried): the more training samples, the better, so FlatSVM's 60.0 fixes their number: about
  5,500 of the 8,000. The other 2,500 are for testing.
- **Unbalanced** (9 settings tried, of size, features and cuts): cuts through the origin halve what they cut.
  FlatSVM's 68.5 then needs a little less than 4,000 training samples, where NHSVM gains 2 points, not 6. But a
  random hyperplane need not pass through the origin. If every cut gives 40 % to its leaf, deep leaves have more
  samples, the hierarchy matters more, and 8,000 training samples of 10,000 come closest to the paper.
  `make_unbalanced(share=0.4)` makes it.
"""

_MOVED = """
One C (0.05 and 5), one variant (max-min weights for the balanced, power for the unbalanced set, Eq. 13; SSVM with the
Hamming loss), mean accuracy over two data sets of each size, and over those of the table at its own sizes:

"""


def _moved(results: Results) -> str:
    if not results.others:
        return "\n`--compare-sizes` adds a table of accuracies at other sizes and cuts."
    header = ["data", "share of a cut", "training samples", *MODELS]
    rows = []
    for sizes, found in results.others:
        share = f"{100 * sizes.share:.0f} %" if sizes.kind == "unbalanced" else ""
        rows.append([sizes.kind, share, f"{sizes.n_train:,}", *(f"{np.mean(found[m]):.1f}" for m in MODELS)])
    return _MOVED + table(header, rows)


def _fixed(results: Results) -> str:
    """What is left of the differences to the paper if λ is not chosen, where that has been run."""
    others = dict(results.others)
    found = {name: others[sizes] for name, sizes in results.sets.items() if sizes in others}
    if found.keys() != results.sets.keys():
        return ""
    gains = {
        (name, model): float(np.mean(of[model]) - np.mean(of["FlatSVM"]))
        for name, of in found.items()
        for model in ("HSVM", "NHSVM")
    }
    return f"""
**What the choice of λ makes of it.** With one λ for all data sets, HSVM and NHSVM are
{gains["balanced", "HSVM"]:+.1f} and {gains["balanced", "NHSVM"]:+.1f} points from the flat SVM on the balanced set and
{gains["unbalanced", "HSVM"]:+.1f} and {gains["unbalanced", "NHSVM"]:+.1f} on the unbalanced one. So choosing λ on
held-out samples explains little of what differs from the paper; nor does the number of training samples (below). What
is left may lie in how the data are drawn, which the paper does not say in full, in its optimiser, whose gap it does not
give, or in its Algorithm 1 as printed: [Table 3, read otherwise](readings.md) tries these.
"""


def _words(results: Results) -> str:
    """What is better, by how much, why, where not; with the numbers of these results."""
    if results.quick:
        return ""
    over_flat = {n: _of(results, n, "NHSVM", "FlatSVM") for n in results.sets}
    over_hsvm = {n: _of(results, n, "NHSVM", "HSVM") for n in results.sets}
    hsvm = {n: _of(results, n, "HSVM", "FlatSVM").mean for n in results.sets}
    shared = {n: _of(results, n, "SSVM", "NHSVM").mean for n in results.sets}
    noise = 100 * np.sqrt(0.7 * 0.3 / results.sets["unbalanced"].n_test)
    few = "" if results.repeats >= 20 else f" With {results.repeats} data sets, not the paper's 20, all this is rough."
    return f"""**In words.** On the unbalanced set NHSVM is {over_flat["unbalanced"].mean:+.1f} points from the flat SVM
and {over_hsvm["unbalanced"].mean:+.1f} from HSVM (paper: +5.6 and +5.7); on the balanced set
{over_flat["balanced"].mean:+.1f} and {over_hsvm["balanced"].mean:+.1f} (paper: +3.3 and +0.5). HSVM is
{hsvm["unbalanced"]:+.1f} points from the flat SVM on the unbalanced set and {hsvm["balanced"]:+.1f} on the balanced
one (paper: −0.1 and +2.8).{few} The reason the paper gives: the one-sided tree has leaves at depths 1 to 10, so HSVM
charges a deep label a tenth of what it charges a shallow one, and asks for more margin; weights that add up to one on
every path undo that.

**Where not.** SSVM is {shared["unbalanced"]:+.1f} points from NHSVM on the unbalanced set and
{shared["balanced"]:+.1f} on the balanced one, where the paper has +0.8 and +0.1. We solve SSVM's convex problem to a
proved gap; the paper alternates between weights and vectors.
[An alternation that is stopped early](../shared.md#stopping-early) is between the two on this set for the zero-one
loss, so that it can be a part of the difference, but never above NHSVM, so that it is not all of it. Its
Algorithm 1 as printed, which does not find the optimum, [is tried too](readings.md). The paper's ±
are also smaller than they can be for new data sets: with {results.sets["unbalanced"].n_test:,} test samples, chance
alone gives ± {noise:.1f}, and its ± .07 would take more than 400,000. They may be standard errors, or repeats of the
stochastic method on one data set.
{_fixed(results)}"""


def _protocol(results: Results) -> str:
    parts = [_described(sizes) for sizes in results.sets.values()]
    return f"""- {parts[0]}
- {parts[1]}
- λ ∈ {{10⁻⁸, …, 10²}}, C = 1/(2λ), from large to small λ, each fit starting from the one before. All values up to
  C = {WHOLE_FROM:g} are tried; from there on, to spare the slowest fits, a path ends with the first value that is not
  better on held-out samples.
- NHSVM: ρ = 2 and max-min weights, each as Eq. 10 and Eq. 13. (ρ = 2 with directional constraints has the max-min
  weights on both trees.) SSVM: zero-one and Hamming loss. HSVM: Hamming loss. FlatSVM: Crammer–Singer.
- Variant and λ have the best accuracy on {100 * HELD_OUT:.0f} % of the training samples, held out; then all training
  samples are learned from. Proved gaps: at most {SEARCH_TOL:g} in the search, {TOL:g} in the end."""


def _described(sizes: Sizes) -> str:
    tree = "complete binary tree, 15 nodes, 8 leaves"
    if sizes.kind != "balanced":
        share = f"{100 * sizes.share:.0f} %"
        tree = f"one-sided tree, 10 cuts, 11 leaves; a leaf gets {share} of what its cut cuts"
    return (
        f"**{sizes.kind.capitalize()}**: {tree}; {sizes.n_features:,} features, {sizes.n_train:,} training and "
        f"{sizes.n_test:,} test samples."
    )


def _of(results: Results, name: str, first: str, second: str) -> Difference:
    return paired(results.accuracies(name, first), results.accuracies(name, second))


def _how_often(results: Results, name: str, model: str) -> str:
    found = results.outcomes[name, model]
    variants = ", ".join(f"{n} × {v}" for v, n in Counter(o.setting for o in found).most_common() if v != "–")
    values = ", ".join(f"{lam:g} ({n})" for lam, n in sorted(Counter(o.lam for o in found).items()))
    return f"{variants + '; ' if variants else ''}λ = {values}"


def picture_of(results: Results) -> Figure:
    """Every repeat as a dot, means as bars, the paper's means as crosses."""
    made = figure(9, 4)
    for ax, name in zip(made.subplots(1, len(results.sets)), results.sets, strict=True):
        for k, model in enumerate(MODELS):
            values = np.array(results.accuracies(name, model))
            spread = np.linspace(-0.22, 0.22, len(values))
            ax.scatter(k + spread, values, s=12, color=COLOURS[k], alpha=0.7)
            ax.hlines(values.mean(), k - 0.3, k + 0.3, color=COLOURS[k], linewidth=2)
            if not results.quick:
                ax.scatter(k, float(PAPER[name][model].split()[0]), marker="x", color="black", s=40, zorder=3)
        ax.set_xticks(range(len(MODELS)), MODELS)
        ax.set(title=name, ylabel="test accuracy, %")
        open_frame(ax)
    made.suptitle(
        "Dots: data sets, lines: their mean" + ("" if results.quick else ", crosses: the paper's mean"), fontsize=10
    )
    return made
