"""The file is the option: every family's dictionary is its folder."""

from pathlib import Path

import pytest

import nhsvm.losses
import nhsvm.oracles
import nhsvm.weights

FAMILIES = [
    (nhsvm.weights, nhsvm.weights.SCHEMES),
    (nhsvm.losses, nhsvm.losses.LOSSES),
    (nhsvm.oracles, nhsvm.oracles.ORACLES),
]


@pytest.mark.parametrize(("package", "family"), FAMILIES)
def test_names_are_files(package, family):
    folder = Path(package.__file__).parent
    assert set(family) == {p.stem for p in folder.glob("*.py") if not p.stem.startswith("_")}


@pytest.mark.parametrize(("package", "family"), FAMILIES)
def test_each_class_lives_in_its_file(package, family):
    for name, member in family.items():
        assert member.__module__ == f"{package.__name__}.{name}"
