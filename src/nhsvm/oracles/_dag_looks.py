"""Looks at the cores of some samples, one after the other, until there is nothing to gain: the stages in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.oracles._dag_compact import compact_kernel
from nhsvm.oracles._dag_cut import cut_kernel
from nhsvm.oracles._dag_next import back_kernel, next_kernel
from nhsvm.oracles._dag_plan import Links
from nhsvm.oracles._dag_primal import find_kernel
from nhsvm.oracles._dag_prune import prune_kernel
from nhsvm.oracles._dag_shrink import shrink_kernel
from nhsvm.oracles._dag_small import small_kernel
from nhsvm.oracles._dag_sweeps import RISE, sweep_kernel
from nhsvm.oracles._dag_work import RUNNING, States, Work, make_work

_PART, _STEPS = 60, 20_000  # nodes and steps up to which connected parts are solved by themselves
_EFFORT = 60  # see Looks.cut
_MANY, _SOME = 0.2, 0.05  # of the nodes, settled by rewards or by flows; for fewer, a smaller core is not worth making
_PATIENCE, _ROUNDS = 6, 3  # looks at a part before it is split again; sweeps in its first look


class Way(NamedTuple):
    """From a core back to the one that it was made from."""

    above: Core
    node: IntArray  # number of each node there
    done: States  # of each node there: in the set
    best: IntArray  # of each node there: the folded child that covers it, or −1
    fold_child: IntArray
    fold_parent: IntArray
    take: States  # folds that are worth it by themselves


@dataclass
class Core:
    """What is left to decide of one sample, see :mod:`nhsvm.oracles._dag_shrink`; nodes in topological order."""

    reward: FloatArray
    cover: FloatArray
    state: States
    links: Links
    share: FloatArray
    constant: float
    way: Way | None = None

    @property
    def size(self) -> int:
        return len(self.reward)

    def back(self, on: States) -> States:
        """The set on the first core that the set ``on`` of this one stands for."""
        way = self.way
        while way is not None:
            wide = np.empty(way.above.size, np.uint8)
            back_kernel(on, *way[1:], *way.above.links[2:4], wide)
            on, way = wide, way.above.way
        return on


class Looks:
    """Some samples on their cores, and the stages.

    Parameters
    ----------
    work : Work
        Room for them.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        w, lines = self.work, self.work.lines
        n, k, t = w.nodes, w.links, w.trace
        both = w.samples, lines
        self._shrink = (
            *both, n.reward, n.cover, n.state, n.node, *k, w.share, w.edge, w.kept, *t, w.fate
        )  # fmt: skip
        self._prune = *both, n.reward, n.cover, *k[:4], w.fate
        self._cut = *both, n.reward, n.cover, n.state, *k, w.fate
        self._compact = *both, n.reward, n.cover, n.state, n.node, *k, w.share, w.edge, w.kept, t.done, w.fate
        self._sweep = (
            *both, n.reward, n.cover, n.state, n.star, n.marginal, k.child_ptr, k.parent_ptr, k.parent, k.slot, w.share
        )  # fmt: skip
        self._small = (
            *both, n.cover, n.state, n.star, k.child_ptr, k.child, k.slot, k.parent_ptr, k.parent, w.share, w.parts
        )  # fmt: skip
        self._find = *both, n.reward, n.cover, n.state, n.marginal, *k[:4], w.on
        self._next = *both, n.state, n.node, n.marginal, *k[:4], *t, w.fate, w.parts, w.on, w.best

    def run(self, shrinking: int = 0) -> None:
        """Look at the cores of all samples that are running until none is; ``shrinking`` have decisions to apply."""
        running = 1
        while running:
            if shrinking:
                self.shrink()
            self.sweep()
            self.small()
            self.find()
            running, shrinking = self.next()

    def prune(self) -> int:
        """Take out what rewards settle, before the first look; the number of samples that shrink then."""
        prune_kernel(*self._prune)
        return int(compact_kernel(_MANY, *self._compact))

    def cut(self, effort: int = _EFFORT) -> int:
        """Take out what flows settle, before the first look; the number of samples that shrink then.

        ``effort`` times its nodes may be visited in search of ways for a flow.
        """
        cut_kernel(effort, *self._cut)
        return int(compact_kernel(_SOME, *self._compact))

    def shrink(self) -> None:
        """Apply decisions."""
        shrink_kernel(*self._shrink)

    def sweep(self) -> None:
        """Bounds and marginals."""
        sweep_kernel(*self._sweep)

    def small(self, most: int = _PART, limit: int = _STEPS) -> None:
        """Solve parts of up to ``most`` nodes that take up to ``limit`` steps each."""
        small_kernel(most, limit, *self._small)

    def find(self) -> None:
        """Label sets, from the marginals."""
        find_kernel(*self._find)

    def next(self) -> tuple[int, int]:
        """What then; the number of samples that are running, and of those that shrink."""
        running, shrinking = next_kernel(*self._next)
        return running, shrinking

    def core(self, sample: int, first: Core) -> Core:
        """What a sample has come to; ``first`` is the core that it began with."""
        w, line = self.work, self.work.lines[2 * sample]
        b, n, e, row = 2 * sample, int(line["size"]), int(line["n_edges"]), int(line["links"])
        if row == int(w.samples["origin"][sample]):
            return first
        sizes = n + 1, e, n + 1, e, e
        links = Links(*(array[row, :size].copy() for array, size in zip(w.links, sizes, strict=True)))
        folds = int(line["folds"])
        way = Way(
            first, w.nodes.node[b, :n].copy(), w.trace.done[b].copy(), w.trace.best[b].copy(),
            w.trace.fold_child[sample, :folds].copy(), w.trace.fold_parent[sample, :folds].copy(),
            w.trace.take[sample, :folds].copy(),
        )  # fmt: skip
        nodes = w.nodes.reward[b, :n].copy(), w.nodes.cover[b, :n].copy(), w.nodes.state[b, :n].copy()
        return Core(*nodes, links, w.share[b, :e].copy(), float(line["constant"]), way)


def begun(core: Core, fate: States, **known: Any) -> Looks:
    """A core with decisions that are still to be applied; ``known`` goes into the record of the sample."""
    looks = Looks(make_work(core.size, len(core.links.child), 1, core.links))
    w = looks.work
    w.nodes.reward[0], w.nodes.cover[0], w.nodes.state[0] = core.reward, core.cover, core.state
    w.nodes.node[0] = np.arange(core.size)
    w.share[0], w.edge[0] = core.share, np.arange(len(core.share))
    w.trace.done[0], w.trace.best[0], w.fate[0] = 0, -1, fate
    record = {"phase": RUNNING, "shrink": 1, "patience": _PATIENCE, "rounds": _ROUNDS, "last": 1e300}
    record |= {"rise": RISE[0], "bound": 1e300, "given_up": -1e300, "value": -1e300, "whole": core.size, **known}
    for name, value in record.items():
        w.samples[name] = value
    line = {"size": core.size, "n_edges": len(core.share), "swept": 1, "constant": core.constant}
    for name, value in line.items():
        w.lines[name][0] = value
    return looks


def reduced(core: Core, fate: States, big: float) -> Core | None:
    """The smaller core that decisions make; None if they cannot be. A cover below ``-big`` is none at all."""
    looks = begun(core, fate, big=big)
    looks.shrink()
    return looks.core(0, core) if looks.work.samples["phase"][0] == RUNNING else None
