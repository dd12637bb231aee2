"""The best label set as the paper finds it: a linear program in HiGHS, then an integer program if need be."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import DataError, NotSolvedError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.protocol import Oracle
from nhsvm.typing import FloatArray

_WHOLE = 1e-6  # this near to 0 and 1, an answer is a label set: HiGHS promises 1e-7 at its defaults


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

    def __init__(self, graph: Graph, *, allow_empty: bool = False, integral: bool = False) -> None:
        super().__init__(graph, allow_empty)
        self.integral = integral
        self.dtype = np.uint8 if integral else np.float64
        self._rows, self._least = _constraints(graph, allow_empty)
        self._columns = np.arange(graph.n_nodes, dtype=np.int32)
        self._model = _model(self._rows, self._least)
        self._lock = Lock()

    def _solve(self, rewards: FloatArray, chosen: npt.NDArray[Any], value: FloatArray, bound: FloatArray) -> None:
        for t, r in enumerate(rewards):
            largest = float(np.abs(r).max())
            if not np.isfinite(largest):
                raise DataError(f"sample {t}: the rewards must be finite")
            unit = np.ldexp(1.0, np.frexp(largest)[1])  # HiGHS has absolute tolerances; powers of two round nothing
            with self._lock:
                z, most = self._solve_one(r / unit)
            chosen[t] = z
            value[t] = r @ z
            bound[t] = max(most * unit, value[t])

    def _solve_one(self, r: FloatArray) -> tuple[FloatArray, float]:
        self._model.clearSolver()
        self._model.changeColsCost(len(r), self._columns, r)
        self._run("linear")
        found = self._model.getSolution()
        z = np.array(found.col_value)
        # any y ≥ 0 proves a bound: max over 0 ≤ z ≤ 1 of r·z + y·(rows·z − least)
        y = np.maximum(-np.array(found.row_dual), 0.0)
        most = float(np.maximum(r + self._rows.T @ y, 0.0).sum() - y @ self._least)
        if self._is_label(np.rint(z)) and np.abs(z - np.rint(z)).max() <= _WHOLE:
            return np.rint(z), most
        return self._solve_integral() if self.integral else (np.clip(z, 0.0, 1.0), most)

    def _solve_integral(self) -> tuple[FloatArray, float]:
        """The integer program of the costs at hand."""
        from highspy import HighsVarType

        def set_type(kind: Any) -> None:
            self._model.changeColsIntegrality(n, self._columns, np.full(n, int(kind), np.uint8))

        n = self.graph.n_nodes
        set_type(HighsVarType.kInteger)
        self._model.setOptionValue("presolve", "choose")
        try:
            self._run("integer")
            z = np.rint(self._model.getSolution().col_value)
            most = self._model.getInfo().mip_dual_bound
        finally:
            set_type(HighsVarType.kContinuous)
            self._model.setOptionValue("presolve", "off")
        if not self._is_label(z):
            raise NotSolvedError("HiGHS gave an integer answer that is no label set")
        return z, most

    def _run(self, kind: str) -> None:
        from highspy import HighsModelStatus

        self._model.run()
        status = self._model.getModelStatus()
        if status != HighsModelStatus.kOptimal:
            raise NotSolvedError(
                f"the {kind} program of {self.graph.n_nodes} nodes was not solved: HiGHS says "
                f"{self._model.modelStatusToString(status)!r}"
            )

    def _is_label(self, z: FloatArray) -> bool:
        return bool((self._rows @ z >= self._least).all())


def _constraints(graph: Graph, allow_empty: bool) -> tuple[sp.csr_array, FloatArray]:
    """A and b of A z ≥ b."""
    parent, child = graph.edges()
    inner = np.flatnonzero(~graph.is_leaf)
    edge = np.arange(len(parent))
    cover = len(edge) + np.searchsorted(inner, parent)  # the row of an edge's parent
    n_zero = len(edge) + len(inner)
    plus: list[tuple[Any, Any]] = [(edge, parent), (cover, child)]
    minus: list[tuple[Any, Any]] = [(edge, child), (np.arange(len(edge), n_zero), inner)]
    if not allow_empty:
        roots = np.arange(graph.n_roots)
        plus += [(np.full(graph.n_leaves, n_zero), graph.leaves), (np.full(len(roots), n_zero + 1), roots)]
    row, column = (np.concatenate(part) for part in zip(*plus, *minus, strict=True))
    sign = np.repeat([1.0, -1.0], [sum(len(r) for r, _ in plus), sum(len(r) for r, _ in minus)])
    least = np.append(np.zeros(n_zero), [] if allow_empty else [1.0, 1.0])
    return sp.csr_array((sign, (row, column)), shape=(len(least), graph.n_nodes)), least


def _model(rows: sp.csr_array, least: FloatArray) -> Any:
    """A HiGHS model with costs to be set."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.ones(lp.num_col_)
    lp.row_lower_, lp.row_upper_ = least, np.full(len(least), highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "output_flag": False,
        "parallel": "off",
        "presolve": "off",  # it costs ten times what it saves here
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
    }
    for name, option in options.items():
        model.setOptionValue(name, option)
    model.passModel(lp)
    return model
