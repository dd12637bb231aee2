"""What is registered once is true everywhere: names, options, help, tables; adding one is a file and a line."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import MISSING, fields
from inspect import signature
from pathlib import Path

import pytest

import nhsvm
import nhsvm.losses
import nhsvm.metrics
import nhsvm.oracles
import nhsvm.weights
from nhsvm.errors import OptionError

ROOT = Path(__file__).parents[2]
REGISTERED = {
    "weights": nhsvm.weights.SCHEMES,
    "losses": nhsvm.losses.LOSSES,
    "metrics": nhsvm.metrics.METRICS,
}
EVERY = [(family, name) for family, registry in REGISTERED.items() for name in registry]


def test_each_oracle_lives_in_its_package():
    for member in nhsvm.oracles.ORACLES.values():
        assert member.__module__.startswith("nhsvm.oracles.")
        assert getattr(nhsvm.oracles, member.__name__) is member


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_what_is_registered_is_there(family, name):
    package, spec = getattr(nhsvm, family), REGISTERED[family].specs[name]
    part = REGISTERED[family][name]
    assert (part.__module__, part.__name__) == (f"nhsvm.{family}.{spec.home}", spec.attribute)
    assert getattr(package, spec.attribute) is part
    assert spec.attribute in package.__all__
    assert spec.attribute in dir(package)


@pytest.mark.parametrize("name", nhsvm.weights.SCHEMES)
def test_options_of_schemes_are_their_fields(name):
    spec, own = nhsvm.weights.SCHEMES.specs[name], fields(nhsvm.weights.SCHEMES[name])
    assert set(spec.options) == {field.name for field in own}
    assert set(spec.needs) == {f.name for f in own if f.default is MISSING and f.default_factory is MISSING}


@pytest.mark.parametrize("name", nhsvm.metrics.METRICS)
def test_options_of_metrics_are_their_parameters(name):
    parameters = set(signature(nhsvm.metrics.METRICS[name]).parameters)
    shared = {"y_true", "y_pred", "node_scores", "hierarchy", "labels", "sample_weight"}
    assert set(nhsvm.metrics.METRICS.specs[name].options) == parameters - shared


@pytest.mark.parametrize("registry", REGISTERED.values(), ids=REGISTERED)
def test_unknown_names_and_options(registry):
    first = next(iter(registry))
    with pytest.raises(OptionError, match=re.escape(f"{registry.option} must be one of ['{first}'")) as caught:
        registry.spec("nothing")
    assert str(caught.value).endswith("not 'nothing'")
    assert "nothing" not in registry
    assert [] not in registry
    with pytest.raises(OptionError, match=f"{registry.option}='{first}' has no option 'nothing'"):
        registry.check_options(first, {"nothing": 1})


def table(page, header):
    """The rows of the table with that header, each a list of cells."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    start = lines.index(header) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append(re.split(r"(?<!\\)\|", line)[1:-1])
    return [[cell.strip() for cell in row] for row in rows]


def quoted(names):
    return ", ".join(f"`{name}`" for name in names)


def test_the_tables_of_the_guide():
    schemes = [[f"`{s.name}`", s.summary, quoted(s.options)] for s in nhsvm.weights.SCHEMES.specs.values()]
    assert table("weights.md", "| scheme | what it does | options |") == schemes
    losses = [[f"`{s.name}`", s.summary] for s in nhsvm.losses.LOSSES.specs.values()]
    assert table("learning.md", "| loss | Δ of two labels |") == losses
    metrics = [
        [
            f"`{s.name}`",
            s.summary,
            "one a sample" if s.single else "any",
            "" if s.best is None else str(s.best),
        ]
        for s in nhsvm.metrics.METRICS.specs.values()
    ]
    assert table("metrics.md", "| function | definition | labels | best |") == metrics


SCHEME = '''
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Halves:
    """Half of everything."""

    factor: float = 0.5

    def __call__(self, hierarchy):
        return np.full(hierarchy.n_nodes, self.factor)
'''
LOSS = '''
from nhsvm.losses.losses import ZeroOne


class Double(ZeroOne):
    """Twice as bad."""

    name = "double"

    def between(self, y, z):
        return 2 * super().between(y, z)
'''
METRIC = '''
from nhsvm.metrics.inputs import make_pair


def sizes(y_true, y_pred, *, hierarchy, labels=None, sample_weight=None):
    """Mean number of predicted labels."""
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return pair.mean(pair.per_sample().pred)
'''
ADDED = {
    "weights": ("halves", SCHEME, 'Spec("halves", "halves.Halves", "half of everything", options=("factor",)),'),
    "losses": ("double", LOSS, 'Spec("double", "double.Double", "twice as bad"),'),
    "metrics": (
        "amounts",
        METRIC,
        'Metric("sizes", "amounts.sizes", "labels a sample", best=0, scorers={"neg_sizes": {}}),',
    ),
}
USE = """
import numpy as np
from nhsvm import Hierarchy, losses, metrics, node_weights, weights
from nhsvm.errors import OptionError

h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
assert node_weights(h, "halves").tolist() == [0.5] * 5
assert node_weights(h, "halves", factor=2.0).tolist() == [2.0] * 5
assert weights.Halves().factor == 0.5 and "Halves" in dir(weights)
try:
    node_weights(h, "halves", rho=2)
except OptionError as error:
    assert "weights='halves' has no option 'rho'; it has factor" in str(error), error
assert losses.make_loss("double", h).distance("dog", "oak") == 2.0
assert isinstance(losses.make_loss("double", h), losses.Double)
try:
    losses.make_loss("duoble", h)
except OptionError as error:
    assert "'double'" in str(error), error
assert metrics.sizes([{"dog"}], [{"cat", "oak"}], hierarchy=h) == 2.0 and "sizes" in dir(metrics)
assert "neg_sizes" in metrics.scorers(h, multilabel=True)
"""


def test_adding_one_is_a_file_and_a_line(tmp_path):
    """A scheme, a loss and a metric in a copy of the package: everything that lists them knows them."""
    package = tmp_path / "nhsvm"
    source = Path(nhsvm.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for family, (file, code, line) in ADDED.items():
        (package / family / f"{file}.py").write_text(code, encoding="utf-8")
        registry = package / family / "__init__.py"
        content = registry.read_text(encoding="utf-8")
        end = content.index("\n    ],\n")
        registry.write_text(f"{content[:end]}\n        {line}{content[end:]}", encoding="utf-8")

    touched = []
    for path in sorted(package.rglob("*.py")):
        before = source / path.relative_to(package)
        old = before.read_text(encoding="utf-8").splitlines() if before.exists() else None
        new = path.read_text(encoding="utf-8").splitlines()
        if old != new:
            touched.append((path.relative_to(package).as_posix(), None if old is None else len(new) - len(old)))
    assert touched == [
        ("losses/__init__.py", 1),
        ("losses/double.py", None),
        ("metrics/__init__.py", 1),
        ("metrics/amounts.py", None),
        ("weights/__init__.py", 1),
        ("weights/halves.py", None),
    ]

    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    run = lambda *args: subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True)
    done = run("-c", USE)
    assert done.returncode == 0, done.stderr
    for command in ("train", "tune"):
        shown = run("-m", "nhsvm", command, "--help").stdout
        assert re.search(r"maxmin, power, uniform, flat, halves\.", shown)
        assert re.search(r"leaf_hamming, double\.", shown)
    refused = run("-m", "nhsvm", "train", "none.csv", "--weights", "halvs")
    assert refused.returncode == 2
    assert "'halves'" in refused.stderr
