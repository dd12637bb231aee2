"""ILSVRC 2010: synsets, bags of visual words, the truth of validation images."""

import numpy as np
import pytest
from scipy.io import savemat

from datasets.ilsvrc_files import bags, meta, write_ilsvrc
from nhsvm.datasets import read_ilsvrc2010
from nhsvm.errors import CycleError, FileFormatError, OptionError


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


@pytest.mark.parametrize("packed", [False, True])
def test_damage_is_told(folder, packed):
    """A length that is wrong has ended the process, or taken all memory."""
    file = next(folder.rglob("n1.sbow.mat"))
    savemat(file, bags([[5], [7, 0, 999, 0]]), do_compression=packed)
    raw = file.read_bytes()
    assert read_ilsvrc2010(folder).n_samples == 6
    read = 0
    for k in range(0, len(raw), 3):
        for bad in (raw[:k], raw[:k] + bytes([raw[k] ^ 0x80]) + raw[k + 1 :], raw[:k] + b"\xff" * 4 + raw[k + 4 :]):
            file.write_bytes(bad)
            try:
                read_ilsvrc2010(folder)
                read += 1
            except FileFormatError as error:
                assert error.path == str(file)  # noqa: PT017
    assert 0 < read < len(raw) / 2  # nobody looks at everything


def test_numbers_that_are_none(folder):
    file = next(folder.rglob("meta.mat"))
    for name, value in (("ILSVRC2010_ID", np.nan), ("num_children", np.inf), ("children", 1.5), ("WNID", 3.0)):
        content = meta([(1, "n1", []), (2, "n2", [1])])
        content["synsets"][1, 0][name] = value
        savemat(file, content)
        with pytest.raises(FileFormatError, match=f"a field '{name}' has") as caught:
            read_ilsvrc2010(folder)
        assert caught.value.path == str(file)
    savemat(file, meta([(1, "n1", [2]), (2, "n2", [1])]))
    with pytest.raises(CycleError, match=r"meta\.mat"):
        read_ilsvrc2010(folder)


def test_files_of_every_order_and_type(folder):
    """As scipy reads them, which checks nothing."""
    file = next(folder.rglob("n1.sbow.mat"))
    for kind in (np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
        words = np.array([[7, 0, 99, 0]], dtype=kind)
        savemat(file, {"image_sbow": [{"sbow": {"word": words}}], "more": "text"})
        assert read_ilsvrc2010(folder).X[0, [0, 7, 99]].toarray().tolist() == [[2, 1, 1]]


def test_a_variable_that_grows_without_end(folder):
    file = next(folder.rglob("n1.sbow.mat"))
    savemat(file, {"image_sbow": np.zeros(10**7)}, do_compression=True)
    with pytest.raises(FileFormatError, match="more than 50 times as much as its compressed form"):
        read_ilsvrc2010(folder)
