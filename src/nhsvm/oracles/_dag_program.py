"""The integer program of Eq. 19 on a core, in HiGHS: the last resort, for what nothing else could settle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import NotSolvedError
from nhsvm.oracles._dag_looks import Core
from nhsvm.oracles._dag_work import ON, States


def solve_program(core: Core, big: float) -> tuple[States, float]:
    """The best set on a core and an upper bound, both proved by HiGHS.

    Parameters
    ----------
    core : Core
    big : float
        A cover below ``-big`` is none at all.
    """
    import highspy

    n = core.size
    paid = np.flatnonzero((core.cover < 0) & (core.cover >= -big))
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    # no number of threads: HiGHS refuses another one than the first program of this thread had
    options: dict[str, Any] = {
        "output_flag": False, "parallel": "off", "mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "random_seed": 0
    }  # fmt: skip
    for name, option in options.items():
        solver.setOptionValue(name, option)
    solver.passModel(_model(core, paid))
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return np.zeros(n, np.uint8), -np.inf
    if status != highspy.HighsModelStatus.kOptimal:
        raise NotSolvedError(
            f"HiGHS stopped with {solver.modelStatusToString(status)} on a label graph of {n} nodes; "
            "check that the rewards are of moderate size, or use exact=False"
        )
    on = (np.array(solver.getSolution().col_value[:n]) > 0.5).astype(np.uint8)
    scale = _scale(core)
    return on, core.constant + solver.getInfo().mip_dual_bound * scale


def _model(core: Core, paid: npt.NDArray[np.intp]) -> Any:
    """Maximise Σ r·x + Σ d·u with x_child ≤ x_parent, Σ_children x + u ≥ x; u pays for a cover of a node's own."""
    import highspy

    n = core.size
    parent = np.repeat(np.arange(n), np.diff(core.links.child_ptr))
    child = core.links.child
    m = len(child)
    need = np.flatnonzero(core.cover < 0)
    row = np.full(n, -1)
    row[need] = np.arange(len(need))
    inside = row[parent] >= 0
    ones = np.ones
    entries = np.concatenate([ones(m), -ones(m), ones(inside.sum()), -ones(len(need)), ones(len(paid))])
    rows = np.concatenate([np.arange(m), np.arange(m), m + row[parent[inside]], m + row[need], m + row[paid]])
    columns = np.concatenate([parent, child, child[inside], need, n + np.arange(len(paid))])
    matrix = sp.csc_array((entries, (rows, columns)), shape=(m + len(need), n + len(paid)))
    scale = _scale(core)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.concatenate([core.reward, core.cover[paid]]) / scale
    lp.col_lower_ = np.concatenate([core.state == ON, np.zeros(len(paid))]).astype(float)
    lp.col_upper_ = ones(lp.num_col_)
    lp.row_lower_ = np.zeros(lp.num_row_)
    lp.row_upper_ = np.full(lp.num_row_, highspy.kHighsInf)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n + [highspy.HighsVarType.kContinuous] * len(paid)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    return lp


def _scale(core: Core) -> float:
    """HiGHS has absolute tolerances, so costs are made of size one."""
    return float(np.abs(core.reward).max(initial=0.0)) or 1.0
