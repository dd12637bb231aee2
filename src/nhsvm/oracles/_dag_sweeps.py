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
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.oracles._dag_core import Core

_KEEP, _RISE = 0.9, 0.2  # of its marginal, a node keeps KEEP · children / (children + RISE · parents)
_AHEAD = 12  # edges; the parents are all over a large graph, and getting their stars takes longer than working on them


# A row of 64 bytes, one cache line, has all that a visit has to know of a star
_SUM, _TOP, _SECOND, _OWN, _COVER, _FLOOR, _AT = range(7)


class Sweeper:
    """The stars of one core."""

    def __init__(self, core: Core, fresh: bool = False) -> None:
        n = core.size
        self.core = core
        self.marginal: FloatArray = np.empty(n)
        self.bound = np.inf
        self._star = np.empty(8 * n)
        first_bound = _start_kernel(
            core.reward, core.cover, core.state, core.links.parent_ptr, core.links.parent, core.share, fresh, self._star
        )
        self._begin = (1, first_bound) if fresh else (0, 0.0)  # a first sweep up is done already
        self._again = False

    @property
    def own(self) -> FloatArray:
        """What every node keeps of its reward, the shares in the stars of its parents taken off."""
        return self._star[_OWN::8]

    def run(self, rounds: int, enough: float) -> int:
        """Up and down ``rounds`` times, or until the bound is ``enough``; the number of rounds begun.

        Afterwards ``bound`` holds for the core (with its constant), and for every node the best set that does not do
        as the sign of its ``marginal`` says is worth no more than ``bound`` − abs(``marginal``). Once the bound is
        ``enough``, there are no marginals.
        """
        core, links = self.core, self.core.links
        least = enough - core.constant
        used, bound = _sweep_kernel(
            links.child_ptr, links.slot, links.parent_ptr, links.parent, core.share, self._star, self.marginal,
            _KEEP, _RISE, rounds, least, *self._begin, self._again,
        )  # fmt: skip
        self._begin, self._again = (0, 0.0), True
        self.bound = core.constant + bound
        if bound <= least:  # rounding must not hide it
            self.bound = min(self.bound, enough)
        return int(used)


@kernel
def _start_kernel(reward, cover, state, parent_ptr, parent, share, fresh, star):
    # Stars from the shares; if fresh, shares too, by a first sweep up in which every node hands what it is worth to its
    # parents in equal parts.
    n = reward.shape[0]
    bound = 0.0
    for i in range(n):
        si = 8 * i
        star[si + _SUM], star[si + _TOP], star[si + _SECOND], star[si + _OWN] = 0.0, -1e300, -1e300, reward[i]
        star[si + _COVER], star[si + _FLOOR], star[si + _AT] = cover[i], -1e300 if state[i] == 1 else 0.0, -1.0
    for i in range(n - 1, -1, -1):
        first, last = parent_ptr[i], parent_ptr[i + 1]
        si = 8 * i
        own = star[si + _OWN]
        top = star[si + _TOP]
        value = own + (star[si + _SUM] if top > 0.0 else max(cover[i], top))
        if first == last:
            bound += max(value, star[si + _FLOOR])
            continue
        if fresh:
            own -= value
            part = value / (last - first)
            for q in range(first, last):
                share[q] = part
        else:
            for q in range(first, last):
                own -= share[q]
        star[si + _OWN] = own
        for q in range(first, last):
            x, sp = share[q], 8 * parent[q]
            star[sp + _SUM] += max(x, 0.0)
            if x > star[sp + _TOP]:
                star[sp + _SECOND], star[sp + _TOP], star[sp + _AT] = star[sp + _TOP], x, q
            elif x > star[sp + _SECOND]:
                star[sp + _SECOND] = x
    return bound


@kernel
def _sweep_kernel(
    child_ptr, slot, parent_ptr, parent, share, star, marginal, keep, rise, rounds, enough, begin, bound, again
):  # fmt: skip
    # Helpers that take arrays would cost more than what they do, so "marginal of i at a parent" and "change a share"
    # are written out, with few branches. Which shares of a star are largest is looked for again only when it is not
    # known and somebody has to know: a search at every visit would be quadratic in the number of children.
    n = marginal.shape[0]
    most = 1
    for i in range(n):
        most = max(most, parent_ptr[i + 1] - parent_ptr[i])
    message = np.empty(most)
    n_edges = share.shape[0]
    for step in range(begin, 2 * rounds):
        upward = step % 2 == 0
        if upward:
            bound = 0.0
        for k in range(n):
            i = n - 1 - k if upward else k
            first, last = parent_ptr[i], parent_ptr[i + 1]
            children = child_ptr[i + 1] - child_ptr[i]
            if upward and children == 0 and (again or step > 0) and first < last:
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
            value = star[si + _OWN] + (
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
                        star[sp + _SUM], star[sp + _TOP], star[sp + _SECOND], star[sp + _AT] = total, top, second, at
                    others = star[sp + _SUM] - max(t, 0.0)
                    rival = star[sp + _SECOND] if star[sp + _AT] == q else star[sp + _TOP]
                    cover = star[sp + _COVER]
                    without = others if rival > 0.0 or cover == 0.0 else max(cover, rival)
                    own = star[sp + _OWN]
                    m = own + t + others - max(own + without, star[sp + _FLOOR])
                    value += m
                    message[q - first] = t - m
            if upward:
                part = value / (last - first)
                star[si + _OWN] -= mine
            else:
                marginal[i] = value
                gives = value - keep * value * children / (children + rise * (last - first))
                part = gives / (last - first)
                star[si + _OWN] += value - mine - gives
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
            return step // 2 + 1, bound
    return rounds, bound
