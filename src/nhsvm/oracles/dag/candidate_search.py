"""The search with bounds on what is above a few candidate leaves: cores of their own, some samples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nhsvm._jit import kernel
from nhsvm.oracles.dag.candidates import LeafCandidates, Lists
from nhsvm.oracles.dag.core import FREE, ON, SETTLED, TUNING, begin, links_of, make_work
from nhsvm.oracles.dag.search import Limits, Rounds, left_open
from nhsvm.typing import FloatArray, Floats, IntArray, PtrArray

_NONE = 1e300  # a bound that says nothing; kernels must not meet infinity
Rooms = dict[tuple[int, int, int], list[Rounds]]  # that no thread uses now, by nodes, edges and samples


class Subgraphs(NamedTuple):
    """Nodes of some samples' cores: those of the s-th are ``nodes[first[s] : last[s]]``, ascending."""

    rows: PtrArray  # which samples
    first: PtrArray
    last: PtrArray
    nodes: IntArray


class Start(NamedTuple):
    """What a search begins with."""

    put_ptr: PtrArray  # of every sample, the leaves of a set
    put: IntArray
    value: FloatArray  # what it is worth
    scales: FloatArray  # Σ|r| that rounding errors are measured by; none: of the nodes searched


class CandidateSearch:
    """A search whose work, beyond one visit of every node, depends on the candidate leaves.

    Where putting in and taking out single leaves has not found a set that is proved to be good enough, the stages of
    :class:`nhsvm.oracles.DagMultilabel` go on from it, on a core that holds no more than these leaves and all above.

    Parameters
    ----------
    candidates : LeafCandidates
    budget, precision, exact : see :class:`nhsvm.oracles.DagMultilabel`
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
        exact: bool = False,
    ) -> None:
        self.candidates, self.limits = candidates, Limits(budget, precision, branches, exact)
        self._spare: Rooms = {} if rooms is None else rooms

    def found(self, rewards: Floats, useful: Lists, first: Lists | None = None) -> tuple[Lists, FloatArray, FloatArray]:
        """As :meth:`nhsvm.oracles.dag.candidates.LeafCandidates.found`.

        The search begins with sets of single leaves, of those in ``first`` if given: to try thousands of candidates
        one by one takes as long as the search itself, which is needed all the same.
        """
        sets, value, bound = self.candidates.found(rewards, useful if first is None else first)
        if first is not None:
            bound[:] = _NONE  # that of some leaves says nothing
        some = np.flatnonzero(bound > value + self.limits.precision * np.abs(value))
        if not len(some):
            return sets, value, bound
        lists = [sets[1][sets[0][t] : sets[0][t + 1]] for t in range(len(rewards))]
        start = Start(*sets, value, np.empty(0))
        for batch, rounds, gaps in self.rounds(rewards, some, useful, start, cut=True):
            best = rounds.work.best
            n_put, mine = unload_kernel(rewards, batch, self.candidates.graph.leaf_of, gaps, best, value, bound)
            for t, leaves in zip(batch.rows.tolist(), np.split(mine, np.cumsum(n_put)[:-1]), strict=True):
                lists[t] = leaves
        indptr: PtrArray = np.concatenate([[0], np.cumsum([len(leaves) for leaves in lists])]).astype(np.int64)
        return (indptr, np.concatenate(lists)), value, bound

    def rounds(
        self, rewards: Floats, some: PtrArray, useful: Lists, start: Start, cut: bool, most: int | None = None
    ) -> Iterator[tuple[Subgraphs, Rounds, FloatArray]]:
        """Batches of samples, searched: best sets are in the rounds; and by how much better ones could exceed them.

        Samples with more than ``most`` nodes are left out. With ``cut``, flows settle what they can first.
        """
        graph = self.candidates.graph
        node_ptr, nodes, edges = _nodes_kernel(some, *useful, graph, self.candidates.n_nodes)
        sizes, lo = np.diff(node_ptr), 0
        order = np.argsort(sizes, kind="stable")  # cores of about the same size share room
        if most is not None:
            order = order[sizes[order] < most]
        while lo < len(order):
            which = order[lo : lo + TUNING.batch]
            n, e = _power_of_two(int(sizes[which].max()) + 1), _power_of_two(int(edges[which].max()))
            size = int(np.clip(TUNING.entries // (n + e), 1, TUNING.batch))  # large cores are searched a few at a time
            which = which[:size]
            lo += size
            spare = self._spare.setdefault((n, e, size), [])
            try:
                rounds = spare.pop()
            except IndexError:
                rounds = Rounds(make_work(n, e, size))
            w = rounds.work
            w.samples["phase"] = SETTLED
            batch = Subgraphs(some[which], node_ptr[which], node_ptr[which + 1], nodes)
            load_kernel(rewards, batch, start, graph, self.candidates.allow_empty, self.limits, w)
            if cut:
                rounds.cut()
            w.samples["shrink"] = 1  # trees are not folded yet
            rounds.run(shrinking=1)
            yield batch, rounds, np.array([left_open(rounds, s, self.limits) for s in range(len(which))])
            spare.append(rounds)


def _power_of_two(n: int) -> int:
    """The next one, so that few rooms are made."""
    return 1 << (n - 1).bit_length()


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
def load_kernel(rewards, batch, start, graph, allow_empty, limits, work):
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
        decision, scale, k = work.decision[b], 0.0, 0
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
        if start.scales.shape[0] > 0:
            scale = start.scales[t]
        begin(s, work.samples, work.lines, n, k, row, scale, limits)
        me = work.samples[s]
        me.value = start.value[t]
        reward[0], cover[0], state[0] = 0.0, 0.0 if allow_empty else -2.0 * me.big, ON
        for j in range(1, n):
            c = nodes[j - 1]
            reward[j], cover[j], state[j] = r[c], 0.0 if leaf_of[c] >= 0 else -2.0 * me.big, FREE
        for j in range(n):
            node[j], decision[j], trace.done[b, j], trace.best[b, j] = j, state[j], 0, -1
            wide[j] = j == 0
        for q in range(k):
            work.shares.edge[b, q] = q
        for e in range(start.put_ptr[t], start.put_ptr[t + 1]):
            for q in range(paths_ptr[start.put[e]], paths_ptr[start.put[e] + 1]):
                wide[number[paths[q]]] = 1


@kernel
def unload_kernel(rewards, batch, leaf_of, gaps, all_wide, value, bound):
    """What the best sets hold of the leaves, (how many, which); fills in their values, and bounds that are better."""
    sizes, leaves = np.zeros(batch.rows.shape[0], np.int64), np.empty((batch.last - batch.first).sum(), np.int32)
    size = 0
    for s in range(batch.rows.shape[0]):
        t = batch.rows[s]
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
        value[t] = worth
        bound[t] = max(worth, min(bound[t], worth + gaps[s]))
    return sizes, leaves[:size].copy()
