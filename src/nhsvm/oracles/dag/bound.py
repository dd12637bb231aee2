"""Upper bounds on a core: sweeps of dual decomposition, and small connected components solved to the end.

Every node i has a *star*: x_i and copies of its children's x. An edge e = (i, c) carries a share θ_e of c's reward into
the star of i; c itself keeps a_c = r_c − Σ_{e into c} θ_e. A star is solved by looking at it:

    F_i = a_i + C_i,   C_i = Σ_e max(θ_e, 0)  if some θ_e > 0,  else max(d_i, max_e θ_e)

and Σ_i max(F_i, 0) (F_i itself for a node that is on) bounds the optimum for any θ. At its best this is the bound of
the linear programme. A sweep visits the nodes in order; a visit collects the marginals of x_i (best value with i minus
best value without) from the stars of its parents and its own, and shares the total out again, which never raises the
bound. On the way up all of it goes to the parents, so that the bound gathers at the top; on the way down the node keeps
a part, the larger the more children it has: with all of it, the sweeps stick where no single visit helps. A childless
node keeps nothing, so that going up needs no second visit.

Small components
----------------
What is left where sweeps stall is mostly many small connected components that have nothing to do with each other, each
with a little gap of its own. They are solved to the end one by one, by a search over the stars of the dual as it is.
Decisions on the nodes of a component leave the shares as they are, so that the bound, the sum of the values of its
stars, changes at the node and its parents only. At every step, all free nodes are tried both ways: what one way would
bring below the best set so far is decided; the split is where the lesser loss is largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.oracles.dag.core import FREE, OFF, ON, RUNNING, SETTLED, TUNING, Links, links_of
from nhsvm.typing import FloatArray

# A row of 64 bytes, one cache line, has all that a visit has to know of a star
_SUM, _TOP, _SECOND, OWN, _COVER, _FLOOR, _AT = range(7)


@kernel
def sweep_kernel(samples, lines, nodes, links, all_share):
    """Sweep up and down the cores that samples have come to, ``sweeps`` times or until the bound is good enough.

    Afterwards the bound of the line holds for its core, with its constant, and for every node the best set that does
    not do as the sign of its marginal says is worth no more than the bound − abs(marginal). Once the bound is good
    enough, there are no marginals. In a dive there is one sweep.
    """
    # Helpers that take arrays would cost more than what they do, so all is written out, with few branches. Which shares
    # of a star are largest is looked for again only when it is not known and somebody has to know: to search at every
    # visit would be quadratic in the number of children.
    message = np.empty(nodes.reward.shape[1])
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.phase != RUNNING or me.over == 1:
            continue
        line = lines[2 * s + me.line]
        n, n_edges = line.size, line.n_edges
        if n == 0:
            me.found, me.candidate = 1, line.constant
            if me.line == 0:
                me.phase = SETTLED
            me.over = me.line
            continue
        child_ptr, _, parent_ptr, parent, slot = links_of(links, line.links)
        b = 2 * s + me.line
        share, star, marginal = all_share[b], nodes.star[b], nodes.marginal[b]
        begin, bound = 0, 0.0
        if line.swept < 2:
            # Stars from the shares; if there are none, shares too, by a first sweep up in which every node hands what
            # it is worth to its parents in equal parts
            reward, cover, state = nodes.reward[b], nodes.cover[b], nodes.state[b]
            for i in range(n):
                si = 8 * i
                star[si + _SUM], star[si + _TOP], star[si + _SECOND], star[si + OWN] = 0.0, -1e300, -1e300, reward[i]
                star[si + _COVER], star[si + _FLOOR] = cover[i], -1e300 if state[i] == ON else 0.0
                star[si + _AT] = -1.0
            for i in range(n - 1, -1, -1):
                first, last = parent_ptr[i], parent_ptr[i + 1]
                si = 8 * i
                own = star[si + OWN]
                top = star[si + _TOP]
                value = own + (star[si + _SUM] if top > 0.0 else max(star[si + _COVER], top))
                if first == last:
                    bound += max(value, star[si + _FLOOR])
                    continue
                if line.swept == 0:
                    own -= value
                    part = value / (last - first)
                    for q in range(first, last):
                        share[q] = part
                else:
                    for q in range(first, last):
                        own -= share[q]
                star[si + OWN] = own
                for q in range(first, last):
                    x, sp = share[q], 8 * parent[q]
                    star[sp + _SUM] += max(x, 0.0)
                    if x > star[sp + _TOP]:
                        star[sp + _SECOND], star[sp + _TOP], star[sp + _AT] = star[sp + _TOP], x, q
                    elif x > star[sp + _SECOND]:
                        star[sp + _SECOND] = x
            begin = 1 - line.swept  # a first sweep up is done already
        limit = me.value
        sweeps = 1
        if me.line == 0:
            sweeps = me.sweeps
            limit += max(me.tolerance, me.precision * abs(me.value) if me.value > -1e300 else 0.0)
        enough = limit - line.constant
        used = sweeps
        for step in range(begin, 2 * sweeps):
            upward = step % 2 == 0
            if upward:
                bound = 0.0
            for k in range(n):
                i = n - 1 - k if upward else k
                first, last = parent_ptr[i], parent_ptr[i + 1]
                children = child_ptr[i + 1] - child_ptr[i]
                if upward and children == 0 and (line.swept == 2 or step > 0) and first < last:
                    continue
                si = 8 * i
                # what covers i if no share is positive has to be known
                if star[si + _COVER] < 0.0 and star[si + _AT] < 0.0:
                    total, top, second, at = 0.0, -1e300, -1e300, -1
                    for f in range(child_ptr[i], child_ptr[i + 1]):
                        x = share[slot[f]]
                        total += max(x, 0.0)
                        if x > top:
                            second = top
                            top = x
                            at = slot[f]
                        elif x > second:
                            second = x
                    star[si + _SUM], star[si + _TOP] = total, top
                    star[si + _SECOND], star[si + _AT] = second, at
                top = star[si + _TOP]
                value = star[si + OWN] + (
                    star[si + _SUM] if top > 0.0 or star[si + _COVER] == 0.0 else max(star[si + _COVER], top)
                )
                if first == last:
                    marginal[i] = value
                    if upward:
                        bound += max(value, star[si + _FLOOR])
                    continue
                mine = value
                if upward and last - first == 1:  # whatever an only parent's star says of i, it gets it back
                    message[0] = share[first]
                else:
                    for q in range(first, last):
                        p, t = parent[q], share[q]
                        sp = 8 * p
                        if star[sp + _COVER] < 0.0 and star[sp + _AT] < 0.0:
                            total, top, second, at = 0.0, -1e300, -1e300, -1
                            for f in range(child_ptr[p], child_ptr[p + 1]):
                                x = share[slot[f]]
                                total += max(x, 0.0)
                                if x > top:
                                    second = top
                                    top = x
                                    at = slot[f]
                                elif x > second:
                                    second = x
                            star[sp + _SUM], star[sp + _TOP] = total, top
                            star[sp + _SECOND], star[sp + _AT] = second, at
                        others = star[sp + _SUM] - max(t, 0.0)
                        rival = star[sp + _SECOND] if star[sp + _AT] == q else star[sp + _TOP]
                        cover = star[sp + _COVER]
                        without = others if rival > 0.0 or cover == 0.0 else max(cover, rival)
                        own = star[sp + OWN]
                        m = own + t + others - max(own + without, star[sp + _FLOOR])
                        value += m
                        message[q - first] = t - m
                if upward:
                    part = value / (last - first)
                    star[si + OWN] -= mine
                else:
                    marginal[i] = value
                    gives = value - TUNING.keep * value * children / (children + me.rise * (last - first))
                    part = gives / (last - first)
                    star[si + OWN] += value - mine - gives
                for q in range(first, last):
                    t, sp = share[q], 8 * parent[q]
                    x = part + message[q - first]
                    share[q] = x
                    ahead = q - TUNING.ahead if upward else q + TUNING.ahead
                    if 0 <= ahead < n_edges:
                        prefetch(star, 8 * parent[ahead])
                    star[sp + _SUM] += max(x, 0.0) - max(t, 0.0)
                    if star[sp + _COVER] < 0.0 and star[sp + _AT] >= 0.0:
                        if star[sp + _AT] == q:
                            star[sp + _TOP] = x
                            if x < star[sp + _SECOND]:
                                star[sp + _AT] = -1.0
                        elif x > star[sp + _TOP]:
                            star[sp + _SECOND], star[sp + _TOP], star[sp + _AT] = star[sp + _TOP], x, q
                        elif x > star[sp + _SECOND]:
                            star[sp + _SECOND] = x
                        elif t >= star[sp + _SECOND]:
                            star[sp + _AT] = -1.0
            if upward and bound <= enough:
                used = step // 2 + 1
                break
        me.work += used * (n_edges + n)
        line.bound = line.constant + bound
        if bound <= enough:  # rounding must not hide it
            line.bound = min(line.bound, limit)
        if me.line == 1:
            me.over = 1 if line.bound <= me.value else 0
        else:
            me.bound = min(me.bound, line.bound)
            if me.bound <= limit:
                me.given_up = max(me.given_up, me.bound)
                me.phase = SETTLED
        line.swept = 2


# -- small components --------------------------------------------------------------------------------------------------


class Stars(NamedTuple):
    """The dual of one core as it is."""

    own: FloatArray  # see OWN
    cover: FloatArray
    links: Links
    share: FloatArray


@inlined
def _star(i, stars, x):
    """The best value of a star, decisions given."""
    own, cover, links, share = stars
    child_ptr, child, slot = links.child_ptr, links.child, links.slot
    if x[i] == OFF:
        return 0.0
    total, top, covered = own[8 * i + OWN], cover[i], cover[i] == 0.0
    for e in range(child_ptr[i], child_ptr[i + 1]):
        c, t = child[e], share[slot[e]]
        if x[c] == ON or (x[c] == FREE and t > 0.0):
            total += t
            covered = True
        elif x[c] == FREE:
            top = max(top, t)
    if not covered:
        total += top
    return total if x[i] == ON else max(total, 0.0)


@inlined
def _around(i, stars, x, worth, store):
    """By how much the values of the stars with i in them differ from ``worth``, which is renewed if asked."""
    parent_ptr, parent = stars.links.parent_ptr, stars.links.parent
    change = 0.0
    for q in range(parent_ptr[i] - 1, parent_ptr[i + 1]):
        j = i if q < parent_ptr[i] else parent[q]
        value = _star(j, stars, x)
        change += value - worth[j]
        if store:
            worth[j] = value
    return change


@inlined
def _decide(i, value, size, stars, x, worth, trail):
    """Decide i and what follows; the change of the bound, and the size of the trail."""
    child_ptr, child, parent_ptr, parent, _ = stars.links
    change = 0.0
    x[i] = value
    trail[size] = i
    at = size
    size += 1
    while at < size:
        j = trail[at]
        at += 1
        if value == ON:
            for q in range(parent_ptr[j], parent_ptr[j + 1]):
                if x[parent[q]] == FREE:
                    x[parent[q]] = ON
                    trail[size] = parent[q]
                    size += 1
        else:
            for e in range(child_ptr[j], child_ptr[j + 1]):
                if x[child[e]] == FREE:
                    x[child[e]] = OFF
                    trail[size] = child[e]
                    size += 1
        change += _around(j, stars, x, worth, True)
    return change, size


@inlined
def _component(start, links, seen, member):
    """List all nodes connected with ``start``; their number."""
    child_ptr, child, parent_ptr, parent, _ = links
    member[0] = start
    seen[start] = 1
    size, at = 1, 0
    while at < size:
        j = member[at]
        at += 1
        for e in range(child_ptr[j], child_ptr[j + 1]):
            if seen[child[e]] == 0:
                seen[child[e]] = 1
                member[size] = child[e]
                size += 1
        for q in range(parent_ptr[j], parent_ptr[j + 1]):
            if seen[parent[q]] == 0:
                seen[parent[q]] = 1
                member[size] = parent[q]
                size += 1
    return size


@kernel
def components_kernel(largest, limit, samples, lines, nodes, links, all_share, all_parts):
    """Solve the small components of cores that samples have come to for the first time, and of dives.

    These are connected components of up to ``largest`` nodes; those that take more than ``limit`` steps are left.
    ``parts`` becomes the best set of each component that was solved, and the state of all other nodes.
    """
    most = nodes.cover.shape[1]
    seen = np.empty(most, np.uint8)
    member, trail, best = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    worth = np.empty(most)
    split, mark, other = np.empty(most + 1, np.int32), np.empty(most + 1, np.int32), np.empty(most + 1, np.uint8)
    above = np.empty(most + 1)  # bounds where it was split
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.phase != RUNNING or me.over == 1:
            continue
        b = 2 * s + me.line
        line = lines[b]
        n, x = line.size, all_parts[s]
        for i in range(n):
            x[i] = nodes.state[b, i]
            seen[i] = 0
            worth[i] = 0.0
        me.solved = 0
        if me.line == 0 and (me.rounds > 0 or me.first == 1):
            me.find = 1 if me.rounds == 0 else 0
            continue
        stars = Stars(nodes.star[b], nodes.cover[b], links_of(links, line.links), all_share[b])
        parent_ptr = stars.links.parent_ptr
        tolerance = 1e-3 * me.tolerance
        settled, all_steps = 0, 0
        for start in range(n):
            if seen[start]:
                continue
            size = _component(start, stars.links, seen, member)
            if size > largest:
                continue
            top, bound = -1e300, 0.0
            for k in range(size):
                j = member[k]
                worth[j] = _star(j, stars, x)
                bound += worth[j]
            depth, done, steps = 0, 0, 0  # done: decisions on the trail
            while True:
                pick, again = -1, True
                while again and bound > top + tolerance:
                    again, pick, most_sure = False, -1, -1.0
                    for k in range(size):
                        j = member[k]
                        if x[j] != FREE:
                            continue
                        steps += 2 + parent_ptr[j + 1] - parent_ptr[j]
                        x[j] = ON
                        with_it = _around(j, stars, x, worth, False)
                        x[j] = OFF
                        without = _around(j, stars, x, worth, False)
                        x[j] = FREE
                        if bound + min(with_it, without) <= top + tolerance:
                            change, done = _decide(j, ON if with_it > without else OFF, done, stars, x, worth, trail)
                            bound += change
                            again = True
                            if bound <= top + tolerance:
                                break
                        elif -max(with_it, without) - 1e-3 * min(with_it, without) > most_sure:
                            most_sure = -max(with_it, without) - 1e-3 * min(with_it, without)
                            pick = j
                            other[depth] = OFF if with_it > without else ON
                if steps > limit:
                    break
                if bound > top + tolerance and pick < 0:  # all is decided
                    top = bound
                    for k in range(size):
                        best[member[k]] = x[member[k]]
                if bound > top + tolerance:
                    decision = ON + OFF - other[depth]
                    split[depth], mark[depth], above[depth] = pick, done, bound
                    depth += 1
                else:  # back to the last split that has another way
                    while depth > 0 and other[depth - 1] == FREE:
                        depth -= 1
                    if depth == 0:
                        break
                    while done > mark[depth - 1]:
                        done -= 1
                        x[trail[done]] = FREE
                    for k in range(size):
                        j = member[k]
                        worth[j] = _star(j, stars, x)
                    pick, bound, decision = split[depth - 1], above[depth - 1], other[depth - 1]
                    other[depth - 1] = FREE
                change, done = _decide(pick, decision, done, stars, x, worth, trail)
                bound += change
            for k in range(done):
                x[trail[k]] = FREE
            all_steps += steps
            if depth == 0 and steps <= limit:
                for k in range(size):
                    settled += x[member[k]] == FREE
                    x[member[k]] = best[member[k]]
        me.solved = settled
        me.work += all_steps
        if me.line == 0:
            me.find = 1 if settled <= TUNING.solved * n else 0
