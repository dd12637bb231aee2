"""A plain ``NHSVM()`` beside PECOS XR-Linear with the better of its trees and its best C: accuracy, and processor time.

    python benchmarks/peers/setup.py --only pecos
    python benchmarks/quick_accuracy.py --data DIR --scratch DIR

It is the comparison of ``benchmarks/peers`` with few models: the same data, splits and processes. Nothing is set or
tried for ours. PECOS has six values of C, within ``--budget`` seconds a tree; times are those of the last fit alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from quick import parsed

PEERS = Path(__file__).resolve().parent / "peers"
SETS = ("clinc150", "newsgroups20", "docstrings", "lshtc_dryrun", "mitre_attack", "imclef07a", "generated")
OURS, TREES = "NHSVM, plain", ("PECOS, given tree", "PECOS, own tree")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--scratch", type=Path, help="folder for prepared data and records")
    parser.add_argument("--envs", type=Path, default=PEERS / "envs", help="folder of environments")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--budget", type=float, default=30.0, help="processor seconds to try values of C")
    parser.add_argument("--threads", type=int, default=1)
    options = parsed(parser, sets=["docstrings"])
    if options.data is None or options.scratch is None:
        parser.error("--data DIR (or NHSVM_DATA) and --scratch DIR are needed")
    records = options.scratch / "quick_accuracy.json"
    subprocess.run(
        [
            sys.executable, str(PEERS / "run.py"), "--data", str(options.data), "--scratch", str(options.scratch),
            "--envs", str(options.envs), "--records", str(records), "--sets", *options.sets, "--peers", OURS, *TREES,
            "--budget", str(options.budget), "--threads", str(options.threads), "--again",
        ],
        check=True,
    )  # fmt: skip
    columns = ("accuracy", "hierarchical F1", "CPU s")
    print("| set |", *(f"{who}: {what} |" for who in ("plain NHSVM", "PECOS") for what in columns), "ours / PECOS |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, found in json.loads(records.read_text(encoding="utf-8")).items():
        cells = found["cells"]
        trees = [cells[tree]["final"] for tree in TREES if "final" in cells.get(tree, {})]
        ours, theirs = cells[OURS]["final"], max(trees, key=lambda cell: cell["accuracy"], default=None)
        told = [name, *_row(ours)]
        told += ["–"] * 4 if theirs is None else [*_row(theirs), f"{ours['fit_cpu'] / theirs['fit_cpu']:.2f}"]
        print("| " + " | ".join(told) + " |")


def _row(cell: dict[str, float]) -> list[str]:
    return [f"{cell['accuracy']:.4f}", f"{cell['hierarchical_f1']:.4f}", f"{cell['fit_cpu']:.2f}"]


if __name__ == "__main__":
    main()
