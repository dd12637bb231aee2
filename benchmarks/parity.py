"""Two versions of the library beside each other in one run: processor seconds of fit and predict on every path.

    python benchmarks/parity.py OLD [--new NEW] [--only NAME ...] [--rounds 7] [--compile]

OLD and NEW are commits, or folders with a ``src``; NEW is the tree that this file is in unless it is said. Each version
has a process of its own, which keeps its data and its compiled code; the two take turns, old new new old, so that both
meet the same disturbances. A row is a path: the ratio is that of the least times of new and old, which other work on
the machine disturbs least, with quartiles of the ratios of single rounds beside it. ``--compile`` also times the first
fit of all with an empty cache of compiled code.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

LARGE = (2000, 1500, 25, 120)  # samples, features, inner nodes, leaves
SETS_ON_A_DAG = (300, 300, 12, 50)
LINEAR_PROGRAMS = (60, 60, 6, 20)
LIMIT = "1MB"  # of weights, where they are to be in rows
LEAST = 0.2  # seconds that a measurement takes: short ones are repeated


class Version:
    """One version of the library in a process of its own."""

    def __init__(self, source: Path, cache: Path) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(source / "src"),
            "NUMBA_CACHE_DIR": str(cache),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), "--child"],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, **question: object) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of one version has ended: {question}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def child() -> None:
    """Answer questions on standard input: the seconds of a fit and of a prediction."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer
    warnings.simplefilter("ignore")
    from golden.cases import Size, cases, make_data

    known, data, fitted = cases(LIMIT), {}, {}
    for line in sys.stdin:
        asked = json.loads(line)
        name, what = asked["name"], asked["what"]
        case, size = known[name], size_of(name)
        samples = data.setdefault((case.dag, size), make_data(Size(*size), case.dag))
        X, y = case.samples(samples), case.labels(samples)
        count, cpu, clock = 0, time.process_time(), time.perf_counter()
        while count == 0 or (asked["repeat"] and time.perf_counter() - clock < LEAST):
            if what == "fit":
                fitted[name] = case.model(samples).fit(X, y)
            else:
                fitted[name].predict(X)
            count += 1
        answer = {"cpu": (time.process_time() - cpu) / count, "seconds": (time.perf_counter() - clock) / count}
        print(json.dumps(answer), file=out, flush=True)


def size_of(name: str) -> tuple[int, int, int, int]:
    """Of the data of a path: a fit takes about a second at most."""
    if name.endswith("lp"):
        return LINEAR_PROGRAMS
    return SETS_ON_A_DAG if "sets-dag" in name else LARGE


@contextmanager
def checked_out(version: str) -> Iterator[Path]:
    """A folder with the sources of a commit, or the folder that is named."""
    if (Path(version) / "src").is_dir():
        yield Path(version).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", version, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def first_fits(old: Path, new: Path, rounds: int) -> None:
    """Seconds of the first fit and prediction of all, when nothing is compiled."""
    print(f"{'first use, nothing compiled':44s} {'old s':>8s} {'new s':>8s} {'ratio':>7s}")
    for name in ("NHSVM-one-tree", "NHSVM-sets-tree", "NHSVM-sets-dag", "HRSVM-one-tree", "NHSVM-one-tree-rows"):
        found: dict[Path, list[float]] = {old: [], new: []}
        for source in [old, new, new, old][: 2 * rounds]:
            with tempfile.TemporaryDirectory() as cache:
                version = Version(source, Path(cache))
                asked = [version.ask(name=name, what=what, repeat=False)["cpu"] for what in ("fit", "predict")]
                found[source].append(sum(asked))
                version.close()
        one, other = (statistics.mean(found[source]) for source in (old, new))
        print(f"{name:44s} {one:8.2f} {other:8.2f} {other / one:7.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", default="HEAD")
    parser.add_argument("--new", default=str(ROOT))
    parser.add_argument("--only", nargs="*", default=[], help="paths whose names contain one of these")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one round of one path, to see that it runs")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child()
        return
    from golden.cases import cases

    names = [name for name in cases() if not given.only or any(part in name for part in given.only)]
    rounds, names = (1, names[:1]) if given.quick else (given.rounds, names)
    with ExitStack() as stack:
        old, new = (stack.enter_context(checked_out(version)) for version in (given.old, given.new))
        if given.compile:
            first_fits(old, new, 2)
        caches = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        versions = [Version(source, cache) for source, cache in zip((old, new), caches, strict=True)]
        print(f"{'processor seconds':44s} {'old':>8s} {'new':>8s} {'ratio':>7s}   quartiles")
        slower = []
        for name in names:
            for what in ("fit", "predict"):
                for version in versions:  # compiled, and warm
                    version.ask(name=name, what=what, repeat=False)
                times: list[list[float]] = [[], []]
                for k in range(rounds):
                    for which in (0, 1) if k % 2 == 0 else (1, 0):
                        times[which].append(versions[which].ask(name=name, what=what, repeat=True)["cpu"])
                ratios = sorted(after / before for before, after in zip(*times, strict=True))
                low, high = (ratios[round(q * (len(ratios) - 1))] for q in (0.25, 0.75))
                before, after = map(min, times)
                ratio = after / before
                mark = "" if ratio <= 1.05 else "  slower"
                slower += [f"{name} {what}"] if mark else []
                print(
                    f"{name + ' ' + what:44s} {before:8.4f} {after:8.4f} {ratio:7.3f}   {low:.3f} .. {high:.3f}{mark}",
                    flush=True,
                )
        for version in versions:
            version.close()
    print(f"{len(slower)} of {2 * len(names)} more than 5 % slower{': ' * bool(slower)}{', '.join(slower)}")


if __name__ == "__main__":
    main()
