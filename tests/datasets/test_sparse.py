"""svmlight and LSHTC files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from datasets.files import NUMBERS, check_damage, fails, put
from nhsvm import Hierarchy
from nhsvm.datasets import parsing, read_lshtc, read_svmlight
from nhsvm.errors import CycleError, FileFormatError, HierarchyError, OptionError
from reference.rows import sparse_rows

READERS = pytest.mark.parametrize("read", [read_svmlight, read_lshtc])


# -- numbers -----------------------------------------------------------------------------------------------------------


@njit
def parse(text, starts, powers, values, bits):
    """Numbers, a line each; NaN where the kernels leave them to Python."""
    for k in range(len(starts)):
        i, done = parsing.number(text, starts[k], powers, values, bits, k)
        if not done or text[i] != 10:
            values[k] = np.nan


def parsed(tokens):
    """Numbers by the kernel; NaN where it leaves them to Python."""
    text = np.frombuffer(("\n".join(tokens) + "\n").encode(), dtype=np.uint8)
    starts = np.concatenate([[0], np.cumsum([len(token) + 1 for token in tokens])[:-1]]).astype(np.int64)
    values = np.empty(len(tokens))
    parse(text, starts, parsing.powers_of_five(), values, values.view(np.uint64))
    return values


def check_exact(tokens, must=True):
    found, want = parsed(tokens), np.array([float(token) for token in tokens])
    left = np.isnan(found)
    assert not (must and left.any()), [t for t, bad in zip(tokens, left, strict=True) if bad][:3]
    same = found.view(np.uint64) == want.view(np.uint64)
    assert (same | left).all(), [t for t, ok in zip(tokens, same | left, strict=True) if not ok][:3]


normal = st.floats(min_value=2.3e-308, max_value=1.79e308) | st.floats(1e-6, 1e6) | st.floats(0, 1)


@given(st.lists(normal.flatmap(lambda x: st.sampled_from([repr(x), repr(-x), f"{x:.17g}", f"{x:.16e}"])), min_size=1))
def test_written_floats_come_back(tokens):
    check_exact([token for token in tokens if float(token) == 0 or abs(float(token)) > 2.3e-308] or ["0"])


@given(st.lists(st.from_regex(r"\A[+-]?([0-9]{1,8}\.?[0-9]{0,9}|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2})?\Z"), min_size=1))
def test_decimal_numbers(tokens):
    check_exact([token.strip() for token in tokens])


@given(st.lists(st.tuples(st.integers(0, 10**19 - 1), st.integers(-360, 320)), min_size=1))
def test_nineteen_digits_and_any_exponent(pairs):
    check_exact([f"{w}e{q}" for w, q in pairs], must=False)


def test_half_way_numbers():
    """The hardest: w·10^q exactly between two doubles, and next to it."""
    tokens = [f"{2**53 + k}" for k in range(1, 40)]
    tokens += [f"{(2**53 + k) * 10}e-1" for k in range(1, 40)]
    tokens += [f"{(2**54 + k) * 5**j}e{-j}" for k in (2, 6, 10, 14) for j in range(3)]
    tokens += ["9007199254740993", "9007199254740992.5", "8.5e22", "1e23", "0.500000000000000166", "1e22", "-0", "0e0"]
    check_exact(tokens)


def test_many_random_numbers():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**63, 40_000).view(np.float64)
    x = x[np.isfinite(x) & (x > 2.3e-308)]
    check_exact([repr(value) for value in x.tolist()])
    check_exact([f"{value:.6g}" for value in rng.random(20_000).tolist()])


@pytest.mark.parametrize(
    "token", ["", "+", ".", "e5", "1e", "1e+", "--1", "1x", "nan", "inf", "0x10", "1_000", "5e-324"]
)
def test_what_is_left_to_python(token):
    assert np.isnan(parsed([token])).all()


# -- rows --------------------------------------------------------------------------------------------------------------

value = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers(0, 99).map(str) | st.just("12e-1")
feature = st.tuples(st.integers(0, 300), value)
blank = st.sampled_from([" ", "  ", "\t"])


@st.composite
def files(draw):
    """Rows of sparse features, with labels, in all forms that are allowed."""
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        labels = draw(st.lists(st.integers(-3, 10**9), min_size=1, max_size=3))
        row = [",".join(map(str, labels))]
        row += [f"{i}:{v}" for i, v in draw(st.lists(feature, max_size=6, unique_by=lambda pair: pair[0]))]
        lines.append(draw(blank).join(row) + draw(st.sampled_from(["", " ", " # 1:2", "\r", "\n", "\n# only\n"])))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


@given(files(), st.sampled_from([1, 7, 64, 1 << 20]))
def test_rows_are_what_the_twin_reads(tmp_path_factory, text, block):
    path = put(tmp_path_factory.mktemp("rows"), "file", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nhsvm.datasets.files.BLOCK", block)
        found = read_svmlight(path, sort=True, zero_based=True, multilabel=True)
    labels, rows = sparse_rows(text, sort=True)
    assert found.y == [list(dict.fromkeys(map(int, row))) for row in labels]
    for i, row in enumerate(rows):
        part = found.X[i : i + 1]
        assert dict(zip(part.indices.tolist(), part.data.tolist(), strict=True)) == row
        assert part.indices.tolist() == sorted(row)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_like_scikit_learn(tmp_path, dtype, zero_based):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 30)) * (rng.random((50, 30)) < 0.3)
    X[:, 0] = 1
    y = rng.integers(5, size=50)
    dump_svmlight_file(X, y, str(tmp_path / "file"), zero_based=zero_based)
    want, labels = load_svmlight_file(str(tmp_path / "file"), dtype=dtype, zero_based=zero_based)
    found = read_svmlight(tmp_path / "file", dtype=dtype)
    assert found.X.dtype == dtype
    assert found.X.has_sorted_indices
    assert (want != found.X).nnz == 0
    assert found.X.shape == want.shape
    np.testing.assert_array_equal(found.y, labels)
    np.testing.assert_array_equal(found.feature_names, np.arange(30) + (not zero_based))


@READERS
def test_forms_of_labels(tmp_path, read):
    one = put(tmp_path, "one", "4 1:1\n5 1:2\n")
    assert read(one).y.dtype == np.int64
    assert read(one, multilabel=True).y == [[4], [5]]
    several = put(tmp_path, "several", "4, 5 1:1\n5,5 1:2\n+2,-1,1.0 1:1\n")
    assert read(several).y == [[4, 5], [5], [2, -1, 1]]
    fails(read, several, 1, "expected one label, not 2", multilabel=False)
    none = put(tmp_path, "none", "1:1 2:3\n\n1:2\n")
    assert read(none).y is None
    fails(read, none, 1, "expected a label", labelled=True)
    assert read(none, multilabel=True).y == [[], []]
    mixed = put(tmp_path, "mixed", "4 1:1\n1:2\n")
    fails(read, mixed, 2, "expected a label (multilabel=True allows for none)")
    assert read(mixed, multilabel=True).y == [[4], []]
    assert read(mixed, labelled=False).y is None
    fails(read, put(tmp_path, "late", "1:1\n4 1:2\n"), 2, "a label, where the first row has none")


def test_names_as_labels(tmp_path):
    path = put(tmp_path, "file", "dog,cat 1:1\nöak:2 1:1\ndog 1:1 qid:3\n")
    assert read_svmlight(path, label_type=str).y == [["dog", "cat"], ["öak:2"], ["dog"]]
    h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")])
    fails(read_svmlight, path, 2, "not in the hierarchy: 'öak:2'", label_type=str, hierarchy=h)
    fails(read_svmlight, path, 1, "(label_type=str reads names)")
    bad = put(tmp_path, "bad", b"dog 1:1\nd\xff 1:1\n")
    fails(read_svmlight, bad, 2, "not utf-8 text", label_type=str)


def test_test_files_are_read_like_training_files(tmp_path):
    train = read_lshtc(put(tmp_path, "train", "4 7:1 3:2\n5,4 9:1\n"), NUMBERS)
    assert train.feature_names.tolist() == [3, 7, 9]
    test = read_lshtc(put(tmp_path, "test", "5 100000000:1 9:5 1:1\n4 3:1\n"), like=train)
    assert test.X.toarray().tolist() == [[0, 0, 5], [1, 0, 0]]
    assert test.y == [[5], [4]]
    assert test.hierarchy is train.hierarchy
    fails(read_lshtc, put(tmp_path, "other", "6 3:1\n"), 1, "not in the hierarchy: 6", like=train)
    train = read_svmlight(put(tmp_path, "one_based", "4 1:1 3:1\n"))
    test = read_svmlight(put(tmp_path, "more", "4 1:1 2:5 4:1\n"), like=train)
    assert test.X.toarray().tolist() == [[1, 5, 0]]
    assert read_lshtc(put(tmp_path, "all", "4 3:2\n"), compact=False).X.toarray().tolist() == [[0, 0, 0, 2]]


def test_huge_feature_numbers_need_no_table(tmp_path):
    train = read_lshtc(put(tmp_path, "train", "4 2147483646:1 3:2\n"))
    assert train.feature_names.tolist() == [3, 2147483646]
    assert read_lshtc(put(tmp_path, "test", "4 2147483645:1 2147483646:7\n"), like=train).X.toarray().tolist() == [
        [0, 7]
    ]


def test_the_internal_feature(tmp_path):
    path = put(tmp_path, "file", "4 0:192 7:1\n5 0:1\n3 7:2 0:9 1:1\n")
    found = read_lshtc(path, ignore=0)
    assert found.feature_names.tolist() == [1, 7]
    assert found.X.toarray().tolist() == [[0, 1], [0, 0], [1, 2]]
    assert read_lshtc(path).X.shape == (3, 3)


@pytest.mark.parametrize("text", ["1 2\n1 3\n3 4\n3 5\n", "1 2\n1 3 4\n1 3 5\n"])
def test_hierarchies(tmp_path, text):
    rows = put(tmp_path, "rows", "4 1:1\n5 1:1\n")
    found = read_lshtc(rows, put(tmp_path, "cat_hier.txt.gz", text))
    assert found.hierarchy == NUMBERS
    assert read_lshtc(rows, NUMBERS, drop_root=True).hierarchy.roots == (2, 3)
    forest = Hierarchy.from_edges([(3, 4), (3, 5)], nodes=[2, 3])
    assert read_lshtc(rows, forest, drop_root=True).hierarchy is forest
    with pytest.raises(HierarchyError, match="only one node, 4, so it cannot be dropped"):
        read_lshtc(rows, Hierarchy.from_edges([], nodes=[4]), drop_root=True)
    top = put(tmp_path, "top", "1 1:1\n")
    fails(read_lshtc, top, 1, "not in the hierarchy: 1", hierarchy=NUMBERS, drop_root=True)


def test_bad_hierarchies(tmp_path):
    rows = put(tmp_path, "rows", "4 1:1\n")
    with pytest.raises(CycleError, match=r"cycle.txt: the hierarchy has a cycle"):
        read_lshtc(rows, put(tmp_path, "cycle.txt", "1 2\n2 3\n3 2\n"))
    with pytest.raises(FileFormatError, match="cannot be read: No such file"):
        read_lshtc(rows, tmp_path / "absent.txt")
    with pytest.raises(OptionError, match="hierarchy must be"):
        read_lshtc(rows, 3)
    fails(read_lshtc, rows, 1, "a str, but the label is a int", hierarchy=Hierarchy.from_edges([("1", "4")]))


BAD = {
    "4 1:1 x\n": "expected index:value: 'x'",
    "4 1:1 2\n": "expected index:value: '2'",
    "4 1:\n": "feature 1: expected a finite number, not ''",
    "4 1:abc\n": "feature 1: expected a finite number, not 'abc'",
    "4 1:nan\n": "feature 1: expected a finite number, not 'nan'",
    "4 1:-inf\n": "expected a finite number",
    "4 1:1e999\n": "expected a finite number, not '1e999'",
    "4 1:1_0\n": "expected a finite number, not '1_0'",
    "4 1:1:1\n": "expected a finite number, not '1:1'",
    "4 -1:1\n": "must be a whole number ≥ 0: '-1:1'",
    "4 2147483647:1\n": "must be at most 2147483646",
    "4 99999999999999999999999:1\n": "must be at most",
    "4 3:1 3:1\n": "this feature is given twice: '3:1'",
    "4, 1:1\n": "expected a whole number as label, not '1:1'",
    "4,\n": "expected a label: the line ends",
    ",4 1:1\n": "expected a label",
    "x 1:1\n": "expected a whole number as label, not 'x'",
    "4.5 1:1\n": "expected a whole number as label, not '4.5'",
    "99999999999999999999 1:1\n": "expected a whole number as label",
    "\x00\x01 1:1\n": "expected a whole number as label",
    "9 1:1\n": "not in the hierarchy: 9",
}


@READERS
@pytest.mark.parametrize("line", BAD)
def test_bad_lines(tmp_path, read, line):
    good = "4 1:1 2:1\n\n# nothing\n"
    path = put(tmp_path, "file", good + line + "5 2:1\n")
    fails(read, path, 4, BAD[line], hierarchy=NUMBERS)
    found = read(path, hierarchy=NUMBERS, on_error="skip")
    assert found.y.tolist() == [4, 5]
    assert found.X.toarray().tolist() == [[1, 1], [0, 1]]
    assert found.skipped.count == 1
    ((at, reason),) = found.skipped.first
    assert at == 4
    assert BAD[line] in reason
    only = put(tmp_path, "only", line)
    error = fails(read, only, None, "no samples: 1 skipped; line 1: ", hierarchy=NUMBERS, on_error="skip")
    assert BAD[line] in error.problem


def test_order_of_features(tmp_path):
    path = put(tmp_path, "file", "4 2:1 1:5\n4 3:1 2:1 3:2\n4 1:1\n")
    fails(read_svmlight, path, 1, "indices must ascend, but a larger one comes before: '1:5'")
    fails(read_svmlight, path, 2, "this feature is given twice: 3", sort=True)
    fails(read_lshtc, path, 2, "this feature is given twice: 3")
    found = read_lshtc(path, on_error="skip")
    assert found.X.toarray().tolist() == [[5, 1], [1, 0]]
    assert found.skipped.first == ((2, "this feature is given twice: 3"),)


def test_only_the_first_few_are_told(tmp_path):
    path = put(tmp_path, "file", "4 1:1\n" + "x 1:1\n" * 30)
    skipped = read_svmlight(path, on_error="skip").skipped
    assert skipped.count == 30
    assert [line for line, _ in skipped.first] == list(range(2, 12))
    assert str(skipped).startswith("30 skipped; line 2: expected a whole number")
    assert str(skipped).endswith("; ...")


def test_single_precision_has_its_limits(tmp_path):
    path = put(tmp_path, "file", "4 1:1e39 2:1\n")
    fails(read_svmlight, path, 1, "1e+39 is too large for float32", dtype=np.float32)
    assert read_svmlight(path).X.max() == 1e39


def test_number_of_features(tmp_path):
    path = put(tmp_path, "file", "4 1:1\n4 3:1\n")
    assert read_svmlight(path, n_features=5).X.shape == (2, 5)
    assert read_svmlight(path, n_features=5, zero_based=True).X.toarray()[0].tolist() == [0, 1, 0, 0, 0]
    fails(read_svmlight, path, 2, "feature 3 is beyond n_features", n_features=2)
    fails(read_svmlight, path, 2, "feature 3 is beyond n_features", n_features=3, zero_based=True)
    zero = put(tmp_path, "zero", "4 0:1 3:1\n")
    fails(read_svmlight, zero, None, "feature 3 is beyond n_features=3 (counted from 0)", n_features=3)
    fails(read_svmlight, zero, None, "there is a feature 0", zero_based=False)
    assert read_svmlight(put(tmp_path, "bare", "4\n5\n")).X.shape == (2, 0)


@READERS
def test_damage(tmp_path, read, monkeypatch):
    text = "".join(f"{k} " + " ".join(f"{j}:{j * k / 7}" for j in range(1, 30)) + "\n" for k in range(1, 60))
    check_damage(read, tmp_path, text, "file.txt", monkeypatch)


@READERS
def test_a_line_of_ten_megabytes(tmp_path, read):
    long = "4 " + " ".join(f"{j}:{j % 7}" for j in range(1, 1_200_000))
    assert len(long) > 10_000_000
    found = read(put(tmp_path, "file.gz", "5 1:1\n" + long + "\n4 1:1\n"))
    assert found.X.indptr.tolist() == [0, 1, 1_200_000, 1_200_001]
    assert found.X.indices[-2] == found.X.shape[1] - 1


@READERS
def test_a_line_without_end_does_not_fill_the_memory(tmp_path, read, monkeypatch):
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 64)
    monkeypatch.setattr("nhsvm.datasets.files.LONGEST", 1000)
    fails(read, put(tmp_path, "file", "4 1:1\n" + "4 " * 2000), 2, "longer than 1,000 bytes")


@pytest.mark.parametrize("block", [16, 100])
def test_lines_are_counted_over_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", block)
    text = "4 1:1 2:1\n\n" * 20 + "4 1:x\n" + "5 1:1\n" * 20 + "7 1:1\n"
    path = put(tmp_path, "file", text)
    fails(read_svmlight, path, 41, "not 'x'")
    found = read_svmlight(path, hierarchy=NUMBERS, on_error="skip")
    assert [line for line, _ in found.skipped.first] == [41, 62]
    assert found.X.shape == (40, 2)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"on_error": "ignore"}, "on_error must be"),
        ({"dtype": int}, "dtype must be"),
        ({"dtype": "nonsense"}, "dtype must be"),
        ({"label_type": float}, "label_type must be"),
        ({"zero_based": "perhaps"}, "zero_based must be"),
        ({"n_features": 0}, "n_features must be"),
        ({"n_features": 1.5}, "n_features must be"),
        ({"like": 3}, "like must be a Dataset"),
    ],
)
def test_bad_options(options, problem):
    with pytest.raises(OptionError, match=problem):
        read_svmlight("absent", **options)


def test_like_needs_numbered_features(tmp_path):
    from nhsvm.datasets import make_balanced

    with pytest.raises(OptionError, match="numbered features"):
        read_svmlight(put(tmp_path, "f", "4 1:1\n"), like=make_balanced(3, 2, random_state=0))
    with pytest.raises(OptionError, match="expected the path of a file"):
        read_lshtc(3)


def test_gzip_members_one_after_the_other(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"4 1:1\n") + gzip.compress(b"5 1:2\n"))
    assert read_svmlight(path).y.tolist() == [4, 5]
