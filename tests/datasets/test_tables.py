"""CSV, TSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from inspect import Parameter, signature

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.files import NAMES, check_damage, fails, put
from nhsvm import Hierarchy
from nhsvm.datasets import read_csv, read_jsonl, read_parquet
from nhsvm.errors import CycleError, FileFormatError, OptionError

COLUMNS = {
    "title": ["woof", "miaow", "rustle, rustle"],
    "body": ["a\nb", "", 'she said "no"'],
    "kind": ["animal > dog", "animal>cat", "plant > oak"],
    "top": ["animal", "animal", "plant"],
    "low": ["dog", "cat", ""],
    "name": ["dog", "cat", "oak"],
    "size": [1.5, 2.0, None],
    "age": [3, 0, 7],
}


def as_csv(folder, delimiter=","):
    stream = io.StringIO()
    rows = csv.writer(stream, delimiter=delimiter)
    rows.writerow(COLUMNS)
    rows.writerows(zip(*COLUMNS.values(), strict=True))
    return put(folder, "file.csv", stream.getvalue())


def as_jsonl(folder):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    return put(folder, "file.jsonl", "\n".join(map(json.dumps, rows)))


def as_parquet(folder):
    polars.DataFrame(COLUMNS).write_parquet(folder / "file.parquet")
    return folder / "file.parquet"


ALL = pytest.mark.parametrize(
    ("read", "make"),
    [(read_csv, as_csv), (read_jsonl, as_jsonl), (read_parquet, as_parquet)],
    ids=["csv", "json", "pq"],
)
QUALIFIED = Hierarchy.from_paths([("animal", "animal > dog"), ("animal", "animal > cat"), ("plant", "plant > oak")])


@ALL
def test_a_path_column(tmp_path, read, make):
    found = read(make(tmp_path), text="title", path="kind")
    assert found.texts == COLUMNS["title"]
    assert found.y.tolist() == ["animal > dog", "animal > cat", "plant > oak"]
    assert found.hierarchy == QUALIFIED
    assert found.X is None
    short = read(make(tmp_path), text="title", path="kind", qualified=False)
    assert short.y.tolist() == ["dog", "cat", "oak"]
    assert short.hierarchy == NAMES
    given = read(make(tmp_path), text="title", path="kind", qualified=False, hierarchy=NAMES)
    assert given.hierarchy is NAMES


def test_names_of_nodes_take_no_more_than_in_proportion_to_the_file(tmp_path):
    """The name of a node is its whole path, so a chain of n levels has names of n²/2 characters."""
    path = tmp_path / "deep.csv"
    path.write_text("text,kind\nup,a > b\ndeep," + " > ".join(map(str, range(50_000))) + "\n")
    fails(read_csv, path, 3, "a path of 50,000 levels", text="text", path="kind")
    assert read_csv(path, text="text", path="kind", on_error="skip").hierarchy.nodes == ("a", "a > b")
    assert read_csv(path, text="text", path="kind", qualified=False).hierarchy.n_nodes == 50_002


@ALL
def test_level_columns(tmp_path, read, make):
    found = read(make(tmp_path), text=["title", "body"], levels=["top", "low"], separator="/")
    assert found.texts[0] == "woof\na\nb"
    assert found.y.tolist() == ["animal/dog", "animal/cat", "plant"]
    assert found.hierarchy.leaves == ("plant", "animal/dog", "animal/cat")


@ALL
def test_a_label_and_a_hierarchy(tmp_path, read, make):
    tree = put(tmp_path, "tree.tsv", "ROOT\tanimal\nROOT\tplant\nanimal\tdog\nanimal\tcat\nplant\toak\n")
    found = read(make(tmp_path), text="title", label="name", hierarchy=tree, drop_root=True)
    assert found.hierarchy == NAMES
    assert found.y.tolist() == COLUMNS["name"]
    assert read(make(tmp_path), text="title", label="name").hierarchy is None
    assert read(make(tmp_path), text="title", label="name", multilabel=True).y == [["dog"], ["cat"], ["oak"]]


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features(tmp_path, read, make, dtype):
    found = read(make(tmp_path), features=["age", "size"], label="name", dtype=dtype, extra=["low", "top"])
    np.testing.assert_array_equal(found.X, np.array([[3, 1.5], [0, 2], [7, np.nan]], dtype=dtype))
    assert found.X.dtype == dtype
    assert found.feature_names.tolist() == ["age", "size"]
    assert found.extra == {"low": COLUMNS["low"], "top": COLUMNS["top"]}
    assert found.texts is None
    again = read(make(tmp_path), features=["age", "size"], label="name", like=found)
    assert again.feature_names.tolist() == ["age", "size"]
    with pytest.raises(FileFormatError, match="the features are not those of like"):
        read(make(tmp_path), features=["size", "age"], label="name", like=found)


@ALL
def test_without_labels(tmp_path, read, make):
    found = read(make(tmp_path), text="title", label=None)
    assert found.y is None
    assert found.hierarchy is None


@ALL
def test_columns_that_are_not_there(tmp_path, read, make):
    for options in ({"text": "titel"}, {"features": ["age", "weight"]}, {"text": "title", "extra": "split"}):
        with pytest.raises(FileFormatError, match=r"no column '(titel|weight|split)'; there are 'title', 'body'"):
            read(make(tmp_path), **{"label": "name", **options})


@ALL
def test_unknown_labels(tmp_path, read, make):
    h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cats")])
    with pytest.raises(FileFormatError, match=r"not in the hierarchy: 'cat' \(did you mean 'cats'\?\)"):
        read(make(tmp_path), text="title", label="name", hierarchy=h)
    found = read(make(tmp_path), text="title", label="name", hierarchy=h, features="age", on_error="skip")
    assert found.y.tolist() == ["dog"]
    assert found.texts == ["woof"]
    assert found.X.tolist() == [[3]]
    assert found.skipped.count == 2
    assert found.skipped.first[0][1] == "not in the hierarchy: 'cat'"


@ALL
def test_bad_options(tmp_path, read, make):
    path = make(tmp_path)
    for options, problem in [
        ({"text": "title", "label": "name", "path": "kind"}, "give one of label, path and levels"),
        ({"text": "title", "label_type": float}, "label_type must be"),
        ({"text": "title", "separator": " "}, "separators must be more"),
        ({"text": 3}, "iterable|name of a column"),
        ({"text": ["title", "title"]}, "different names"),
        ({"text": "title", "on_error": "x"}, "on_error must be"),
        ({"text": "title", "like": "x"}, "like must be"),
        ({"text": "title", "hierarchy": 5}, "hierarchy must be"),
    ]:
        with pytest.raises((OptionError, TypeError), match=problem):
            read(path, **options)
    if read is not read_jsonl:
        with pytest.raises(OptionError, match="say where the samples are"):
            read(path)


def test_same_name_below_different_parents(tmp_path):
    path = put(tmp_path, "file.tsv", "text\tkind\nx\tbooks > other\ny\ttoys > other\nz\ttoys\n")
    assert read_csv(path, text="text", path="kind").hierarchy.leaves == ("books > other", "toys > other")
    dag = read_csv(path, text="text", path="kind", qualified=False)
    assert dag.hierarchy == Hierarchy.from_edges([("books", "other"), ("toys", "other")])
    assert dag.y.tolist() == ["other", "other", "toys"]
    loop = put(tmp_path, "loop.tsv", "text\tkind\nx\ta > b\ny\tb > a\n")
    with pytest.raises(CycleError, match=r"loop.tsv: the hierarchy has a cycle"):
        read_csv(loop, text="text", path="kind", qualified=False)
    twice = put(tmp_path, "twice.tsv", "text\tkind\nx\ta > a\n")
    fails(read_csv, twice, None, "self-loop", text="text", path="kind", qualified=False)
    rooted = put(tmp_path, "rooted.csv", "text,kind\nx,all > a > b\ny,all > c\n")
    assert read_csv(rooted, text="text", path="kind", drop_root=True).hierarchy.roots == ("all > a", "all > c")


def test_several_labels_in_a_cell(tmp_path):
    path = put(tmp_path, "file.csv", "text,tags,kind\nx,dog|oak,a > b|a\ny,cat,a>c|\nz,,\n")
    found = read_csv(path, text="text", label="tags", label_separator="|", multilabel=True)
    assert found.y == [["dog", "oak"], ["cat"], []]
    fails(read_csv, path, 4, "expected a label", text="text", label="tags", label_separator="|")
    options = {"text": "text", "path": "kind", "label_separator": "|", "on_error": "skip"}
    assert read_csv(path, **options).y == [["a > b", "a"], ["a > c"]]
    assert read_csv(path, **options, drop_implied=True).y.tolist() == ["a > b", "a > c"]
    found = read_csv(path, text="text", label="tags", label_separator="|", multilabel=False, on_error="skip")
    assert found.y.tolist() == ["cat"]
    assert [line for line, _ in found.skipped.first] == [2, 4]


def test_whole_numbers_as_labels(tmp_path):
    path = put(tmp_path, "file.csv", "text,label\nx,3\ny, 4\n")
    assert read_csv(path, text="text", label="label", label_type=int).y.tolist() == [3, 4]
    assert read_csv(path, text="text", label="label").y.tolist() == ["3", "4"]
    bad = put(tmp_path, "bad.csv", "text,label\nx,3\ny,four\n")
    fails(read_csv, bad, 3, "expected a whole number as label in 'label', not 'four'", text="text", label="label",
          label_type=int)  # fmt: skip
    lines = put(tmp_path, "file.jsonl", '{"text": "x", "labels": [3, 4]}\n{"text": "y", "labels": 5}\n')
    assert read_jsonl(lines).y == [[3, 4], [5]]
    assert read_jsonl(lines, label_type=str).y == [["3", "4"], ["5"]]


def test_delimiters_quotes_and_headers(tmp_path):
    tab = put(tmp_path, "file.tsv.gz", 'text\tlabel\nshe "said\tdog\n')
    assert read_csv(tab, text="text", label="label").texts == ['she "said']
    tab = put(tmp_path, "quoted.tsv", 'text\tlabel\n"she ""said"\tdog\n')
    assert read_csv(tab, text="text", label="label", quotes=True).texts == ['she "said']
    semicolon = put(tmp_path, "semi.csv", "text;label\r\na,b;dog\r\n\r\n")
    assert read_csv(semicolon, text="text", label="label", delimiter=";").texts == ["a,b"]
    bare = put(tmp_path, "bare.csv", "woof,dog\n")
    assert read_csv(bare, columns=["t", "l"], text="t", label="l").y.tolist() == ["dog"]
    fails(read_csv, bare, None, "no column 'x'; there are 't', 'l'", columns=["t", "l"], text="x")
    fails(read_csv, bare, None, "there are two columns 't'", columns=["t", "t"], text="t")
    fails(read_csv, put(tmp_path, "two.csv", "a,b,a\n"), 1, "there are two columns 'a'", text="a")
    with pytest.raises(OptionError, match="delimiter must be one character"):
        read_csv(bare, text="t", delimiter="ab")


BAD_CSV = {
    "x\n": "expected 3 cells, not 1",
    "x,dog,1,2\n": "expected 3 cells, not 4",
    'x,"dog"s,1\n': "',' expected after '\"'",
    "x,dog,one\n": "expected a finite number, or nothing, in 'size', not 'one'",
    "x,dog,nan\n": "not 'nan'",
    "x,dog,inf\n": "not 'inf'",
    "x,dog,1e999\n": "not '1e999'",
    "x,dog,1_0\n": "not '1_0'",
    "x,,1\n": "expected a label",
    "x,elk,1\n": "not in the hierarchy: 'elk'",
}


@pytest.mark.parametrize("line", BAD_CSV)
def test_bad_csv(tmp_path, line):
    path = put(tmp_path, "file.csv", 'text,label,size\n"a\nb",dog,1\n' + line + "c,oak,\n")
    options = {"text": "text", "label": "label", "features": "size", "hierarchy": NAMES}
    fails(read_csv, path, 4, BAD_CSV[line], **options)
    found = read_csv(path, **options, on_error="skip")
    assert found.texts == ["a\nb", "c"]
    ((at, reason),) = found.skipped.first
    assert at == 4
    assert BAD_CSV[line] in reason


def test_more_bad_csv(tmp_path):
    options = {"text": "text", "label": "label"}
    fails(read_csv, put(tmp_path, "open.csv", 'text,label\nx,dog\n"y,cat\nz\n'), 3, "unexpected end of data", **options)
    fails(read_csv, put(tmp_path, "head.csv", '"text,label\nx,dog\n'), 1, "unexpected end of data", **options)
    fails(read_csv, put(tmp_path, "only.csv", "text,label\n"), None, "no samples", **options)
    gap = put(tmp_path, "gap.csv", "text,a,b,c\nx,1,,3\n")
    fails(read_csv, gap, 2, "expected a label in 'b', since there is one on a level below", text="text",
          levels=["a", "b", "c"])  # fmt: skip
    hole = put(tmp_path, "hole.csv", "text,label\nx,a > > b\n")
    fails(read_csv, hole, 2, "expected a path such as 'a > b' in 'label', not 'a > > b'", text="text", path="label")
    large = put(tmp_path, "large.csv", "label,size\nx,1e39\n")
    fails(read_csv, large, 2, "too large for float32", features="size", label="label", dtype=np.float32)


BAD_JSON = {
    '{"text": "x", "labels": "dog"\n': "not JSON: Expecting ',' delimiter at character",
    "nonsense\n": "not JSON: Expecting value at character 1",
    '["x", "dog"]\n': 'expected a JSON object, not \'["x", "dog"]\'',
    '{"text": null, "labels": "dog", "v": [1, 2]}\n': "expected text in 'text', not null",
    '{"text": 5, "labels": "dog", "v": [1, 2]}\n': "expected text in 'text', not 5",
    '{"labels": "dog", "v": [1, 2]}\n': "expected text in 'text', not a record without it",
    '{"text": "x", "labels": null, "v": [1, 2]}\n': "expected a label",
    '{"text": "x", "v": [1, 2]}\n': "expected a label",
    '{"text": "x", "labels": 1.5, "v": [1, 2]}\n': "expected a label in 'labels', text or a whole number, not 1.5",
    '{"text": "x", "labels": true, "v": [1, 2]}\n': "text or a whole number, not True",
    '{"text": "x", "labels": ["elk"], "v": [1, 2]}\n': "not in the hierarchy: 'elk'",
    '{"text": "x", "labels": "dog", "v": [1, NaN]}\n': "NaN is no JSON number; a missing value is null",
    '{"text": "x", "labels": "dog", "v": [1, 1e999]}\n': "expected a finite number, or nothing, in 'v'",
    '{"text": "x", "labels": "dog", "v": [1, "2x"]}\n': "expected a finite number, or nothing, in 'v'",
    '{"text": "x", "labels": "dog", "v": [1, {}]}\n': "expected a finite number, or nothing, in 'v'",
    '{"text": "x", "labels": "dog", "v": [1]}\n': "expected a list of 2 numbers in 'v', not [1]",
    '{"text": "x", "labels": "dog", "v": 1}\n': "expected a list of 2 numbers in 'v', not 1",
    '{"text": "x", "labels": "dog"}\n': "no 'v' (null stands for a missing value)",
    "[" * 100_000 + "\n": "not JSON: nested too deeply",
    '{"text": "x", "labels": ' + "1" * 5000 + "}\n": "not JSON: Exceeds the limit",
    '{"text": "x", "labels": "dog", "v": [1, ' + "1" * 400 + "]}\n": "expected a finite number, or nothing, in 'v'",
    "\x00\x01\n": "not JSON",
}


@pytest.mark.parametrize("line", BAD_JSON, ids=range(len(BAD_JSON)))
def test_bad_json(tmp_path, line):
    good = '{"text": "a", "labels": ["dog"], "v": [1, null]}\n\n'
    path = put(tmp_path, "file.jsonl", good + line + '{"text": "b", "labels": "oak", "v": [3, 4]}')
    options = {"text": "text", "features": "v", "hierarchy": NAMES}
    fails(read_jsonl, path, 3, BAD_JSON[line], **options)
    found = read_jsonl(path, **options, on_error="skip")
    assert found.y.tolist() == ["dog", "oak"]
    np.testing.assert_array_equal(found.X, [[1, np.nan], [3, 4]])
    assert found.feature_names.tolist() == ["v[0]", "v[1]"]
    ((at, reason),) = found.skipped.first
    assert at == 3
    assert BAD_JSON[line] in reason


def test_paths_as_lists_of_names(tmp_path):
    lines = ['{"text": "x", "path": [["a", "b"], ["c"]]}', '{"text": "y", "path": ["a > b"]}']
    found = read_jsonl(put(tmp_path, "file.jsonl", "\n".join(lines)), path="path")
    assert found.y == [["a > b", "c"], ["a > b"]]


@pytest.mark.parametrize(("read", "make"), [(read_csv, as_csv), (read_jsonl, as_jsonl)])
def test_text_must_decode(tmp_path, read, make):
    raw = make(tmp_path).read_bytes().replace(b"miaow", b"mia\xff")
    path = put(tmp_path, "latin.csv", raw)
    line = raw[: raw.index(b"\xff")].count(b"\n") + 1
    options = {"text": "title", "label": "name"}
    error = fails(read, path, line, "not utf-8 text: invalid start byte at byte", **options)
    assert error.problem.endswith("; say encoding=... if it is another")
    assert read(path, **options, encoding="latin-1").texts[1] == "mia\xff"
    skipped = read(path, **options, on_error="skip")
    assert len(skipped) == 2
    assert skipped.skipped.first[0][0] == line
    bom = put(tmp_path, "bom.csv", b"\xef\xbb\xbf" + make(tmp_path).read_bytes())
    assert read(bom, **options).texts == COLUMNS["title"]
    assert read(bom, **options, encoding="utf-8-sig").texts == COLUMNS["title"]


@pytest.mark.parametrize(("read", "make"), [(read_csv, as_csv), (read_jsonl, as_jsonl)])
def test_damage(tmp_path, read, make, monkeypatch):
    good = make(tmp_path).read_text()
    check_damage(read, tmp_path, good, "file.csv", monkeypatch, text="title", label="name")


def test_damaged_parquet(tmp_path):
    path = as_parquet(tmp_path)
    options = {"text": "title", "label": "name"}
    for bad in (b"", b"junk" * 100, path.read_bytes()[:-20], path.read_bytes()[:200]):
        fails(read_parquet, put(tmp_path, "bad.parquet", bad), None, "not a whole Parquet file", **options)
    fails(read_parquet, tmp_path, None, "cannot be read: Is a directory", **options)
    fails(read_parquet, tmp_path / "absent", None, "cannot be read: No such file", **options)


def test_parquet_with_any_byte_changed(tmp_path):
    """Where polars panics, it raises what is no Exception."""
    path = tmp_path / "file.parquet"
    polars.DataFrame({"text": ["a", "bb", "a"], "labels": [["dog"], [], ["cat", "oak"]]}).write_parquet(
        path, compression="uncompressed", statistics=False
    )
    raw, read = path.read_bytes(), 0
    for k in range(len(raw)):
        path.write_bytes(raw[:k] + bytes([raw[k] ^ 0x10]) + raw[k + 1 :])
        try:
            read += read_parquet(path, text="text", label="labels", multilabel=True).n_samples == 3
        except FileFormatError as error:
            assert error.path == str(path)  # noqa: PT017
    assert 0 < read < len(raw)


def test_rows_of_parquet(tmp_path, monkeypatch):
    import nhsvm.datasets.table_files as module

    monkeypatch.setattr(module, "BATCH", 2)
    path = tmp_path / "file.parquet"
    columns = {
        "text": ["a", None, "c", "d", "e"],
        "labels": [["dog"], ["dog"], ["cat", "oak"], [], ["elk"]],
        "v": [[1.0, 2.0], [1.0, 2.0], [3.0, float("nan")], [1.0, 2.0], [float("inf"), 2.0]],
    }
    polars.DataFrame(columns).write_parquet(path)
    options = {"text": "text", "label": "labels", "features": "v", "hierarchy": NAMES}
    fails(read_parquet, path, None, "row 2: expected text in 'text', not null", **options)
    found = read_parquet(path, **options, on_error="skip")
    assert found.y == [["dog"], ["cat", "oak"]]
    np.testing.assert_array_equal(found.X, [[1, 2], [3, np.nan]])
    assert [row for row, _ in found.skipped.first] == [2, 4, 5]
    assert "expected a finite number" in found.skipped.first[2][1]


def test_parquet_needs_polars(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'nhsvm\[tables\]'"):
        read_parquet("file", text="text")


def test_a_line_of_ten_megabytes(tmp_path):
    long, before = "word " * 2_100_000, csv.field_size_limit()
    table = put(tmp_path, "file.csv", f"text,label\n{long},dog\nb,cat\n")
    assert read_csv(table, text="text", label="label").texts == [long, "b"]
    assert csv.field_size_limit() == before
    lines = put(tmp_path, "file.jsonl", json.dumps({"text": long, "labels": "dog"}) + "\n")
    assert read_jsonl(lines).texts == [long]


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("nhsvm.datasets.files.LONGEST", 1000)
    path = put(tmp_path, "file.jsonl", '{"text": "a", "labels": "b"}\n' + "x" * 2000)
    fails(read_jsonl, path, 2, "longer than 1,000 bytes")


word = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)


@given(
    st.lists(
        st.tuples(word, st.sampled_from(["dog", "cat"]), st.floats(allow_nan=False, allow_infinity=False)), min_size=1
    )
)
def test_what_was_written_is_read(tmp_path_factory, rows):
    """Any text, quoted or over several lines."""
    folder = tmp_path_factory.mktemp("tables")
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["text", "label", "x"])
    writer.writerows((text, label, repr(x)) for text, label, x in rows)
    lines = [json.dumps({"text": text, "labels": label, "x": x}, ensure_ascii=False) for text, label, x in rows]
    for found in (
        read_csv(put(folder, "t.csv", stream.getvalue()), text="text", label="label", features="x"),
        read_jsonl(put(folder, "t.jsonl", "\n".join(lines)), text="text", features="x"),
    ):
        assert found.texts == [text for text, _, _ in rows]
        assert found.y.tolist() == [label for _, label, _ in rows]
        assert found.X[:, 0].tolist() == [x for _, _, x in rows]


@pytest.mark.parametrize(
    ("read", "label", "label_type", "own"),
    [
        (read_csv, None, str, {"encoding", "columns", "delimiter", "quotes"}),
        (read_jsonl, "labels", None, {"encoding"}),
        (read_parquet, None, None, set()),
    ],
)
def test_every_option_is_in_the_signature_and_in_the_documentation(read, label, label_type, own):
    file, *options = signature(read).parameters.values()
    defaults = {option.name: option.default for option in options}
    assert file.name == "file"
    assert {option.kind for option in options} == {Parameter.KEYWORD_ONLY}
    assert (defaults["label"], defaults["label_type"], defaults["on_error"]) == (label, label_type, "raise")
    assert own | {"text", "features", "drop_implied", "like"} < defaults.keys()
    assert defaults.keys() & {"encoding", "columns", "delimiter", "quotes"} == own
    parameters = read.__doc__.partition("Parameters\n")[2].partition("Returns\n")[0]
    assert re.findall(r"^(\w+) : .", parameters, re.MULTILINE) == ["file", *defaults]
    assert "{options}" not in read.__doc__


@ALL
def test_options_that_there_are_not(tmp_path, read, make):
    with pytest.raises(TypeError, match=rf"{read.__name__}\(\) got an unexpected keyword argument 'txt'"):
        read(make(tmp_path), txt="title")
