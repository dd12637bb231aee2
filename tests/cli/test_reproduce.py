"""``nhsvm reproduce``."""

import pytest

from cli.running import nhsvm


@pytest.mark.parametrize(
    "options",
    [
        ["synthetic", "--quick", "--repeats", 2],
        ["norms", "--seed", 1],
        ["invariance", "--quick"],
        ["weights"],
    ],
)
def test_pages(options, tmp_path):
    done = nhsvm("reproduce", *options, "--out", tmp_path)
    assert done.code == 0, done.err
    name = options[0]
    page = (tmp_path / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert f"    nhsvm reproduce {' '.join(map(str, options[:1]))}" in page
    assert (tmp_path / "images" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"../images/{name}.png" in page
    assert str(tmp_path / "results" / f"{name}.md") in done.lines
    if name == "synthetic":
        stored = tmp_path / "results" / "synthetic.json"
        assert nhsvm("reproduce", name, "--from", stored, "--out", tmp_path / "b").code == 0
        assert (tmp_path / "b" / "results" / "synthetic.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["synthetic", "--repeats", 1], "--repeats must be at least 2"),
        (["synthetic", "--jobs", 0], "--jobs must be at least 1"),
        (["synthetic", "--seed", -1], "--seed must be at least 0"),
        (["synthetic", "--from", "nothing.json"], "there is no such file"),
        (["norms", "--seed", -1], "--seed must be at least 0"),
    ],
)
def test_bad_options(options, message, tmp_path):
    assert message in nhsvm("reproduce", *options, "--out", tmp_path / "new").message
    assert not (tmp_path / "new").exists()


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is no folder" in nhsvm("reproduce", "weights", "--out", tmp_path / "file").message


def test_no_such_table():
    assert nhsvm("reproduce", "table9").code == 2
