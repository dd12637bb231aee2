"""LSHTC and edge tables, plain and gzipped, whole and damaged."""

from __future__ import annotations

import gzip

import pytest

from nhsvm import Hierarchy
from nhsvm.errors import CycleError, FileFormatError, OptionError

NUMBERS = Hierarchy.from_edges([(1, 2), (1, 3), (3, 4), (3, 5)])
NAMES = Hierarchy.from_edges([("animal", "dog"), ("animal", "wild cat"), ("plant", "oak")])
TSV = "animal\tdog\nanimal\twild cat\nplant\toak\n"
CSV = TSV.replace("\t", ",")
PAIRS = "1 2\n1 3\n3 4\n3 5\n"
PATHS = "1 2\n1 3 4\n1 3 5\n"


@pytest.fixture
def put(tmp_path):
    """Write bytes or text under a name, gzipped if the name says so."""

    def put(name, content):
        raw = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(raw) if name.lower().endswith(".gz") else raw)
        return path

    return put


def fails(path, line, problem, **options):
    """Reading fails with exactly this place and problem."""
    with pytest.raises(FileFormatError) as caught:
        Hierarchy.read(path, **options)
    error = caught.value
    assert (error.path, error.line) == (str(path), line)
    where = str(path) if line is None else f"{path}:{line}"
    assert str(error) == f"{where}: {problem}"


FORMS = {
    "cat_hier.txt": (PATHS, NUMBERS),
    "pairs.txt": (PAIRS, NUMBERS),
    "edges.tsv": (TSV, NAMES),
    "edges.tab": (TSV, NAMES),
    "edges.txt": (TSV, NAMES),
    "edges.csv": (CSV, NAMES),
    "EDGES.CSV": (CSV, NAMES),
    "edges.v2.csv": (CSV, NAMES),
}


@pytest.mark.parametrize("ending", ["", ".gz", ".GZ"])
@pytest.mark.parametrize("name", FORMS)
def test_every_format(put, name, ending):
    text, want = FORMS[name]
    assert Hierarchy.read(put(name + ending, text)) == want
    assert Hierarchy.read(str(put(name + ending, text))) == want


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\n" + text.replace("\n", "\n\n  \n") + "\n",
        lambda text: text.rstrip("\n"),
    ],
    ids=["byte order mark", "CRLF", "CR", "blank lines", "no last newline"],
)
@pytest.mark.parametrize("name", ["cat_hier.txt", "pairs.txt", "edges.tsv", "edges.csv", "edges.csv.gz"])
def test_the_ways_of_text_files(put, name, change):
    text, want = FORMS[name.removesuffix(".gz")]
    assert Hierarchy.read(put(name, change(text))) == want


@pytest.mark.parametrize(("name", "format"), [("a.dat", "tsv"), ("a.json", "tsv"), ("a", "tsv"), ("a.gz", "tsv")])
def test_a_given_format_wins_over_the_ending(put, name, format):
    assert Hierarchy.read(put(name, TSV), format=format) == NAMES


@pytest.mark.parametrize("name", ["edges.xml", "edges", "edges.gz", "edges.csv.bak"])
def test_an_unknown_ending(put, name):
    ending = {"edges.xml": ".xml", "edges.csv.bak": ".bak"}.get(name, "")
    problem = (
        f"cannot tell the format from the ending {ending!r}; it must be one of .txt, .tsv, .tab, .csv, .json "
        "(.gz after it or not), or in Python pass format=, one of lshtc, tsv, csv, json"
    )
    fails(put(name, TSV), None, problem)


def test_options_out_of_range(put):
    path = put("a.csv", CSV)
    with pytest.raises(OptionError, match=r"format must be one of \['auto', .*'json'\], not 'xml'"):
        Hierarchy.read(path, format="xml")
    with pytest.raises(OptionError, match=r"label_type must be int, str or None, not <class 'float'>"):
        Hierarchy.read(path, label_type=float)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere"])
def test_a_missing_file_is_an_ordinary_os_error(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=name):
        Hierarchy.read(tmp_path / name)


# -- labels ------------------------------------------------------------------------------------------------------------


def test_label_types(put):
    assert Hierarchy.read(put("a.txt", PAIRS), label_type=str).nodes == ("1", "2", "3", "4", "5")
    assert Hierarchy.read(put("a.csv", "1,2\n")).nodes == ("1", "2")
    assert Hierarchy.read(put("b.csv", "1,+2\n-3, 4\n"), label_type=int).nodes == (1, -3, 2, 4)
    assert Hierarchy.read(put("c.txt", "top mid low\n"), label_type=str).nodes == ("top", "mid", "low")


@pytest.mark.parametrize("bad", ["x", "1.5", "1_000", "+-3", "²", "٣", "0x1"])
def test_what_is_no_whole_number(put, bad):
    fails(put("a.txt", f"1 2\n\n3 {bad}\n"), 3, f"{bad!r} is not a whole number (label_type=str reads names)")


def test_a_number_of_thousands_of_digits(put):
    with pytest.raises(FileFormatError, match=r":3: '9+ … 9+' is not a whole number \(label_type=str reads names\)$"):
        Hierarchy.read(put("a.txt", f"1 2\n\n3 {'9' * 5000}\n"))


def test_blanks_around_a_cell_do_not_make_another_label(put):
    assert Hierarchy.read(put("a.csv", "animal, dog\nanimal ,wild cat\n plant,oak \n")) == NAMES
    assert Hierarchy.read(put("a.tsv", TSV.replace("\t", " \t "))) == NAMES


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["parent,child", "Parent, Child", '"source","target"', "FROM,TO"])
def test_headers(put, header):
    assert Hierarchy.read(put("a.csv", f"\n{header}\n{CSV}")) == NAMES
    assert Hierarchy.read(put("a.tsv", "parent\tchild\n" + TSV)) == NAMES


def test_a_header_tells_the_order_of_the_columns(put):
    assert Hierarchy.read(put("a.csv", "child,parent\ndog,animal\nwild cat,animal\noak,plant\n")) == NAMES


def test_only_the_first_line_is_a_header(put):
    assert Hierarchy.read(put("a.csv", "a,b\nparent,child\n")).roots == ("a", "parent")


def test_quoted_cells(put):
    h = Hierarchy.read(put("a.csv", '"a, b","say ""x"""\n"two\nlines",c\n'))
    assert list(h.edges()) == [("a, b", 'say "x"'), ("two\nlines", "c")]


def test_quotes_in_a_tsv_are_plain_characters(put):
    assert Hierarchy.read(put("a.tsv", '"a\t5" disk\n')).nodes == ('"a', '5" disk')


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("a.csv", "a,b\n\nc\n", 3, "expected two cells, parent and child, not ['c']"),
        ("a.csv", "a,b,c\n", 1, "expected two cells, parent and child, not ['a', 'b', 'c']"),
        ("a.csv", "a,b\r\na,\r\n", 2, "expected two cells, parent and child, not ['a', '']"),
        ("a.csv", "parent,child\n ,b\n", 2, "expected two cells, parent and child, not [' ', 'b']"),
        ("a.csv", '"x\ny",b\n"p\nq"\n', 3, "expected two cells, parent and child, not ['p\\nq']"),
        ("a.tsv", "a\tb\na b\n", 2, "expected two cells, parent and child, not ['a b']"),
        ("a.csv", 'a,"b"c\n', 1, "',' expected after '\"'"),
        ("a.csv", 'a,b\nc,"d\ne,f\n', 2, "unexpected end of data"),
        ("a.csv", "a,b\n\nc,c\n", 3, "'c' is given as its own parent (self-loop)"),
        (
            "a.tsv",
            "parent\tchild\na\tb\n\na\tb\n",
            4,
            "'a' -> 'b' is a duplicate; allow_duplicates=True merges repeated edges",
        ),
        ("a.csv", "", None, "an empty hierarchy: the file names no node"),
        ("a.csv", "parent,child\n", None, "an empty hierarchy: the file names no node"),
        ("a.txt", "\n \n", None, "an empty hierarchy: the file names no node"),
        ("a.txt", "1 2\n3 3\n", 2, "3 is given as its own parent (self-loop)"),
        ("a.txt", "1 2\n1 2\n", 2, "1 -> 2 is a duplicate; allow_duplicates=True merges repeated edges"),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_bad_lines(put, name, text, line, problem, ending):
    fails(put(name + ending, text), line, problem)


@pytest.mark.parametrize(
    ("text", "line", "other", "problem"),
    [
        ("1 2 3\n\n1 2 3\n", 3, 1, "(1, 2, 3) is a duplicate; allow_duplicates=True accepts repeated paths"),
        ("1 2\n1 2 1\n", 2, 2, "(1, 2, 1) goes through the same node twice"),
        ("1 2\n2 3\n4\n", 2, 3, "contradictory paths: this one starts at 2, another has it below 1"),
    ],
)
def test_bad_lshtc_paths(put, text, line, other, problem):
    why = f" (read as root-to-leaf paths, since line {other} does not have two labels)"
    fails(put("cat_hier.txt", text), line, problem + why)


def test_duplicate_lines_can_be_merged(put):
    assert Hierarchy.read(put("a.csv", CSV + CSV), allow_duplicates=True) == NAMES
    assert Hierarchy.read(put("pairs.txt", PAIRS + PAIRS), allow_duplicates=True) == NUMBERS
    assert Hierarchy.read(put("paths.txt", PATHS + PATHS), allow_duplicates=True) == NUMBERS


def test_a_cycle_in_a_file(put):
    with pytest.raises(CycleError) as caught:
        Hierarchy.read(put("a.csv", "a,b\nb,c\nc,b\n"))
    assert set(caught.value.cycle) == {"b", "c"}


# -- damaged files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.json", "a.csv.gz"])
def test_text_that_is_not_utf8(put, name):
    fails(put(name, b"a,b\n\nc,caf\xe9\n"), 3, "not UTF-8 text: invalid continuation byte")


def test_utf16_is_not_utf8(put):
    fails(put("a.csv", CSV.encode("utf-16")), 1, "not UTF-8 text: invalid start byte")


def test_a_bad_byte_far_into_a_file(put):
    lines = b"".join(b"r,%d\n" % i for i in range(20_000))
    fails(put("a.csv", lines + b"r,\xff\n"), 20_001, "not UTF-8 text: invalid start byte")


def _damaged(raw: bytes, how: str) -> bytes:
    packed = bytearray(gzip.compress(raw, mtime=0))
    match how:
        case "cut short":
            return bytes(packed[: len(packed) // 2])
        case "not gzip":
            return raw
        case "wrong checksum":
            packed[-8] ^= 0xFF
        case "bad block":
            packed[10] = 0xFF
    return bytes(packed)


@pytest.mark.parametrize("how", ["cut short", "not gzip", "wrong checksum", "bad block"])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.txt.gz", "a.json.gz"])
def test_damaged_gzip(tmp_path, name, how):
    path = tmp_path / name
    rows = b"".join(b"1 %d\n" % i for i in range(2, 3000))
    path.write_bytes(_damaged(rows.replace(b" ", b",") if ".csv" in name else rows, how))
    with pytest.raises(FileFormatError) as caught:
        Hierarchy.read(path)
    assert str(caught.value).startswith(f"{path}: not a whole gzip file: ")
    assert caught.value.line is None
