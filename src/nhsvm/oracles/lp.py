"""The best label set as the paper finds it: a linear program in HiGHS, then an integer program if need be."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import DataError, NotSolvedError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.protocol import NEARLY_EQUAL, Oracle
from nhsvm.typing import Array, FloatArray

if TYPE_CHECKING:
    from highspy import Highs, HighsVarType

_WHOLE = 1e-6  # this near to 0 and 1, an answer is a label set: HiGHS promises 1e-7 at its defaults
RELAXED: dict[str, str | float] = {
    "presolve": "off",  # it costs ten times what it saves here
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
"""Options of HiGHS for a linear program that is solved again and again with other costs."""


class LinearProgram(Oracle):
    """argmax Σ_n z_n·r_n over Eq. 19 with 0 ≤ z ≤ 1 in place of z ∈ {0, 1}, for trees and DAGs (Section 7.1).

    The constraints are z_c ≤ z_p for every edge, z_n ≤ Σ_c z_c for every inner node, and Σ_leaves z ≥ 1, which the
    integer program does not need but which tightens the relaxation. So does Σ_roots z ≥ 1, which we add: with it the
    relaxation of a tree is exact.

    Parameters
    ----------
    graph : Graph
    allow_empty : bool
        Admit the empty set, of value 0, as well: no sum has to reach 1.
    integral : bool
        Where the answer is fractional, go on to the integer program, so that every answer is a label set.

    Notes
    -----
    ``chosen`` is exactly 0 and 1 where it is a label set; ``dtype`` is float64, or uint8 with ``integral``. ``bound``
    is the value of the linear program's dual (of HiGHS's proof for an integer program), which no label set exceeds by
    more than rounding. :class:`~nhsvm.errors.NotSolvedError` is raised if HiGHS ends without an optimum.

    One HiGHS model for the lifetime of the oracle; from sample to sample only its costs change. Each sample starts from
    the basis of slacks, not from the last sample's: it is feasible for the dual simplex method whatever the costs are,
    which made it as fast or faster (decision record 111), and an answer then depends on its own rewards only.
    Threads may share the oracle but take turns.

    Examples
    --------
    >>> import numpy as np
    >>> from nhsvm import Hierarchy
    >>> edges = [(top, leaf) for top, leaves in {"a": "xy", "b": "yz", "c": "xz"}.items() for leaf in leaves]
    >>> h = Hierarchy.from_edges([("root", top) for top in "abc"] + edges)
    >>> rewards = np.where(h.graph.is_leaf, -3.0, 2.0)[None]
    >>> chosen, value, bound = np.empty((1, h.n_nodes)), np.empty(1), np.empty(1)
    >>> LinearProgram(h.graph).solve(rewards, chosen, value, bound)
    >>> chosen, value
    (array([[1. , 1. , 1. , 1. , 0.5, 0.5, 0.5]]), array([3.5]))
    >>> chosen = np.empty((1, h.n_nodes), np.uint8)
    >>> LinearProgram(h.graph, integral=True).solve(rewards, chosen, value, bound)
    >>> value
    array([3.])
    """

    tolerance = NEARLY_EQUAL

    def __init__(self, graph: Graph, *, allow_empty: bool = False, integral: bool = False) -> None:
        super().__init__(graph, allow_empty)
        self.integral = self.exact = integral
        self.dtype = np.uint8 if integral else np.float64
        self._rows, self._least = _constraints(graph, allow_empty)
        zero, one = np.zeros(graph.n_nodes), np.ones(graph.n_nodes)
        self._model = make_model(self._rows, self._least, zero, one, **RELAXED)
        self._lock = Lock()

    def _solve(self, rewards: FloatArray, chosen: Array, value: FloatArray, bound: FloatArray) -> None:
        for t, r in enumerate(rewards):
            if not np.isfinite(r).all():
                raise DataError(f"sample {t}: the rewards must be finite")
            unit = unit_of(r)
            with self._lock:
                z, most = self._solve_one(r / unit)
            chosen[t] = z
            value[t] = r @ z
            bound[t] = max(most * unit, value[t])

    def _solve_one(self, r: FloatArray) -> tuple[FloatArray, float]:
        z, y = solve_again(self._model, r, self.graph.n_nodes)
        # any y ≥ 0 proves a bound: max over 0 ≤ z ≤ 1 of r·z + y·(rows·z − least)
        most = float(np.maximum(r + self._rows.T @ y, 0.0).sum() - y @ self._least)
        if self._is_label(np.rint(z)) and np.abs(z - np.rint(z)).max() <= _WHOLE:
            return np.rint(z), most
        return self._solve_integral() if self.integral else (np.clip(z, 0.0, 1.0), most)

    def _solve_integral(self) -> tuple[FloatArray, float]:
        """The integer program of the costs at hand."""
        from highspy import HighsVarType

        n = self.graph.n_nodes
        set_type(self._model, n, HighsVarType.kInteger)
        self._model.setOptionValue("presolve", "choose")
        try:
            run(self._model, "integer", n)
            z = np.rint(self._model.getSolution().col_value)
            most = self._model.getInfo().mip_dual_bound
        finally:
            set_type(self._model, n, HighsVarType.kContinuous)
            self._model.setOptionValue("presolve", "off")
        if not self._is_label(z):
            raise NotSolvedError("HiGHS gave an integer answer that is no label set")
        return z, most

    def _is_label(self, z: FloatArray) -> bool:
        return bool((self._rows @ z >= self._least).all())


def _constraints(graph: Graph, allow_empty: bool) -> tuple[sp.csr_array, FloatArray]:
    """A and b of A z ≥ b."""
    parent, child = graph.edges()
    inner = np.flatnonzero(~graph.is_leaf)
    edge = np.arange(len(parent))
    cover = len(edge) + np.searchsorted(inner, parent)  # the row of an edge's parent
    n_zero = len(edge) + len(inner)
    plus: list[tuple[Array, Array]] = [(edge, parent), (cover, child)]
    minus: list[tuple[Array, Array]] = [(edge, child), (np.arange(len(edge), n_zero), inner)]
    if not allow_empty:
        roots = np.arange(graph.n_roots)
        plus += [(np.full(graph.n_leaves, n_zero), graph.leaves), (np.full(len(roots), n_zero + 1), roots)]
    row, column = (np.concatenate(part) for part in zip(*plus, *minus, strict=True))
    sign = np.repeat([1.0, -1.0], [sum(len(r) for r, _ in plus), sum(len(r) for r, _ in minus)])
    least = np.append(np.zeros(n_zero), [] if allow_empty else [1.0, 1.0])
    return sp.csr_array((sign, (row, column)), shape=(len(least), graph.n_nodes)), least


# -- HiGHS -------------------------------------------------------------------------------------------------------------


def make_model(
    rows: sp.csr_array, least: FloatArray, lower: FloatArray, upper: FloatArray, **options: str | float
) -> Highs:
    """A program, max c·v over rows·v ≥ least and lower ≤ v ≤ upper, with costs c that are still to be set."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.zeros(lp.num_col_)
    lp.col_lower_, lp.col_upper_ = lower, upper
    lp.row_lower_, lp.row_upper_ = least, np.full(len(least), highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    # no number of threads: HiGHS refuses another one than the first program of this thread had
    always: dict[str, str | float] = {"output_flag": False, "parallel": "off", "mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
    for name, option in (always | options).items():
        model.setOptionValue(name, option)
    model.passModel(lp)
    return model


def set_type(model: Highs, n: int, kind: HighsVarType) -> None:
    """Make the first n variables integers, or numbers again."""
    model.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.full(n, int(kind), np.uint8))


def set_costs(model: Highs, costs: FloatArray) -> None:
    """Costs of all variables."""
    model.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)


def unit_of(costs: FloatArray) -> float:
    """What to divide costs by, since HiGHS has absolute tolerances: a power of two, which rounds nothing."""
    return float(np.ldexp(1.0, np.frexp(np.abs(costs).max())[1]))


def solve_again(model: Highs, costs: FloatArray, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """The best v for other costs, from the basis of slacks, and the dual y ≥ 0 of the rows."""
    model.clearSolver()
    set_costs(model, costs)
    run(model, "linear", n_nodes)
    found = model.getSolution()
    return np.array(found.col_value), np.maximum(-np.array(found.row_dual), 0.0)


def run(model: Highs, kind: str, n_nodes: int) -> None:
    """Solve it, or raise a NotSolvedError."""
    from highspy import HighsModelStatus

    model.run()
    status = model.getModelStatus()
    if status != HighsModelStatus.kOptimal:
        raise NotSolvedError(
            f"the {kind} program of {n_nodes} nodes was not solved: HiGHS says {model.modelStatusToString(status)!r}"
        )
