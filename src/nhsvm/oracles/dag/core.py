"""A sample's core: what is left to decide of it, the arrays that keep it, and the rules that make it smaller.

The problem on a core, with x in {0, 1}: maximise Σ_i x_i (r_i + [no child of i is in the set]·d_i) over sets that hold
the parents of their members. d_i ≤ 0, the *cover*, is what it costs to cover i by a folded child; where there is none
it is so negative that no optimum pays it. Nodes known to be in the set stay only while they still need a child.

Decisions are applied by :func:`shrink_kernel`, and what follows from them: a node with a child in the set is in; one
whose parent is out is out; one without free children is folded into its only parent, or out if that is as good. The
rest is a smaller core with the same optimum among the sets that agree with the decisions. :func:`compact_kernel` only
takes settled nodes out, before the first round.

The arrays of :class:`Work` hold a batch of samples. A round at a core is a row of steps: *shrink* (apply decisions),
*sweep* (bounds and marginals), *components* (small ones solved exactly), *round* (marginals to a label set), *advance*
(what to do then). Before the first: *prune* and *cut* (decide by the rewards alone), each with *compact* (a smaller
core). Each is one kernel that takes every sample of the batch that has come to it, so that what Python does in between
is nothing beside them, and the interpreter lock is free while they run. They are kernels of their own, not one, since
compiling one for all takes longer than the sum.

A sample has two *lines*: the core that it has come to, and that of a dive for a better set, which is given up
afterwards. Row 2s is the line of sample s, row 2s + 1 that of its dive. The links of line k, once it has been shrunk,
are row k + 1 of the links. The first links of all samples are row 0 where they are the same; else those of each are one
of the last rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.typing import ByteArray, FloatArray, IntArray


class Tuning(NamedTuple):
    """What the search on DAGs is tuned by: speed and how much a budget finds depend on it, but no proof does.

    ``benchmarks/dag_inference.py`` shows what a change does to times and gaps.
    """

    # which search: see DagMultilabel
    stages: tuple[int, int] = (5_000, 50_000)  # budgets: a dive, or some rounds; one sweep misses most violations
    longer: int = 8  # budgets spent before HiGHS proves the rest, which takes longer than that for nearly all samples
    large: int = 6_000  # nodes of a core from which on it is searched above candidate leaves only, where these are few
    paths: int = 20  # nodes above a leaf, on average, up to which finding candidate leaves takes less than it saves
    most: float = 0.25  # part of the core's nodes that may be above candidate leaves
    memory: int = 600_000_000  # bytes that a memory of samples may take
    needless: int = 200_000_000  # steps of the search for needless edges; edges beyond are kept
    listed: int = 4  # times a limit of leaves that are bounded closely, to find the largest bounds
    listed_least: int = 256  # leaves that are bounded closely at least

    # a batch
    batch: int = 16  # samples at most
    entries: int = 2**17  # nodes and edges of them all, about: a megabyte an array

    # before the first round
    pruned: float = 0.2  # part of the nodes that rewards have to settle for a smaller core to be made
    cut: float = 0.05  # the same of flows
    visits: int = 60  # times the nodes of a core that may be visited in search of paths for a flow
    pushes: int = 3  # rounds of pushes; what they leave is found faster one path at a time

    # a round
    keep: float = 0.9  # a node keeps keep · children / (children + rise · parents) of its marginal on the way down
    rise: float = 0.2  # best for the first sweeps, whose marginals guide a search
    rise_of_bounds: float = 1.0  # best for many sweeps, for bounds alone
    ahead: int = 12  # edges, for which parents all over a large graph are brought into the cache
    part: int = 60  # nodes up to which a connected component is solved by itself
    steps: int = 20_000  # steps that this may take
    solved: float = 0.05  # part of the nodes in solved components; with more, the core shrinks before sets are sought
    unsure: float = 0.5  # part of the free nodes that a dive leaves free
    settled: float = 0.05  # part of the nodes that has to be settled before a smaller core is made
    patience_first: int = 60  # rounds at a core of its own before a sample is split
    patience: int = 6  # rounds at a part before it is split again
    sweeps: int = 3  # up and down, in a round; the first round has one
    small: int = 3_000  # nodes up to which a split says much
    slow: float = 0.02  # part of the gap; bounds that fall by less (on large cores a tenth) three times have stalled
    programs: int = 2  # open parts that HiGHS is given one by one; of more, it is given what they were split from


TUNING = Tuning()
FREE, ON, OFF, DONE, FOLDED = range(5)  # DONE: in the set, and settled
RUNNING, SETTLED, SPLIT, SPENT = range(4)  # SPLIT: sweeps have stalled; SPENT: the budget is

_LINE = [
    ("size", "i8"), ("n_edges", "i8"), ("links", "i8"), ("folds", "i8"),
    ("swept", "i8"),  # 0: shares are to be made, 1: stars are, 2: swept before
    ("constant", "f8"),  # value of all that is settled
    ("bound", "f8"),  # of the last sweep
]  # fmt: skip
_SAMPLE = [
    ("phase", "i8"), ("line", "i8"),
    ("shrink", "i8"),  # 0, or one more than the line that decisions are to be applied to
    ("rounds", "i8"), ("stalled", "i8"), ("patience", "i8"),
    ("sweeps", "i8"),  # up and down, in a round
    ("solved", "i8"),  # nodes in small components that are solved
    ("find", "i8"), ("found", "i8"),  # a set is to be found by rounding; is there
    ("over", "i8"),  # the dive has ended
    ("first", "i8"),  # the core is the first one
    ("remember", "i8"),  # its shares are asked for in the end
    ("origin", "i8"), ("whole", "i8"),  # row of its first links, and nodes of its first core
    ("work", "i8"), ("budget", "i8"),
    ("value", "f8"), ("candidate", "f8"), ("bound", "f8"), ("last", "f8"),
    ("given_up", "f8"),  # the largest bound of what was given up
    ("big", "f8"), ("tolerance", "f8"), ("precision", "f8"),
    ("rise", "f8"),  # see bound.py
]  # fmt: skip


class Links(NamedTuple):
    """Edges of a graph in topological numbering: children by parent, parents by child. In a batch, a row a core."""

    child_ptr: IntArray
    child: IntArray
    parent_ptr: IntArray
    parent: IntArray
    slot: IntArray  # of every entry of ``child``: the same edge's position in ``parent``


class Nodes(NamedTuple):
    """By line and node."""

    reward: FloatArray  # r
    cover: FloatArray  # d
    state: ByteArray  # FREE or ON; a node that is ON has no parent here
    node: IntArray  # its number in the first core
    star: FloatArray  # eight numbers a node, see bound.py
    marginal: FloatArray


class Shares(NamedTuple):
    """The dual variables: by edge, the part of the child's reward that is accounted for in the parent's star."""

    share: FloatArray  # by line and entry of links.parent
    edge: IntArray  # the number of that entry in the first core
    kept: FloatArray  # by sample and entry of the first core: the last share before it went


class Trace(NamedTuple):
    """The way back to the first core: by line (folds: by sample) and node of the first core."""

    done: ByteArray  # in the set
    best: IntArray  # the folded child that covers a node, or −1
    fold_child: IntArray
    fold_parent: IntArray
    take: ByteArray  # worth it by itself


class Work(NamedTuple):
    """All of a batch."""

    samples: npt.NDArray[np.void]
    lines: npt.NDArray[np.void]
    nodes: Nodes
    links: Links
    shares: Shares
    trace: Trace
    decision: ByteArray  # two rows a sample: the second is for when the first cannot be
    parts: ByteArray  # by sample and node: state, and what is known from small components
    on: ByteArray  # the set that rounding has found
    best: ByteArray  # by sample and node of the first core: the best set so far


def make_work(n: int, n_edges: int, size: int, links: Links | None = None) -> Work:
    """Room for ``size`` samples on a core with these links; or, without links, on cores of up to so many nodes each."""
    both, e = 2 * size, n_edges

    def rows_of_links(k: int) -> IntArray:
        rows = np.empty((1 + both + (size if links is None else 0), n + 1 if k in (0, 2) else e), np.int32)
        if links is not None:
            rows[0] = links[k]
        return rows

    return Work(
        samples=np.zeros(size, _SAMPLE),
        lines=np.zeros(both, _LINE),
        nodes=Nodes(
            np.empty((both, n)), np.empty((both, n)), np.empty((both, n), np.uint8), np.empty((both, n), np.int32),
            np.empty((both, 8 * n)), np.empty((both, n)),
        ),
        links=Links(*map(rows_of_links, range(5))),
        shares=Shares(np.empty((both, e)), np.empty((both, e), np.int32), np.empty((size, e))),
        trace=Trace(
            np.empty((both, n), np.uint8), np.empty((both, n), np.int32), np.empty((size, n), np.int32),
            np.empty((size, n), np.int32), np.empty((size, n), np.uint8),
        ),
        decision=np.empty((both, n), np.uint8),
        parts=np.empty((size, n), np.uint8),
        on=np.empty((size, n), np.uint8),
        best=np.empty((size, n), np.uint8),
    )  # fmt: skip


@inlined
def links_of(links, row):
    """The links of one core of a batch."""
    return Links(links.child_ptr[row], links.child[row], links.parent_ptr[row], links.parent[row], links.slot[row])


@inlined
def begin(s, samples, lines, n, n_edges, row, scale, limits):
    """A sample before its first round, with a core of n nodes whose links are in that row; ``scale`` is Σ|r|."""
    me, line = samples[s], lines[2 * s]
    me.phase, me.line, me.shrink, me.rounds, me.stalled, me.sweeps = RUNNING, 0, 0, 0, 0, 1
    me.find, me.found, me.over, me.first, me.work, me.budget = 0, 0, 0, 1, 0, limits.budget
    me.patience, me.remember, me.origin, me.whole = TUNING.patience_first, 0, row, n
    me.value, me.bound, me.last, me.given_up = -1e300, 1e300, 1e300, -1e300
    me.big = 2.0 * scale if scale > 0.0 else 1.0  # no set is worth paying this
    me.tolerance, me.precision, me.rise = 1e-12 * scale, limits.precision, TUNING.rise
    line.size, line.n_edges, line.links, line.folds, line.swept, line.constant = n, n_edges, row, 0, 0, 0.0


class Reduction(NamedTuple):
    """From a core back to the one that it was made from."""

    above: Core
    node: IntArray  # number of each node there
    trace: Trace


@dataclass
class Core:
    """What is left to decide of one sample, with nodes in topological order."""

    reward: FloatArray
    cover: FloatArray
    state: ByteArray
    links: Links
    share: FloatArray
    constant: float
    reduction: Reduction | None = None

    @property
    def size(self) -> int:
        return len(self.reward)

    def expanded(self, on: ByteArray) -> ByteArray:
        """The set on the first core that the set ``on`` of this one stands for."""
        made = self.reduction
        while made is not None:
            wide = np.empty(made.above.size, np.uint8)
            expand_kernel(on, made.node, made.trace, made.above.links, wide)
            on, made = wide, made.above.reduction
        return on


# -- decisions applied: a smaller core -------------------------------------------------------------------------------


@inlined
def expand(n, on, node, made, folds, parent_ptr, parent, covered, wide):
    """The set on the first core that the set ``on`` of a smaller one stands for, into ``wide``; ``made`` is a Trace."""
    done, best, fold_child, fold_parent, take = made
    for i in range(wide.shape[0]):
        covered[i] = 0
        wide[i] = done[i]
    for j in range(n):
        wide[node[j]] = on[j]
    for i in range(wide.shape[0]):
        if wide[i]:
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                covered[parent[q]] = 1
    for k in range(folds - 1, -1, -1):
        c, p = fold_child[k], fold_parent[k]
        if wide[p] and (take[k] or (best[p] == c and covered[p] == 0)):
            wide[c] = 1
            covered[p] = 1


@kernel
def expand_kernel(on, node, made, links, wide):
    """The set ``wide`` of a core that the set ``on`` of a smaller one stands for."""
    covered = np.empty(wide.shape[0], np.uint8)
    expand(on.shape[0], on, node, made, made.fold_child.shape[0], links.parent_ptr, links.parent, covered, wide)


@inlined
def _kept(n, decision, number):
    """Number the nodes that stay, −1 for others; how many stay."""
    m = 0
    for i in range(n):
        number[i] = -1
        if decision[i] <= ON:
            number[i] = m
            m += 1
    return m


@inlined
def _relink(n, m, number, old, new, fill, has_shares, old_share, old_edge, share, edge):
    """Links among the m nodes that stay, and the shares on them; in place, entries move to the front. How many."""
    child_ptr, child, _, _, slot = old
    new_ptr, new_child, up_ptr, up, new_slot = new
    k, end = 0, child_ptr[0]
    new_ptr[0] = 0
    for j in range(m + 1):
        up_ptr[j] = 0
    for i in range(n):
        begin = end
        end = child_ptr[i + 1]
        j = number[i]
        if j < 0:
            continue
        for e in range(begin, end):
            c = number[child[e]]
            if c >= 0:
                new_child[k] = c
                new_slot[k] = slot[e]
                up_ptr[c + 1] += 1
                k += 1
        new_ptr[j + 1] = k
    for j in range(m):
        up_ptr[j + 1] += up_ptr[j]
        fill[j] = up_ptr[j]
    for j in range(m):
        for e in range(new_ptr[j], new_ptr[j + 1]):
            q = fill[new_child[e]]
            up[q] = j
            if has_shares:
                share[q], edge[q] = old_share[new_slot[e]], old_edge[new_slot[e]]
            fill[new_child[e]] = q + 1
            new_slot[e] = q
    return k


@inlined
def _push(i, decision, stack, size, waits):
    if waits[i] == 0 and decision[i] <= ON:
        waits[i] = 1
        stack[size] = i
        size += 1
    return size


@kernel
def shrink_kernel(samples, lines, nodes, links, shares, trace, all_decisions):
    """Apply the decisions of the samples that have some."""
    most, most_edges = nodes.reward.shape[1], shares.share.shape[1]
    reward, cover, best = np.empty(most), np.empty(most), np.empty(most, np.int32)
    number, stack, waits = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    fold_child, fold_parent, take = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    old_share, old_edge = np.empty(most_edges), np.empty(most_edges, np.int32)
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.phase != RUNNING or me.shrink == 0:
            continue
        a, b = 2 * s + me.shrink - 1, 2 * s + me.line
        me.shrink = 0
        old, new = lines[a], lines[b]
        n, big = old.size, me.big
        whole = links_of(links, old.links)
        child_ptr, child, parent_ptr, parent, _ = whole
        r, d, node = nodes.reward[a], nodes.cover[a], nodes.node[a]
        possible, constant, folds = False, 0.0, 0
        decision = all_decisions[2 * s]
        for attempt in range(1 + me.line):  # a dive has a second choice
            decision = all_decisions[2 * s + attempt]
            possible, constant, folds = True, 0.0, 0
            for i in range(n):
                reward[i], cover[i], best[i] = r[i], d[i], -2  # −2: as it is
                stack[i], waits[i] = i, 1
            # every node is visited once, children first, and again when something around it has changed
            size = n
            while size > 0:
                size -= 1
                i = stack[size]
                waits[i] = 0
                before = decision[i]
                if before > ON:
                    continue
                free, last, covered = 0, -1, False
                for e in range(child_ptr[i], child_ptr[i + 1]):
                    f = decision[child[e]]
                    if f == FREE:
                        free += 1
                        last = child[e]
                    elif f in (ON, DONE):
                        covered = True
                parents, p, covers, banned = 0, -1, 0.0, False
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    f = decision[parent[q]]
                    if f <= ON:
                        parents += 1
                        p = parent[q]
                        covers += cover[p]
                    elif f == OFF:
                        banned = True
                if covered:
                    cover[i] = 0.0
                    best[i] = -1
                    decision[i] = ON
                elif free == 0 and cover[i] < 0.0:
                    banned |= cover[i] < -big
                    reward[i] += cover[i]
                    cover[i] = 0.0
                if banned:
                    if decision[i] == ON:
                        possible = False
                        break
                    decision[i] = OFF
                elif decision[i] == ON or (parents == 0 and reward[i] + cover[i] > 0.0):
                    decision[i] = ON
                    if cover[i] == 0.0:
                        decision[i] = DONE
                        constant += reward[i]
                    elif free == 1 and cover[i] < -big:
                        decision[last] = ON
                        size = _push(last, decision, stack, size, waits)
                        for q in range(parent_ptr[last], parent_ptr[last + 1]):
                            size = _push(parent[q], decision, stack, size, waits)
                elif free == 0:
                    v = reward[i]
                    if parents == 1:
                        decision[i] = FOLDED
                        fold_child[folds] = i
                        fold_parent[folds] = p
                        take[folds] = v > 0.0
                        folds += 1
                        if v > 0.0:
                            reward[p] += v
                            cover[p] = 0.0
                            best[p] = i
                        elif v > cover[p]:
                            cover[p] = v
                            best[p] = i
                    elif parents == 0 or v <= covers:  # its parents cover themselves for less, all together
                        decision[i] = OFF
                if decision[i] != before:
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        size = _push(parent[q], decision, stack, size, waits)
                    if decision[i] > ON:
                        for e in range(child_ptr[i], child_ptr[i + 1]):
                            size = _push(child[e], decision, stack, size, waits)
            if possible:
                break
        m = _kept(n, decision, number)
        if me.line == 1 and (not possible or m == n):  # the dive ends where it is
            me.line = a - 2 * s
            me.over, me.find = 1, 1
            continue
        if not possible:
            me.phase = SETTLED
            continue
        # the way back
        done, cover_by = trace.done[b], trace.best[b]
        if a != b:
            for i in range(most):
                done[i], cover_by[i] = trace.done[a, i], trace.best[a, i]
        for k in range(folds):
            at = old.folds + k
            trace.fold_child[s, at] = node[fold_child[k]]
            trace.fold_parent[s, at] = node[fold_parent[k]]
            trace.take[s, at] = take[k]
        new.folds = old.folds + folds
        # the smaller core; where it takes the place of the larger one, entries move to the front
        r, d, state, to = nodes.reward[b], nodes.cover[b], nodes.state[b], nodes.node[b]
        for i in range(n):
            if decision[i] == DONE:
                done[node[i]] = 1
            if best[i] >= -1:  # a child, whose number is still there: it is larger
                cover_by[node[i]] = -1 if best[i] == -1 else node[best[i]]
            j = number[i]
            if j >= 0:
                r[j], d[j], state[j], to[j] = reward[i], cover[i], decision[i], node[i]
        share, edge = shares.share[a], shares.edge[a]
        for q in range(old.n_edges):
            old_share[q], old_edge[q] = share[q], edge[q]
            if a == b and me.remember:
                shares.kept[s, edge[q]] = share[q]
        share, edge, smaller = shares.share[b], shares.edge[b], links_of(links, 1 + b)
        k = _relink(n, m, number, whole, smaller, stack, True, old_share, old_edge, share, edge)
        new.size, new.n_edges, new.links, new.constant = m, k, 1 + b, old.constant + constant
        if me.line == 0 and old.swept == 2:
            me.first, me.rounds = 0, 0
        new.swept = min(old.swept, 1)


@kernel
def compact_kernel(part, samples, lines, nodes, links, shares, trace, all_decisions):
    """Take settled nodes out of the cores where they are more than a ``part``; the number of samples that then shrink.

    Parents of nodes that are ON are ON, children of nodes that are OFF are OFF. What is ON and needs no child any more
    is DONE.
    """
    most, most_edges = nodes.reward.shape[1], shares.share.shape[1]
    number, fill = np.empty(most, np.int32), np.empty(most, np.int32)
    total, top = np.empty(most), np.empty(most)
    old_share, old_edge = np.empty(most_edges), np.empty(most_edges, np.int32)
    shrinking = 0
    for s in range(samples.shape[0]):
        me, line = samples[s], lines[2 * s]
        if me.phase != RUNNING:
            continue
        b, n = 2 * s, line.size
        whole = links_of(links, line.links)
        parent_ptr, parent = whole.parent_ptr, whole.parent
        reward, cover, state, decision = nodes.reward[b], nodes.cover[b], nodes.state[b], all_decisions[b]
        for i in range(n - 1, -1, -1):  # children come first
            if decision[i] == ON:
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    decision[parent[q]] = DONE
                if cover[i] == 0.0:
                    decision[i] = DONE
            elif decision[i] == DONE:
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    decision[parent[q]] = DONE
        m = _kept(n, decision, number)
        if m > (1.0 - part) * n:
            for i in range(n):  # whoever applies these decisions later counts what is DONE by then
                if decision[i] == DONE:
                    decision[i] = ON
            continue
        share, edge, to, done = shares.share[b], shares.edge[b], nodes.node[b], trace.done[b]
        if me.remember and line.swept == 0 and line.links == 0:
            # as in a first sweep up: nobody will visit what goes, but its shares are remembered
            for i in range(n):
                total[i], top[i] = 0.0, cover[i]
            for i in range(n - 1, 0, -1):
                begin, end = parent_ptr[i], parent_ptr[i + 1]
                x = (reward[i] + (total[i] if total[i] > 0.0 else top[i])) / (end - begin)
                for q in range(begin, end):
                    p = parent[q]
                    share[q] = x
                    total[p] += max(x, 0.0)
                    top[p] = max(top[p], x)
        has_shares = me.remember or line.swept > 0  # are there, or will be asked for
        if has_shares:
            for q in range(line.n_edges):
                old_share[q], old_edge[q] = share[q], edge[q]
                shares.kept[s, edge[q]] = share[q]
        smaller = links_of(links, 1 + b)
        k = _relink(n, m, number, whole, smaller, fill, has_shares, old_share, old_edge, share, edge)
        constant = 0.0
        for i in range(n):
            j = number[i]
            if decision[i] == DONE:
                done[to[i]] = 1
                constant += reward[i]
            if j >= 0:
                decision[j] = decision[i]
                reward[j], cover[j], state[j], to[j] = reward[i], cover[i], decision[i], to[i]
        line.size, line.n_edges, line.links = m, k, 1 + b
        line.constant += constant
        me.shrink = 1
        shrinking += 1
    return shrinking
