"""The ARFF dialect of hierarchical multi-label data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.files import check_damage, fails, put
from nhsvm import Hierarchy
from nhsvm.datasets import read_hmc_arff
from nhsvm.errors import CycleError, OptionError
from reference.rows import dense_rows

TREE = "@ATTRIBUTE class hierarchical 1,1/1,1/2,2,2/1,2/1/1\n"
DAG = "@attribute class hierarchical root/a,root/b,a/c,b/c,c/d,b/e\n"
HEAD = """@RELATION 'x y'

@ATTRIBUTE size  numeric
@attribute 'the kind' {red, 'deep blue',"x"}
@ATTRIBUTE z REAL
"""


def file_of(folder, rows, classes=TREE, head=HEAD, name="file.arff"):
    return put(folder, name, head + classes + "@DATA\n" + rows)


def test_a_tree(tmp_path):
    rows = "1,red,-2.5,1/1@2/1\n?,'deep blue',1e3,2/1/1\n% remark\n\n.5, ? ,0, 1/2 \n"
    found = read_hmc_arff(file_of(tmp_path, rows))
    assert found.feature_names.tolist() == ["size", "the kind=red", "the kind=deep blue", "the kind=x", "z"]
    nan = math.nan
    want = [[1, 1, 0, 0, -2.5], [nan, 0, 1, 0, 1000], [0.5, nan, nan, nan, 0]]
    np.testing.assert_array_equal(found.X, want)
    assert found.y == [["1/1", "2/1"], ["2/1/1"], ["1/2"]]
    edges = [("1", "1/1"), ("1", "1/2"), ("2", "2/1"), ("2/1", "2/1/1")]
    assert found.hierarchy == Hierarchy.from_edges(edges)


def test_a_dag(tmp_path):
    path = file_of(tmp_path, "1,red,0,d@e\n1,red,0,c\n1,red,0,e@b@root\n", DAG)
    edges = [("a", "c"), ("b", "c"), ("c", "d"), ("b", "e")]
    found = read_hmc_arff(path)
    assert found.hierarchy == Hierarchy.from_edges(edges)
    assert not found.hierarchy.is_tree
    assert found.y == [["d", "e"], ["c"], ["e"]]
    kept = read_hmc_arff(path, drop_root=False)
    assert kept.hierarchy.roots == ("root",)
    assert kept.y == found.y
    assert read_hmc_arff(path, drop_implied=False).y[2] == ["e", "b"]
    assert read_hmc_arff(path, drop_implied=False, drop_root=False).y[2] == ["e", "b", "root"]
    fails(read_hmc_arff, file_of(tmp_path, "1,red,0,root\n", DAG), 8, "expected a label")


def test_paths_or_pairs(tmp_path):
    shallow = file_of(tmp_path, "1,red,0,a/b\n", "@ATTRIBUTE class hierarchical a/b,a/c\n")
    assert read_hmc_arff(shallow).hierarchy == Hierarchy.from_edges([("a", "a/b"), ("a", "a/c")])
    fails(read_hmc_arff, shallow, 8, "not in the hierarchy: 'a/b'", classes="pairs")
    fails(read_hmc_arff, file_of(tmp_path, "1,red,0,1\n"), 6, "expected parent/child pairs, not '1'", classes="pairs")
    with pytest.raises(OptionError, match="classes must be"):
        read_hmc_arff(shallow, classes="tree")


def test_one_label_each(tmp_path):
    path = file_of(tmp_path, "1,red,0,1@1/1\n1,red,0,2/1/1@2/1@2\n")
    assert read_hmc_arff(path).y.tolist() == ["1/1", "2/1/1"]
    assert read_hmc_arff(path, multilabel=True).y == [["1/1"], ["2/1/1"]]
    assert read_hmc_arff(path, drop_implied=False).y == [["1", "1/1"], ["2/1/1", "2/1", "2"]]
    fails(read_hmc_arff, path, 8, "expected one label, not 2", drop_implied=False, multilabel=False)
    empty = file_of(tmp_path, "1,red,0,?\n1,red,0,1\n")
    fails(read_hmc_arff, empty, 8, "expected a label (multilabel=True allows for none)")
    assert read_hmc_arff(empty, multilabel=True).y == [[], ["1"]]


def test_files_that_belong_together(tmp_path):
    train = read_hmc_arff(file_of(tmp_path, "1,red,0,1@2\n"))
    test = read_hmc_arff(file_of(tmp_path, "1,red,0,1\n", name="test"), like=train)
    assert test.y == [["1"]]
    assert test.hierarchy is train.hierarchy
    other = file_of(tmp_path, "1,red,0,1\n", TREE.replace("2/1/1", "2/2"), name="other")
    fails(read_hmc_arff, other, 6, "the hierarchy is not that of like", like=train)
    other = file_of(tmp_path, "1,red,0,1\n", head=HEAD.replace("red", "green"), name="green")
    fails(read_hmc_arff, other, None, "'the kind=green' in place of 'the kind=red'", like=train)
    other = file_of(tmp_path, "1,red,1\n", head=HEAD.replace("@ATTRIBUTE z REAL\n", ""), name="fewer")
    fails(read_hmc_arff, other, None, "more, or fewer, of them", like=train)


cell = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers(-99, 99).map(str) | st.just("?")
kind = st.sampled_from(["red", "x", "?"])
padded = st.sampled_from(["{}", " {}", "{} ", "\t{}"])


@given(
    st.lists(st.tuples(cell, kind, cell, st.sampled_from(["1", "2/1@1/2"]), padded), min_size=1, max_size=12),
    st.sampled_from([1, 40, 1 << 20]),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n%x\n"]),
)
def test_rows_are_what_the_twin_reads(tmp_path_factory, rows, block, end):
    lines = [",".join(pad.format(value) for value in row) for *row, pad in rows]
    path = file_of(tmp_path_factory.mktemp("rows"), end.join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nhsvm.datasets.files.BLOCK", block)
        found = read_hmc_arff(path, multilabel=True)
    cells, classes = dense_rows(end.join(lines), [None, ["red", "deep blue", "x"], None])
    np.testing.assert_array_equal(found.X[:, [0, 4]], np.array(cells)[:, [0, 2]])
    codes = np.where(np.isnan(found.X[:, 1]), np.nan, found.X[:, 1:4].argmax(axis=1))
    np.testing.assert_array_equal(codes, np.array(cells)[:, 1])
    assert found.y == [c.split("@") for c in classes]


BAD = {
    "1,red,0\n": "expected 4 cells between commas, but the line ends too early",
    "1,red,0,1,1\n": "expected 4 cells between commas, but there are more",
    "1,red,x,1\n": "attribute 'z': expected a finite number or ?, not 'x'",
    "nan,red,0,1\n": "attribute 'size': expected a finite number or ?, not 'nan'",
    "1,red,-Inf,1\n": "attribute 'z': expected a finite number or ?",
    "1e999,red,0,1\n": "attribute 'size': expected a finite number",
    ",red,0,1\n": "attribute 'size': expected a finite number or ?, not ''",
    "1 2,red,0,1\n": "not '1 2'",
    "??,red,0,1\n": "not '??'",
    "1,green,0,1\n": "attribute 'the kind': expected one of 'red, deep blue, x' or ?, not 'green'",
    "1,'red,0,1\n": "a quote is not closed",
    "{0 1, 2 5}\n": "sparse rows in braces are not read",
    "1,red,0,1/9\n": "not in the hierarchy: '1/9'",
    "1,red,0,1@@2\n": "not in the hierarchy: ''",
    "\x00\x01\x02\n": "the line ends too early",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_lines(tmp_path, line):
    path = file_of(tmp_path, "1,red,0,1\n\n" + line + "2,x,0,2/1\n")
    fails(read_hmc_arff, path, 10, BAD[line])
    found = read_hmc_arff(path, on_error="skip")
    assert found.y.tolist() == ["1", "2/1"]
    assert found.X[:, 0].tolist() == [1, 2]
    ((at, reason),) = found.skipped.first
    assert (found.skipped.count, at) == (1, 10)
    assert BAD[line] in reason


def test_text_must_decode(tmp_path):
    text = (HEAD + TREE + "@DATA\n1,red,0,1\n1,red,0,\u00e9\n").replace("2/1,", "2/1,\u00e9,")
    latin = put(tmp_path, "latin", text.encode("latin-1"))
    fails(read_hmc_arff, latin, 6, "not utf-8 text")
    assert read_hmc_arff(latin, encoding="latin-1").y.tolist() == ["1", "\u00e9"]
    assert read_hmc_arff(put(tmp_path, "bom", "\ufeff" + text)).y.tolist() == ["1", "\u00e9"]
    row = put(tmp_path, "row", (HEAD + TREE + "@DATA\n1,red,0,1\n").encode() + b"1,red,0,\xff\n")
    fails(read_hmc_arff, row, 9, "not utf-8 text")
    with pytest.raises(OptionError, match="cannot be read a line at a time"):
        read_hmc_arff(latin, encoding="utf-16")
    with pytest.raises(OptionError, match="unknown encoding"):
        read_hmc_arff(latin, encoding="klingon")


HEADERS = {
    "@ATTRIBUTE class hierarchical 1,,2\n": (6, "expected classes such as a/b between commas, not ''"),
    "@ATTRIBUTE class hierarchical 1,1//2\n": (6, "not '1//2'"),
    "@ATTRIBUTE class {1,2}\n": (None, "no class attribute"),
    "@ATTRIBUTE name string\n" + TREE: (6, "attribute 'name': expected numeric, real, integer"),
    "@ATTRIBUTE k {a,a}\n" + TREE: (6, "attribute 'k': expected different categories"),
    "@ATTRIBUTE k {}\n" + TREE: (6, "expected different categories"),
    "@ATTRIBUTE k {a,}\n" + TREE: (6, "expected different categories"),
    "@ATTRIBUTE lonely\n" + TREE: (6, "expected @RELATION, @ATTRIBUTE name type or @DATA, not '@ATTRIBUTE lonely'"),
    TREE + "@ATTRIBUTE more numeric\n": (7, "the hierarchical class attribute must be the last one"),
    "@ATTRIBUTE class hierarchical root/a,a/a\n": (6, "self-loop"),
}


@pytest.mark.parametrize("classes", HEADERS)
def test_bad_headers(tmp_path, classes):
    line, problem = HEADERS[classes]
    fails(read_hmc_arff, file_of(tmp_path, "1,red,0,1\n", classes), line, problem)
    fails(read_hmc_arff, file_of(tmp_path, "1,red,0,1\n", classes), line, problem, on_error="skip")


def test_more_bad_files(tmp_path):
    with pytest.raises(CycleError, match=r"file.arff: the hierarchy has a cycle"):
        read_hmc_arff(file_of(tmp_path, "", "@ATTRIBUTE class hierarchical root/a,a/b,b/a\n"))
    fails(read_hmc_arff, put(tmp_path, "header", HEAD + TREE), None, "no @DATA")
    fails(read_hmc_arff, file_of(tmp_path, ""), None, "no samples: the file is empty")
    fails(read_hmc_arff, file_of(tmp_path, "1e39,red,0,1\n"), 8, "too large for float32", dtype=np.float32)
    assert read_hmc_arff(file_of(tmp_path, "1,red,?,1\n"), dtype=np.float32).X.dtype == np.float32
    fails(read_hmc_arff, file_of(tmp_path, "x\n"), None, "no samples: 1 skipped; line 8: ", on_error="skip")


def test_a_file_without_features(tmp_path):
    found = read_hmc_arff(file_of(tmp_path, "1\n2/1\n", head="@RELATION bare\n"))
    assert found.X.shape == (2, 0)
    assert found.y.tolist() == ["1", "2/1"]


def test_damage(tmp_path, monkeypatch):
    rows = "".join(f"{k},red,{k / 7},2/1\n" for k in range(200))
    check_damage(read_hmc_arff, tmp_path, HEAD + TREE + "@DATA\n" + rows, "file.arff", monkeypatch)


def test_a_line_of_ten_megabytes(tmp_path):
    head = "@RELATION wide\n" + "".join(f"@ATTRIBUTE a{k} numeric\n" for k in range(3)) + TREE
    path = file_of(tmp_path, "1,2,3,1\n" + "1" * 10_000_000 + ",2,3,1\n", head=head, classes="")
    fails(read_hmc_arff, path, 8, "attribute 'a0': expected a finite number or ?")
