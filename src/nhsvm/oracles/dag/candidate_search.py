"""The search with bounds on what is above a few candidate leaves: cores of their own, some samples at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.oracles.dag.bound import RISE
from nhsvm.oracles.dag.candidates import LeafCandidates, Lists
from nhsvm.oracles.dag.core import ON, RUNNING, SETTLED, Core, Links, links_of, make_work
from nhsvm.oracles.dag.search import Rounds, left_open
from nhsvm.typing import FloatArray, IntArray, PtrArray

_SIZE, _ENTRIES = 16, 2**17  # samples that are searched together, at most; nodes and edges of them, about
_NONE = 1e300  # a bound that says nothing; kernels must not meet infinity
Rooms = dict[tuple[int, int, int], list[Rounds]]  # that no thread uses now, by nodes, edges and samples


class Subgraphs(NamedTuple):
    """Nodes of some samples' cores: those of the s-th are ``nodes[first[s] : last[s]]``, ascending."""

    rows: PtrArray  # which samples
    first: PtrArray
    last: PtrArray
    nodes: IntArray


class CandidateSearch:
    """A search whose work, beyond one visit of every node, depends on the leaves that could be of use.

    Where putting in and taking out single leaves has not found a set that is proved to be good enough, the stages of
    :class:`nhsvm.oracles.DagMultilabel` go on from it, on a core that holds no more than these leaves and all above.

    Parameters
    ----------
    candidates : LeafCandidates
    budget, precision : see :class:`nhsvm.oracles.DagMultilabel`
    branches : bool
        Branch where bounds have stalled, within the budget.
    rooms : Rooms, optional
        To share with other oracles.
    """

    def __init__(
        self,
        candidates: LeafCandidates,
        budget: int,
        precision: float,
        branches: bool = False,
        rooms: Rooms | None = None,
    ) -> None:
        self.branches = branches
        self.candidates, self.budget, self.precision = candidates, budget, precision
        self._spare: Rooms = {} if rooms is None else rooms

    def found(
        self, rewards: npt.NDArray[Any], useful: Lists, first: Lists | None = None
    ) -> tuple[Lists, FloatArray, FloatArray]:
        """As :meth:`nhsvm.oracles.dag.candidates.LeafCandidates.found`.

        The search begins with sets of single leaves, of those in ``first`` if given: where thousands could be of use,
        to try all of them one by one takes as long as the search itself, which is needed all the same.
        """
        sets, value, bound = self.candidates.found(rewards, useful if first is None else first)
        if first is not None:
            bound[:] = _NONE  # that of some leaves says nothing
        some = np.flatnonzero(bound > value + self.precision * np.abs(value))
        if not len(some):
            return sets, value, bound
        graph = self.candidates.graph
        node_ptr, nodes, edges = _nodes_kernel(some, *useful, graph, self.candidates.n_nodes)
        order = np.argsort(np.diff(node_ptr), kind="stable")  # cores of about the same size share room
        lists = [sets[1][sets[0][t] : sets[0][t + 1]] for t in range(len(rewards))]
        sizes, lo = np.diff(node_ptr), 0
        while lo < len(order):
            which = order[lo : lo + _SIZE]
            n, e = _rounded(sizes[which].max() + 1), _rounded(edges[which].max())
            size = int(np.clip(_ENTRIES // (n + e), 1, _SIZE))  # large cores are searched a few at a time
            which = which[:size]
            lo += size
            spare = self._spare.setdefault((n, e, size), [])
            try:
                rounds = spare.pop()
            except IndexError:
                rounds = Rounds(make_work(n, e, size))
            w = rounds.work
            w.samples["phase"], w.samples["rise"] = SETTLED, RISE[0]
            batch = Subgraphs(some[which], node_ptr[which], node_ptr[which + 1], nodes)
            load_kernel(
                rewards, batch, *sets, value, graph, self.candidates.allow_empty, self.budget, self.precision, w
            )
            rounds.cut()
            w.samples["shrink"] = 1  # trees are not folded yet
            rounds.run(shrinking=1)
            gaps = np.full(len(which), -1.0)  # not known
            if self.branches:
                for s in np.flatnonzero(w.samples["phase"][: len(which)] != SETTLED).tolist():
                    gaps[s] = left_open(rounds, s, _first(rounds, s), False, True)
            n_put, mine = unload_kernel(rewards, batch, graph.leaf_of, gaps, w.samples, w.best, value, bound)
            for t, leaves in zip(batch.rows.tolist(), np.split(mine, np.cumsum(n_put)[:-1]), strict=True):
                lists[t] = leaves
            spare.append(rounds)
        indptr: PtrArray = np.concatenate([[0], np.cumsum([len(leaves) for leaves in lists])]).astype(np.int64)
        return (indptr, np.concatenate(lists)), value, bound


def _first(rounds: Rounds, s: int) -> Core:
    """The core that a sample began with; what nodes are worth on it, if it has not been shrunk."""
    w = rounds.work
    row, n = int(w.samples["origin"][s]), int(w.samples["whole"][s])
    e = int(w.links.parent_ptr[row, n])
    links = Links(*(array[row, :size] for array, size in zip(w.links, (n + 1, e, n + 1, e, e), strict=True)))
    nodes = w.nodes.reward[2 * s, :n], w.nodes.cover[2 * s, :n], w.nodes.state[2 * s, :n]
    return Core(*nodes, links, w.shares.share[2 * s, :e], 0.0)


def _rounded(n: Any) -> int:
    """The next power of two, so that few rooms are made."""
    return 1 << (int(n) - 1).bit_length()


@kernel
def _nodes_kernel(some, indptr, leaves, graph, n_nodes):
    """The nodes of the leaves listed and all above, of some samples, ascending; and the number of edges of each."""
    paths_ptr, paths, above_ptr = graph.paths_ptr, graph.paths, graph.above_ptr
    mark = np.zeros(n_nodes, np.bool_)
    node_ptr, edges = np.zeros(some.shape[0] + 1, np.int64), np.zeros(some.shape[0], np.int64)
    room = 0
    for t in some:
        for e in range(indptr[t], indptr[t + 1]):
            room += paths_ptr[leaves[e] + 1] - paths_ptr[leaves[e]]
    nodes = np.empty(room, np.int32)
    size = 0
    for k in range(some.shape[0]):
        begin = size
        for e in range(indptr[some[k]], indptr[some[k] + 1]):
            for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                if not mark[paths[q]]:
                    mark[paths[q]] = True
                    nodes[size] = paths[q]
                    size += 1
        nodes[begin:size].sort()
        for j in range(begin, size):
            mark[nodes[j]] = False
            edges[k] += max(1, above_ptr[nodes[j] + 1] - above_ptr[nodes[j]])
        node_ptr[k + 1] = size
    return node_ptr, nodes[:size].copy(), edges


@kernel
def load_kernel(rewards, batch, put_ptr, put, value, graph, allow_empty, budget, precision, work):
    """Make samples ready, each on its own core; node 0 is above all roots. They begin with the sets that are known."""
    above_ptr, above, paths_ptr, paths, leaf_of = (
        graph.above_ptr, graph.above, graph.paths_ptr, graph.paths, graph.leaf_of
    )  # fmt: skip
    size, trace = work.samples.shape[0], work.trace
    number, fill = np.empty(rewards.shape[1], np.int32), np.empty(work.nodes.reward.shape[1] + 1, np.int32)
    for s in range(batch.rows.shape[0]):
        t = batch.rows[s]
        r, nodes = rewards[t], batch.nodes[batch.first[s] : batch.last[s]]
        n, row, b = nodes.shape[0] + 1, 1 + 2 * size + s, 2 * s
        child_ptr, child, parent_ptr, parent, slot = links_of(work.links, row)
        reward, cover, state, node, wide = (
            work.nodes.reward[b], work.nodes.cover[b], work.nodes.state[b], work.nodes.node[b], work.best[s]
        )  # fmt: skip
        scale, k = 0.0, 0
        for j in range(n + 1):
            child_ptr[j] = 0
        parent_ptr[0], parent_ptr[1] = 0, 0
        for j in range(1, n):
            c = nodes[j - 1]
            number[c] = j
            scale += abs(r[c])
            if above_ptr[c] == above_ptr[c + 1]:
                parent[k] = 0
                child_ptr[1] += 1
                k += 1
            for q in range(above_ptr[c], above_ptr[c + 1]):
                parent[k] = number[above[q]]
                child_ptr[parent[k] + 1] += 1
                k += 1
            parent_ptr[j + 1] = k
        for j in range(n):
            child_ptr[j + 1] += child_ptr[j]
            fill[j] = child_ptr[j]
        for j in range(1, n):
            for q in range(parent_ptr[j], parent_ptr[j + 1]):
                p = parent[q]
                child[fill[p]] = j
                slot[fill[p]] = q
                fill[p] += 1
        big = 2.0 * scale if scale > 0.0 else 1.0  # no set is worth paying this
        for j in range(n):
            c = nodes[max(j - 1, 0)]
            reward[j] = r[c] if j > 0 else 0.0
            free = leaf_of[c] >= 0 if j > 0 else allow_empty
            cover[j] = 0.0 if free else -2.0 * big
            state[j], node[j], trace.done[b, j], trace.best[b, j] = 0, j, 0, -1
            wide[j] = j == 0
        state[0] = ON
        for q in range(k):
            work.shares.edge[b, q] = q
        for e in range(put_ptr[t], put_ptr[t + 1]):
            for q in range(paths_ptr[put[e]], paths_ptr[put[e] + 1]):
                wide[number[paths[q]]] = 1
        me, line = work.samples[s], work.lines[b]
        me.phase, me.line, me.shrink, me.rounds, me.stalled, me.patience, me.sweeps = RUNNING, 0, 0, 0, 0, 60, 1
        me.find, me.found, me.over, me.first, me.work, me.budget = 0, 0, 0, 1, 0, budget
        me.value, me.bound, me.last, me.given_up = value[t], 1e300, 1e300, -1e300
        me.remember, me.origin, me.whole = 0, row, n
        me.big, me.tolerance, me.precision = big, 1e-12 * scale, precision
        line.size, line.n_edges, line.links, line.folds, line.swept, line.constant = n, k, row, 0, 0, 0.0


@kernel
def unload_kernel(rewards, batch, leaf_of, gaps, samples, all_wide, value, bound):
    """What the best sets hold of the leaves, (how many, which); fills in their values, and bounds that are better."""
    sizes, leaves = np.zeros(batch.rows.shape[0], np.int64), np.empty((batch.last - batch.first).sum(), np.int32)
    size = 0
    for s in range(batch.rows.shape[0]):
        t, me = batch.rows[s], samples[s]
        nodes = batch.nodes[batch.first[s] : batch.last[s]]
        begin, worth = size, 0.0
        for j in range(nodes.shape[0]):
            if all_wide[s, j + 1]:
                worth += rewards[t, nodes[j]]
                if leaf_of[nodes[j]] >= 0:
                    leaves[size] = leaf_of[nodes[j]]
                    size += 1
        leaves[begin:size].sort()
        sizes[s] = size - begin
        upper = me.given_up if me.phase == SETTLED else max(me.given_up, me.bound)
        gap = upper - me.value if gaps[s] < 0.0 else gaps[s]
        value[t] = worth
        bound[t] = max(worth, min(bound[t], worth + (gap if gap > me.tolerance else 0.0)))
    return sizes, leaves[:size].copy()
