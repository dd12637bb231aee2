"""Readers beside scikit-learn's: the same file, one after the other, in one process and on one core.

    python benchmarks/readers.py                       # a million rows of each kind
    python benchmarks/readers.py --rows 100000 --repeat 5

Times are seconds of processor time, the best of some runs that take turns, so that other work on the machine matters
little; memory is the largest resident size of a process that reads the file once, beside that of one that reads its
first 100 lines, and the size of the result.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars
import sklearn
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_svmlight_file

from nhsvm.datasets import read_csv, read_hmc_arff, read_jsonl, read_lshtc, read_parquet, read_svmlight
from quick import parsed

_WORDS = ["science", "of", "the", "and", "hierarchy", "label", "margin", "protein", "patent", "vector"]


def _sparse_rows(path: Path, n: int, kind: str, seed: int = 0) -> None:
    """Rows of about 30 features: counts, or tf-idf values of 16 digits as scikit-learn writes them."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for start in range(0, n, 10_000):
            size = rng.integers(10, 50, min(10_000, n - start))
            gaps = rng.integers(1, 2_000, size.sum())
            values = rng.geometric(0.6, size.sum()).tolist() if kind == "counts" else rng.random(size.sum()).tolist()
            ends = np.concatenate([[0], np.cumsum(size)])
            total = np.cumsum(gaps)
            before = np.repeat(total[ends[:-1]] - gaps[ends[:-1]], size)
            index = (total - before).tolist()
            form = "{}:{}" if kind == "counts" else "{}:{:.16g}"
            cells = [form.format(i, v) for i, v in zip(index, values, strict=True)]
            labels = rng.integers(1000, size=len(size)).tolist()
            rows = zip(labels, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            file.writelines(f"{label} {' '.join(cells[a:b])}\n" for label, a, b in rows)


def _texts(n: int, seed: int = 0) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)
    words = np.array(_WORDS, dtype=object)[rng.integers(len(_WORDS), size=(n, 20))]
    return {
        "text": [" ".join(row) for row in words],
        "kind": [f"top{k % 30} > low{k}" for k in rng.integers(500, size=n)],
    }


def make_files(folder: Path, n: int) -> dict[str, Path]:
    files = {kind: folder / f"{kind}.svm" for kind in ("counts", "tfidf")}
    for kind, path in files.items():
        _sparse_rows(path, n, kind)
    files["counts_gz"] = folder / "counts.svm.gz"
    with files["counts"].open("rb") as source, gzip.open(files["counts_gz"], "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    columns = _texts(n)
    files |= {"csv": folder / "texts.csv", "jsonl": folder / "texts.jsonl", "parquet": folder / "texts.parquet"}
    frame = polars.DataFrame(columns)
    frame.write_csv(files["csv"])
    frame.write_parquet(files["parquet"])
    with files["jsonl"].open("w") as file:
        for text, kind in zip(columns["text"], columns["kind"], strict=True):
            file.write(json.dumps({"text": text, "kind": kind}) + "\n")
    files["arff"] = folder / "rows.arff"
    X = np.random.default_rng(0).normal(size=(n // 10, 80)).round(2)
    with files["arff"].open("w") as file:
        file.write("@RELATION x\n" + "".join(f"@ATTRIBUTE a{k} numeric\n" for k in range(80)))
        file.write("@ATTRIBUTE class hierarchical 1,1/1,1/2,2\n@DATA\n")
        file.writelines(",".join(map(str, row)) + ",1/2@2\n" for row in X.tolist())
    return files


def _best(calls: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeat):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - start)
    return best


# what a fresh process runs: it reads a file, and prints the bytes of the result and its own largest resident size
_CHILD = """
import sys
from {module} import {function} as read
found = read({path!r}, **{options!r})
def size(thing):  # every string, list and array once
    if isinstance(thing, str): return sys.getsizeof(thing)
    if isinstance(thing, (list, tuple)): return sys.getsizeof(thing) + sum(map(size, thing))
    if hasattr(thing, "indptr"): return thing.data.nbytes + thing.indices.nbytes + thing.indptr.nbytes
    if hasattr(thing, "nbytes"): return thing.nbytes  # labels that are objects are shared, so their pointers alone
    return 0
parts = found if isinstance(found, tuple) else (found.X, found.texts, found.y)
# not getrusage, whose maximum a process inherits from the one that starts it
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(sum(map(size, parts)), peak)
"""


def _memory(module: str, function: str, path: Path, options: dict[str, str]) -> tuple[float, float]:
    """Megabytes of the result, and the largest resident size, of a fresh process that reads the file."""
    code = _CHILD.format(module=module, function=function, path=str(path), options=options)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    result, peak = done.stdout.split()
    return int(result) / 1e6, int(peak) * 1024 / 1e6


def compare(console: Console, files: dict[str, Path], repeat: int) -> None:
    """Sparse rows, beside ``load_svmlight_file``."""
    table = Table("file", "MB", "nhsvm, s", "MB/s", "scikit-learn, s", "MB/s", "times as fast")
    for name in ("counts", "counts_gz", "tfidf"):
        path, plain = files[name], files[name.removesuffix("_gz")].stat().st_size / 1e6
        found, (X, y) = read_svmlight(path), load_svmlight_file(str(path))
        same = (found.X != X).nnz == 0 and bool((found.y == y).all()) and bool((found.X.data == X.data).all())
        assert same, "the readers disagree"
        best = _best(
            {"ours": lambda p=path: read_svmlight(p), "theirs": lambda p=path: load_svmlight_file(str(p))}, repeat
        )
        ours, theirs = best["ours"], best["theirs"]
        table.add_row(
            name, f"{plain:.0f}", f"{ours:.2f}", f"{plain / ours:.0f}", f"{theirs:.2f}", f"{plain / theirs:.0f}",
            f"{theirs / ours:.1f}",
        )  # fmt: skip
    console.print(table)


def _first_lines(path: Path, n: int, target: Path) -> Path:
    with path.open("rb") as source, target.open("wb") as file:
        file.writelines(islice(source, n))
    return target


def memory(console: Console, files: dict[str, Path], folder: Path, n_readers: int | None) -> None:
    """The largest resident size of a process, beside that of one that reads the first lines, and the result's size."""
    ours, columns = "nhsvm.datasets", {"text": "text", "path": "kind"}
    readers: list[tuple[str, str, str, dict[str, str]]] = [
        (ours, "read_svmlight", "counts", {}),
        ("sklearn.datasets", "load_svmlight_file", "counts", {}),
        (ours, "read_svmlight", "tfidf", {}),
        ("sklearn.datasets", "load_svmlight_file", "tfidf", {}),
        (ours, "read_lshtc", "counts", {}),
        (ours, "read_hmc_arff", "arff", {}),
        (ours, "read_csv", "csv", columns),
        (ours, "read_jsonl", "jsonl", columns),
    ]
    table = Table("reader", "file", "result, MB", "first 100 lines, MB", "all, MB", "more, MB", "more / result")
    for module, function, name, options in readers[:n_readers]:
        few = _first_lines(files[name], 100, folder / f"few{files[name].suffix}")
        result, peak = _memory(module, function, files[name], options)
        _, start = _memory(module, function, few, options)
        cells = (result, start, peak, peak - start)
        table.add_row(function, name, *(f"{cell:.0f}" for cell in cells), f"{(peak - start) / result:.2f}")
    console.print(table)


def others(console: Console, files: dict[str, Path], repeat: int) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "read_lshtc, counts": lambda: read_lshtc(files["counts"]),
        "read_hmc_arff": lambda: read_hmc_arff(files["arff"]),
        "read_csv": lambda: read_csv(files["csv"], text="text", path="kind"),
        "read_jsonl": lambda: read_jsonl(files["jsonl"], text="text", path="kind"),
        "read_parquet": lambda: read_parquet(files["parquet"], text="text", path="kind"),
    }
    sizes = [files[name].stat().st_size / 1e6 for name in ("counts", "arff", "csv", "jsonl", "parquet")]
    table = Table("reader", "rows", "MB", "s", "MB/s", "rows/s")
    best = _best(calls, repeat)
    for (name, call), size in zip(calls.items(), sizes, strict=True):
        n = call().n_samples
        table.add_row(
            name, f"{n:,}", f"{size:.0f}", f"{best[name]:.2f}", f"{size / best[name]:.0f}", f"{n / best[name]:,.0f}"
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of sparse and text files; a tenth of it for ARFF")
    parser.add_argument("--repeat", type=int, default=3)
    options = parsed(parser, rows=1_000, repeat=1)
    console = Console(width=120, highlight=False)
    console.print(f"scikit-learn {sklearn.__version__}, {options.rows:,} rows, best of {options.repeat}")
    with tempfile.TemporaryDirectory() as name:
        files = make_files(Path(name), options.rows)
        compare(console, files, options.repeat)
        memory(console, files, Path(name), 2 if options.quick else None)
        others(console, files, options.repeat)
    console.print(f"largest resident size: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
