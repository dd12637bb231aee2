"""A few of the cases of :mod:`fuzz.models`; ``make fuzz`` runs as many as are wanted."""

import pytest

from fuzz import models
from fuzz.harness import run_all


@pytest.mark.skipif(not models.Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_whatever_a_model_file_says(tmp_path, monkeypatch):
    monkeypatch.setenv("NHSVM_FUZZ_MODELS", str(tmp_path))
    models.make_models(tmp_path)
    found = run_all("fuzz.models", range(1000))
    assert found.failures == {}
    assert found.n_cases == 1000
    assert found.counts["result"] > 100  # not all are refused
    assert found.counts["refused"] > 100
