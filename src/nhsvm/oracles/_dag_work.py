"""What a batch of samples needs on the core, in arrays that the stages of a look share.

A look at a core is a row of stages: *shrink* (apply decisions), *sweep* (bounds and marginals), *small* (solve small
parts), *find* (a label set), *next* (what to do then). Before the first: *prune* and *cut* (decide by the rewards
alone), each with *compact* (a smaller core). Each is one kernel that takes every sample of the batch that has
come to it, so that what Python does in between is nothing beside them, and the interpreter lock is free while they run.
They are kernels of their own, not one, since compiling one for all takes longer than the sum.

A sample has two *lines*: the core that it has come to, and that of a dive for a better set, which is given up
afterwards. Row 2s is the line of sample s, row 2s + 1 that of its dive. The links of line k, once it has been shrunk,
are row k + 1 of the links. The first links of all samples are row 0 where they are the same; else those of each are one
of the last rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.oracles._dag_plan import Links

States = npt.NDArray[np.uint8]
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
    ("looks", "i8"), ("stalled", "i8"), ("patience", "i8"), ("rounds", "i8"),
    ("solved", "i8"),  # nodes in small parts that are solved
    ("find", "i8"), ("found", "i8"),  # a set is to be looked for; is there
    ("over", "i8"),  # the dive has ended
    ("first", "i8"),  # the core is the first one
    ("remember", "i8"),  # its shares are asked for in the end
    ("origin", "i8"), ("whole", "i8"),  # row of its first links, and nodes of its first core
    ("work", "i8"), ("budget", "i8"),
    ("value", "f8"), ("candidate", "f8"), ("bound", "f8"), ("last", "f8"),
    ("given_up", "f8"),  # the largest bound of what was given up
    ("big", "f8"), ("tolerance", "f8"), ("precision", "f8"),
    ("rise", "f8"),  # see _dag_sweeps
]  # fmt: skip


class Nodes(NamedTuple):
    """By line and node."""

    reward: FloatArray  # r
    cover: FloatArray  # d
    state: States  # FREE or ON; a node that is ON has no parent here
    node: IntArray  # its number in the first core
    star: FloatArray  # eight numbers a node, see _dag_sweeps
    marginal: FloatArray


class Trace(NamedTuple):
    """The way back to the first core: by line (folds: by sample) and node of the first core."""

    done: States  # in the set
    best: IntArray  # the folded child that covers a node, or −1
    fold_child: IntArray
    fold_parent: IntArray
    take: States  # worth it by itself


class Work(NamedTuple):
    """All of it."""

    samples: Any  # records
    lines: Any
    nodes: Nodes
    links: Links
    share: FloatArray  # by line and entry of links.parent: the part of the reward accounted for there (the dual)
    edge: IntArray  # the number of that entry in the first core
    kept: FloatArray  # by sample and entry of the first core: the last share before it went
    trace: Trace
    fate: States  # decisions, two rows a sample: the second is for when the first cannot be
    parts: States  # by sample and node: state, and what is known from small parts
    on: States  # the set that was looked for
    best: States  # by sample and node of the first core: the best set so far


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
        share=np.empty((both, e)),
        edge=np.empty((both, e), np.int32),
        kept=np.empty((size, e)),
        trace=Trace(
            np.empty((both, n), np.uint8), np.empty((both, n), np.int32), np.empty((size, n), np.int32),
            np.empty((size, n), np.int32), np.empty((size, n), np.uint8),
        ),
        fate=np.empty((both, n), np.uint8),
        parts=np.empty((size, n), np.uint8),
        on=np.empty((size, n), np.uint8),
        best=np.empty((size, n), np.uint8),
    )  # fmt: skip
