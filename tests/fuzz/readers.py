"""Small files of every format, changed where it hurts, then read in every way that there is.

Whatever a file says, reading it ends with samples, a hierarchy or options, or with an ``NHSVMError`` of one sentence,
and takes no more memory than is in proportion to the file.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz.harness import memory_for
from fuzz.mutate import Mutator

Files = dict[str, bytes]


class Base(NamedTuple):
    """Files that can be read: their names, contents, and what to do with them."""

    name: str
    files: Files
    ask: Callable[[Random, Path], Any]
    is_binary: bool = False
    is_json: bool = False


# -- what readers are given --------------------------------------------------------------------------------------------

_CAT_HIER = b"1 2 4\n1 2 5\n1 3\n"
_LSHTC = b"4 0:17 1177338:2 97353:1\n3 0:9 97353:4\n4,5 0:1 8:2.5 9:1e-3\n5 0:3 97353:1 8:1\n3 7:0.1 1:-2\n"
_SVM = b"4 qid:3 1:0.5 3:2 # a comment\n5 2:1e-3 7:-4.25\n3 1:1 2:2 9:1e10\n4 2:0.1\n"
_NAMES_SVM = b"dog,cat 1:0.5 3:2\noak 2:1e-3 # x\ncat 1:1 2:2 9:1e10\n"
_NAMES_EDGES = b"parent,child\nanimal,dog\nanimal,cat\nplant,oak\n"
_ARFF = b"""@RELATION 'x y'
% remark
@ATTRIBUTE size  numeric
@attribute 'the kind' {red, 'deep blue',"x"}
@ATTRIBUTE z REAL
@ATTRIBUTE class hierarchical 1,1/1,1/2,2,2/1,2/1/1
@DATA
1,red,-2.5,1/1@2/1
?,'deep blue',1e3,2/1/1
% remark

.5, ? ,0, 1/2
0.1234567890123456789,x,1e-300,1/1
"""
_PAIRS = _ARFF.replace(b"1,1/1,1/2,2,2/1,2/1/1", b"root/1,root/2,1/11,1/12,2/21,1/21").replace(b"2/1/1", b"21")
_PAIRS = _PAIRS.replace(b"1/1@2/1", b"11@21").replace(b" 1/2", b" 12").replace(b",1/1\n", b",11\n")
_CSV = b"""id,text,size,"heavy, very",label,path,top,low
1,it barks,0.5,1e3,dog,animal > dog,animal,dog
2,"it ""purrs"",
and sleeps",,2,cat,animal > cat,animal,cat
3,rustle, 7 ,-1,oak,plant > oak,plant,oak
4,wood,1,2,dog;oak,plant > oak,plant,oak
"""
_CSV = _CSV.replace(b"dog;oak", b"dog")
_NUMBERS_CSV = b"a,b,label\n0.5,1,3\n1e-3,,4\n7,8,5\n"
_TSV = b"text\tsize\tpath\nit barks\t1\tanimal > dog\nit's \"5\tx\t2\tplant > oak\nmeow\t3\tanimal > cat\n".replace(
    b'"5\tx', b'"5 x'
)
_JSONL = b"""{"text": "it barks", "v": [0.5, 1, null], "n": 3, "labels": ["dog", "oak"], "path": ["animal", "dog"]}
{"text": "it \\"purrs\\" \\u00e9", "v": [1e3, -0.0, 2], "n": null, "labels": ["cat"], "path": "animal > cat"}

{"text": "rustle", "v": [1, 2, 3], "n": 0.25, "labels": ["oak"], "path": ["plant", "oak"], "more": {"a": [1, {}]}}
"""
_INT_JSONL = b'{"v": [1, 2], "labels": [3, 4]}\n{"v": [0, 1], "labels": [5]}\n{"v": [2, 2.5], "labels": []}\n'
_RECORD = b"""<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE record SYSTEM "../../../ipctraining.dtd">
<record cy="WO" an="US9912345"><ipcs ed="7" mc="A01B00100"><ipc ic="B60R02116"></ipc></ipcs>
<tis><ti xml:lang="EN">A plough</ti></tis>
<abs><ab xml:lang="EN">It ploughs, &eacute;l\xe9gantly.</ab></abs>
<cls><cl xml:lang="EN">1. A plough that <i>ploughs</i>.</cl></cls>
<txts><txt xml:lang="EN">The field of fields.</txt></txts>
</record>
"""
_TOML = b"""# options of several commands
seed = 3
C = 2.5
"probability" = false
features = ["a", "b"]
max-iter = 50
label = 'label'
[train]
weights = "power"
level = ["top", "low"]
[predict]
top_k = 3
text = \"\"\"title\"\"\"
"""
_READINGS = {"seed": 0, "repeats": 2, "quick": True, "readings": []}


def _lshtc(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_lshtc

    hierarchy = folder / "cat_hier.txt" if rng.random() < 0.5 else None
    options = {"ignore": rng.choice((None, 0)), "compact": rng.random() < 0.8, "drop_root": rng.random() < 0.3}
    return _read(rng, read_lshtc, folder / "train.txt", hierarchy=hierarchy, **options)


def _svmlight(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_svmlight

    given = {"sort": rng.random() < 0.5, "zero_based": rng.choice(("auto", True, False))}
    given |= {"n_features": rng.choice((None, None, 20)), "dtype": rng.choice((np.float64, np.float32))}
    given |= {"multilabel": rng.choice((None, None, True, False)), "labelled": rng.choice((None, None, False))}
    if (folder / "names.svm").exists():
        known = folder / "edges.csv" if rng.random() < 0.5 else None
        return _read(rng, read_svmlight, folder / "names.svm", label_type=str, hierarchy=known, **given)
    return _read(rng, read_svmlight, folder / "train.svm", **given)


def _arff(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_hmc_arff

    given = {"classes": rng.choice(("auto", "auto", "paths", "pairs")), "drop_implied": rng.random() < 0.7}
    given |= {"multilabel": rng.choice((None, True)), "dtype": rng.choice((np.float64, np.float32))}
    return _read(rng, read_hmc_arff, folder / "train.arff", encoding=_encoding(rng), **given)


def _encoding(rng: Random) -> str:
    return rng.choice(("utf-8", "utf-8", "utf-8", "latin-1", "utf-8-sig", "shift_jis", "cp1252", "utf-7"))


def _labels(rng: Random) -> dict[str, Any]:
    where: dict[str, Any] = rng.choice(
        [{"label": "label"}, {"path": "path"}, {"levels": ["top", "low"]}, {"label": None}, {"path": "path"}]
    )
    return where | {
        "qualified": rng.random() < 0.7,
        "drop_implied": rng.random() < 0.3,
        "drop_root": rng.random() < 0.2,
        "multilabel": rng.choice((None, None, True)),
        "label_separator": rng.choice((None, None, ";")),
        "extra": rng.choice((None, "*")),
    }


def _csv(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_csv

    if (folder / "numbers.csv").exists():
        kind, dtype = rng.choice((int, str)), rng.choice((np.float64, np.float32))
        return _read(
            rng, read_csv, folder / "numbers.csv", features=["a", "b"], label="label", label_type=kind, dtype=dtype
        )
    if (folder / "train.tsv").exists():
        return _read(rng, read_csv, folder / "train.tsv", text="text", path="path", encoding=_encoding(rng))
    given = _labels(rng)
    if given.get("label") and rng.random() < 0.4:
        given |= {"hierarchy": folder / "edges.csv"}
    samples = rng.choice([{"text": "text"}, {"features": ["size", "heavy, very"]}, {"text": ["id", "text"]}])
    return _read(rng, read_csv, folder / "train.csv", encoding=_encoding(rng), **samples, **given)


def _jsonl(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_jsonl

    if (folder / "numbers.jsonl").exists():
        kind = rng.choice((None, int, str))
        return _read(rng, read_jsonl, folder / "numbers.jsonl", features="v", multilabel=True, label_type=kind)
    samples = rng.choice([{}, {"features": ["v", "n"]}, {"text": "text", "features": ["n"]}])
    labels = rng.choice([{}, {"path": "path"}, {"label": None}, {"hierarchy": folder / "edges.csv"}])
    return _read(rng, read_jsonl, folder / "train.jsonl", encoding=_encoding(rng), **samples, **labels)


def _parquet(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_parquet

    samples = rng.choice([{"text": "text"}, {"features": ["v", "n"]}, {"text": "text", "features": ["n"]}])
    labels = rng.choice([{"label": "labels"}, {"path": "path"}, {"label": None}, {"label": "n"}])
    return _read(rng, read_parquet, folder / "train.parquet", extra=rng.choice((None, "*")), **samples, **labels)


def _wipo(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_wipo_alpha

    parts = rng.choice([["title", "abstract", "claims"], ["description"]])
    return read_wipo_alpha(folder, parts=parts, level=rng.choice(("section", "class", "subclass")), on_error=_on(rng))


def _ilsvrc(rng: Random, folder: Path) -> Any:
    from nhsvm.datasets import read_ilsvrc2010

    return read_ilsvrc2010(folder, rng.choice(("train", "val")), per_class=rng.choice((None, 1)))


def _hierarchy(rng: Random, folder: Path) -> Any:
    from nhsvm import Hierarchy

    file = next(path for path in folder.iterdir() if path.is_file())
    if rng.random() < 0.3:
        return _command(["inspect", str(file), *rng.choice([[], ["--json"]])])
    found = Hierarchy.read(file, label_type=rng.choice((None, None, int, str)), allow_duplicates=rng.random() < 0.5)
    return repr(found), found.draw(), repr(found.minimal())


def _toml(rng: Random, folder: Path) -> Any:
    """Options are read, checked and converted; the command itself does not run."""
    import typer

    from nhsvm.cli import app

    usage: Any = typer.BadParameter.__base__
    group: Any = typer.main.get_command(app)
    name = rng.choice(("train", "predict", "tune", "evaluate", "convert", "shrink", "inspect"))
    words = ["--config", str(folder / "options.toml"), *rng.choice([[], ["model.nhsvm"], ["a.csv", "b.csv"]])]
    try:
        above = group.make_context("nhsvm", [name], resilient_parsing=True)
        return str(group.commands[name].make_context(name, words, parent=above).params)
    except (usage, typer.Exit):
        return "usage"


def _results(rng: Random, folder: Path) -> Any:
    from nhsvm.reproduce import benchmarks, readings, synthetic
    from nhsvm.reproduce._page import read_results

    file = next(folder.iterdir())
    kind = {"benchmarks.json": benchmarks, "readings.json": readings, "synthetic.json": synthetic}[file.name]
    return kind.Results.to_json(read_results(file, kind.Results.from_json))


def _any_file(rng: Random, folder: Path) -> Any:
    return _command(["inspect", str(next(folder.iterdir())), "--json"])


def _command(words: list[str]) -> str:
    """A command, without what it prints."""
    from nhsvm.cli import app

    with contextlib.redirect_stdout(io.StringIO()) as out:
        app(words, prog_name="nhsvm", standalone_mode=False)
    return out.getvalue()


def _on(rng: Random) -> str:
    return rng.choice(("raise", "raise", "skip"))


def _read(rng: Random, reader: Any, file: Path, **options: Any) -> Any:
    """As a whole, in parts, or on the way into blocks."""
    from nhsvm.datasets import convert_to_blocks, open_blocks, read_chunks, read_hmc_arff, read_lshtc, read_svmlight

    how, options = rng.random(), {"on_error": _on(rng), **options}
    if how < 0.2 and not options.get("text") and "features" in options | {"features": reader in _NUMBERED()}:
        done = convert_to_blocks(reader, file, file.parent / "made.blocks", **options)
        data = open_blocks(done.path)
    elif how < 0.4 and reader is not read_hmc_arff:
        if reader in (read_svmlight, read_lshtc):
            options["like"] = reader(file, **options)
            options.pop("compact", None)
        parts = list(read_chunks(reader, file, rng.choice((1, 2, 1000)), **options))
        return [_described(part) for part in parts]
    else:
        data = reader(file, **options)
    return _described(data)


def _NUMBERED() -> tuple[Any, ...]:
    from nhsvm.datasets import read_hmc_arff, read_lshtc, read_svmlight

    return read_svmlight, read_lshtc, read_hmc_arff


def _described(data: Any) -> str:
    n = data.n_samples
    assert data.y is None or len(data.y) == n
    assert data.texts is None or (len(data.texts) == n and all(type(text) is str for text in data.texts))
    if data.X is not None:
        assert data.X.shape[0] == n
        if hasattr(data.X, "indices"):
            data.X.check_format(full_check=True)
            assert np.isfinite(data.X.data).all()
        else:
            assert not np.isinf(data.X).any()
    if data.hierarchy is not None and data.y is not None:
        labels = [label for row in data.y for label in row] if data.is_multilabel else data.y
        assert all(label in data.hierarchy for label in labels)
    return repr(data) + str(data.skipped)


def _bases(folder: Path) -> list[Base]:
    import polars

    from datasets.ilsvrc_files import write_ilsvrc

    tree = {"animal": {"dog": {}, "cat": {}}, "plant": {"oak": {}}}
    parents = {"dog": "animal", "bat": ["mammal", "flyer"], "animal": None, "1": "animal"}
    edges = {"edges": [["animal", "dog"], ["animal", 7], [7, 8]], "nodes": ["stone"]}
    frame = polars.DataFrame(
        {
            "text": ["it barks", "purrs", "rustle", "barks"] * 20,
            "v": [[0.5, 1.0], [1.5, 2.0], [None, 0.0], [4.0, 5.0]] * 20,
            "n": [1, 2, 3, 1] * 20,
            "labels": [["dog"], ["cat", "oak"], ["oak"], ["dog"]] * 20,
            "path": ["animal > dog", "animal > cat", "plant > oak", "animal > dog"] * 20,
        }
    )
    bases = [
        Base("lshtc", {"train.txt": _LSHTC, "cat_hier.txt": _CAT_HIER}, _lshtc),
        Base("svmlight", {"train.svm": _SVM}, _svmlight),
        Base("svmlight of names", {"names.svm": _NAMES_SVM, "edges.csv": _NAMES_EDGES}, _svmlight),
        Base("arff of paths", {"train.arff": _ARFF}, _arff),
        Base("arff of pairs", {"train.arff": _PAIRS}, _arff),
        Base("csv", {"train.csv": _CSV, "edges.csv": _NAMES_EDGES}, _csv),
        Base("csv of numbers", {"numbers.csv": _NUMBERS_CSV}, _csv),
        Base("tsv", {"train.tsv": _TSV}, _csv),
        Base("jsonl", {"train.jsonl": _JSONL, "edges.csv": _NAMES_EDGES}, _jsonl),
        Base("jsonl of numbers", {"numbers.jsonl": _INT_JSONL}, _jsonl),
        Base("wipo", {"a/1.xml": _RECORD, "2.XML": _RECORD.replace(b"A01B", b"B60R")}, _wipo),
        Base("toml", {"options.toml": _TOML}, _toml),
        Base("hierarchy, lshtc", {"h.txt": _CAT_HIER}, _hierarchy),
        Base("hierarchy, pairs", {"h.txt": b"1 2\n1 3\n3 4\n3 5\n"}, _hierarchy),
        Base("hierarchy, tsv", {"h.tsv": _NAMES_EDGES.replace(b",", b"\t")}, _hierarchy),
        Base("hierarchy, csv", {"h.csv": _NAMES_EDGES}, _hierarchy),
        Base("any file", {"x.json": b'{"edges": [["a", "b"]]}'}, _any_file),
    ]
    for name, content in (("tree", tree), ("parents", parents), ("edges", edges)):
        bases.append(Base(f"hierarchy, {name}", {"h.json": json.dumps(content).encode()}, _hierarchy, is_json=True))
    results = Path(__file__).resolve().parents[2] / "docs" / "results"
    bases += [
        Base(f"results, {name}", {name: (results / name).read_bytes()}, _results, is_json=True)
        for name in ("benchmarks.json", "readings.json", "synthetic.json")
    ]
    for compression in ("uncompressed", "zstd", "snappy"):
        stream = io.BytesIO()
        frame.write_parquet(stream, compression=compression, row_group_size=30)
        bases += [Base(f"parquet, {compression}", {"train.parquet": stream.getvalue()}, _parquet, is_binary=True)]
    write_ilsvrc(folder / "ilsvrc")
    published = {
        path.relative_to(folder / "ilsvrc").as_posix(): path.read_bytes()
        for path in sorted((folder / "ilsvrc").rglob("*"))
        if path.is_file()
    }
    return [*bases, Base("ilsvrc", published, _ilsvrc, is_binary=True)]


# -- cases, as :mod:`fuzz.harness` runs them ---------------------------------------------------------------------------

_BASES: list[Base] = []


def warm_up(folder: Path) -> None:
    """Kernels are compiled, modules are imported, and files that nobody has changed are read."""
    from nhsvm.errors import NHSVMError

    _BASES.extend(_bases(folder))
    for k, base in enumerate(_BASES):
        refused = 0
        for seed in range(12):
            place = folder / f"{k}-{seed}"
            _write(place, base.files)
            try:
                base.ask(Random(seed), place)
            except NHSVMError:  # for options that do not suit these samples
                refused += 1
        assert refused < 12, f"{base.name}: cannot be read as it is"


def run_case(number: int, folder: Path) -> str:
    """One case: a file, its changes and the way it is read follow from the number."""
    rng = Random(number)
    base = rng.choice(_BASES)
    files = _changed(base, rng)
    _write(folder, files)
    with memory_for(sum(map(len, files.values()))):
        base.ask(rng, folder)
    return f"{base.name}: read"


def _changed(base: Base, rng: Random) -> Files:
    mutator, files = Mutator(rng), dict(base.files)
    name = rng.choice(sorted(files))
    raw = files[name]
    if base.is_json and rng.random() < 0.6:
        raw = _json_bytes(mutator.json(json.loads(raw)))
    elif base.is_binary and not name.endswith(".txt"):
        raw = mutator.binary(raw)
    else:
        raw = mutator.text(raw)
        if rng.random() < 0.1:
            raw = mutator.packed(raw)
    return files | {name: raw}


def _json_bytes(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):  # numbers of more digits than Python writes
        return b"[" * 100_000


def _write(folder: Path, files: Files) -> None:
    for name, raw in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
