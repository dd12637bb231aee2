"""``nhsvm evaluate`` as a user meets it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from nhsvm import NHSVM, Hierarchy
from nhsvm.cli import app, main
from nhsvm.cli import evaluate as module
from nhsvm.model import save

TREE = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak"), ("plant", "rose")])
ROWS = [
    ("dog", 1, 0, 0),
    ("cat", 0, 1, 0),
    ("oak", 0, 0, 1),
    ("dog", 0.9, 0.1, 0),
    ("cat", 0.1, 0.9, 0),
    ("oak", 0, 0, 0.9),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of features, one of label sets, and data for them."""
    folder = tmp_path_factory.mktemp("evaluate")
    X, y = np.array([row[1:] for row in ROWS]), [row[0] for row in ROWS]
    save(NHSVM(TREE, C=10).fit(X, y), folder / "model.nhsvm")
    save(NHSVM(TREE, C=10).fit(X, [{label} for label in y]), folder / "sets.nhsvm")
    lines = ["label,a,b,c,name", *(",".join(map(str, (*row, f"row {k}"))) for k, row in enumerate(ROWS))]
    (folder / "test.csv").write_text("\n".join([*lines, "cat,1,0,0,odd one"]) + "\n")
    return folder


COLUMNS = ["--label", "label", "--features", "a", "--features", "b", "--features", "c"]


def run(folder, *args, model="model.nhsvm", data="test.csv", **options):
    data = data if data == "-" else str(folder / data)
    return CliRunner().invoke(app, ["evaluate", str(folder / model), data, *COLUMNS, *args], **options)


def test_tables(folder):
    result = run(folder)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert result.stdout.startswith("Of 7 samples, 85.7% got the right label.")
    assert ["accuracy", "85.7%", "share", "of", "samples", "with", "the", "right", "label"] in lines
    assert ["animal", "5", "80.0%", "80.0%", "100.0%", "0.0%"] in lines
    assert ["cat", "dog", "1", "33.3%", "2"] in lines
    assert ["1", "3", "7", "85.7%", "85.7%", "1"] in lines
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())


def test_fewer_rows_and_measures(folder):
    result = run(folder, "--metrics", "lca_f1, accuracy", "--branches", "1", "--confusions", "0")
    assert result.exit_code == 0
    assert result.stdout.index("\n  lca_f1 ") < result.stdout.index("\n  accuracy ")
    assert "hierarchical_f1" not in result.stdout
    assert "Branches (1 of 2)" in result.stdout
    assert "Most confused" not in result.stdout


def test_json_and_standard_input(folder):
    result = run(folder, "--json", "--format", "csv", data="-", input=(folder / "test.csv").read_text())
    found = json.loads(result.stdout)
    assert found["metrics"]["accuracy"] == pytest.approx(6 / 7)
    assert found["nodes"]["name"] == ["animal", "plant", "dog", "cat", "oak"]
    assert found["report"] is None
    assert found["facts"]["model"] == "NHSVM"
    few = json.loads(run(folder, "--json", "--metrics", "accuracy").stdout)
    assert list(few["metrics"]) == ["accuracy"]


def test_the_report(folder, tmp_path):
    target = tmp_path / "report.html"
    result = run(folder, "--report", str(target), "--title", "Pets", "--id-column", "name")
    assert result.exit_code == 0
    assert f"report: {target}" in result.stderr
    text = target.read_text(encoding="utf-8")
    assert "<h1>Pets</h1>" in text
    assert "odd one" in text
    assert os.listdir(tmp_path) == ["report.html"]


def test_label_sets(folder):
    result = run(folder, model="sets.nhsvm")
    assert result.exit_code == 0, result.output
    assert "got exactly the right set of labels" in result.stdout
    assert "auprc" in result.stdout
    assert "found" in result.stdout


def test_labels_not_seen_in_training_and_a_larger_hierarchy(folder, tmp_path):
    (tmp_path / "more.csv").write_text("label,a,b,c\nrose,0,0,1\ndog,1,0,0\n")
    result = run(folder, data=tmp_path / "more.csv")
    assert result.exit_code == 0
    assert "Note: 1 of 2 samples have a label that training has not seen (1 such label: rose)" in result.stdout
    (tmp_path / "tree.tsv").write_text("animal\tdog\nanimal\tcat\nplant\toak\nplant\ttree\ntree\trose\ntree\tfir\n")
    (tmp_path / "fir.csv").write_text("label,a,b,c\nfir,0,0,1\n")
    result = run(folder, "--hierarchy", str(tmp_path / "tree.tsv"), data=tmp_path / "fir.csv")
    assert result.exit_code == 0, result.output
    assert "such label: fir" in result.stdout


def test_bad_rows_may_be_skipped(folder, tmp_path):
    (tmp_path / "bad.csv").write_text("label,a,b,c\ndog,1,0,0\ncat,x,1,0\n")
    result = run(folder, "--on-error", "skip", data=tmp_path / "bad.csv")
    assert result.exit_code == 0
    assert "1 skipped" in result.stderr
    assert "Of 1 sample, " in result.stdout


@pytest.mark.parametrize(
    ("content", "args", "said"),
    [
        ("label,a,b,c\ncow,1,0,0\n", (), "not in the hierarchy: 'cow'"),
        ("a,b,c\n1,0,0\n", (), "no column 'label'"),
        ("label,a,b\ndog,1,0\n", (), "no column 'c'"),
        ("label,a,b,c\ndog,1,0,nine\n", (), "nine"),
        ("label,a,b,c\n", (), "no samples"),
        ("", (), "empty"),
        (None, (), "No such file"),
        (
            "label,a,b,c\ndog,1,0,0\n",
            ("--metrics", "precision"),
            "this model has no measure 'precision'; it has accuracy,",
        ),
        ("label,a,b,c\ndog,1,0,0\n", ("--metrics", "auprc"), "this model has no measure 'auprc'"),
        ("label,a,b,c\ndog,1,0,0\n", ("--metrics", "calibration_error"), "no measure 'calibration_error'"),
        ("label,a,b,c\ndog,1,0,0\n", ("--report", "-"), "--report needs the name of a file"),
        ("label,a,b,c\ndog,1,0,0\n", ("--report", "missing/report.html"), "there is no folder"),
        ("label,a,b,c\ndog,1,0,0\n", ("--report", "."), "is a folder"),
        (
            "label,a,b,c\ndog,1,0,0\n",
            ("--report", "data.csv"),
            "--report data.csv would overwrite the file that is read",
        ),
        ("label,a,b,c\ndog,1,0,0\n", ("--title", "Pets"), "--title is the heading of the page"),
        ("label,a,b,c\ndog,1,0,0\n", ("--report", "r.html", "--title", " "), "--title is the heading of the page"),
        ("label,a,b,c\ndog,1,0,0\n", ("--id-column", "name"), "no column 'name'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(content, args, said, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "data.csv").write_text(content)
    before = sorted(os.listdir(tmp_path))
    command = ["nhsvm", "evaluate", str(folder / "model.nhsvm"), "data.csv", *COLUMNS, *args]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err
    assert sorted(os.listdir(tmp_path)) == before


def failing(folder, monkeypatch, capsys, *args, data="test.csv"):
    """Standard error of a run that ends with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["nhsvm", "evaluate", str(folder / "model.nhsvm"), str(folder / data), *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_features_that_do_not_fit(folder, monkeypatch, capsys):
    args = ["--label", "label", "--features", "a", "--features", "b"]
    assert "2 features, but the model was trained with 3" in failing(folder, monkeypatch, capsys, *args)


def test_data_without_labels(folder, monkeypatch, capsys, tmp_path):
    (tmp_path / "data.svm").write_text("1:1 2:0.5\n")
    assert "no labels" in failing(folder, monkeypatch, capsys, data=tmp_path / "data.svm")


def test_without_jinja2_nothing_is_read(folder, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = failing(folder, monkeypatch, capsys, "--report", str(tmp_path / "report.html"), data="missing.csv")
    assert "--report needs jinja2: pip install 'nhsvm[report]'" in said


def test_a_disk_that_fills_up(folder, monkeypatch, capsys, tmp_path):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    said = failing(folder, monkeypatch, capsys, *COLUMNS, "--report", str(tmp_path / "report.html"))
    assert "report.html cannot be written: No space left on device" in said
    assert os.listdir(tmp_path) == []


def test_a_terminal_gets_rich_tables(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    module._table("Branches", ("branch", "samples"), [("[red]not markup[/red]", "12")], texts=(0,))
    out = capsys.readouterr().out
    assert "[red]not markup[/red]" in out
    assert "─" in out


def test_help_has_an_example_and_is_light():
    script = "import sys; from nhsvm.cli import app; app(['evaluate', '--help'], standalone_mode=False); "
    script += "assert not {'numba', 'jinja2', 'sklearn', 'nhsvm.report'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Example: nhsvm evaluate" in done.stdout
