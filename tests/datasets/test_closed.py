"""An error closes the file at once, not when somebody forgets the error."""

from pathlib import Path

import pytest

from nhsvm.datasets import read_chunks, read_csv, read_hmc_arff, read_jsonl, read_lshtc, read_svmlight
from nhsvm.errors import FileFormatError

ARFF = "@RELATION r\n@ATTRIBUTE a numeric\n@ATTRIBUTE class hierarchical x,x/y\n@DATA\ngreen,x/y\n1,x\n"
BAD = {
    "csv": (read_csv, {"label": "label", "text": "text"}, "text,label\nwoof,dog\nmiaow\nfish,cod\n"),
    "csv-cell": (read_csv, {"label": "label", "features": ["a"]}, "a,label\n1,dog\nred,cat\n2,cod\n"),
    "jsonl": (read_jsonl, {}, '{"text": "woof", "labels": ["dog"]}\n{\n{"text": "miaow", "labels": ["cat"]}\n'),
    "jsonl-cell": (read_jsonl, {}, '{"text": "woof", "labels": ["dog"]}\n{"text": 1, "labels": ["cat"]}\n{}\n'),
    "svmlight": (read_svmlight, {}, "1 1:1\n2 x\n3 1:1\n"),
    "lshtc": (read_lshtc, {}, "1 1:1\n2 x\n3 1:1\n"),
    "arff": (read_hmc_arff, {}, ARFF),
}


@pytest.fixture
def streams(monkeypatch):
    found, usual = [], Path.open

    def noted(self, *args, **options):
        found.append(usual(self, *args, **options))
        return found[-1]

    monkeypatch.setattr(Path, "open", noted)
    return found


def in_parts(read):
    return lambda file, **options: list(read_chunks(read, file, **options))


CASES = [(name, False) for name in BAD] + [(name, True) for name in ("csv", "csv-cell", "jsonl", "jsonl-cell")]


@pytest.mark.parametrize(("name", "chunked"), CASES)
def test_an_error_closes_the_file(name, chunked, tmp_path, streams):
    read, options, content = BAD[name]
    read = in_parts(read) if chunked else read
    file = tmp_path / f"file.{name.split('-')[0]}"
    file.write_text(content)
    with pytest.raises(FileFormatError) as error:
        read(file, **options)
    assert error.traceback  # it is still there, with all that it holds
    assert streams
    assert all(stream.closed for stream in streams)
