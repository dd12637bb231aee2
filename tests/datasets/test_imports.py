"""What is imported, and when."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nhsvm.datasets
import nhsvm.features


def loaded(code: str) -> set[str]:
    """Top-level modules after running some code in a fresh interpreter."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_nothing_heavy_before_it_is_needed():
    assert not loaded("import nhsvm.datasets, nhsvm.features") & {"numpy", "scipy", "numba", "sklearn", "polars"}
    found = loaded("from nhsvm.datasets import read_csv, read_jsonl, read_parquet, make_text, load_docstrings")
    assert not found & {"numba", "sklearn", "polars"}


@pytest.mark.parametrize("module", [nhsvm.datasets, nhsvm.features])
def test_public_names(module):
    assert dir(module) == sorted(dir(module), key=lambda name: (not name[0].isupper(), name))
    for name in module.__all__:
        assert callable(getattr(module, name))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = module.nonsense
