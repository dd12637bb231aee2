"""The command line as a user meets it."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from nhsvm import __version__
from nhsvm.cli import app, main


def run(*args):
    return CliRunner().invoke(app, list(args))


def test_demo_shows_weights_and_figure_1():
    result = run("demo")
    assert result.exit_code == 0
    assert "Hierarchy(forest, 15 nodes, 8 leaves, 3 roots, 5 levels)" in result.output
    assert "│   ├── crime                      1.000    1.000    0.125    0.333    0.600" in result.output
    assert "HSVM   0.50 times" in result.output
    assert "NHSVM  1.00 times" in result.output


def test_inspect_describes_a_file(tmp_path):
    file = tmp_path / "cat_hier.txt"
    file.write_text("1 2 3\n1 4\n")
    result = run("inspect", str(file), "--weights", "power")
    assert result.exit_code == 0
    assert result.output.splitlines()[:4] == [
        "Hierarchy(tree, 4 nodes, 2 leaves, 1 root, 3 levels)",
        "nodes with several parents: 0",
        "duplicated nodes (M(G) merges them): 1",
        "leaves by depth: 1: 1, 2: 1",
    ]
    assert result.output.endswith("│   └── 3      0.500\n└── 4          1.000\n")


def test_version():
    assert run("--version").output == f"nhsvm {__version__}\n"


@pytest.mark.parametrize(
    ("content", "args", "said"),
    [
        ("1 2 3\n1 x 4\n", (), "cat_hier.txt:2: 'x' is not a whole number"),
        ("1 2\n2 1\n", (), "cat_hier.txt: the hierarchy has a cycle: 1 -> 2 -> 1"),
        ("1 2 3\n", ("--weights", "best"), "unknown weights scheme 'best'"),
        (None, (), "No such file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(content, args, said, tmp_path, monkeypatch, capsys):
    file = tmp_path / "cat_hier.txt"
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr(sys, "argv", ["nhsvm", "inspect", str(file), *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("nhsvm: ")
    assert said in err


def test_the_installed_command_runs():
    done = subprocess.run([sys.executable, "-m", "nhsvm", "demo"], capture_output=True, text=True, check=True)
    assert "maxmin" in done.stdout
