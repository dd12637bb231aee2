"""Time and memory of hierarchies, weights and losses at the size of the paper's largest graph.

    python benchmarks/hierarchy.py                  # 50,312 nodes, 36,504 leaves, tree and DAG
    python benchmarks/hierarchy.py --nodes 5000     # the same shape, smaller
    python benchmarks/hierarchy.py --clarabel       # also the general conic solver on the same problem (needs clarabel)
    python benchmarks/hierarchy.py --shapes         # only the weights that have no closed form on trees, on six shapes

Weights on the DAG report the constraint violation and the relative duality gap that the solver proved.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from nhsvm import Hierarchy, node_weights
from nhsvm.losses import LOSSES, make_loss
from nhsvm.weights import interior, steep
from quick import parsed

PAPER_NODES, PAPER_LEAVES = 50_312, 36_504


def wiki_shaped(n_nodes: int, seed: int, extra: float, n_levels: int = 12) -> Hierarchy:
    """A random graph with WIKI-2011's share of leaves, up to ``n_levels``, and ``extra`` second parents a node."""
    rng = np.random.default_rng(seed)
    n_inner = n_nodes - round(n_nodes * PAPER_LEAVES / PAPER_NODES)
    n_roots = max(1, n_inner // 1400)
    depth = np.zeros(n_nodes, dtype=int)
    parents: list[set[int]] = [set() for _ in range(n_nodes)]
    childless = set(range(n_inner))

    def attach(child: int, parent: int) -> None:
        parents[child].add(parent)
        depth[child] = max(depth[child], depth[parent] + 1)
        childless.discard(parent)

    for v in range(n_roots, n_inner):
        p = int(rng.integers(v))
        while depth[p] > n_levels - 3:
            p = int(rng.integers(v))
        attach(v, p)
    waiting = sorted(childless)
    for i, v in enumerate(range(n_inner, n_nodes)):
        attach(v, waiting[i] if i < len(waiting) else int(rng.integers(n_inner)))
    for _ in range(round(extra * n_nodes)):
        v = int(rng.integers(n_roots, n_nodes))
        p = int(rng.integers(min(v, n_inner)))
        if abs(depth[p] + 1 - depth[v]) <= 2:
            parents[v].add(p)
    return Hierarchy.from_edges(((p, v) for v in range(n_nodes) for p in sorted(parents[v])), nodes=range(n_nodes))


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def peak_megabytes(run: Callable[[], Any]) -> float:
    """Peak of what Python and numpy allocate; a separate run, since tracing slows things down."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


class Proof:
    """Remembers what an interior-point method proved last; use it as a context."""

    solution: interior.Solution | None = None

    def __enter__(self) -> Proof:
        self._certified = certified = interior.certified

        def remember(*args: Any) -> interior.Solution:
            self.solution = certified(*args)
            return self.solution

        self._put(remember)
        return self

    def __exit__(self, *exception: object) -> None:
        self._put(self._certified)

    @staticmethod
    def _put(certified: Callable[..., interior.Solution]) -> None:
        interior.certified = steep.certified = certified

    def gap(self) -> float:
        return self.solution.gap / self.solution.value if self.solution else 0.0

    def text(self) -> str:
        if self.solution is None:
            return "closed form"
        shown = f"gap {self.gap():.0e}, {self.solution.n_steps} steps"
        self.solution = None
        return shown


def violation(h: Hierarchy, alpha: np.ndarray, low: float, high: float) -> float:
    sums = h.graph.leaf_matrix() @ alpha
    return abs(float(max((low - sums).max(), (sums - high).max(), -alpha.min(), 0.0)))


def schemes(h: Hierarchy) -> list[tuple[str, dict[str, Any]]]:
    norms = np.random.default_rng(0).exponential(size=h.n_nodes) ** 2
    return [
        ("flat", {}),
        ("uniform", {}),
        ("maxmin", {}),
        ("maxmin", {"total": (1, 1.5)}),
        ("power", {"rho": 2.0}),
        ("power", {"rho": 1.1}),
        ("power", {"rho": 5.0}),
        ("power", {"rho": 2.0, "total": (1, 1.5)}),
        ("power", {"rho": 2.0, "directional": True}),
        ("power", {"rho": 2.0, "directional": True, "total": (1, 1.5)}),
        ("shared", {"squared_norms": norms}),
    ]


def bench_weights(h: Hierarchy, console: Console, proof: Proof) -> None:
    layout = "{:<8} {:<42} {:>9} {:<22} {:>9}"
    console.print(f"node_weights on {h}\n" + layout.format("weights", "options", "seconds", "proof", "violation"))
    for scheme, options in schemes(h):
        alpha, seconds = timed(lambda s=scheme, o=options: node_weights(h, s, **o))
        low, high = {"uniform": (0, np.inf), "shared": (0, 1)}.get(scheme, options.get("total", (1, 1)))
        shown = ", ".join(f"{k}={v}" for k, v in options.items() if k != "squared_norms")
        # line by line: some of these take a minute
        console.print(
            layout.format(scheme, shown, f"{seconds:.3f}", proof.text(), f"{violation(h, alpha, low, high):.0e}")
        )


def shapes(n_nodes: int, seed: int) -> dict[str, Hierarchy]:
    """Trees of very different kinds."""
    rng = np.random.default_rng(seed)
    near_the_top = np.minimum(rng.geometric(0.3, n_nodes - 60) - 1, 59)
    lopsided = [-1]
    for v in range(1, n_nodes):
        first, last = (max(0, v - 2000), v) if rng.random() < 0.3 else (0, max(1, v // 10))
        lopsided.append(int(rng.integers(first, last)))
    return {
        "random": wiki_shaped(n_nodes, seed, 0.0),
        "random, shallow": wiki_shaped(n_nodes, seed, 0.0, n_levels=5),
        "random, deep": wiki_shaped(n_nodes, seed, 0.0, n_levels=20),
        "lopsided": with_parents(lopsided),
        "chain, leaves near its top": with_parents([*range(-1, 59), *near_the_top.tolist()]),
        "chain, leaves everywhere": with_parents([*range(-1, 299), *rng.integers(300, size=n_nodes - 300).tolist()]),
    }


def with_parents(parents: list[int]) -> Hierarchy:
    return Hierarchy.from_edges(((p, v) for v, p in enumerate(parents) if p >= 0), nodes=range(len(parents)))


def bench_shapes(n_nodes: int, seed: int, console: Console, proof: Proof) -> None:
    """The one scheme without a closed form on trees: milliseconds of processor time, the best of three."""
    rhos = (1.1, 1.5, 2.0, 3.0, 5.0, 50.0)
    title = f"directional power weights with total=(1, 1.5) on trees of {n_nodes} nodes: milliseconds"
    table = Table("tree", "levels", *(f"rho={rho:g}" for rho in rhos), "largest gap", "violation", title=title)
    for name, h in shapes(n_nodes, seed).items():
        cells, gap, off = [], 0.0, 0.0
        for rho in rhos:
            times = []
            for _ in range(3):
                start = time.process_time()
                alpha = node_weights(h, "power", rho=rho, directional=True, total=(1, 1.5))
                times.append(time.process_time() - start)
            gap = max(gap, proof.gap())
            off = max(off, violation(h, alpha, 1, 1.5))
            cells.append(f"{1000 * min(times):.0f}")
        table.add_row(name, str(h.graph.n_levels), *cells, f"{gap:.0e}", f"{off:.0e}")
    console.print(table)


def bench_build(h: Hierarchy, console: Console) -> None:
    edges = list(h.edges())
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("from_edges", lambda: Hierarchy.from_edges(edges)),
        ("from_edges + ancestor sets", lambda: Hierarchy.from_edges(edges).graph.ancestors),
        ("minimal()", h.minimal),
    ]
    table = Table("step", "seconds", "peak MB", title=str(h))
    for name, run in steps:
        table.add_row(name, f"{timed(run)[1]:.3f}", f"{peak_megabytes(run):.0f}")
    table.add_row("stored ancestor sets", "", f"{h.graph.ancestors.indices.nbytes / 1e6:.1f}")
    console.print(table)


def bench_losses(h: Hierarchy, console: Console) -> None:
    alpha = node_weights(h, "maxmin")
    batch = np.random.default_rng(0).integers(h.n_leaves, size=256)
    table = Table("loss", "ms a sample against all leaves", title=f"losses on {h}")
    for name in sorted(LOSSES):
        loss = make_loss(name, h, node_weights=alpha)
        loss.to_leaves(batch[:2])
        table.add_row(name, f"{1000 * timed(lambda run=loss: run.to_leaves(batch))[1] / len(batch):.3f}")
    console.print(table)


def bench_clarabel(h: Hierarchy, console: Console) -> None:
    """Eq. 6 with ρ = 2 as a quadratic program for a general solver, beside ours, in one run."""
    import clarabel

    keep = ~h.graph.is_common
    A = h.graph.leaf_matrix()[:, np.flatnonzero(keep)]
    m, n = A.shape
    eye = sp.eye_array(n, format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(2 * eye),
        np.zeros(n),
        sp.csc_matrix(sp.vstack([A, -eye])),
        np.concatenate([np.ones(m), np.zeros(n)]),
        [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(n)],
        settings,
    )
    theirs, their_time = timed(solver.solve)
    ours, our_time = timed(lambda: node_weights(h, "power", rho=2.0))
    ratio = their_time / max(our_time, 1e-9)  # clocks may not see small sizes
    console.print(
        f"Eq. 6, rho=2: Clarabel {their_time:.1f} s, nhsvm {our_time:.1f} s, ratio {ratio:.2f}; "
        f"largest difference of a weight {abs(np.asarray(theirs.x) - ours[keep]).max():.0e}"
    )


def bench_power_cones(console: Console, n_nodes: int, seed: int) -> None:
    """Eq. 6 for other ρ, as power cones, on a DAG of 5,000 nodes at most: status, violation and cost beside ours."""
    import clarabel

    h = wiki_shaped(min(5000, n_nodes), seed, 0.5)
    keep = np.flatnonzero(~h.graph.is_common)
    A = h.graph.leaf_matrix()[:, keep]
    m, n = A.shape
    console.print(f"Eq. 6 as power cones on {h}")
    for rho in (1.01, 1.1, 1.5, 3.0):
        cone_row = np.concatenate([3 * np.arange(n), 3 * np.arange(n) + 2])
        cone_column = np.concatenate([n + np.arange(n), np.arange(n)])  # (t, 1, α): t^(1/ρ) >= α
        cones = sp.coo_array((-np.ones(2 * n), (cone_row, cone_column)), shape=(3 * n, 2 * n))
        one = np.zeros(3 * n)
        one[1::3] = 1
        empty = sp.csr_array((m, n))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        solver = clarabel.DefaultSolver(
            sp.csc_matrix((2 * n, 2 * n)),
            np.concatenate([np.zeros(n), np.ones(n)]),
            sp.csc_matrix(sp.vstack([sp.hstack([A, empty]), -sp.eye_array(n, 2 * n), cones])),
            np.concatenate([np.ones(m), np.zeros(n), one]),
            [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(n), *[clarabel.PowerConeT(1 / rho)] * n],
            settings,
        )
        theirs, their_time = timed(solver.solve)
        x = np.asarray(theirs.x)[:n]
        ours, our_time = timed(lambda r=rho: node_weights(h, "power", rho=r)[keep])
        for name, alpha, note, seconds in (
            ("Clarabel", x, str(theirs.status), their_time),
            ("nhsvm", ours, "proved", our_time),
        ):
            off = max(abs(A @ alpha - 1).max(), -alpha.min())
            cost = (np.maximum(alpha, 0) ** rho).sum()
            console.print(f"  rho={rho:<5} {name:<9}{note:<13}{seconds:6.1f} s  violation {off:.0e}  cost {cost:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=PAPER_NODES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clarabel", action="store_true", help="compare with Clarabel on the DAG")
    parser.add_argument("--shapes", action="store_true", help="only weights without a closed form, on several trees")
    options = parsed(parser, nodes=400)
    console = Console(width=120, highlight=False)
    with Proof() as proof:
        if options.shapes:
            bench_shapes(options.nodes, options.seed, console, proof)
            return
        for extra in (0.0, 0.5):
            h = wiki_shaped(options.nodes, options.seed, extra)
            bench_build(h, console)
            bench_losses(h, console)
            bench_weights(h, console, proof)
            if options.clarabel and extra:
                bench_clarabel(h, console)
                bench_power_cones(console, options.nodes, options.seed)


if __name__ == "__main__":
    main()
