"""WordNet's nouns: the gloss of a word to the nodes above it, a DAG of 17,157 nodes with labels on inner nodes too.

    python benchmarks/scale/wordnet.py --data DIR                       # NHSVM beside one machine a label
    python benchmarks/scale/wordnet.py --data DIR --models NHSVM --C 1
    python benchmarks/peers/setup.py --only pecos                       # PECOS's environment, once
    python benchmarks/scale/wordnet.py --data DIR --models PECOS-own PECOS-given PECOS-none

Nine glosses of ten are learned from, every tenth is asked about. Rows are tf-idf of words and pairs of words.
``FlatSVM`` with label sets is one linear machine with the hinge loss a label. Times are of the whole fit, the first of
a process with what has to be compiled; the gap is proved.

PECOS (XR-Linear, squared hinge) learns from the same rows, on its own tree of labels (k-means), on the given hierarchy
with the first parent of every node, or without a tree, which is one linear machine a label again. It ranks labels. The
set is the first, and those of the next nine whose scores are above a threshold. The threshold is the one with the best
Jaccard on a tenth of the glosses to learn from, asked of a fit to the other nine; PECOS is then fitted to all of them.
Its seconds, and its memory, are those of this last fit; the choice takes ``choice_seconds`` besides.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from run import in_use, peak
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

import nhsvm
from nhsvm.datasets import read_jsonl
from nhsvm.metrics import example_jaccard, f1, hierarchical_f1

HERE = Path(__file__).resolve().parent
PECOS = {f"PECOS-{tree}": tree for tree in ("own", "given", "none")}


def load(folder: Path, share: int) -> tuple[Any, ...]:
    """Hierarchy, X and y to learn from, X and y to ask about; one gloss of ``share`` is used."""
    data = read_jsonl(
        folder / "docs.jsonl.gz", text="text", multilabel=True, hierarchy=folder / "hierarchy.tsv.gz", drop_root=True
    )
    assert data.texts is not None
    order = np.random.default_rng(0).permutation(len(data.texts))[:: max(1, share)]
    asked, learned = order[::10], np.setdiff1d(order, order[::10])
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2), dtype=np.float32)
    X = vectors.fit_transform([data.texts[i] for i in learned])
    X_asked = vectors.transform([data.texts[i] for i in asked])
    return data.hierarchy, X, [data.y[i] for i in learned], X_asked, [data.y[i] for i in asked]


def fitted(name: str, C: float, options: argparse.Namespace, problem: tuple[Any, ...]) -> dict[str, Any]:
    hierarchy, X, y, X_asked, y_asked = problem

    def told(record: dict[str, Any]) -> None:
        gap = f"{'proved' if record['certified'] else 'estimated'} gap {record['gap']:.4f}"
        print(f"{record['iteration']:>4} {record['seconds']:8.1f} s  {gap}  peak {peak():.2f} GB", flush=True)

    model = getattr(nhsvm, name)(
        hierarchy, C, tol=options.tol, max_iter=options.passes, n_jobs=options.jobs, leaf_offset=options.leaf_offset,
        callback=told,
    )  # fmt: skip
    before, start, cpu = in_use(), time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds, cpu, after = time.perf_counter() - start, time.process_time() - cpu, peak()
    start = time.perf_counter()
    found = model.predict(X_asked, exact=options.exact)
    answered = time.perf_counter() - start
    return {
        "model": name, "C": C, "seconds": seconds, "cpu_seconds": cpu, "passes": model.n_iter_, "gap": model.gap_,
        "added_gb": after - before, "glosses_a_second": len(y_asked) / answered,
        **judged(y_asked, found, hierarchy),
    }  # fmt: skip


def judged(truth: Any, found: Any, hierarchy: Any) -> dict[str, float]:
    return {
        "labels_a_gloss": float(np.mean([len(labels) for labels in found])),
        "jaccard": example_jaccard(truth, found, hierarchy=hierarchy),
        "micro_f1": f1(truth, found, hierarchy=hierarchy, average="micro"),
        "hierarchical_f1": hierarchical_f1(truth, found, hierarchy=hierarchy),
    }


def pecos(name: str, C: float, options: argparse.Namespace, problem: tuple[Any, ...]) -> dict[str, Any]:
    """The same from PECOS, in a process of its own environment, which does not see the labels that it is judged by."""
    hierarchy, X, y, X_asked, y_asked = problem
    classes = sorted({label for labels in y for label in labels})
    number = {label: k for k, label in enumerate(classes)}
    indices = [number[label] for labels in y for label in labels]
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in y])])
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(y), len(classes)))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for part, matrix in (("X", X), ("X_asked", X_asked), ("Y", Y)):
            sp.save_npz(folder / f"{part}.npz", matrix)
        (folder / "facts.json").write_text(json.dumps({"classes": classes, "edges": list(hierarchy.edges())}))
        command = [options.envs / "pecos" / "bin" / "python", HERE / "pecos_sets.py", "--task", folder]
        command += ["--tree", PECOS[name], "--C", C, "--threads", options.jobs]
        subprocess.run(list(map(str, command)), check=True)
        record = json.loads((folder / "chosen.json").read_text())
        subprocess.run([*map(str, command), "--threshold", str(record["threshold"])], check=True)
        record |= json.loads((folder / "out.json").read_text())
        answer = sp.load_npz(folder / "found.npz")
    found = [[classes[k] for k in row.indices] for row in answer]
    return {
        "model": name, "C": C, "seconds": record["fit_wall"], "cpu_seconds": record["fit_cpu"],
        "choice_seconds": record["choice_wall"], "choice_cpu_seconds": record["choice_cpu"],
        "threshold": record["threshold"], "held_out_jaccard": record["held_out_jaccard"],
        "added_gb": record["fit_added_mb"] / 1000, "glosses_a_second": len(y_asked) / record["predict_wall"],
        **judged(y_asked, found, hierarchy),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"), help="folder of real data")
    parser.add_argument("--models", nargs="+", default=["NHSVM", "FlatSVM"], help=f"of ours, or {', '.join(PECOS)}")
    parser.add_argument("--C", nargs="+", type=float, default=[1.0])
    parser.add_argument("--tol", type=float, default=0.05)
    parser.add_argument("--passes", type=int, default=1000)
    parser.add_argument("--leaf-offset", type=float, default=-1.0)
    parser.add_argument("--exact", action="store_true", help="answers with a proof each")
    parser.add_argument("--share", type=int, default=1, help="use one gloss of so many")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--envs", type=Path, default=HERE.parent / "peers" / "envs", help="folder with PECOS's environment"
    )
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data DIR is needed, or NHSVM_DATA")
    problem = load(options.data / "wordnet_gloss", options.share)
    print(problem[0], problem[1].shape, flush=True)
    for name in options.models:
        for C in options.C:
            model = pecos if name in PECOS else fitted
            print(json.dumps(model(name, C, options, problem), indent=1), flush=True)


if __name__ == "__main__":
    main()
