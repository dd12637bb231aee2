"""Upper bounds on a core by dual decomposition, in sweeps up and down the graph.

Every node i has a *star*: x_i and copies of its children's x. An edge e = (i, c) carries a share θ_e of c's reward into
the star of i; c itself keeps a_c = r_c − Σ_{e into c} θ_e. A star is solved by looking at it:

    F_i = a_i + C_i,   C_i = Σ_e max(θ_e, 0)  if some θ_e > 0,  else max(d_i, max_e θ_e)

and Σ_i max(F_i, 0) (F_i itself for a node that is on) bounds the optimum for any θ. At its best this is the bound of
the linear programme. A sweep visits the nodes in order; a visit collects the marginals of x_i (best value with i minus
best value without) from the stars of its parents and its own, and shares the total out again, which never raises the
bound. On the way up all of it goes to the parents, so that the bound gathers at the top; on the way down the node keeps
a part, the larger the more children it has: with all of it, the sweeps stick where no single visit helps. A childless
node keeps nothing, so that going up needs no second visit.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel, prefetch
from nhsvm.oracles._dag_work import ON, RUNNING, SETTLED

_KEEP = 0.9  # of its marginal, a node keeps KEEP · children / (children + rise · parents)
RISE = 0.2, 1.0  # best for the first sweeps, whose marginals guide a search; and for many sweeps, for bounds alone
_AHEAD = 12  # edges; the parents are all over a large graph, and getting their stars takes longer than working on them


# A row of 64 bytes, one cache line, has all that a visit has to know of a star
_SUM, _TOP, _SECOND, OWN, _COVER, _FLOOR, _AT = range(7)


@kernel
def sweep_kernel(
    samples, lines, all_reward, all_cover, all_state, all_star, all_marginal, all_child_ptr, all_parent_ptr, all_parent,
    all_slot, all_share,
):  # fmt: skip
    """Sweep up and down the cores that samples have come to, ``rounds`` times or until the bound is good enough.

    Afterwards the bound of the line holds for its core, with its constant, and for every node the best set that does
    not do as the sign of its marginal says is worth no more than the bound − abs(marginal). Once the bound is good
    enough, there are no marginals. In a dive there is one round.
    """
    # Helpers that take arrays would cost more than what they do, so "marginal of i at a parent" and "change a share"
    # are written out, with few branches. Which shares of a star are largest is looked for again only when it is not
    # known and somebody has to know: a search at every visit would be quadratic in the number of children.
    message = np.empty(all_reward.shape[1])
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
        child_ptr, slot = all_child_ptr[line.links], all_slot[line.links]
        parent_ptr, parent = all_parent_ptr[line.links], all_parent[line.links]
        b = 2 * s + me.line
        share, star, marginal = all_share[b], all_star[b], all_marginal[b]
        begin, bound = 0, 0.0
        if line.swept < 2:
            # Stars from the shares; if there are none, shares too, by a first sweep up in which every node hands what
            # it is worth to its parents in equal parts
            reward, state = all_reward[b], all_state[b]
            for i in range(n):
                si = 8 * i
                star[si + _SUM], star[si + _TOP], star[si + _SECOND], star[si + OWN] = 0.0, -1e300, -1e300, reward[i]
                star[si + _COVER], star[si + _FLOOR] = all_cover[b, i], -1e300 if state[i] == ON else 0.0
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
        rounds = 1
        if me.line == 0:
            rounds = me.rounds
            limit += max(me.tolerance, me.precision * abs(me.value) if me.value > -1e300 else 0.0)
        enough = limit - line.constant
        used = rounds
        for step in range(begin, 2 * rounds):
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
                    star[si + _SUM], star[si + _TOP], star[si + _SECOND], star[si + _AT] = total, top, second, at
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
                            star[sp + _SUM], star[sp + _TOP], star[sp + _SECOND], star[sp + _AT] = (
                                total,
                                top,
                                second,
                                at,
                            )
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
                    gives = value - _KEEP * value * children / (children + me.rise * (last - first))
                    part = gives / (last - first)
                    star[si + OWN] += value - mine - gives
                for q in range(first, last):
                    t, sp = share[q], 8 * parent[q]
                    x = part + message[q - first]
                    share[q] = x
                    ahead = q - _AHEAD if upward else q + _AHEAD
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
