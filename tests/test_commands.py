"""Every command in README and guide runs: as it is written, or small.

``console`` blocks are run, and their output compared, by ``cli/test_pages.py``, ``test_guide.py`` and
``report/test_docs.py``. All other commands are collected and run here. ``--quick`` is added where a command has it, and
``DIR`` is a folder of small files in the formats of the real data. A command that ``docs_runners`` does not know fails.
"""

import shlex
import shutil

import pytest

from cli.data import ABOVE, DOCS
from cli.running import nhsvm
from docs_commands import GUIDE, PROJECT, commands
from docs_console import steps
from docs_runners import RUNNERS
from paper import sets


def consoles():
    """Commands that ``console`` blocks have."""
    return [step.command for name in GUIDE for step in steps(PROJECT / name) if step.command]


def is_name(line, others):
    """Whether ``nhsvm train`` is there as a name: with arguments it is run somewhere else."""
    words = shlex.split(line)
    return words[0] == "nhsvm" and len(words) == 2 and any(f"{line} " in other for other in others)


COLLECTED = list(dict.fromkeys(line for text in GUIDE.values() for line in commands(text)))
LINES = [line for line in COLLECTED if not is_name(line, consoles())]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """What ``DIR`` stands for."""
    folder = tmp_path_factory.mktemp("data")
    sets.text_set(folder / "clinc150", sets=False)
    sets.text_set(folder / "wordnet_gloss", sets=True)
    for name, kind in (("cellcycle_GO", sets.DAG), ("cellcycle_FUN", sets.TREE)):
        sets.arff(folder / "hmc", name, (".train", ".valid", ".test"), kind, n=70)
    return folder


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A folder with the files that inline ``nhsvm`` commands name."""
    folder = tmp_path_factory.mktemp("files")
    rows = "".join(f"{text},{ABOVE[label]} > {label}\n" for text, label in DOCS)
    for name in ("test", "papers"):
        (folder / f"{name}.csv").write_text(f"text,path\n{rows}")
        done = nhsvm(
            *("train", folder / f"{name}.csv", "--text", "text", "--path", "path", "--last-part", "--quiet"),
            *("-o", folder / f"{'model' if name == 'test' else name}.nhsvm"),
        )
        assert done.code == 0, done.err
    return folder


@pytest.mark.parametrize("line", LINES)
def test_every_command_of_the_guide_runs(line, data, papers, tmp_path, monkeypatch, capfd):
    words = [str(data) if word == "DIR" else word for word in shlex.split(line)]
    assert words[0] in RUNNERS, f"no test knows how to run {line!r}: write it in a console block, or add a runner"
    shutil.copytree(papers, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = set(tmp_path.rglob("*"))
    RUNNERS[words[0]](words)
    out, _ = capfd.readouterr()
    assert out.strip() or set(tmp_path.rglob("*")) > before  # it says something, or makes something
    assert "skipped" not in out  # as benchmarks say of data that is not there


def test_commands_are_collected():
    assert {"make demo", "pip install .", "nhsvm demo", "python benchmarks/hierarchy.py"} <= set(LINES)
    assert "nhsvm convert" in set(COLLECTED) - set(LINES)
    page = "Say `nhsvm\ntrain a` or\n\n    curl b  # c\n\n```\n$ docker run d\nno command\n```\n\n`benchmarks/a.py -b`"
    assert sorted(commands(page)) == ["benchmarks/a.py -b", "curl b", "docker run d", "nhsvm train a"]
    assert not list(commands("```console\n$ echo a\n```\n\n```python\npip = 1\n```\n\n`nhsvm`, `python`, `make`"))


def test_a_name_is_not_a_command():
    assert is_name("nhsvm train", ["a | nhsvm train b"])
    assert not is_name("nhsvm train", ["nhsvm trainer b"])
    assert not is_name("nhsvm train b", ["nhsvm train b c"])
