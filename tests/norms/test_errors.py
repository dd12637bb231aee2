"""Bad input is told before any work; an accuracy that is not reached is told afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nhsvm import Hierarchy
from nhsvm.errors import NHSVMError, NotSolvedError, OptionError
from nhsvm.norms import frobenius_norm, max_norm, node_penalty, shared_norm, structured_shared_norm, trace_norm

H = Hierarchy.from_edges([("r", "a"), ("r", "b")])
BAD = {
    "NaN": ([[1.0, np.nan], [0.0, 1.0]], r"entry \[0, 1\] is nan"),
    "infinite": ([[1.0, 0.0], [-np.inf, 1.0]], r"entry \[1, 0\] is -inf"),
    "three dimensions": (np.zeros((2, 2, 2)), "3 dimensions"),
    "empty": (np.zeros((2, 0)), r"empty: shape \(2, 0\)"),
    "text": ([["a", "b"], ["c", "d"]], "real numbers"),
    "complex": ([[1j, 0], [0, 1]], "real numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "real numbers"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("norm", [frobenius_norm, trace_norm, shared_norm, max_norm])
def test_bad_matrices(norm, case):
    U, message = BAD[case]
    with pytest.raises(NHSVMError, match=message):
        norm(U)


@pytest.mark.parametrize("case", BAD)
def test_bad_matrices_with_a_hierarchy(case):
    U, message = BAD[case]
    with pytest.raises(NHSVMError, match=message):
        structured_shared_norm(U, H)
    with pytest.raises(NHSVMError, match=message):
        node_penalty(U, H)


@pytest.mark.parametrize("norm", [frobenius_norm, trace_norm, shared_norm, max_norm])
def test_one_dimension(norm):
    with pytest.raises(NHSVMError, match="1 dimensions"):
        norm([1.0, 2.0])


def test_wrong_number_of_rows():
    with pytest.raises(NHSVMError, match=r"each of the 2 leaves .* has 3"):
        structured_shared_norm(np.zeros((3, 2)), H)
    with pytest.raises(NHSVMError, match="each of 3 nodes, but has 2"):
        node_penalty(np.zeros((2, 2)), H)


def test_not_a_hierarchy():
    for function in (structured_shared_norm, node_penalty):
        with pytest.raises(NHSVMError, match="must be a Hierarchy, not a list"):
            function(np.zeros((2, 2)), [("r", "a")])


@pytest.mark.parametrize("tol", [0, -1e-6, np.nan, np.inf, "small", None, True])
def test_bad_tolerance(tol):
    for call in (shared_norm, max_norm, lambda U, tol: structured_shared_norm(U, H, tol=tol)):
        with pytest.raises(OptionError, match="tol must be a positive number"):
            call(np.eye(2), tol=tol)


def test_not_solved():
    h = Hierarchy.from_edges([("r", i) for i in range(6)])
    many = [np.random.default_rng(seed).normal(size=(6, 4)) for seed in range(20)]
    for call in (shared_norm, max_norm, lambda U, tol: structured_shared_norm(U, h, tol=tol)):
        with pytest.raises(NotSolvedError, match=r"relative gap of .* pass a larger tol"):
            [call(U, tol=1e-17) for U in many]  # a gap may be rounded to zero, but not all of them are


def test_integers_and_sparse_matrices_are_welcome():
    assert trace_norm(sp.csr_array(np.eye(2, dtype=int))) == pytest.approx(2)
    assert shared_norm([[3, 4]]) == pytest.approx(5)
    assert node_penalty(sp.csr_array(np.eye(3)), H) == pytest.approx((1 + np.sqrt(2)) ** 2)
