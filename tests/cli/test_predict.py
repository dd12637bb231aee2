"""``nhsvm predict``."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import polars
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nhsvm as package
from cli.data import DOCS, NUMBER, write_all
from cli.running import nhsvm

LABELS = [label for _, label in DOCS]
TEXTS = [text for text, _ in DOCS]
COMMON = ("--C", "10", "-q")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of every kind, made once."""
    folder = tmp_path_factory.mktemp("models")
    write_all(folder)
    (folder / "e.csv").write_text("a,b,label\n1,0,x\n0,1,y\n")

    def train(name, data, *args):
        done = nhsvm("train", folder / data, *args, *COMMON, "-o", folder / name)
        assert done.code == 0, done.err

    tree = ("--hierarchy", folder / "tree.tsv")
    train("text", "docs.jsonl", *tree, "--probability", "--folds", "3")
    train("path", "docs.csv", "--text", "text", "--path", "path")
    train("sets", "sets.jsonl", *tree)
    train("sparse", "docs.txt", "--hierarchy", folder / "numbers.tsv", "--label-type", "int")
    train("svm", "docs.svm")
    train("arff", "docs.arff")
    train("dense", "e.csv", "--features", "a", "--features", "b", "--label", "label")
    return folder


@pytest.fixture
def folder(models, tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def test_labels_on_standard_output(models, folder):
    done = nhsvm("predict", models / "text", "docs.jsonl")
    assert done.code == 0
    assert done.lines == ["label", *LABELS]
    assert done.err == ""


@pytest.mark.parametrize("chunk", [1, 5, 12, 1000])
def test_chunks_change_nothing(models, folder, chunk):
    done = nhsvm("predict", models / "text", "docs.jsonl.gz", "--chunk", chunk, "--id-column", "id")
    assert [row["id"] for row in rows(done.out)] == [str(k) for k in range(12)]
    assert [row["label"] for row in rows(done.out)] == LABELS


def test_every_answer(models, folder):
    args = ("--top-k", "3", "--scores", "--probabilities", "--paths", "--partial", "0.9", "-o", "out.csv")
    done = nhsvm("predict", models / "text", "docs.jsonl", *args)
    assert done.code == 0
    assert "12 samples labelled" in done.err
    found = rows((folder / "out.csv").read_text())
    assert list(found[0]) == [
        *(f"{name}_{k}" for name in ("label", "path", "score", "probability") for k in (1, 2, 3)),
        "partial", "partial_path",
    ]  # fmt: skip
    model = package.load(models / "text")
    assert [[row[f"label_{k}"] for k in (1, 2, 3)] for row in found] == model[-1].predict_topk(
        model[:-1].transform(TEXTS), 3
    ).tolist()
    proba = np.sort(model.predict_proba(TEXTS), axis=1)[:, :0:-1]
    np.testing.assert_allclose([[float(row[f"probability_{k}"]) for k in (1, 2, 3)] for row in found], proba, rtol=1e-5)
    assert found[0]["path_1"] == "animal > dog"
    assert {row["partial"] for row in found} <= {"", *NUMBER}


def test_labels_for_a_measure(models, folder, monkeypatch):
    """Labels of all rows that are read together depend on each other, and not on how many are scored at a time."""
    monkeypatch.setattr("nhsvm.cli.predict._NUMBERS", 20)  # 5 rows
    found = rows(nhsvm("predict", models / "text", "docs.jsonl", "--for-measure", "hierarchical_f1").out)
    model = package.load(models / "text")
    assert [row["label"] for row in found] == model.predict(TEXTS, for_measure="hierarchical_f1").tolist()


def test_more_labels_than_there_are(models, folder):
    found = rows(nhsvm("predict", models / "text", "docs.jsonl", "--top-k", "9").out)
    assert list(found[0]) == ["label_1", "label_2", "label_3", "label_4"]


def test_json_lines(models, folder):
    done = nhsvm("predict", models / "text", "docs.jsonl", "--top-k", "2", "--scores", "-o", "o.jsonl", "--json")
    summary = json.loads(done.out)
    assert (summary["samples"], summary["skipped"], summary["file"]) == (12, 0, "o.jsonl")
    found = [json.loads(line) for line in (folder / "o.jsonl").read_text().splitlines()]
    assert found[0]["labels"][0] == "dog"
    assert found[0]["scores"][0] > found[0]["scores"][1]


def test_parquet(models, folder):
    polars.DataFrame({"text": TEXTS, "n": range(12)}).write_parquet("docs.parquet")
    done = nhsvm("predict", models / "text", "docs.parquet", "--id-column", "n", "--scores", "-o", "o.parquet")
    assert done.code == 0, done.err
    frame = polars.read_parquet("o.parquet")
    assert frame.columns == ["n", "label", "score"]
    assert frame["label"].to_list() == LABELS


def test_tsv_and_kept_columns(models, folder):
    done = nhsvm("predict", models / "path", "docs.csv", "--keep-columns", "--paths", "--to", "tsv")
    found = rows(done.out, "\t")
    assert list(found[0]) == ["id", "text", "label", "path", "top", "predicted_label", "predicted_path"]
    assert [row["predicted_label"] for row in found] == [row["path"] for row in found]
    assert [row["predicted_path"] for row in found] == [row["path"] for row in found]


def test_kept_columns_of_json_lines(models, folder):
    (folder / "x.jsonl").write_text('{"text": "barks", "tags": ["a", 1], "n": {"b": true}, "ok": false}\n')
    done = nhsvm("predict", models / "text", "x.jsonl", "--keep-columns", "--on-error", "skip")
    assert done.lines == ["text,tags,n,ok,label", 'barks,a;1,"{""b"": true}",false,dog']


def test_columns_that_are_asked_for_are_not_written(models, folder):
    done = nhsvm("predict", models / "text", "docs.jsonl", "--where", "split=test", "--where", "id=3")
    assert done.lines == ["label", "cat"]


def test_label_sets(models, folder):
    done = nhsvm("predict", models / "sets", "sets.jsonl", "--scores")
    found = rows(done.out)
    assert found[0]["labels"] == "cat;dog"
    assert len(found[0]["scores"].split(";")) == 2
    done = nhsvm("predict", models / "sets", "sets.jsonl", "--to", "jsonl", "--paths")
    first = json.loads(done.lines[0])
    assert first == {"labels": ["cat", "dog"], "paths": ["animal > cat", "animal > dog"]}


@pytest.mark.parametrize("form", ["dense", "sparse", "set"])
def test_label_sets_of_models_made_in_python(folder, form):
    import scipy.sparse as sp

    y = [{"x"}, {"y"}, {"x", "y"}, {"x", "y"}]
    if form != "set":
        y = np.array([[1, 0], [0, 1], [1, 1], [1, 1]])
        y = sp.csr_matrix(y) if form == "sparse" else y
    hierarchy = package.Hierarchy.from_edges([("top", "x"), ("top", "y")])
    texts = ["xx one", "yy two", "xx yy", "yy xx"]
    model = make_pipeline(TfidfVectorizer(), package.NHSVM(hierarchy, C=100)).fit(texts, y)
    package.save(model, "made.nhsvm")
    (folder / "x.csv").write_text("text\nxx one\nyy xx\n")
    assert nhsvm("predict", "made.nhsvm", "x.csv", "--text", "text").lines == ["labels", "x", "x;y"]


@pytest.mark.parametrize(("model", "data"), [("sparse", "docs.txt"), ("svm", "docs.svm"), ("sparse", "docs.svm")])
def test_numbered_features_go_to_their_columns(models, folder, model, data):
    lines = (folder / data).read_text().splitlines()
    with (folder / data).open("w") as file:
        for line in lines:
            label, _, features = line.partition(" ")
            file.write(f"{label} {features} 9999:1\n")  # unknown to the model
    done = nhsvm("predict", models / model, data)
    assert done.lines == ["label", *(str(NUMBER[label]) for label in LABELS)]


def test_numbered_features_of_a_model_made_in_python(folder):
    package.save(package.NHSVM(C=10).fit(np.eye(2), ["x", "y"]), "made.nhsvm")
    (folder / "x.svm").write_text("1:1\n2:1\n")
    assert nhsvm("predict", "made.nhsvm", "x.svm").lines == ["label", "x", "y"]


def test_arff_without_labels(models, folder):
    content = (folder / "docs.arff").read_text().replace("animal/dog\n", "?\n")
    (folder / "docs.arff").write_text(content)
    done = nhsvm("predict", models / "arff", "docs.arff")
    assert done.lines[1:4] == ["animal/dog"] * 3


def test_columns_of_features(models, folder):
    (folder / "x.csv").write_text("b,a\n0,1\n1,0\n")
    assert nhsvm("predict", models / "dense", "x.csv", "--scores").lines[1].startswith("x,")
    said = nhsvm("predict", models / "dense", "x.csv", "--features", "b", "--features", "a").message
    assert "the features are not those of the model: 'b' in place of 'a'" in said
    assert "1 in place of 2" in nhsvm("predict", models / "dense", "x.csv", "--features", "a").message


def test_wrong_number_of_features(folder):
    package.save(package.NHSVM(C=10).fit(np.eye(2), ["x", "y"]), "made.nhsvm")
    (folder / "x.csv").write_text("a\n1\n")
    assert (
        "1 features, but the model was trained with 2"
        in nhsvm("predict", "made.nhsvm", "x.csv", "--features", "a").message
    )


def test_standard_input_and_output(models, folder):
    done = nhsvm("predict", models / "text", "-", "--format", "jsonl", stdin=b'{"text": "purrs"}\n')
    assert done.lines == ["label", "cat"]
    done = nhsvm("predict", models / "text", "-", "--format", "csv", stdin=b"text\nacorns\n")
    assert done.lines == ["label", "oak"]
    done = nhsvm("predict", models / "svm", "-", "--format", "svmlight", stdin=b"1:1\n")
    assert done.code == 0


def test_rows_that_are_skipped(models, folder):
    data = b'{"text": "purrs"}\nnonsense\n{"text": "acorns"}\n{"text": 7}\n'
    done = nhsvm("predict", models / "text", "-", "--format", "jsonl", "--on-error", "skip", "--chunk", "2", stdin=data)
    assert done.lines == ["label", "cat", "oak"]
    assert done.err == (
        "2 skipped; line 2: not JSON: Expecting value at character 1; line 4: expected text in 'text', not 7\n"
    )


def test_a_bad_row_leaves_no_file(models, folder):
    (folder / "out.csv").write_text("old")
    with (folder / "docs.jsonl").open("a") as file:
        file.write("nonsense\n")
    said = nhsvm("predict", models / "text", "docs.jsonl", "-o", "out.csv", "--chunk", "2").message
    assert "docs.jsonl:13: not JSON" in said
    assert (folder / "out.csv").read_text() == "old"
    assert not list(folder.glob(".nhsvm*"))


def test_an_existing_file_keeps_its_permissions(models, folder):
    (folder / "out.csv").write_text("old")
    os.chmod(folder / "out.csv", 0o640)
    assert nhsvm("predict", models / "text", "docs.jsonl", "-o", "out.csv", "-q").err == ""
    assert (folder / "out.csv").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("none", "docs.jsonl"), "none: cannot be read: No such file"),
        (("docs.jsonl", "docs.jsonl"), "not an nhsvm model"),
        (("text", "none.jsonl"), "none.jsonl: cannot be read: No such file"),
        (("text", "docs.svm"), "the model classifies texts, but the data have features"),
        (("svm", "docs.jsonl"), "the model classifies features, but the data have texts"),
        (("sets", "sets.jsonl", "--partial", "0.5"), "the model has no probabilities; train it with --probability"),
        (("svm", "docs.svm", "--probabilities"), "the model has no probabilities"),
        (("text", "docs.jsonl", "--partial", "2"), "--partial must be above 0 and at most 1"),
        (("svm", "docs.svm", "--for-measure", "lca_f1"), "--for-measure needs probabilities, and the model has none"),
        (("text", "docs.jsonl", "--for-measure", "f1"), "this model has no measure 'f1'; it has accuracy, example_jac"),
        (("text", "docs.jsonl", "--for-measure", "lca_f1", "--top-k", "2"), "--for-measure and --top-k choose labels"),
        (("text", "docs.jsonl", "--for-measure", "lca_f1", "--beam", "2"), "--for-measure and --beam choose labels"),
        (("text", "docs.jsonl", "--where", "split=x"), "no sample has split=x"),
        (("text", "docs.jsonl", "--id-column", "key"), "no column 'key'"),
        (("svm", "docs.svm", "--id-column", "key"), "columns can be kept of CSV"),
        (("text", "docs.jsonl", "--json"), "--json takes standard output"),
        (("text", "docs.jsonl", "-o", "out.xyz"), "cannot tell the format from the name; say --to"),
        (("text", "docs.jsonl", "-o", "-", "--to", "parquet"), "cannot be written to standard output"),
        (("text", "docs.jsonl", "-o", "."), "is a folder"),
        (("text", "docs.jsonl", "-o", "no/out.csv"), "there is no folder"),
        (("text", "docs.jsonl", "-o", "docs.jsonl"), "would overwrite the file that is read"),
        (("text", "docs.jsonl", "-o", "/dev/full", "--to", "csv"), "/dev/full cannot be written: No space left"),
    ],
)
def test_bad_input_is_one_line(models, folder, args, said):
    model, *others = args
    file = models / model if (models / model).exists() else folder / model
    before = sorted(folder.iterdir())
    assert said in nhsvm("predict", file, *others).message
    assert sorted(folder.iterdir()) == before


def test_partial_is_for_single_labels(folder):
    hierarchy = package.Hierarchy.from_edges([("top", "x"), ("top", "y")])
    model = package.NHSVM(hierarchy, probability=True, cv=2).fit(np.eye(4), [["x"], ["y"], ["x"], ["y"]])
    package.save(model, "made.nhsvm")
    (folder / "x.svm").write_text("1:1\n")
    assert (
        "--partial is for models with one label" in nhsvm("predict", "made.nhsvm", "x.svm", "--partial", "0.5").message
    )
    found = rows(nhsvm("predict", "made.nhsvm", "x.svm", "--probabilities").out)
    assert 0 <= float(found[0]["probabilities"].split(";")[0]) <= 1


@pytest.mark.parametrize("part", ["reading", "writing"])
def test_parquet_without_polars(models, folder, part, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    args = ("docs.parquet",) if part == "reading" else ("docs.jsonl", "-o", "out.parquet")
    assert (
        f"{part} Parquet files needs polars: pip install 'nhsvm[tables]'"
        in nhsvm("predict", models / "text", *args).message
    )


def test_rows_that_parquet_cannot_hold(models, folder):
    (folder / "x.jsonl").write_text('{"text": "a", "n": 1}\n{"text": "b", "n": "x"}\n')
    said = nhsvm("predict", models / "text", "x.jsonl", "--keep-columns", "-o", "out.parquet").message
    assert "do not make a Parquet file" in said
    assert not (folder / "out.parquet").exists()


def test_a_reader_that_goes_away(models, folder):
    command = f"{sys.executable} -m nhsvm predict {models / 'text'} docs.jsonl --chunk 20 | head -1"
    with (folder / "docs.jsonl").open("a") as file:
        file.write('{"text": "purrs"}\n' * 5_000)
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "label\n141\n"  # as of a program that SIGPIPE ends
    assert done.stderr == ""


def test_ctrl_c_leaves_no_file(models, folder, monkeypatch):
    def press(self, X, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(package.NHSVM, "predict", press)
    before = sorted(folder.iterdir())
    done = nhsvm("predict", models / "text", "docs.jsonl", "-o", "out.csv")
    assert done.code == 130
    assert sorted(folder.iterdir()) == before


def test_too_little_memory(models, folder, monkeypatch):
    def fail(self, X, **how):
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(package.NHSVM, "predict", fail)
    said = nhsvm("predict", models / "text", "docs.jsonl", "-o", "out.csv").message
    assert said == "not enough memory: Unable to allocate 3 TiB"
    assert not (folder / "out.csv").exists()


def test_samples_that_the_transformers_do_not_take(folder):
    package.save(make_pipeline(StandardScaler(), package.NHSVM()).fit(np.eye(2), ["x", "y"]), "made.nhsvm")
    (folder / "x.svm").write_text("1:1\n")
    assert "the model cannot use these samples: Cannot center sparse" in nhsvm("predict", "made.nhsvm", "x.svm").message
    assert nhsvm("train", "docs.svm", "--transform", "bm25", "-q").code == 0
    (folder / "x.svm").write_text("1:-1\n")
    assert "Negative values" in nhsvm("predict", "model.nhsvm", "x.svm").message


def test_labels_that_are_no_text(folder):
    X, y = np.eye(3), np.empty(3, dtype=object)
    y[:] = [("a", 1), ("b", 2), ("b", 3)]
    package.save(package.NHSVM(C=10).fit(X, y), "made.nhsvm")
    (folder / "x.svm").write_text("2:1\n")
    assert nhsvm("predict", "made.nhsvm", "x.svm", "--to", "jsonl").lines == ['{"label": ["b", 2]}']


def test_paths_in_a_dag(folder):
    """Of several parents the first; a label at the top is its own path."""
    h = package.Hierarchy.from_edges([("a", "c"), ("b", "c"), ("a", "d")])
    model = package.NHSVM(h, C=10).fit(np.eye(3), ["c", "d", "a"])
    package.save(model, "made.nhsvm", note={"separator": "/"})
    (folder / "x.svm").write_text("1:1\n2:1\n3:1\n")
    found = rows(nhsvm("predict", "made.nhsvm", "x.svm", "--paths").out)
    assert [(row["label"], row["path"]) for row in found] == [("c", "a/c"), ("d", "a/d"), ("a", "a")]


def test_threads(models, monkeypatch):
    """As many as one says; else as in training."""
    found, answers = [], package.NHSVM.predict

    def told(self, X, **how):
        found.append(self.n_jobs)
        return answers(self, X, **how)

    monkeypatch.setattr(package.NHSVM, "predict", told)
    files = models / "text", models / "docs.jsonl"
    for command in ("predict", "evaluate"):
        plain, two = nhsvm(command, *files), nhsvm(command, *files, "--jobs", "2")
        assert plain.code == two.code == 0
        assert plain.out == two.out
    assert found == [None, 2, None, 2]
    refused = nhsvm("predict", *files, "-j", "0").message
    assert refused == "--jobs must be None, a positive number of threads, or -1 for all, not 0"


@pytest.mark.parametrize("jobs", ["999999999", "-999999999", str(2**62)])
def test_no_more_threads_than_there_are_cores(models, folder, monkeypatch, jobs):
    """More would take hours to begin, and memory for a list of them."""
    from nhsvm import threads
    from nhsvm.estimators import options

    sizes, begin = [], threads.Team.__init__

    def begun(self, size):
        assert size <= options.cores()
        sizes.append(size)
        begin(self, size)

    monkeypatch.setattr(threads.Team, "__init__", begun)
    files = models / "text", models / "docs.jsonl"
    plain = nhsvm("predict", *files)
    assert nhsvm("predict", *files, "--jobs", jobs).out == plain.out
    assert nhsvm("evaluate", *files, "--jobs", jobs).code == 0
    data = ("docs.csv", "--text", "text", "--label", "label", "-q", "--jobs", jobs)
    assert nhsvm("train", *data).code == 0
    assert nhsvm("tune", *data, "--C", "1").code == 0
    assert nhsvm("predict", "model.nhsvm", "docs.csv").code == 0  # which has the number
    assert max(sizes) == (1 if jobs.startswith("-") else options.cores())
