"""The file is the option: a family's dictionary is its folder; and every class lives in its family."""

from pathlib import Path

import pytest

import nhsvm.losses
import nhsvm.oracles
import nhsvm.solvers
import nhsvm.weights

FAMILIES = [
    (nhsvm.weights, nhsvm.weights.SCHEMES),
    (nhsvm.losses, nhsvm.losses.LOSSES),
    (nhsvm.solvers, nhsvm.solvers.SOLVERS),
]


@pytest.mark.parametrize(("package", "family"), FAMILIES)
def test_names_are_files(package, family):
    folder = Path(package.__file__).parent
    assert set(family) == {p.stem for p in folder.glob("*.py") if not p.stem.startswith("_")}


def test_each_oracle_lives_in_its_package():
    for member in nhsvm.oracles.ORACLES.values():
        assert member.__module__.startswith("nhsvm.oracles.")
        assert getattr(nhsvm.oracles, member.__name__) is member


@pytest.mark.parametrize(("package", "family"), FAMILIES)
def test_each_class_lives_in_its_file(package, family):
    for name, member in family.items():
        assert member.__module__ == f"{package.__name__}.{name}"
