"""A few of the cases of :mod:`fuzz.readers` and :mod:`fuzz.blocks`; ``make fuzz`` runs as many as are wanted."""

import sys

import pytest

from fuzz.harness import run_all

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")


@pytest.mark.parametrize(("module", "n_cases"), [("fuzz.readers", 600), ("fuzz.blocks", 400)])
def test_whatever_a_file_of_data_says(module, n_cases):
    found = run_all(module, range(n_cases))
    assert found.failures == {}
    assert found.n_cases == n_cases
    assert found.counts["result"] > n_cases // 10  # not all are refused
    assert found.counts["refused"] > n_cases // 10
