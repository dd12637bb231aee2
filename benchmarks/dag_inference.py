"""The exact multi-label oracle on DAGs beside HiGHS: time of a sample, how much is proved, and ratios in one run.

    python benchmarks/dag_inference.py --data DIR           # GO and WordNet graphs, and a random one
    python benchmarks/dag_inference.py                      # the random graph only
    python benchmarks/dag_inference.py --quick              # seconds, to see that it works
    python benchmarks/dag_inference.py --data DIR --budgeted --lp 0 --mip 0    # as training asks: a bound is enough

Rewards come in families. *start*: the Hamming loss alone, as before the first step of training. *early*: node scores
near 0 plus the Hamming loss, +1 for every wrong leaf and -1 for every right one. *late*: scores that put most leaves
a little more than 1 on their side of the threshold, plus that loss; about one leaf in eight violates its margin.
*margin*: the same, but leaves are 1 away on average, so that about half of all leaves violate it. *planted*: the
closure of some leaves is positive, all else negative, with noise. *trained* (GO): scores of a model trained here on
the data's training part by subgradient steps with this very oracle, plain and with the loss. *noise*, *heavy* and
*cover* are not like any model: half of the rewards positive, the same with heavy tails, inner nodes positive and
leaves negative.

Without ``exact`` a bound within 1e-3 of the value is enough. HiGHS solves some of the same samples, on one thread: the
linear programme (Eq. 19, one model whose costs change, warm started) and the integer programme, with a time limit; its
time is then a lower estimate, marked >. Ratios are of the medians over the same samples. Times are of the processor
(this process only), so that a busy machine does not count against anybody. Values are compared: where both prove an
optimum, they agree or the run stops.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import highspy
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from nhsvm import Hierarchy
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.dag import DagMultilabel
from quick import parsed

Rewards = npt.NDArray[np.float64]
_PRECISION = 1e-3  # of the value: a bound that near is enough where no proof is asked for
FAMILIES = ("start", "early", "late", "margin", "planted", "noise", "heavy", "cover")


class Problem(NamedTuple):
    """A graph, how it is asked, and families of rewards."""

    name: str
    graph: Graph
    exact: bool
    rewards: dict[str, Rewards]


# -- graphs ------------------------------------------------------------------------------------------------------------


def random_dag(n_nodes: int, n_edges: int, seed: int) -> Hierarchy:
    """A random recursive tree with further random edges, parents before children."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, n_nodes)
    edges = set(zip((rng.random(n_nodes - 1) * child).astype(int).tolist(), child.tolist(), strict=True))
    while len(edges) < n_edges:
        c = int(rng.integers(1, n_nodes))
        edges.add((int(rng.integers(c)), c))
    return Hierarchy.from_edges(sorted(edges))


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def read_go(data: Path, name: str) -> tuple[Hierarchy, npt.NDArray[np.float64], list[set[str]]]:
    """Hierarchy, with virtual leaves where labels are on inner nodes; features; label sets of the training part."""
    lines = _lines(data / "hmc" / f"{name}.train.arff.gz")
    start = next(i for i, line in enumerate(lines) if line.strip().upper() == "@DATA")
    classes = next(line.split(None, 3)[3] for line in lines[:start] if line.lower().startswith("@attribute class"))
    pairs = [tuple(c.strip().split("/")) for c in classes.split(",")]
    rows = [line.rsplit(",", 1) for line in lines[start + 1 :] if line.strip()]
    labels = [set(found.split("@")) for _, found in rows]
    X = np.array([[np.nan if v == "?" else float(v) for v in values.split(",")] for values, _ in rows])
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    nodes = {v for pair in pairs for v in pair}
    h = Hierarchy.from_edges(
        [p for p in pairs if p[0] != "root"], nodes=sorted(nodes - {"root"}), allow_duplicates=True
    )
    h = h.with_virtual_leaves(set().union(*labels))
    return h, X / np.sqrt(X.shape[1]), labels


def read_wordnet(data: Path) -> tuple[Hierarchy, list[set[str]]]:
    """Hierarchy, with virtual leaves where labels are on inner nodes, and the label sets."""
    folder = data / "wordnet_gloss"
    edges = [line.split("\t") for line in _lines(folder / "hierarchy.tsv.gz")]
    labels = [set(json.loads(line)["labels"]) for line in _lines(folder / "docs.jsonl.gz")]
    nodes = {v for edge in edges for v in edge} - {"ROOT"}
    h = Hierarchy.from_edges([tuple(e) for e in edges if e[0] != "ROOT"], nodes=sorted(nodes))
    return h.with_virtual_leaves(set().union(*labels)), labels


# -- rewards -----------------------------------------------------------------------------------------------------------


def some_labels(graph: Graph, n: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """For each of n samples, the closure of 1 to 8 leaves."""
    found = np.zeros((n, graph.n_nodes), dtype=bool)
    for row in found:
        for leaf in rng.integers(graph.n_leaves, size=rng.integers(1, 9)):
            row[graph.leaf_ancestors.row(leaf)] = True
    return found


def with_loss(graph: Graph, scores: Rewards, true: npt.NDArray[np.bool_]) -> Rewards:
    """Scores plus the Hamming distance over leaves, up to a constant: +1 for a wrong leaf, -1 for a right one."""
    return scores + np.where(graph.is_leaf, np.where(true, -1.0, 1.0), 0.0)


def generated(graph: Graph, family: str, n: int, seed: int) -> Rewards:
    """Samples of a family; see the top of this file."""
    rng = np.random.default_rng(seed)
    shape = (n, graph.n_nodes)
    true = some_labels(graph, n, rng)
    sign = np.where(true, 1.0, -1.0)
    if family == "start":
        return with_loss(graph, np.zeros(shape), true)
    if family == "early":
        return with_loss(graph, 0.05 * rng.normal(size=shape), true)
    if family in ("late", "margin"):
        # a node separates from its parents by a share of the margin; what is far from the labels is far beyond it
        depth = np.maximum(graph.level, 1)
        size = rng.gamma(8.0, 0.2, size=shape) if family == "late" else rng.gamma(2.0, 0.5, size=shape)
        scores = sign * size * np.where(graph.is_leaf, 1.0, 1.0 / depth)
        return with_loss(graph, scores + 0.1 * rng.normal(size=shape), true)
    if family == "planted":
        return sign * np.abs(1.0 + 0.5 * rng.normal(size=shape)) + 0.3 * rng.normal(size=shape)
    if family == "noise":
        return rng.normal(size=shape)
    if family == "heavy":
        return rng.standard_t(1.5, size=shape)
    if family == "cover":
        return np.where(graph.is_leaf, -rng.random(shape) - 0.5, rng.random(shape) * 0.8)
    raise ValueError(family)


def trained(h: Hierarchy, X: npt.NDArray[Any], labels: list[set[str]], epochs: int, n: int) -> dict[str, Rewards]:
    """Scores of models after some epochs of subgradient steps on the structured hinge loss, for n samples."""
    from nhsvm.hierarchy.labels import LabelSpace

    graph = h.graph
    closures = LabelSpace(h, multilabel=True).closures(labels)
    true = np.zeros((len(X), graph.n_nodes), dtype=bool)
    true[closures.owners(), closures.indices] = True
    oracle = DagMultilabel(graph)
    alpha = 1.0 / (1.0 + graph.level.max())
    U = np.zeros((graph.n_nodes, X.shape[1]))
    out: dict[str, Rewards] = {}
    rng = np.random.default_rng(0)
    pick = rng.permutation(len(X))[:n]
    size = 64
    chosen, value, bound = np.empty((size, graph.n_nodes), np.uint8), np.empty(size), np.empty(size)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(X))
        for start in range(0, len(order) - size + 1, size):
            batch = order[start : start + size]
            oracle.solve(with_loss(graph, X[batch] @ U.T, true[batch]), chosen, value, bound)
            U += alpha / np.sqrt(epoch) * (true[batch].astype(float) - chosen).T @ X[batch]
        if epoch in (1, epochs):
            when = "1 epoch" if epoch == 1 else f"{epochs} epochs"
            scores = X[pick] @ U.T
            out[f"trained {when}"] = with_loss(graph, scores, true[pick])
    out["trained, predict"] = scores
    return out


# -- HiGHS -------------------------------------------------------------------------------------------------------------


class Program:
    """Eq. 19 in HiGHS: one model, whose costs change."""

    def __init__(self, graph: Graph, integer: bool, limit: float) -> None:
        parent, child = graph.edges()
        m, n = graph.n_edges, graph.n_nodes
        inner = np.flatnonzero(~graph.is_leaf)
        row = np.full(n, -1)
        row[inner] = np.arange(len(inner))
        roots = np.arange(graph.n_roots)
        entries = np.concatenate([np.ones(m), -np.ones(m), np.ones(m), -np.ones(len(inner)), np.ones(len(roots))])
        rows = np.concatenate(
            [np.arange(m), np.arange(m), m + row[parent], m + row[inner], np.full(len(roots), m + len(inner))]
        )
        columns = np.concatenate([parent, child, child, inner, roots])
        matrix = sp.csc_array((entries, (rows, columns)), shape=(m + len(inner) + 1, n))
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.zeros(n), np.zeros(n), np.ones(n)
        lp.row_lower_ = np.concatenate([np.zeros(m + len(inner)), [1.0]])
        lp.row_upper_ = np.full(lp.num_row_, highspy.kHighsInf)
        if integer:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * n
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        self.lp, self.integer, self.limit, self.n = lp, integer, limit, n
        self.solver = self._new()

    def _new(self) -> highspy.Highs:
        solver = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 1e-9}
        for name, value in options.items():
            solver.setOptionValue(name, value)
        if self.integer:
            solver.setOptionValue("time_limit", self.limit)
        solver.passModel(self.lp)
        return solver

    def solve(self, r: Rewards) -> tuple[float, float, bool]:
        """Seconds, value, whether it was solved to the end."""
        if self.integer:  # its time limit is for all that one object does
            self.solver = self._new()
        self.solver.changeColsCost(self.n, np.arange(self.n, dtype=np.int32), r)
        start = time.process_time()
        self.solver.run()
        seconds = time.process_time() - start
        done = self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return seconds, self.solver.getInfo().objective_function_value, done


# -- the table ---------------------------------------------------------------------------------------------------------


class Ours(NamedTuple):
    """Per sample: seconds, value, upper bound."""

    seconds: Rewards
    value: Rewards
    bound: Rewards

    @property
    def gap(self) -> Rewards:
        return (self.bound - self.value) / np.maximum(np.abs(self.value), 1e-12)


def run_ours(oracle: DagMultilabel, rewards: Rewards) -> Ours:
    n = len(rewards)
    chosen, value, bound = np.empty((1, rewards.shape[1]), np.uint8), np.empty(1), np.empty(1)
    out = Ours(np.empty(n), np.empty(n), np.empty(n))
    for t in range(min(n, 5)):  # what is compiled or loaded is not timed
        oracle.solve(rewards[t : t + 1], chosen, value, bound)
    for t in range(n):
        start = time.process_time()
        oracle.solve(rewards[t : t + 1], chosen, value, bound)
        out.seconds[t] = time.process_time() - start
        out.value[t], out.bound[t] = value[0], bound[0]
    return out


def compared(problem: Problem, n_lp: int, n_mip: int, limit: float) -> Iterator[list[str]]:
    """Rows of the table."""
    oracle = DagMultilabel(problem.graph, exact=problem.exact, precision=_PRECISION)
    relaxed, integer = Program(problem.graph, False, limit), Program(problem.graph, True, limit)
    for family, rewards in problem.rewards.items():
        ours = run_ours(oracle, rewards)
        row = [
            problem.name,
            family,
            f"{1e3 * np.median(ours.seconds):.2f}",
            f"{1e3 * np.quantile(ours.seconds, 0.99):.1f}",
            f"{100 * np.mean(ours.gap <= 1e-9):.0f} %",
            f"{np.median(ours.gap):.0e}",
            f"{ours.gap.max():.0e}",
        ]
        slower = 0
        for program, count in ((relaxed, n_lp), (integer, n_mip)):
            k = min(count, len(rewards))
            if k == 0:
                row += ["", ""]
                continue
            theirs = [program.solve(rewards[t]) for t in range(k)]
            seconds = np.array([s for s, _, _ in theirs])
            cut = "" if all(done for _, _, done in theirs) else ">"
            ratio = np.median(seconds) / np.median(ours.seconds[:k])
            row += [f"{cut}{1e3 * np.median(seconds):.0f}", f"{cut}{ratio:.0f}"]
            scale = np.abs(rewards[:k]).sum(axis=1)
            for t, (_, value, done) in enumerate(theirs):
                low = ours.value[t] > value + 1e-6 + 1e-9 * scale[t]
                high = program is integer and ours.bound[t] < value - 1e-6 - 1e-9 * scale[t]
                if done and (low or high):
                    raise SystemExit(f"{problem.name} {family} {t}: HiGHS {value}, ours {ours.value[t]}")
            if program is integer:
                slower = int(np.sum(ours.seconds[:k] > seconds))
        yield [*row, str(slower)]


def problems(options: argparse.Namespace) -> Iterator[Problem]:
    n, exact = options.samples, not options.budgeted
    if options.data and not options.only_random:
        for name in ("cellcycle_GO",) if options.quick else ("cellcycle_GO", "eisen_GO"):
            h, X, labels = read_go(options.data, name)
            rewards = {f: generated(h.graph, f, n, i) for i, f in enumerate(FAMILIES)}
            yield Problem(name, h.graph, exact, rewards | trained(h, X, labels, options.epochs, n))
        h, _ = read_wordnet(options.data)
        yield Problem("wordnet", h.graph, exact, {f: generated(h.graph, f, n, i) for i, f in enumerate(FAMILIES)})
    size = options.nodes
    graph = random_dag(size, 3 * size // 2, 0).graph
    rewards = {f: generated(graph, f, n, i) for i, f in enumerate(FAMILIES)}
    yield Problem(f"random, {size:,} nodes", graph, False, rewards)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("NHSVM_DATA"))
    parser.add_argument("--samples", type=int, default=200, help="of each family")
    parser.add_argument("--lp", type=int, default=7, help="samples for the linear programme")
    parser.add_argument("--mip", type=int, default=3, help="samples for the integer programme")
    parser.add_argument("--nodes", type=int, default=50_000, help="of the random graph")
    parser.add_argument("--epochs", type=int, default=10, help="of the model whose scores are asked about")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for HiGHS on one sample")
    parser.add_argument("--only-random", action="store_true")
    parser.add_argument("--budgeted", action="store_true", help="exact=False on all graphs")
    options = parsed(parser, samples=5, lp=2, mip=1, nodes=500, epochs=2)
    console = Console(width=140, highlight=False)
    columns = (
        "graph",
        "rewards",
        "median ms",
        "p99 ms",
        "proved",
        "gap",
        "worst gap",
        "LP ms",
        "× LP",
        "MIP ms",
        "× MIP",
    )
    table = Table(*columns, "slower than MIP", title="one sample, one thread")
    for problem in problems(options):
        g = problem.graph
        console.print(f"{problem.name}: {g.n_nodes} nodes, {g.n_edges} edges, {g.n_leaves} leaves", style="dim")
        for row in compared(problem, options.lp, options.mip, options.limit):
            console.print("  " + "  ".join(row[1:]), style="dim")  # some of these take minutes
            table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
