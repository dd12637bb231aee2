"""What is registered once is true everywhere: names, options, help, tables; adding one is a file and a line."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import MISSING, fields
from inspect import signature
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import nhsvm
import nhsvm.losses
import nhsvm.metrics
import nhsvm.oracles
import nhsvm.weights
from contracts import test_oracles
from nhsvm.errors import FileFormatError, OptionError

ROOT = Path(__file__).parents[2]
REGISTERED = {
    "weights": nhsvm.weights.SCHEMES,
    "losses": nhsvm.losses.LOSSES,
    "metrics": nhsvm.metrics.METRICS,
    "oracles": nhsvm.oracles.ORACLES,
}
EVERY = [(family, name) for family, registry in REGISTERED.items() for name in registry]


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
ORACLE = '''
import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from nhsvm.oracles.protocol import Oracle


class Milp(Oracle):
    """The integer program of SciPy."""

    exact = True

    def __init__(self, graph, *, allow_empty=False):
        super().__init__(graph, allow_empty)
        parent, child = (sp.eye_array(graph.n_nodes, format="csr")[ends] for ends in graph.edges())
        below = parent.T @ child - sp.diags_array((~graph.is_leaf).astype(float))
        some = sp.csr_array((np.arange(graph.n_nodes) < graph.n_roots)[None].astype(float))
        rows = [parent - child, below[np.flatnonzero(~graph.is_leaf)], some]
        least = np.append(np.zeros(sum(part.shape[0] for part in rows[:2])), 0.0 if allow_empty else 1.0)
        self.constraints = LinearConstraint(sp.vstack(rows, format="csc"), least, np.inf)

    def _solve(self, rewards, chosen, value, bound):
        for t, r in enumerate(rewards):
            costs = -r / (np.abs(r).max() or 1.0)
            found = milp(costs, integrality=1, bounds=Bounds(0, 1), constraints=self.constraints)
            chosen[t] = found.x > 0.5
            value[t] = bound[t] = r @ chosen[t]
'''
ADDED = {
    "weights": ("halves", SCHEME, 'Spec("halves", "halves.Halves", "half of everything", options=("factor",)),'),
    "losses": ("double", LOSS, 'Spec("double", "double.Double", "twice as bad"),'),
    "metrics": (
        "amounts",
        METRIC,
        'Metric("sizes", "amounts.sizes", "labels a sample", best=0, scorers={"neg_sizes": {}}),',
    ),
    "oracles": ("milp", ORACLE, 'OracleSpec("milp", "milp.Milp", "the integer program of SciPy", answers=True),'),
}
USE = """
import numpy as np
from nhsvm import NHSVM, Hierarchy, losses, metrics, node_weights, oracles, weights
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
assert oracles.Milp is oracles.ORACLES["milp"] and "Milp" in dir(oracles)
assert '"milp"' in NHSVM.__doc__
try:
    NHSVM(h, oracle="best").fit([[1.0], [2.0]], [{"dog"}, {"oak"}])
except OptionError as error:
    assert "'milp'" in str(error), error
"""


def test_adding_one_is_a_file_and_a_line(tmp_path):
    """A scheme, a loss, a metric and an oracle in a copy of the package: everything that lists them knows them."""
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
        ("oracles/__init__.py", 1),
        ("oracles/milp.py", None),
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


@pytest.fixture
def with_milp(tmp_path, monkeypatch):
    """The oracle above, registered as its line does."""
    (tmp_path / "milp.py").write_text(ORACLE, encoding="utf-8")
    monkeypatch.setattr(nhsvm.oracles, "__path__", [*nhsvm.oracles.__path__, str(tmp_path)])
    spec = nhsvm.oracles.OracleSpec("milp", "milp.Milp", "the integer program of SciPy", answers=True)
    monkeypatch.setitem(nhsvm.oracles.ORACLES.specs, "milp", spec)
    monkeypatch.setitem(test_oracles.KINDS, "milp", ("milp", {}))
    profile = settings.get_current_profile_name()
    settings.load_profile("few")  # what is tested here is that the contract takes it, not the oracle
    yield
    settings.load_profile(profile)
    sys.modules.pop("nhsvm.oracles.milp", None)


def contract():
    """The tests of the contract that are about one oracle, with all parameters beside it."""
    for name, test in vars(test_oracles).items():
        if name.startswith("test_") and "kind" in signature(test).parameters:
            marks = [mark.args for mark in test.pytestmark if mark.name == "parametrize" and mark.args[0] != "kind"]
            for values in product(*(values for _, values in marks)):
                given = {}
                for (names, _), value in zip(marks, values, strict=True):
                    given |= {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
                yield name, test, given


def test_a_new_oracle_is_held_to_the_contract_trains_and_answers(with_milp, monkeypatch, tmp_path):
    checked = set()
    for name, test, given in contract():
        test(kind="milp", **given)
        checked.add(name)
    assert len(checked) >= 10
    h = nhsvm.Hierarchy.from_edges([("pet", "dog"), ("pet", "cat"), ("hunter", "cat"), ("hunter", "wolf")])
    rng = np.random.default_rng(0)
    y = [set(rng.choice(["dog", "cat", "wolf"], rng.integers(1, 3), replace=False).tolist()) for _ in range(12)]
    X = np.array([[float(n in s) for n in ("dog", "cat", "wolf")] for s in y]) + 0.01 * rng.normal(size=(12, 3))
    own, usual = (nhsvm.NHSVM(h, C=10, oracle=oracle).fit(X, y) for oracle in ("milp", "auto"))
    assert own.gap_ <= 1e-3
    assert own.objective_ == pytest.approx(usual.objective_, rel=2e-3)
    with pytest.raises(OptionError, match="'lp', 'milp'"):
        nhsvm.NHSVM(h, oracle="mlip").fit(X, y)

    asked, milp = [], nhsvm.oracles.ORACLES["milp"]
    solve = milp.solve
    monkeypatch.setattr(
        milp, "solve", lambda self, rewards, *rest: asked.append(len(rewards)) or solve(self, rewards, *rest)
    )
    own.save(tmp_path / "m")
    sets = own.predict(X)
    assert sum(asked) == len(X)
    assert nhsvm.load(tmp_path / "m").predict(X).tolist() == sets.tolist()
    assert nhsvm.load_model(tmp_path / "m").predict(X).tolist() == sets.tolist()
    assert sum(asked) == 3 * len(X)
    own.predict(X, exact=False)
    assert own.set_params(oracle="auto").predict(X).tolist() == sets.tolist()
    assert sum(asked) == 3 * len(X)
    assert nhsvm.oracles.most_violating(h, np.ones(h.n_nodes), method="milp").value == h.n_nodes
    assert sum(asked) == 3 * len(X) + 1
    monkeypatch.delitem(nhsvm.oracles.ORACLES.specs, "milp")
    with pytest.raises(FileFormatError, match="its oracle is 'milp'; this version of nhsvm knows auto, single_label"):
        nhsvm.load_model(tmp_path / "m")
