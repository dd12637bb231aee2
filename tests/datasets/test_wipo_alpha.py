"""WIPO-alpha: XML files of patents."""

import pytest

from datasets.files import fails, put
from nhsvm import Hierarchy
from nhsvm.datasets import read_wipo_alpha
from nhsvm.errors import FileFormatError, OptionError

RECORD = """<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE record SYSTEM "../../../ipctraining.dtd">
<record cy="WO" an="US9912345" pn="WO003456720000615" dnum="0034567" kind="A1">
<ipcs ed="7" mc="{symbol}"><ipc ic="B60R02116"></ipc></ipcs>
<pas><pa>SOME COMPANY</pa></pas>
<tis><ti xml:lang="EN">A plough</ti></tis>
<abs><ab xml:lang="EN">It ploughs,
 &eacute;l\xe9gantly.</ab></abs>
<cls><cl xml:lang="EN">1. A plough that <i>ploughs</i>.</cl></cls>
<txts><txt xml:lang="EN">The field of fields.</txt></txts>
</record>
"""


@pytest.fixture
def folder(tmp_path):
    for name, symbol in (("a/01/1.xml", "A01B00100"), ("a/2.XML", "A01C00300"), ("b/3.xml.gz", "b60r 21/16")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        put(tmp_path, name, RECORD.format(symbol=symbol).encode("iso-8859-1"))
    put(tmp_path, "readme.txt", "no patent")
    return tmp_path


def test_texts_symbols_and_hierarchy(folder):
    data = read_wipo_alpha(folder)
    assert data.y.tolist() == ["A01B", "A01C", "B60R"]
    assert data.texts == ["A plough It ploughs, élégantly. 1. A plough that ploughs ."] * 3
    assert data.hierarchy == Hierarchy.from_paths([("A", "A01", "A01B"), ("A", "A01", "A01C"), ("B", "B60", "B60R")])


def test_parts_and_levels(folder):
    data = read_wipo_alpha(folder, parts=["description"], level="class")
    assert data.texts[0] == "The field of fields."
    assert data.y.tolist() == ["A01", "A01", "B60"]
    assert data.hierarchy.n_nodes == 4
    assert read_wipo_alpha(folder, level="section").hierarchy.leaves == ("A", "B")


def test_a_test_part_has_the_hierarchy_of_training(folder):
    known = Hierarchy.from_paths([("A", "A01", "A01B"), ("A", "A01", "A01C")])
    with pytest.raises(FileFormatError, match=r"3\.xml\.gz: its main symbol 'B60R' is not in the hierarchy"):
        read_wipo_alpha(folder, hierarchy=known)
    data = read_wipo_alpha(folder, hierarchy=known, on_error="skip")
    assert (data.n_samples, data.skipped.count, data.hierarchy) == (2, 1, known)


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("<record>", 1, "not XML"),
        ("", 1, "not XML"),
        ("<record>\n&nonsense;</record>", 2, "not XML"),
        ("<record></record>", None, "the main symbol of the record, not 'None'"),
        ('<?xml version="1.0" encoding="iso-885"?><record/>', 1, "not XML: unknown encoding: iso-885"),
        ('<?xml version="1.0" encoding="shift_jis"?><record/>', 1, "not XML: multi-byte encodings"),
        ('<record><ipcs mc="A01"/></record>', None, "not 'A01'"),
        ('<record><ipcs mc="12345"/></record>', None, "not '12345'"),
        ('<record><ipcs mc="ABCD"/></record>', None, "not 'ABCD'"),
    ],
)
def test_bad_records(tmp_path, content, line, problem):
    file = put(tmp_path, "1.xml", content)
    with pytest.raises(FileFormatError) as caught:
        read_wipo_alpha(tmp_path)
    assert (caught.value.path, caught.value.line) == (str(file), line)
    assert problem in caught.value.problem
    with pytest.raises(FileFormatError, match="no samples: 1 skipped"):
        read_wipo_alpha(tmp_path, on_error="skip")


def test_bad_options(folder, tmp_path):
    for options in ({"parts": []}, {"parts": "title"}, {"parts": ["titel"]}, {"level": "group"}, {"level": 3}):
        with pytest.raises(OptionError, match=next(iter(options))):
            read_wipo_alpha(folder, **options)
    fails(read_wipo_alpha, tmp_path / "nothing", None, "expected a folder")
    (tmp_path / "empty").mkdir()
    fails(read_wipo_alpha, tmp_path / "empty", None, "no samples")
