"""``nhsvm inspect`` of hierarchies and models."""

import gzip
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import nhsvm
from estimators.problems import TREE, make, make_sets
from nhsvm import HSVM, NHSVM, Hierarchy
from nhsvm.cli import app, main
from nhsvm.datasets import Dataset, write_blocks

H = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
TEXTS = ["barks loudly", "a friend that barks", "purrs and sleeps", "chases mice, purrs", "acorns, leaves", "leaves"]
LABELS = ["dog", "dog", "cat", "animal", "oak", "oak"]


def run(*args):
    result = CliRunner().invoke(app, ["inspect", *map(str, args)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def text_model(tmp_path_factory):
    file = tmp_path_factory.mktemp("models") / "text.nhsvm"
    model = make_pipeline(TfidfVectorizer(), NHSVM(H, C=10, tol=1e-6)).fit(TEXTS, LABELS)
    nhsvm.save(model, file)
    return file, model


@pytest.fixture(scope="module")
def dense_model(tmp_path_factory):
    file = tmp_path_factory.mktemp("models") / "dense.bin"  # found by content
    model = NHSVM(TREE, leaf_offset=-1.0, max_iter=1, tol=1e-12)
    with pytest.warns(match="stopped after 1 pass at"):
        model.fit(*make_sets(TREE))
    nhsvm.save(model, file)
    return file, model


def test_a_hierarchy(tmp_path):
    file = tmp_path / "cat_hier.txt"
    file.write_text("1 2 3\n1 4\n")
    output = run(file, "--weights", "power")
    assert output.splitlines()[:4] == [
        "Hierarchy(tree, 4 nodes, 2 leaves, 1 root, 3 levels)",
        "nodes with several parents: 0",
        "duplicated nodes (M(G) merges them): 1",
        "leaves by depth: 1: 1, 2: 1",
    ]
    assert output.endswith("│   └── 3      0.500\n└── 4          1.000\n")
    assert "... and 2 more nodes" in run(file, "--max-nodes", 2)


def test_a_hierarchy_as_json(tmp_path):
    file = tmp_path / "tree.json.gz"
    file.write_bytes(gzip.compress(b'{"animal": {"dog": {}, "cat": {}}}'))
    found = json.loads(run(file, "--json"))
    assert found["kind"] == "hierarchy"
    assert found["weights"] == "maxmin"
    assert (found["n_nodes"], found["n_leaves"], found["leaves_by_depth"]) == (3, 2, {"1": 2})
    assert found["nodes"][1] == {"node": "dog", "depth": 1, "weight": 1.0}
    assert "drawing" not in found


def test_a_text_model(text_model):
    file, model = text_model
    output = run(file, "--features", 2)
    lines = output.splitlines()
    n_words = len(model[0].vocabulary_)
    assert lines[0] == f"NHSVM after TfidfVectorizer: one label a sample, 4 classes, {n_words} features"
    assert "parameters   C=10, tol=1e-06" in lines
    assert "tol 1e-06 reached" in output
    assert f"{file.stat().st_size / 1000:.1f} kB on disk" in output
    (oak,) = (line for line in lines if "oak" in line)
    assert oak.startswith("└── oak")
    (first, second), own = (
        model[-1].strongest_features("oak", 2, feature_names=model[0].get_feature_names_out()),
        "leaves",
    )
    assert first[0] == own
    assert oak.endswith(f"{own} {first[1]:.2f}, {second[0]} {second[1]:.2f}")
    assert any("(animal itself)" in line for line in lines)


def test_one_node(text_model):
    file, _ = text_model
    output = run(file, "--node", "animal", "--features", 1)
    details = output.split("\n\n")[2:]
    assert [part.split(":")[0] for part in details] == ["animal", "(animal itself)"]
    assert all(len(part.splitlines()) == 2 for part in details)
    assert "cat:" not in output


def test_a_model_as_json(text_model):
    file, model = text_model
    found = json.loads(run(file, "--json", "--node", "dog", "--node", "oak"))
    assert (found["kind"], found["estimator"], found["steps"]) == ("model", "NHSVM", ["TfidfVectorizer"])
    assert found["labels"] == "one a sample"
    assert found["parameters"] == {"C": 10, "tol": 1e-6}
    svm = model[-1]
    assert found["convergence"]["gap"] == svm.gap_
    assert found["convergence"]["converged"] is True
    assert found["convergence"]["passes"] == svm.n_iter_
    memory = found["memory"]
    assert memory["file"] == file.stat().st_size
    assert memory["weights"] == svm.model_.weights.nbytes
    assert memory["zeros"] == pytest.approx((svm.model_.weights.values == 0).mean())
    assert memory["in_use"] == memory["weights"] + memory["hierarchy"] + memory["words"]
    dog = found["nodes"][0]
    number = svm.hierarchy_.number("dog")
    assert [node["node"] for node in found["nodes"]] == ["dog", "oak"]
    assert dog["weight"] == pytest.approx(svm.node_weights_[number])
    assert dog["norm"] ** 2 == pytest.approx((svm.coef_[number] ** 2).sum() + svm.intercept_[number] ** 2)
    assert dog["features"][0][0] == "barks"
    assert len(dog["features"]) == 5


def test_a_model_of_label_sets_that_did_not_converge(dense_model):
    file, _ = dense_model
    output = run(file)
    assert output.startswith("NHSVM: label sets, 4 classes, 6 features\n")
    assert "leaf_offset=-1.0" in output
    assert "NOT reached); 1 pass," in output
    assert "x0 " in output
    found = json.loads(run(file, "--json", "--max-nodes", 2, "--features", 0))
    assert found["labels"] == "sets"
    assert found["memory"]["words"] == 0
    assert [node["features"] for node in found["nodes"]] == [[], []]


def test_names_and_numbers_of_features(tmp_path):
    X, y = make()
    model = NHSVM(TREE).fit(X, y)
    for note, expected in (
        ({"feature_names": list("abcdef")}, set("abcdef")),
        ({"feature_numbers": np.arange(10, 16)}, set(map(str, range(10, 16)))),
        ({"first_feature": 1, "n_features": 6}, set(map(str, range(1, 7)))),
        ({}, {f"x{j}" for j in range(6)}),
    ):
        nhsvm.save(model, tmp_path / "m.nhsvm", note=note)
        (node,) = json.loads(run(tmp_path / "m.nhsvm", "--json", "--node", "oak", "--features", 9))["nodes"]
        assert {name for name, _ in node["features"]} == expected


def test_without_a_proved_gap(tmp_path):
    X, y = make()
    model = HSVM(TREE, solver="sgd", max_iter=2)
    model.partial_fit(X, y, classes=TREE.leaves)
    model.save(tmp_path / "m.nhsvm")
    found = json.loads(run(tmp_path / "m.nhsvm", "--json"))
    output = run(tmp_path / "m.nhsvm")
    assert ("no gap was measured" in output) == (found["convergence"]["gap"] is None)


@pytest.mark.parametrize(
    ("name", "content", "args", "said"),
    [
        ("cat_hier.txt", b"1 2 3\n1 x 4\n", (), "cat_hier.txt:2: 'x' is not a whole number"),
        ("cat_hier.txt", b"1 2\n2 1\n", (), "cat_hier.txt: the hierarchy has a cycle: 1 -> 2 -> 1"),
        ("cat_hier.txt", b"1 2 3\n", ("--weights", "best"), "weights must be one of ['maxmin', 'power',"),
        ("cat_hier.txt", b"1 2 3\n", ("--node", "2"), "--node is for models"),
        ("cat_hier.txt", None, (), "No such file"),
        ("cat_hier", None, (), "cat_hier: No such file"),
        ("cat_hier", b"1 2\n", (), "cannot tell the format from the ending ''; it must be one of .txt, "),
        ("cat_hier.txt", b"", (), "empty"),
        # no time in it: the bytes name the test, and two processes must collect the same names
        ("tree.json.gz", gzip.compress(b'{"a": {"b": {}}}', mtime=0)[:-6], (), "tree.json.gz"),
        ("tree.json", b"\xff\xfe\x00", (), "tree.json"),
        ("m.nhsvm", None, (), "m.nhsvm"),
        ("m.nhsvm", b"", (), "not an nhsvm model"),
        ("m.nhsvm", b"1 2 3\n1 2 4\n", (), "not an nhsvm model"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(name, content, args, said, tmp_path, monkeypatch, capsys):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    fails([str(file), *args], said, monkeypatch, capsys)


def fails(args, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nhsvm", "inspect", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("nhsvm: ")
    assert said in err


def test_bad_input_with_models(text_model, tmp_path, monkeypatch, capsys):
    file, _ = text_model
    fails([str(file), "--node", "dgo"], "not in the hierarchy: 'dgo' (did you mean 'dog'", monkeypatch, capsys)
    fails([str(file), "--weights", "power"], "--weights is for hierarchies", monkeypatch, capsys)
    cut = tmp_path / "model"  # found by content, and cut short
    cut.write_bytes(file.read_bytes()[:-10])
    fails([str(cut)], "cut short", monkeypatch, capsys)


def test_blocks(tmp_path, capsys, monkeypatch):
    sets = [["dog", "cat"], ["oak"], ["dog"]]
    write_blocks(Dataset(sets, H, sp.csr_array(np.eye(3, 4, dtype=np.float32))), tmp_path / "sets.blocks")
    write_blocks(Dataset(None, None, np.ones((2, 5))), tmp_path / "plain.blocks")
    assert run(tmp_path / "sets.blocks").splitlines()[:4] == [
        "samples    3",
        "features   4, 1.0 of them a sample, float32",
        "labels     3 classes, 1.3 a sample",
        f"hierarchy  {H!r}",
    ]
    assert run(tmp_path / "plain.blocks").splitlines()[:4] == [
        "samples    2",
        "features   5, dense, float64",
        "labels     none",
        "hierarchy  none: labels are flat, unless a file says otherwise",
    ]
    found = json.loads(run(tmp_path / "sets.blocks", "--json"))
    assert (found["kind"], found["samples"], found["entries"], found["n_leaves"]) == ("blocks", 3, 3, 3)
    assert found["bytes"] == sum(path.stat().st_size for path in (tmp_path / "sets.blocks").iterdir())
    (tmp_path / "empty").mkdir()
    for args, said in (
        (
            ["sets.blocks", "--weights", "power"],
            "--weights is for hierarchies; sets.blocks is a folder",
        ),
        (["sets.blocks", "--node", "dog"], "--node is for models; sets.blocks is a folder"),
        (["empty"], "header.json"),
    ):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["nhsvm", "inspect", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
