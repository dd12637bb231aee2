"""The page and the picture of Table 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nhsvm.errors import DataError
from nhsvm.reproduce._benchmarks_protocol import PAPERS_OWN, absent, protocol
from nhsvm.reproduce._benchmarks_words import better, words
from nhsvm.reproduce._compare import LEVEL, shown_p
from nhsvm.reproduce._outcomes import MODELS, Outcome, Pair, SetResult
from nhsvm.reproduce._page import COLOURS, figure, read_results, table, write_page
from nhsvm.reproduce.benchmarks import SETS, Results

NAME = "benchmarks"
_PAIRS = (("NHSVM", "FlatSVM"), ("NHSVM", "HSVM"), ("HSVM", "FlatSVM"), ("SSVM", "FlatSVM"), ("SSVM", "NHSVM"))


def write(results: Results, out: Path) -> list[Path]:
    """Write ``results/benchmarks.md``, ``results/benchmarks.json`` and ``images/benchmarks.png``."""
    return write_page(out, NAME, text_of(results), picture_of(results), results.to_json())


def stored(out: Path) -> Results:
    """Results of earlier runs below a folder."""
    path = out / "results" / f"{NAME}.json"
    if not path.is_file():
        return Results()
    try:
        return read_results(path, Results.from_json)
    except DataError as error:
        raise DataError(f"{error}; move it away to begin anew") from error


def marks(result: SetResult, model: str) -> str:
    """† for better than FlatSVM and HSVM, ‡ for better than NHSVM, by a paired test over test samples."""
    dagger = model in ("NHSVM", "SSVM") and all(better(result, model, other) for other in ("FlatSVM", "HSVM"))
    return (" †" if dagger else "") + (" ‡" if model == "SSVM" and better(result, model, "NHSVM") else "")


def text_of(results: Results) -> str:
    """The page."""
    versions = sorted({result.versions for result in results.sets.values()})
    seeds = ", ".join(map(str, results.seeds))
    return f"""# Table 4's protocol on real sets

    {results.command}

Made by this command, which rewrites the page and its picture after every set, and goes on where a run was stopped:
sets in `results/{NAME}.json` are not run again. `--sets a,b` chooses, `--from results/{NAME}.json` rewrites the page
and runs nothing. {"; ".join(versions)}. Seed {seeds}.

Accuracy on test samples in percent, the best of a row bold. With one label a sample it is the share of right labels;
with label sets it is what the LSHTC challenges call accuracy, the mean Jaccard index of true and predicted labels.
† is significantly better than FlatSVM and HSVM, ‡ than NHSVM, two-sided, {100 * LEVEL:.0f} %, on the same test samples:
McNemar's exact test for one label, a paired t-test over samples for label sets. Nothing is corrected for the number of
comparisons: where there is no difference at all, one comparison in twenty would still come out as significant.

{_main(results)}

![Differences to the flat SVM on every set](../images/{NAME}.png)

{words(results)}
## Differences

On the same test samples, in points of the accuracy above, with p.

{_differences(results)}

## Set by set

"Exact" is the share of samples with exactly the right set of labels; macro-F1 is over labels that are true or
predicted in some test sample; hierarchical F1 counts nodes, with everything above a label. λ is marked * at an end of
what was tried. "Fit" is processor time of the last fit, one thread, of a machine with other work; "gap" is proved: the
objective is above the optimum by that share of itself at most.

{_set_by_set(results)}
## Protocol

{protocol(results)}

## Sets that are not in this table

{absent(results)}

## The paper's own sets

{PAPERS_OWN}
"""


def _main(results: Results) -> str:
    papers = any(SETS[name].paper for name in results.sets)
    header = ["", "labels", "graph", *MODELS, *(f"{m}, paper" for m in MODELS if papers)]
    rows = []
    for name, result in results.sets.items():
        best = max(_rounded(result, m) for m in MODELS)
        cells = [_bold(_rounded(result, m), best) + marks(result, m) for m in MODELS]
        paper = [SETS[name].paper.get(m, "") for m in MODELS if papers]
        rows.append([name, *_kind(result), *cells, *paper])
    return table(header, rows, left=3)


def _rounded(result: SetResult, model: str) -> float:
    return round(result.score(model), 1)


def _bold(value: float, best: float) -> str:
    return f"**{value:.1f}**" if value == best else f"{value:.1f}"


def _kind(result: SetResult) -> tuple[str, str]:
    labels = f"{result.facts['labels']:.1f} a sample" if result.multilabel else "one"
    return labels, "tree" if result.facts["is_tree"] else "DAG"


def _differences(results: Results) -> str:
    header = ["", *(f"{a} − {b}" for a, b in _PAIRS)]
    return table(header, [[n, *(_shown(r.pair(a, b)) for a, b in _PAIRS)] for n, r in results.sets.items()])


def _shown(pair: Pair) -> str:
    return f"{pair.mean:+.1f} ({shown_p(pair.p)})"


def _set_by_set(results: Results) -> str:
    parts = []
    for name, result in results.sets.items():
        header = ["model", "chosen", "λ", *_measures(result), "fit, s", "passes", "gap"]
        rows = [[m, result.outcomes[m].setting, *_cells(result, result.outcomes[m])] for m in MODELS]
        parts.append(f"### {name}\n\n{_described(result)}\n\n{table(header, rows, left=2)}\n")
    return "\n".join(parts)


def _measures(result: SetResult) -> list[str]:
    return ["Jaccard", "exact", "macro-F1", "hierarchical F1"] if result.multilabel else [
        "accuracy", "macro-F1", "hierarchical F1"]  # fmt: skip


def _cells(result: SetResult, o: Outcome) -> list[str]:
    scores = [o.jaccard, o.accuracy] if result.multilabel else [o.accuracy]
    shown = [f"{value:.1f}" for value in (*scores, o.macro_f1, o.hierarchical_f1)]
    edge = "\\*" * (o.lam in (min(result.effort.lambdas), max(result.effort.lambdas)))
    return [f"{o.lam:g}{edge}", *shown, f"{o.seconds:.1f}", str(o.passes), f"{_up(o.gap):.1e}"]


def _up(gap: float) -> float:
    """A bound is not to look smaller than it is: two digits, rounded up."""
    unit = 10.0 ** (np.floor(np.log10(max(gap, 1e-300))) - 1)
    return float(np.ceil(gap / unit - 1e-9) * unit)


def _described(result: SetResult) -> str:
    f = result.facts
    return (
        f"{f['n_train']:,} + {f['n_test']:,} samples, {f['n_features']:,} features ({f['features']}), {f['n_nodes']:,} "
        f"nodes, {f['n_leaves']:,} leaves. Chosen on {f['chosen_on']}."
    )


def picture_of(results: Results) -> Any:
    """Differences to the flat SVM, a row a set, a dot a model; filled where significant."""
    names = list(results.sets)[::-1]
    made = figure(8, 1.2 + 0.36 * max(1, len(names)))
    ax = made.subplots()
    ax.axvline(0, color="grey", linewidth=1)
    for k, model in enumerate(MODELS[1:], 1):
        pairs = [results.sets[name].pair(model, "FlatSVM") for name in names]
        rows = np.arange(len(names)) + 0.2 * (2 - k)
        sure = [COLOURS[k] if pair.p < LEVEL else "white" for pair in pairs]
        ax.scatter([p.mean for p in pairs], rows, s=36, c=sure, edgecolors=COLOURS[k], zorder=3)
        ax.scatter([], [], s=36, color=COLOURS[k], label=model)
    ax.set_yticks(range(len(names)), names)
    ax.set_xscale("symlog", linthresh=1)  # one set with a large difference must not hide the others
    widest = max((abs(r.pair(m, "FlatSVM").mean) for r in results.sets.values() for m in MODELS[1:]), default=1.0)
    ticks = [tick for tick in (0, 0.5, 1, 2, 5, 10, 20, 50) if tick <= max(1.0, 1.2 * widest)]
    ticks = [*(-tick for tick in ticks[:0:-1]), *ticks]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("accuracy minus that of the flat SVM, points; filled: significant")
    ax.grid(axis="y", linewidth=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(-0.6, len(names) - 0.4)
    made.legend(frameon=False, ncols=3, loc="outside upper center")
    return made
