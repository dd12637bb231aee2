"""ILSVRC 2010: synsets, bags of visual words, the truth of validation images."""

import numpy as np
import pytest
from scipy.io import savemat

from datasets.ilsvrc_files import bags, meta, write_ilsvrc
from nhsvm.datasets import read_ilsvrc2010
from nhsvm.errors import FileFormatError, OptionError


@pytest.fixture
def folder(tmp_path):
    return write_ilsvrc(tmp_path)


def test_training_images(folder):
    data = read_ilsvrc2010(folder)
    assert data.y.tolist() == ["n1"] * 2 + ["n2"] * 3 + ["n3"]
    assert data.X.shape == (6, 1000)
    assert data.X[1].toarray()[0, [0, 7, 999]].tolist() == [2, 1, 1]
    assert data.X.has_sorted_indices
    edges = {f"{parent} {child}" for parent, child in data.hierarchy.edges()}
    assert edges == {"n4 n1", "n4 n2", "n5 n2", "n5 n3", "n6 n4", "n6 n5"}
    assert not data.hierarchy.is_tree
    assert np.unique(read_ilsvrc2010(folder, per_class=1).y, return_counts=True)[1].tolist() == [1, 1, 1]


def test_validation_images(folder):
    data = read_ilsvrc2010(folder, "val")
    assert data.y.tolist() == ["n1", "n3", "n2"]
    assert data.X[:, 5].toarray().ravel().tolist() == [1, 1, 1]
    assert [int(X[:, 100:].sum()) for X in data.X] == [0, 0, 1]  # val.0001 comes before val.0002


def test_a_synset_without_a_file(folder):
    next(folder.rglob("n2.sbow.mat")).unlink()
    with pytest.raises(FileFormatError, match=r"1 synsets have no file, the first of them n2\.sbow\.mat"):
        read_ilsvrc2010(folder)


@pytest.mark.parametrize("name", ["meta.mat", "ILSVRC2010_validation_ground_truth.txt", "val.*"])
def test_a_file_that_is_not_there(folder, name):
    for path in list(folder.rglob(name)):
        path.unlink()
    with pytest.raises(FileFormatError, match="there is no"):
        read_ilsvrc2010(folder, "val")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"nonsense", "not a MATLAB file"),
        (b"", "not a MATLAB file"),
        ({"other": 1.0}, "has no variable 'image_sbow'"),
        ({"image_sbow": 3.0}, "no array of structures"),
        (bags([[0, 1000]]), "image 1 has a word outside 0 … 999"),
        ({"image_sbow": [{"ftname": "x"}]}, "no field 'sbow'"),
        ({"image_sbow": [{"sbow": {"x": 1.0}}]}, "no field 'word'"),
    ],
)
def test_bad_bags(folder, content, problem):
    file = next(folder.rglob("n1.sbow.mat"))
    file.write_bytes(content) if isinstance(content, bytes) else savemat(file, content)
    with pytest.raises(FileFormatError, match=problem) as caught:
        read_ilsvrc2010(folder)
    assert caught.value.path == str(file)


def test_bad_synsets_and_truth(folder):
    truth = next(folder.rglob("*ground_truth.txt"))
    bad = (("1\n9\n2\n", 2, "'9'"), ("1\nx\n2\n", 2, "'x'"), ("1\n2\n", None, "2 lines for 3 images"))
    for text, line, problem in bad:
        truth.write_text(text)
        with pytest.raises(FileFormatError, match=problem) as caught:
            read_ilsvrc2010(folder, "val")
        assert caught.value.line == line
    savemat(next(folder.rglob("meta.mat")), meta([(1, "n1", []), (2, "n2", [1, 77])]))
    with pytest.raises(FileFormatError, match="synset n2 has the child 77"):
        read_ilsvrc2010(folder)


def test_bad_options(folder):
    with pytest.raises(OptionError, match="part must be"):
        read_ilsvrc2010(folder, "test")
    for wrong in (0, 1.5, True):
        with pytest.raises(OptionError, match="per_class"):
            read_ilsvrc2010(folder, per_class=wrong)
