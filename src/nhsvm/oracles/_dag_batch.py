"""Some samples at a time: onto the core, looks, search for the few that these leave open, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.oracles._dag_fold import fold_kernel, unfold_kernel
from nhsvm.oracles._dag_looks import Core, Looks, begun
from nhsvm.oracles._dag_memory import Memory
from nhsvm.oracles._dag_plan import Plan
from nhsvm.oracles._dag_search import Search
from nhsvm.oracles._dag_sweeps import RISE
from nhsvm.oracles._dag_work import SETTLED, States, make_work

_SIZE, _ENTRIES = 16, 2**17  # samples in a batch, at most; nodes and edges of them, about
_PATIENCE = 60  # looks at a sample before it is split


class BatchLooks:
    """Room for a batch.

    Parameters
    ----------
    plan : Plan
    allow_empty : bool
    """

    def __init__(self, plan: Plan, allow_empty: bool) -> None:
        self.plan, self.allow_empty = plan, allow_empty
        n, n_edges = len(plan.node), len(plan.links.child)
        self.size = int(np.clip(_ENTRIES // (n + n_edges), 1, _SIZE))
        self.looks = Looks(make_work(n, n_edges, self.size, plan.links))
        self.folded = np.empty((3, self.size, len(plan.is_leaf)))  # worth, below, most

    def solve(
        self,
        rewards: FloatArray,
        scales: FloatArray,
        chosen: States,
        budget: int,
        precision: float,
        exact: bool,
        branches: bool,
        memory: Memory,
        rows: npt.NDArray[np.int64],
    ) -> FloatArray:
        """Fill in label sets; by how much better ones could exceed them."""
        plan, w, k = self.plan, self.looks.work, len(rewards)
        known = (rows, *memory)
        self.load(rewards, scales, budget, precision, known)
        gap = np.zeros(k)
        if len(plan.node) == 1:  # a tree: all is folded
            w.best[:] = 1
        else:
            self.looks.run(self.looks.prune() + self.looks.cut())
            for s in range(k):
                gap[s] = left_open(self.looks, s, self.first(s), exact, branches)
        unfold_kernel(
            w.samples, w.lines, plan.group, plan.fold_child, plan.fold_parent, plan.node, plan.links.parent_ptr,
            plan.links.parent, self.allow_empty, *known[:2], known[3], w.share, w.edge, w.kept, *self.folded, w.best,
            chosen,
        )  # fmt: skip
        return gap

    def renew(
        self,
        rewards: FloatArray,
        scales: FloatArray,
        value: FloatArray,
        sweeps: int,
        precision: float,
        memory: Memory,
        rows: npt.NDArray[np.int64],
    ) -> FloatArray:
        """By how much better sets could exceed some of these values, by sweeps alone; the shares are remembered."""
        w, k = self.looks.work, len(rewards)
        self.load(rewards, scales, 0, precision, (rows, *memory))
        if len(self.plan.node) == 1:  # what is remembered of a tree says nothing
            return np.maximum(w.nodes.reward[: 2 * k : 2, 0] + w.nodes.cover[: 2 * k : 2, 0] - value, 0.0)
        mine = w.samples[:k]
        mine["value"], mine["rounds"], mine["rise"] = value, sweeps, RISE[1]
        if self.looks.prune():
            self.looks.shrink()
        self.looks.sweep()
        lines = w.lines[: 2 * k : 2]
        bound = np.where(lines["size"] == 0, lines["constant"], mine["bound"])
        for s in range(k):
            e = lines["n_edges"][s]
            w.kept[s, w.edge[2 * s, :e]] = w.share[2 * s, :e]
        memory.shares[rows] = w.kept[:k]
        memory.known[rows] = 2
        return np.where(bound > value + mine["tolerance"], bound - value, 0.0)

    def load(
        self, rewards: FloatArray, scales: FloatArray, budget: int, precision: float, known: tuple[Any, ...]
    ) -> None:
        """Rewards onto the core."""
        plan, w = self.plan, self.looks.work
        w.samples["phase"], w.samples["rise"] = SETTLED, RISE[0]
        fold_kernel(
            rewards, scales, plan.group, plan.is_leaf, plan.fold_child, plan.fold_parent, plan.node, plan.member,
            self.allow_empty, budget, precision, *known, w.samples, w.lines, *w.nodes[:4], w.share, w.edge,
            *w.trace[:2], *self.folded, plan.links.parent_ptr, plan.links.parent, w.best,
        )  # fmt: skip

    def first(self, s: int) -> Core:
        """The core of a sample that has not been shrunk."""
        w, b = self.looks.work, 2 * s
        return Core(w.nodes.reward[b], w.nodes.cover[b], w.nodes.state[b], self.plan.links, w.share[b], 0.0)


def left_open(looks: Looks, s: int, first: Core, exact: bool, branches: bool) -> float:
    """What is left between bound and value of a sample, after a search if it is open; its set is then the better one.

    ``first`` is the core that the sample began with.
    """
    me = looks.work.samples[s]
    if me["phase"] == SETTLED or not (exact or (branches and me["work"] <= me["budget"])):
        bound, value = max(me["given_up"], -1e300 if me["phase"] == SETTLED else me["bound"]), me["value"]
    else:
        search = Search(looks, s, first)
        bound, value = search.run(exact), search.value
        if search.on is not None:
            looks.work.best[s, : first.size] = search.on
    return float(bound - value) if bound > value + me["tolerance"] else 0.0


def solve_core(
    core: Core, scale: float, budget: int, precision: float, exact: bool, branches: bool
) -> tuple[States, float]:
    """The best set found on a core, and by how much better ones could exceed it; ``scale`` is Σ|r|."""
    known = {"big": 2.0 * scale, "tolerance": 1e-12 * scale, "precision": precision, "budget": budget, "first": 1}
    looks = begun(core, core.state, patience=_PATIENCE, rounds=1, **known)
    looks.work.lines["swept"][0] = 0
    looks.run(shrinking=1)
    gap = left_open(looks, 0, core, exact, branches)
    return looks.work.best[0], gap
