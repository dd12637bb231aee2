"""Heavy packages stay out until they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIONAL = {"numba", "dask", "matplotlib", "networkx", "pandas", "sklearn", "plotly", "highspy"}


def loaded(code: str) -> set[str]:
    """Top-level modules after running some code in a fresh interpreter."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light():
    found = loaded("import nhsvm; nhsvm.__version__")
    assert "nhsvm" in found
    assert not found & (OPTIONAL | {"scipy", "numpy"})


@pytest.mark.parametrize(
    "code",
    [
        "from nhsvm import Hierarchy; h = Hierarchy.from_edges([(0, 1), (0, 2)]); h.graph.leaf_matrix(); h.minimal()",
        "from nhsvm import Hierarchy; print(Hierarchy.from_edges([(0, 1)]).draw())",
    ],
)
def test_a_hierarchy_needs_no_optional_package(code):
    found = loaded(code)
    assert "numpy" in found
    assert not found & OPTIONAL


def test_networkx_comes_when_asked_for():
    assert "networkx" in loaded("from nhsvm import Hierarchy; Hierarchy.from_edges([(0, 1)]).to_networkx()")
