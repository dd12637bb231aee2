"""The linear relaxation of label sets on a DAG, on the core of its graph: a persistent program in HiGHS."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm._jit import kernel
from nhsvm.errors import NotSolvedError
from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.oracles._arrays import check_finite, checked
from nhsvm.oracles._dag_batch import BatchLooks
from nhsvm.oracles._dag_memory import make_memory
from nhsvm.oracles._dag_plan import Plan


class Program(NamedTuple):
    """Rows · (x, u) ≥ 0, with x for the nodes of a core and u for covers by what is folded into them."""

    rows: sp.csr_array
    covers: FloatArray  # of every node: 1 if something is folded into it, or if it needs no cover; else 0


class Room(NamedTuple):
    """What one thread works with."""

    looks: BatchLooks
    model: Any


class DagRelaxed:
    """max Σ_n z_n·r_n over the linear relaxation of Y_m: 0 ≤ z_c ≤ z_p ≤ 1 on edges, z_n ≤ Σ_c z_c at inner nodes.

    Nearly the points of :class:`nhsvm.oracles.LinearProgram`, in a fraction of its variables: what the structure of the
    graph settles (:mod:`nhsvm.oracles._dag_plan`) is taken out first, which is exact on trees. An edge beside a longer
    way counts in no cover, which makes it tighter; and Σ_leaves z ≥ 1 is not asked for, which makes it looser, where a
    set must not be empty. Threads may share it: each has a program of its own.

    Parameters
    ----------
    graph : Graph
    plan : Plan
        Of the graph.
    allow_empty : bool
    """

    def __init__(self, graph: Graph, plan: Plan, allow_empty: bool) -> None:
        self.graph, self.plan, self.allow_empty = graph, plan, allow_empty
        self._program = _program(plan, allow_empty)
        self._spare: list[Room] = []

    def solve(self, rewards: FloatArray, points: FloatArray, value: FloatArray, bound: FloatArray) -> None:
        """The best z of every sample, its value, and the value of the program's dual, which no label set exceeds.

        An answer depends on its own rewards only: every sample starts from the basis of slacks.
        """
        checked(self.graph, rewards, points, value, bound, np.float64)
        scales = np.abs(rewards).sum(axis=1)
        check_finite(rewards, scales)
        try:
            room = self._spare.pop()
        except IndexError:
            room = Room(BatchLooks(self.plan, self.allow_empty), _model(self._program))
        looks, n = room.looks, len(self.plan.node)
        x, upper = np.empty((2, looks.size, n)), np.empty(looks.size)
        for lo in range(0, len(rewards), looks.size):
            part = slice(lo, min(len(rewards), lo + looks.size))
            k = part.stop - lo
            memory = make_memory(k, rewards.shape[1], 0, np.inf)
            assert memory is not None
            looks.load(rewards[part], scales[part], 0, 0.0, (np.arange(k), *memory))
            nodes = looks.looks.work.nodes
            for s in range(k):
                costs = np.concatenate([nodes.reward[2 * s], nodes.cover[2 * s] * self._program.covers])
                (x[0, s], x[1, s]), upper[s] = self._best(room.model, costs)
            unfold_points_kernel(
                x[0, :k], x[1, :k], self.plan.group, self.plan.fold_child, self.plan.fold_parent, self.plan.node,
                *looks.folded, points[part],
            )  # fmt: skip
            value[part] = (points[part] * rewards[part]).sum(axis=1)
            bound[part] = np.maximum(upper[:k], value[part])
        self._spare.append(room)

    def _best(self, model: Any, costs: FloatArray) -> tuple[FloatArray, float]:
        """(x, u) of the costs, and a bound that does not rest on the tolerances of HiGHS."""
        from highspy import HighsModelStatus

        unit = np.ldexp(1.0, np.frexp(np.abs(costs).max())[1])  # tolerances are absolute; powers of two round nothing
        model.clearSolver()
        model.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs / unit)
        model.run()
        status = model.getModelStatus()
        if status != HighsModelStatus.kOptimal:
            raise NotSolvedError(
                f"the linear program of {len(costs) // 2} nodes was not solved: HiGHS says "
                f"{model.modelStatusToString(status)!r}"
            )
        found = model.getSolution()
        # any y ≥ 0 proves a bound: max of costs·v + y·rows·v over the box, in which the virtual root is 1
        reduced = costs + unit * (self._program.rows.T @ np.maximum(-np.array(found.row_dual), 0.0))
        most = np.maximum(reduced, 0.0)
        most[0] = reduced[0]
        v = np.clip(np.array(found.col_value), 0.0, 1.0).reshape(2, -1)
        return v, float(most @ np.append(np.ones(len(costs) // 2), self._program.covers))


def _program(plan: Plan, allow_empty: bool) -> Program:
    """x_p ≥ x_c for every edge of the core, Σ_c x_c + u_p ≥ x_p for every node."""
    links, n = plan.links, len(plan.node)
    m, each = len(links.child), np.arange(n)
    parent = np.repeat(each, np.diff(links.child_ptr))
    row = np.concatenate([np.arange(m), np.arange(m), m + parent, m + each, m + each])
    column = np.concatenate([parent, links.child, links.child, each, n + each])
    sign = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0], [m, m, m, n, n])
    covers = plan.is_leaf[plan.node] | np.isin(plan.node, plan.fold_parent)
    covers[0] |= allow_empty
    return Program(sp.csr_array((sign, (row, column)), shape=(m + n, 2 * n)), covers.astype(np.float64))


def _model(program: Program) -> Any:
    """A HiGHS model with costs to be set."""
    import highspy

    rows, n = program.rows, len(program.covers)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.zeros(2 * n)
    lp.col_lower_ = (np.arange(2 * n) == 0).astype(np.float64)  # the virtual root is in every set
    lp.col_upper_ = np.append(np.ones(n), program.covers)
    lp.row_lower_, lp.row_upper_ = np.zeros(rows.shape[0]), np.full(rows.shape[0], highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "output_flag": False, "parallel": "off", "presolve": "off",
        "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9,
    }  # fmt: skip
    for name, option in options.items():
        model.setOptionValue(name, option)
    model.passModel(lp)
    return model


@kernel
def unfold_points_kernel(
    all_x, all_cover, group, fold_child, fold_parent, core, all_worth, all_below, all_most, points
):  # fmt: skip
    """The points on the nodes of the hierarchy that points (x, u) on the core stand for.

    What is folded into a node and worth something is there as far as the node is; of others, the best covers what the
    node needs: u on the core, and all of it where all below is folded.
    """
    n_groups = all_worth.shape[1]
    z, need = np.empty(n_groups), np.empty(n_groups)
    for s in range(points.shape[0]):
        worth, below, most = all_worth[s], all_below[s], all_most[s]
        for i in range(core.shape[0]):
            z[core[i]] = all_x[s, i]
            need[core[i]] = min(all_cover[s, i], all_x[s, i]) if below[core[i]] <= 0.0 else 0.0
        for k in range(fold_child.shape[0] - 1, -1, -1):  # of equals, the first covers
            c, p = fold_child[k], fold_parent[k]
            z[c] = z[p] if worth[c] > 0.0 else 0.0
            if worth[c] == most[p] and worth[c] <= 0.0:
                z[c] = need[p]
                need[p] = 0.0
            need[c] = z[c] if below[c] <= 0.0 else 0.0
        for i in range(group.shape[0]):
            points[s, i] = z[group[i]]
