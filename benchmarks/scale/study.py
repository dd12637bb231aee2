"""How time and memory grow with documents, words, nodes and labels a document: runs, a fitted law, a picture.

    python benchmarks/scale/study.py --records study.json                 # runs what the file does not have yet
    python benchmarks/scale/study.py --records study.json --out docs      # also the page and the picture
    python benchmarks/scale/study.py --records tiny.json --size 0.02      # to see that it works

Every run is ``run.py`` in a process of its own: the shape of ``tree7k`` at a fifth of its size, with one of the four
made smaller or larger. Leaves, which are the labels, are five of seven nodes throughout. Documents with several labels
are learned by another machine, that of label sets, so these have a law of their own. The law is a product of powers,
fitted to the logarithms by least squares. What it says is put beside one run that is larger in everything, which it was
not fitted to; what it says of sizes far beyond is a guess.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SIZE = 0.2  # of tree7k
TOL = 0.01
BASE = ["--shape", "tree7k", "--tol", str(TOL), "--jobs", "1", "--rows"]  # rows: no law of two kinds of storage
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
KINDS = ("samples", "features", "nodes")
LABELS = (1.5, 2.0, 3.0, 4.0)  # a document; label sets
ALL = 5.0  # documents, words and nodes times this: what the law is checked by
SAID = {"samples": "documents", "features": "words", "nodes": "nodes", "labels": "labels"}
FAR = {"samples": 20_000_000, "features": 1_000_000, "nodes": 300_000}  # what the law is asked about
MEASURED = ("cpu_seconds", "added_gb")

Record = dict[str, Any]
Law = tuple[dict[str, float], float]  # exponents, and the logarithm of the constant


def runs() -> list[tuple[str, float]]:
    """What is made larger or smaller, and by how much; the base is the one of ``samples`` times one."""
    single = [(kind, factor) for kind in KINDS for factor in FACTORS if factor != 1.0 or kind == KINDS[0]]
    return [*single, *(("labels", factor) for factor in LABELS), ("all", ALL)]


def run(kind: str, factor: float, size: float) -> Record:
    """One fit in its own process, so that its peak memory is its own."""
    times = [f"{name}={factor}" for name in (KINDS if kind == "all" else (kind,))]
    command = [sys.executable, str(HERE / "run.py"), *BASE, "--size", str(size), "--times", *times]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Record = json.loads(done.stdout[done.stdout.index("{\n") :])
    return {"kind": kind, "factor": factor, **found}


def law(records: list[Record], measured: str, kinds: tuple[str, ...] = KINDS) -> Law:
    """Exponents of the product of powers that is nearest to what was measured."""
    A = np.array([[1.0, *(np.log(r[kind]) for kind in kinds)] for r in records])
    x, *_ = np.linalg.lstsq(A, np.log([r[measured] for r in records]), rcond=None)
    return dict(zip(kinds, x[1:].tolist(), strict=True)), float(x[0])


def value(found: Law, at: Record) -> float:
    powers, constant = found
    return float(np.exp(constant + sum(power * np.log(at[kind]) for kind, power in powers.items())))


def said(records: list[Record], measured: str, kinds: tuple[str, ...] = KINDS) -> str:
    """The law in one line, with how far off it is where it was fitted."""
    found = law(records, measured, kinds)
    ratios = [value(found, r) / r[measured] for r in records]
    off = max(max(ratio, 1 / ratio) for ratio in ratios)
    line = " · ".join(f"{SAID[kind]}^{power:.2f}" for kind, power in found[0].items())
    return f"{line} (off by a factor of {off:.2f} at the most in the {len(records)} runs that it was fitted to)"


def asked(records: list[Record], measured: str, at: Record) -> tuple[float, float, float]:
    """What the law says, and the least and most that it says with any one run left out."""
    without = [law([r for r in records if r is not left], measured) for left in records]
    values = [value(found, at) for found in without]
    return value(law(records, measured), at), min(values), max(values)


def beyond_the_check(records: list[Record], measured: str, check: Record, **powers: float) -> float:
    """What ``FAR`` takes, from what was measured of the largest run; by powers of the law, but for those given."""
    found = law(records, measured)[0] | powers
    return float(check[measured] * np.prod([(FAR[kind] / check[kind]) ** found[kind] for kind in KINDS]))


def parts(records: list[Record]) -> tuple[list[Record], list[Record], Record]:
    """One label a document, label sets, and the run that laws are checked by."""
    (check,) = [r for r in records if r["kind"] == "all"]
    return [r for r in records if r["kind"] in KINDS], [r for r in records if r["kind"] == "labels"], check


def page(records: list[Record], size: float) -> str:
    single, several, check = parts(records)
    (base,) = [r for r in single if r["factor"] == 1.0]
    rows = [
        f"| {r['samples']:,} | {r['features']:,} | {r['nodes']:,} | {r['labels']:g} | {r['cpu_seconds']:.1f} | "
        f"{r['passes']} | {1000 * r['added_gb']:,.0f} |"
        for r in records
    ]
    (time, *times), (memory, *memories) = (asked(single, measured, FAR) for measured in MEASURED)
    check_time, check_memory = (asked(single, measured, check)[0] for measured in MEASURED)
    far = f"{FAR['samples']:,} documents, {FAR['features']:,} words and {FAR['nodes']:,} nodes"
    beyond = [FAR[kind] / max(r[kind] for r in records) for kind in KINDS]
    linear = ""
    if law(single, "cpu_seconds")[0]["samples"] < 1:
        hours = beyond_the_check(single, "cpu_seconds", check, samples=1.0) / 3600
        linear = f"""
A power of documents below one cannot hold for ever, since every document has to be visited. With the time of the
largest run as it was, and from there on documents to the power of one and words and nodes as in the law, it would be
{hours:,.0f} hours. Memory has a part for every document too, the dual variables.
"""
    anchored = beyond_the_check(single, "added_gb", check)
    two = next((r for r in several if r["labels"] == 2.0), several[0])
    sets = [two[measured] / base[measured] for measured in MEASURED]
    option = "" if size == SIZE else f" --size {size:g}"
    return f"""# Growth with size

    python benchmarks/scale/study.py --records docs/results/scale_study.json{option} --out docs

Made by this command. Generated texts (`benchmarks/scale/shapes.py`) on a tree of three levels, five of seven nodes
being leaves; `NHSVM` with C = 1 to a proved gap of {TOL:.0%}, one thread, weights in rows. Seconds are the
processor's, of the whole fit without compiling. Memory is what the fit had at its peak beyond what the process had
before it. Labels a document are an average: one for each, or label sets. One run each, on a machine that others may
have used at the time: small differences mean nothing.

| documents | words | nodes | labels a document | processor seconds | passes | memory, MB |
|--:|--:|--:|--:|--:|--:|--:|
{chr(10).join(rows)}

![Time and memory of fits of growing size](../images/scale_study.png)

Dashed lines are the fitted laws.

**Time**, one label a document: about proportional to
{said(single, "cpu_seconds")}.

**Memory**, one label a document: about proportional to
{said(single, "added_gb")}.

**Label sets**, at {several[0]["samples"]:,} documents: time goes with
{said(several, "cpu_seconds", ("labels",))}, memory with
{said(several, "added_gb", ("labels",))}.
Documents with more labels have no more words. As many documents with one label each take {base["cpu_seconds"]:.1f} s
and {1000 * base["added_gb"]:,.0f} MB.

**The laws beside a run that they were not fitted to**: for {check["samples"]:,} documents, {check["features"]:,} words
and {check["nodes"]:,} nodes they say {check_time:,.1f} processor seconds and {check_memory:.2f} GB. It took
{check["cpu_seconds"]:,.1f} s and {check["added_gb"]:.2f} GB: the laws say {check_time / check["cpu_seconds"]:.2f} times
the time and {check_memory / check["added_gb"]:.2f} times the memory.

**On paper**: for {far}, one label a document, the laws say
{time / 3600:,.0f} hours of one processor ({times[0] / 3600:,.0f} to {times[1] / 3600:,.0f} with any one run left out)
and {memory:,.0f} GB ({memories[0]:,.0f} to {memories[1]:,.0f}), beside the documents. What the law says of memory is
{check_memory / check["added_gb"]:.2f} times what the largest run took; from that run on, with the powers of the law, it
would be {anchored:,.0f} GB.
{linear}
Label sets, {two["labels"]:g} labels a document, took {sets[0]:.1f} times the time and {sets[1]:.1f} times the memory
of one label at {two["samples"]:,} documents. If that stays so, these numbers are to be multiplied by it; no run here
tells.

These sizes are {beyond[0]:,.0f} times the documents, {beyond[1]:,.0f} times the words and {beyond[2]:,.0f} times the
nodes of the largest run. Nobody has tried it, and real texts are not drawn as these were: read it as an order of
magnitude.
"""


def picture(records: list[Record], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    single, several, _ = parts(records)
    (base,) = [r for r in single if r["factor"] == 1.0]
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    titles = ("processor seconds", "memory of the fit, MB")
    for ax, measured, title, unit in zip(axes, MEASURED, titles, (1, 1000), strict=True):
        for k, kind in enumerate((*KINDS, "labels")):
            own = several if kind == "labels" else [r for r in single if r["kind"] == kind or r is base]
            own = sorted(own, key=lambda r: float(r["factor"]))
            found = law(several, measured, ("labels",)) if kind == "labels" else law(single, measured)
            x = [r["factor"] for r in own]
            label = "labels a document (label sets)" if kind == "labels" else SAID[kind]
            ax.plot(x, [unit * r[measured] for r in own], "os^D"[k], color=f"C{k}", label=label)
            ax.plot(x, [unit * value(found, r) for r in own], "--", color=f"C{k}", linewidth=1)
        ax.set(xscale="log", yscale="log", title=title)
        ax.set_xlabel(
            f"times {base['samples']:,} documents, {base['features']:,} words,\n{base['nodes']:,} nodes, 1 label"
        )
        ax.set_xticks((0.25, 0.5, 1, 2, 4), ("¼", "½", "1", "2", "4"))
        ax.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        ax.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda y, _: f"{y:,g}"))
        ax.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        ax.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--size", type=float, default=SIZE, help="of the base, as a share of tree7k")
    parser.add_argument("--out", type=Path, help="folder with results/ and images/")
    options = parser.parse_args()
    records: list[Record] = json.loads(options.records.read_text()) if options.records.exists() else []
    if any(r["size"] != options.size for r in records):
        parser.error(f"{options.records} has runs of another size")
    there = {(r["kind"], r["factor"]) for r in records}
    for kind, factor in runs():
        if (kind, factor) not in there:
            records.append(run(kind, factor, options.size))
            options.records.write_text(json.dumps(records, indent=1) + "\n")
            print(kind, factor, f"{records[-1]['cpu_seconds']:.1f} s", flush=True)
    if options.out is not None:
        (options.out / "results" / "scale_study.md").write_text(page(records, options.size), encoding="utf-8")
        picture(records, options.out / "images" / "scale_study.png")


if __name__ == "__main__":
    main()
