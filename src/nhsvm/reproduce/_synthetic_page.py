"""The page and the picture of Table 3."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from nhsvm.reproduce._compare import Difference, mean_and_deviation, paired
from nhsvm.reproduce._page import COLOURS, figure, made_by, table, write_page
from nhsvm.reproduce._synthetic import HELD_OUT, MODELS, SEARCH_TOL, TOL, WHOLE_FROM, Sizes
from nhsvm.reproduce.synthetic import Results

PAPER = {
    "balanced": {"FlatSVM": "60 ± .24", "HSVM": "62.8 ± .39", "NHSVM": "63.3 ± .34 †", "SSVM": "63.4 ± .35"},
    "unbalanced": {"FlatSVM": "68.5 ± .1", "HSVM": "68.4 ± .07", "NHSVM": "74.1 ± .2 †", "SSVM": "74.9 ± .4 ‡"},
}
_PAIRS = (("NHSVM", "FlatSVM"), ("NHSVM", "HSVM"), ("HSVM", "FlatSVM"), ("SSVM", "FlatSVM"), ("SSVM", "NHSVM"))


def write(results: Results, out: Path) -> list[Path]:
    """Write ``results/synthetic.md``, ``results/synthetic.json`` and ``images/synthetic.png``."""
    return write_page(out, "synthetic", text_of(results), picture_of(results), results.to_json())


def marks(results: Results, name: str, model: str) -> str:
    """† for better than FlatSVM and HSVM, ‡ for better than NHSVM, by a paired test."""
    own = results.accuracies(name, model)
    better = {other: paired(own, results.accuracies(name, other)).better for other in MODELS if other != model}
    dagger = model in ("NHSVM", "SSVM") and better["FlatSVM"] and better["HSVM"]
    return (" †" if dagger else "") + (" ‡" if model == "SSVM" and better["NHSVM"] else "")


def text_of(results: Results) -> str:
    """The page."""
    more = (" --quick" if results.quick else "") + (" --compare-sizes" if results.others else "")
    command = f"nhsvm reproduce synthetic --repeats {results.repeats} --seed {results.seed}{more}"
    seeds = f"Repeat k draws its data with the seeds ({results.seed}, k), k = 0 to {results.repeats - 1}."
    note = "\n\n**Small data, to see that the command works: these numbers say nothing.**" if results.quick else ""
    header = ["", *(f"{name}, {who}" for name in results.sets for who in ("ours", "paper"))]
    rows = [[m, *(cell for name in results.sets for cell in _cells(results, name, m))] for m in reversed(MODELS)]
    return f"""# Table 3: the synthetic sets

{made_by(command, seeds)}{note}

`--jobs 2` runs two data sets at a time and gives the same bytes. `--from results/synthetic.json` rewrites the page
from stored results.

Test accuracy in percent, mean ± standard deviation over {results.repeats} data sets. † is significantly better than
FlatSVM and HSVM, ‡ than NHSVM (paired t-test over the data sets, two-sided, 5 %).

{table(header, rows)}

![Accuracies of every repeat, ours and the paper's](../images/synthetic.png)

Differences on the same data, in points:

{table(["", *results.sets], [[f"{a} − {b}", *(str(_of(results, n, a, b)) for n in results.sets)] for a, b in _PAIRS])}

{_words(results)}
## Protocol

{_protocol(results)}

## How often each variant was chosen

{table(["", *results.sets], [[m, *(_chosen(results, n, m) for n in results.sets)] for m in MODELS], left=3)}

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
    return _MOVED + table(header, [_other(sizes, accuracies) for sizes, accuracies in results.others])


def _fixed(results: Results) -> str:
    """What is left of the differences to the paper if λ is not chosen, where that has been run."""
    found = {name: dict(results.others).get(sizes) for name, sizes in results.sets.items()}
    if not all(found.values()):
        return ""
    gains = {
        (name, model): float(np.mean(of[model]) - np.mean(of["FlatSVM"]))
        for name, of in found.items()
        if of is not None
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
    tree = (
        "complete binary tree, 15 nodes, 8 leaves" if sizes.kind == "balanced" else "one-sided tree, 10 cuts, 11 leaves"
    )
    cut = "" if sizes.kind == "balanced" else f"; a leaf gets {100 * sizes.share:.0f} % of what its cut cuts"
    return (
        f"**{sizes.kind.capitalize()}**: {tree}{cut}; {sizes.n_features:,} features, {sizes.n_train:,} training and "
        f"{sizes.n_test:,} test samples."
    )


def _cells(results: Results, name: str, model: str) -> tuple[str, str]:
    return mean_and_deviation(results.accuracies(name, model)) + marks(results, name, model), PAPER[name][model]


def _of(results: Results, name: str, first: str, second: str) -> Difference:
    return paired(results.accuracies(name, first), results.accuracies(name, second))


def _chosen(results: Results, name: str, model: str) -> str:
    found = results.outcomes[name, model]
    variants = ", ".join(f"{n} × {v}" for v, n in Counter(o.setting for o in found).most_common() if v != "–")
    values = ", ".join(f"{lam:g} ({n})" for lam, n in sorted(Counter(o.lam for o in found).items()))
    return f"{variants + '; ' if variants else ''}λ = {values}"


def _other(sizes: Sizes, accuracies: dict[str, list[float]]) -> list[str]:
    share = f"{100 * sizes.share:.0f} %" if sizes.kind == "unbalanced" else ""
    return [sizes.kind, share, f"{sizes.n_train:,}", *(f"{np.mean(accuracies[m]):.1f}" for m in MODELS)]


def picture_of(results: Results) -> Any:
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
        ax.spines[["top", "right"]].set_visible(False)
    made.suptitle(
        "Dots: data sets, lines: their mean" + ("" if results.quick else ", crosses: the paper's mean"), fontsize=10
    )
    return made
