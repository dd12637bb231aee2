"""The search with bounds on what is above few leaves: cores of their own, some samples at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import FloatArray, PtrArray
from nhsvm.oracles._dag_batch import left_open
from nhsvm.oracles._dag_few import DagFew, Lists
from nhsvm.oracles._dag_looks import Core, Looks
from nhsvm.oracles._dag_plan import Links
from nhsvm.oracles._dag_sweeps import RISE
from nhsvm.oracles._dag_work import ON, RUNNING, SETTLED, make_work

_SIZE, _ENTRIES = 16, 2**17  # samples that are looked at together, at most; nodes and edges of them, about
_NONE = 1e300  # a bound that says nothing; kernels must not meet infinity
Rooms = dict[tuple[int, int, int], list[Looks]]  # that no thread uses now, by nodes, edges and samples


class DagCores:
    """An oracle whose work, beyond one look at every node, depends on the leaves that could be of use.

    Where putting in and taking out single leaves has not found a set that is proved to be good enough, the stages of
    :class:`nhsvm.oracles.DagMultilabel` go on from it, on a core that holds no more than these leaves and all above.

    Parameters
    ----------
    few : DagFew
    budget, precision : see :class:`nhsvm.oracles.DagMultilabel`
    branches : bool
        Branch where bounds have stalled, within the budget.
    rooms : Rooms, optional
        To share with other oracles.
    """

    def __init__(
        self, few: DagFew, budget: int, precision: float, branches: bool = False, rooms: Rooms | None = None
    ) -> None:
        self.branches = branches
        self.few, self.budget, self.precision, self.allow_empty = few, budget, precision, few.allow_empty
        self._spare: Rooms = {} if rooms is None else rooms

    def solve(self, rewards: FloatArray, chosen: npt.NDArray[np.uint8], value: FloatArray, bound: FloatArray) -> None:
        """As :meth:`nhsvm.oracles.DagMultilabel.solve`; rewards must be finite."""
        (indptr, leaves), value[:], bound[:] = self.found(rewards, self.few.useful(rewards))
        self.few.write(indptr, leaves, chosen)

    def found(
        self, rewards: npt.NDArray[Any], useful: Lists, first: Lists | None = None
    ) -> tuple[Lists, FloatArray, FloatArray]:
        """As :meth:`nhsvm.oracles._dag_few.DagFew.found`.

        The search begins with sets of single leaves, of those in ``first`` if given: where thousands could be of use,
        to look at all of them one by one takes as long as the search itself, which is needed all the same.
        """
        sets, value, bound = self.few.found(rewards, useful if first is None else first)
        if first is not None:
            bound[:] = _NONE  # that of some leaves says nothing
        some = np.flatnonzero(bound > value + self.precision * np.abs(value))
        if not len(some):
            return sets, value, bound
        below = self.few.below
        node_ptr, nodes, edges = _nodes_kernel(
            some, *useful, below.paths_ptr, below.paths, below.above_ptr, self.few.n_nodes
        )
        order = np.argsort(np.diff(node_ptr), kind="stable")  # cores of about the same size share room
        lists = [sets[1][sets[0][t] : sets[0][t + 1]] for t in range(len(rewards))]
        sizes, lo = np.diff(node_ptr), 0
        while lo < len(order):
            which = order[lo : lo + _SIZE]
            n, e = _rounded(sizes[which].max() + 1), _rounded(edges[which].max())
            size = int(np.clip(_ENTRIES // (n + e), 1, _SIZE))  # large cores are looked at a few at a time
            which = which[:size]
            lo += size
            spare = self._spare.setdefault((n, e, size), [])
            try:
                looks = spare.pop()
            except IndexError:
                looks = Looks(make_work(n, e, size))
            w = looks.work
            w.samples["phase"], w.samples["rise"] = SETTLED, RISE[0]
            load_kernel(
                rewards, some, which, node_ptr, nodes, *sets, value, below.above_ptr, below.above, below.paths_ptr,
                below.paths, below.leaf_of, self.allow_empty, self.budget, self.precision, w.samples, w.lines,
                *w.nodes[:4], *w.links, w.edge, *w.trace[:2], w.best,
            )  # fmt: skip
            looks.cut()
            w.samples["shrink"] = 1  # trees are not folded yet
            looks.run(shrinking=1)
            gaps = np.full(len(which), -1.0)  # not known
            if self.branches:
                for s in np.flatnonzero(w.samples["phase"][: len(which)] != SETTLED).tolist():
                    gaps[s] = left_open(looks, s, _first(looks, s), False, True)
            n_put, mine = unload_kernel(
                rewards, some, which, node_ptr, nodes, below.leaf_of, gaps, w.samples, w.best, value, bound
            )
            for t, leaves in zip(some[which].tolist(), np.split(mine, np.cumsum(n_put)[:-1]), strict=True):
                lists[t] = leaves
            spare.append(looks)
        indptr: PtrArray = np.concatenate([[0], np.cumsum([len(leaves) for leaves in lists])]).astype(np.int64)
        return (indptr, np.concatenate(lists)), value, bound


def _first(looks: Looks, s: int) -> Core:
    """The core that a sample began with; what nodes are worth on it, if it has not been shrunk."""
    w = looks.work
    row, n = int(w.samples["origin"][s]), int(w.samples["whole"][s])
    e = int(w.links.parent_ptr[row, n])
    links = Links(*(array[row, :size] for array, size in zip(w.links, (n + 1, e, n + 1, e, e), strict=True)))
    nodes = w.nodes.reward[2 * s, :n], w.nodes.cover[2 * s, :n], w.nodes.state[2 * s, :n]
    return Core(*nodes, links, w.share[2 * s, :e], 0.0)


def _rounded(n: Any) -> int:
    """The next power of two, so that few rooms are made."""
    return 1 << (int(n) - 1).bit_length()


@kernel
def _nodes_kernel(some, indptr, leaves, paths_ptr, paths, above_ptr, n_nodes):
    """The nodes of the leaves listed and all above, of some samples, ascending; and the number of edges of each."""
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
def load_kernel(
    rewards, some, which, node_ptr, all_nodes, put_ptr, put, value, above_ptr, above, paths_ptr, paths, leaf_of,
    allow_empty, budget, precision, samples, lines, all_reward, all_cover, all_state, all_node, all_child_ptr,
    all_child, all_parent_ptr, all_parent, all_slot, all_edge, all_done, all_best, all_wide,
):  # fmt: skip
    """Make samples ready, each on its own core; node 0 is above all roots. They begin with the sets that are known."""
    size = samples.shape[0]
    number, fill = np.empty(rewards.shape[1], np.int32), np.empty(all_reward.shape[1] + 1, np.int32)
    for s in range(which.shape[0]):
        t = some[which[s]]
        r, nodes = rewards[t], all_nodes[node_ptr[which[s]] : node_ptr[which[s] + 1]]
        n, row, b = nodes.shape[0] + 1, 1 + 2 * size + s, 2 * s
        parent_ptr, parent, slot = all_parent_ptr[row], all_parent[row], all_slot[row]
        child_ptr, child, wide = all_child_ptr[row], all_child[row], all_wide[s]
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
            all_reward[b, j] = r[c] if j > 0 else 0.0
            free = leaf_of[c] >= 0 if j > 0 else allow_empty
            all_cover[b, j] = 0.0 if free else -2.0 * big
            all_state[b, j], all_node[b, j], all_done[b, j], all_best[b, j] = 0, j, 0, -1
            wide[j] = j == 0
        all_state[b, 0] = ON
        for q in range(k):
            all_edge[b, q] = q
        for e in range(put_ptr[t], put_ptr[t + 1]):
            for q in range(paths_ptr[put[e]], paths_ptr[put[e] + 1]):
                wide[number[paths[q]]] = 1
        me, line = samples[s], lines[b]
        me.phase, me.line, me.shrink, me.looks, me.stalled, me.patience, me.rounds = RUNNING, 0, 0, 0, 0, 60, 1
        me.find, me.found, me.over, me.first, me.work, me.budget = 0, 0, 0, 1, 0, budget
        me.value, me.bound, me.last, me.given_up = value[t], 1e300, 1e300, -1e300
        me.remember, me.origin, me.whole = 0, row, n
        me.big, me.tolerance, me.precision = big, 1e-12 * scale, precision
        line.size, line.n_edges, line.links, line.folds, line.swept, line.constant = n, k, row, 0, 0, 0.0


@kernel
def unload_kernel(rewards, some, which, node_ptr, all_nodes, leaf_of, gaps, samples, all_wide, value, bound):
    """What the best sets hold of the leaves, (how many, which); fills in their values, and bounds that are better."""
    sizes, leaves = np.zeros(which.shape[0], np.int64), np.empty(node_ptr[-1], np.int32)
    size = 0
    for s in range(which.shape[0]):
        t, me = some[which[s]], samples[s]
        nodes = all_nodes[node_ptr[which[s]] : node_ptr[which[s] + 1]]
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
