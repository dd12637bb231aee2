"""How time and memory grow with documents, words, nodes and labels a document: runs, a fitted law, a picture.

    python benchmarks/scale/study.py --records study.json                 # runs what the file does not have yet
    python benchmarks/scale/study.py --records study.json --out docs      # also the page and the picture

Every run is ``run.py`` in a process of its own: the shape of ``tree7k`` at a fifth of its size, with one of the four
made smaller or larger. Label sets begin at two labels a document. The law is a product of powers, fitted to the
logarithms by least squares; what it says of sizes far from these is a guess.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
BASE = ["--shape", "tree7k", "--size", "0.2", "--tol", "0.01", "--jobs", "1"]
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
KINDS = ("samples", "features", "nodes")
LABELS = (2.0, 4.0)
SAID = {"samples": "documents", "features": "words", "nodes": "nodes", "labels": "labels a document"}
FAR = {"samples": 20_000_000, "features": 1_000_000, "nodes": 300_000}  # what the law is asked about

Record = dict[str, Any]


def runs() -> list[tuple[str, float]]:
    return [(kind, factor) for kind in KINDS for factor in FACTORS if factor != 1.0 or kind == KINDS[0]] + [
        ("labels", factor) for factor in LABELS
    ]


def run(kind: str, factor: float) -> Record:
    """One fit in its own process, so that its peak memory is its own."""
    # all in rows: one law should not speak of two kinds of storage
    command = [sys.executable, str(HERE / "run.py"), *BASE, "--times", f"{kind}={factor}", "--rows"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Record = json.loads(done.stdout[done.stdout.index("{\n") :])
    return {"kind": kind, "factor": factor, **found}


def law(records: list[Record], measured: str) -> tuple[dict[str, float], float, float]:
    """Exponents of the product of powers, its constant (a logarithm), and how far off it is, as a factor."""
    A = np.array([[1.0, *(np.log(r[kind]) for kind in KINDS)] for r in records])
    b = np.log([r[measured] for r in records])
    x, *_ = np.linalg.lstsq(A, b, rcond=None)
    off = float(np.exp(np.abs(A @ x - b).max()))
    return dict(zip(KINDS, x[1:].tolist(), strict=True)), float(x[0]), off


def said(records: list[Record], measured: str, far: dict[str, float]) -> tuple[str, float]:
    """The law in one line, and what it says of ``far``."""
    powers, constant, off = law(records, measured)
    line = " · ".join(f"{SAID[kind]}^{power:.2f}" for kind, power in powers.items())
    value = float(np.exp(constant + sum(power * np.log(far[kind]) for kind, power in powers.items())))
    return f"{line}, within a factor of {off:.2f}", value


def page(records: list[Record]) -> str:
    single = [r for r in records if r["kind"] != "labels"]
    rows = [
        f"| {r['samples']:,} | {r['features']:,} | {r['nodes']:,} | {r['labels']:g} | {r['cpu_seconds']:.1f} | "
        f"{r['passes']} | {1000 * r['added_gb']:.0f} |"
        for r in records
    ]
    time, far_time = said(single, "cpu_seconds", FAR)
    memory, far_memory = said(single, "added_gb", FAR)
    far = f"{FAR['samples']:,} documents, {FAR['features']:,} words and {FAR['nodes']:,} nodes"
    return f"""# Growth with size

    python benchmarks/scale/study.py --records docs/results/scale_study.json --out docs

Made by this command. Generated texts (`benchmarks/scale/shapes.py`), `NHSVM` with C = 1 to a proved gap of 1 %, one
thread, weights in rows. One run each. Memory is the peak of the process beyond what it had before the fit.

| documents | words | nodes | labels a document | processor seconds | passes | memory, MB |
|--:|--:|--:|--:|--:|--:|--:|
{chr(10).join(rows)}

![Time and memory of fits of growing size](../images/scale_study.png)

**Time** is about proportional to {time}, for one label a document.

**Memory** of weights and dual variables is about proportional to {memory}.

**On paper**: for {far}, the laws say {far_time / 3600:,.0f} hours of one processor and {far_memory:,.0f} GB.
Nobody has tried, and powers fitted to sizes a hundred to a thousand times smaller may be far off.
"""


def picture(records: list[Record], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for kind in (*KINDS, "labels"):
        own = [r for r in records if r["kind"] == kind or (r["factor"] == 1.0 and kind != "labels")]
        own.sort(key=lambda r: float(r["factor"]))
        x = [r["factor"] for r in own]
        for axes, values in ((left, "cpu_seconds"), (right, "added_gb")):
            y: npt.NDArray[np.float64] = np.array([r[values] for r in own]) * (1 if values == "cpu_seconds" else 1000)
            axes.loglog(x, y, "o-", label=SAID[kind] if kind != "labels" else "labels a document (times 1)")
    for axes, title in ((left, "processor seconds"), (right, "memory added, MB")):
        axes.set_title(title)
        axes.set_xlabel("times the base: 20,000 documents,\n30,000 words, 1,400 nodes, one label")
        axes.grid(alpha=0.3, which="both")
    left.legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="folder with results/ and images/")
    options = parser.parse_args()
    records: list[Record] = json.loads(options.records.read_text()) if options.records.exists() else []
    there = {(r["kind"], r["factor"]) for r in records}
    for kind, factor in runs():
        if (kind, factor) not in there:
            records.append(run(kind, factor))
            options.records.write_text(json.dumps(records, indent=1) + "\n")
            print(kind, factor, f"{records[-1]['cpu_seconds']:.1f} s", flush=True)
    if options.out is not None:
        (options.out / "results" / "scale_study.md").write_text(page(records))
        picture(records, options.out / "images" / "scale_study.png")


if __name__ == "__main__":
    main()
