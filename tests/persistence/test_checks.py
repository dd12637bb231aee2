"""What a file brings is checked before it is used: each case has checksums that fit, and did harm once or could."""

import re
import subprocess
import sys
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nhsvm
from cli.running import nhsvm as run
from nhsvm.errors import DataError, FileFormatError, OptionError, UntrustedPatternError
from nhsvm.model import checks, load_with_note, read_model, write_model
from nhsvm.model.checks import Malformed
from nhsvm.sizes import readable_bytes
from persistence.samples import LABELS, TEXTS, H, X

FUZZ = Path(__file__).parents[1] / "fuzz" / "models.py"
PAGE = Path(__file__).parents[2] / "docs" / "model_files.md"
MANY = 40


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


def samples(n_features=30):
    rng = np.random.default_rng(0)
    made = sp.csr_matrix(np.abs(rng.normal(size=(MANY, n_features))) * (rng.random((MANY, n_features)) < 0.4))
    return made, np.array(["dog", "cat", "oak"])[rng.integers(0, 3, MANY)]


def parts(path, kind="rows"):
    """Header and arrays of a stored model, to change."""
    X, y = samples()
    model = nhsvm.NHSVM(H, probability=kind == "curves", cv=2)
    if kind in ("sets", "curves"):
        model.fit(X, [{label} for label in y])
    elif kind == "text":
        model = make_pipeline(TfidfVectorizer(), model).fit(TEXTS, LABELS)
    else:
        model.fit(X, y)
    if kind == "rows":
        model = nhsvm.prune(model, share=0.5).model
    nhsvm.save(model, path, precision="int8" if kind == "packed" else None)
    header, arrays = read_model(path)
    return header, {name: array.copy() for name, array in arrays.items()}


def refused(path, header, arrays, match, **options):
    write_model(path, header, arrays)
    for verify in (False, True):
        with pytest.raises(FileFormatError, match=match) as caught:
            nhsvm.load(path, verify=verify, **options)
    assert str(caught.value).startswith(f"{path}: ")


# -- rows that reach beyond their arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "size"),
    [
        (2**63 - 4, 8),  # start + size overflows, and is then below any room
        (2**63 - 1, -1),  # the last full row of all that could be, plus one
        (2**62, 2**31 - 1),
        (-1, 1),
        (0, -2),
        (-(2**63), 1),
    ],
)
def test_rows_that_reach_beyond_their_end(path, start, size):
    header, arrays = parts(path)
    arrays["fitted/rows/start"][3], arrays["fitted/rows/size"][3] = start, size
    refused(path, header, arrays, "rows of weights (reach beyond their end|of a length below -1)")


def test_rows_that_overlap(path):
    """Each of many rows could claim all entries there are: a small file would make a large table."""
    header, arrays = parts(path)
    arrays["fitted/rows/start"][:], arrays["fitted/rows/size"][:] = 0, len(arrays["fitted/rows/value"])
    refused(path, header, arrays, "rows of weights overlap")


@pytest.mark.parametrize("name", ["constant", "value", "index", "start", "size"])
@pytest.mark.parametrize("shape", [(-1, 1), (1, -1)])
def test_arrays_of_two_dimensions(path, name, shape):
    header, arrays = parts(path)
    arrays[f"fitted/rows/{name}"] = arrays[f"fitted/rows/{name}"].reshape(shape)
    refused(path, header, arrays, r"the array 'rows/\w+' is .* it should be")


@pytest.mark.parametrize("kind", ["rows", "table", "packed", "sets", "curves", "text"])
def test_every_array_of_a_file_has_its_number_of_dimensions(path, kind):
    """One more, at either end, or one less: nothing of it may reach a kernel."""
    header, arrays = parts(path, kind)
    write_model(path, header, arrays)
    nhsvm.load(path)  # as it is, it is fine
    for name, array in arrays.items():
        others = [array[None], array[..., None], array[(0,) * array.ndim]]
        others += [array.reshape(-1)] if array.ndim > 1 else []
        for other in others:
            write_model(path, header, arrays | {name: np.ascontiguousarray(other) if other.ndim else other.reshape(1)})
            with pytest.raises(FileFormatError):
                nhsvm.load(path)


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), st.integers(-3, 9)), max_size=6),
    st.integers(0, 9),
)
def test_spans_are_inside_and_apart(spans, room):
    """As Python's integers, which do not overflow, say."""
    start, size = np.array([s for s, _ in spans], np.int64), np.array([n for _, n in spans], np.int32)
    inside = all(s >= 0 and n >= 0 and s + n <= room for s, n in spans)
    taken = [place for s, n in spans for place in range(s, s + n)] if inside else []
    fine = inside and len(set(taken)) == len(taken)
    if fine:
        checks.check_apart(start, size, room, "spans")
    else:
        with pytest.raises(Malformed, match=r"spans (reach beyond their end|overlap)"):
            checks.check_apart(start, size, room, "spans")


# -- numbers -----------------------------------------------------------------------------------------------------------

INFINITE = {"float": "inf"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_features_in", INFINITE),
        ("n_features_in", 0),
        ("n_features_in", 2**62),
        ("n_iter", INFINITE),
        ("n_iter", -1),
        ("bias", 10**400),
        ("bias", INFINITE),
        ("bias", True),
        ("by_feature", 1),
        ("temperature", 0.0),
        ("history", [1]),
        ("history", [{"dict": [[1, 2]]}]),
        ("gap", "0"),
    ],
)
def test_fitted_numbers(path, key, value):
    header, arrays = parts(path, "table")
    header["state"][key] = value
    refused(path, header, arrays, key)


@pytest.mark.parametrize("value", [2**62, -(2**62), "4", 0, 1.5, True, INFINITE, 10**400])
def test_numbers_of_threads(path, value):
    header, arrays = parts(path, "table")
    header["params"]["n_jobs"] = value
    refused(path, header, arrays, "n_jobs")


@pytest.mark.parametrize("value", [2**62, "4", 0, 1.5, 10**400])
def test_numbers_of_threads_of_a_step(path, value):
    nhsvm.save(make_pipeline(Nystroem(n_components=3, random_state=0), nhsvm.NHSVM(H)).fit(X, LABELS), path)
    header, arrays = read_model(path)
    header["steps"][0][1]["params"]["n_jobs"] = {"value": value}
    refused(path, header, arrays, "n_jobs")


def test_a_step_begins_no_more_threads_than_there_are_cores(path):
    """scikit-learn begins as many as it is told, whatever there is to do."""
    nhsvm.save(make_pipeline(Nystroem(n_components=3, n_jobs=4096), nhsvm.NHSVM(H)).fit(X, LABELS), path)
    assert nhsvm.load(path)[0].n_jobs == joblib.cpu_count()
    header, arrays = read_model(path)
    for value in (-1, 1, None):
        header["steps"][0][1]["params"]["n_jobs"] = {"value": value}
        write_model(path, header, dict(arrays))
        assert nhsvm.load(path)[0].n_jobs == value


@pytest.mark.parametrize(
    ("name", "value"), [("C", 0), ("tol", -1.0), ("C", 10**400), ("oracle", "delphi"), ("cv", 0), ("memory_limit", "x")]
)
def test_options_are_those_that_fit_would_take(path, name, value):
    header, arrays = parts(path, "table")
    header["params"][name] = value
    refused(path, header, arrays, name)


def test_terms_of_any_length(path):
    """A text of n words has n²/2 terms of any length, with n³/6 letters."""
    with pytest.raises(OptionError, match=r"ngram_range should go from 1 to at most 64, but is \(1, 65\)"):
        nhsvm.save(make_pipeline(CountVectorizer(ngram_range=(1, 65)), nhsvm.NHSVM(H)).fit(TEXTS, LABELS), path)
    header, arrays = parts(path, "text")
    header["steps"][0][1]["params"]["ngram_range"] = {"value": {"tuple": [1, 10**9]}}
    refused(path, header, arrays, "ngram_range")


# -- patterns ----------------------------------------------------------------------------------------------------------

FOREVER = "(?:|){60}x"  # never ends


def text_model(path, pattern=r"\S+"):
    nhsvm.save(make_pipeline(TfidfVectorizer(token_pattern=pattern), nhsvm.NHSVM(H)).fit(TEXTS, LABELS), path)


def with_pattern(path, pattern):
    text_model(path)
    header, arrays = read_model(path)
    header["steps"][0][1]["params"]["token_pattern"] = {"value": pattern}
    write_model(path, header, dict(arrays))


@pytest.mark.parametrize("pattern", [FOREVER, "(", "a" * 9999])
def test_a_pattern_is_not_even_compiled(path, pattern, monkeypatch):
    with_pattern(path, pattern)

    compile_ = re.compile

    def compiled(found, *args, **kwargs):
        assert found != pattern
        return compile_(found, *args, **kwargs)

    monkeypatch.setattr(re, "compile", compiled)
    with pytest.raises(UntrustedPatternError, match=r"splits texts by the regular expression .* trust_patterns=True"):
        nhsvm.load(path)


def test_a_pattern_that_is_trusted(path):
    text_model(path)
    with pytest.raises(UntrustedPatternError, match=r"'\\\\S\+'"):
        nhsvm.load(path)
    assert nhsvm.load(path, trust_patterns=True)[0].token_pattern == r"\S+"
    with_pattern(path, "(")
    with pytest.raises(FileFormatError, match="no regular expression"):
        nhsvm.load(path, trust_patterns=True)


@pytest.mark.parametrize("pattern", [r"(?u)\b\w\w+\b", None])
def test_patterns_that_need_no_trust(path, pattern):
    analyzer = "char" if pattern is None else "word"
    vectorizer = TfidfVectorizer(token_pattern=pattern, analyzer=analyzer)
    nhsvm.save(make_pipeline(vectorizer, nhsvm.NHSVM(H)).fit(TEXTS, LABELS), path)
    assert nhsvm.load(path)[0].token_pattern == pattern


def test_patterns_on_the_command_line(path, tmp_path):
    text_model(path)
    data = tmp_path / "new.csv"
    data.write_text("text,label\nit barks,dog\n")
    for command in (["predict", path, data], ["evaluate", path, data, "--label", "label"]):
        refusal = run(*command, "--text", "text")
        assert refusal.code == 2
        assert "--trust-patterns" in refusal.err
        assert run(*command, "--text", "text", "--trust-patterns").code == 0
    shrink = ["shrink", path, "--precision", "int8", "-o", tmp_path / "small.nhsvm"]
    assert run(*shrink).code == 2
    assert run(*shrink, "--trust-patterns").code == 0
    assert r"'\\S+': not scikit-learn's own" in run("inspect", path).out
    with_pattern(path, FOREVER)
    assert FOREVER in run("inspect", path).out  # shown, never used


def test_loading_runs_nothing(path, monkeypatch):
    """No transformer of the file is tried out."""
    nhsvm.save(
        make_pipeline(CountVectorizer(), StandardScaler(with_mean=False), nhsvm.NHSVM(H)).fit(TEXTS, LABELS), path
    )

    def transform(*args, **kwargs):
        raise AssertionError("something of the file was run")

    for kind in (CountVectorizer, StandardScaler):
        monkeypatch.setattr(kind, "transform", transform)
    assert len(nhsvm.load(path)) == 3


def test_sparse_samples_for_a_step_that_takes_dense_ones(path):
    nhsvm.save(
        make_pipeline(CountVectorizer(), StandardScaler(with_mean=False), nhsvm.NHSVM(H)).fit(TEXTS, LABELS), path
    )
    header, arrays = read_model(path)
    header["steps"][1][1]["params"]["with_mean"] = {"value": True}
    header["steps"][1][1]["fitted"]["mean_"] = header["steps"][1][1]["fitted"]["scale_"]
    refused(path, header, arrays, "sparse features go into a StandardScaler")


# -- memory ------------------------------------------------------------------------------------------------------------


def edges_of_a_chain(n):
    return {
        "hierarchy/0/parent": np.arange(n - 1, dtype=np.int32),
        "hierarchy/0/child": np.arange(1, n, dtype=np.int32),
    }


def test_a_long_chain(path):
    """Sets of ancestors take the square of its length."""
    header, arrays = parts(path, "table")
    n = 10_000
    header["hierarchies"][0]["labels"] = [str(k) for k in range(n)]
    refused(
        path, header, arrays | edges_of_a_chain(n), "sets of ancestors of its hierarchy would take 2.4 GB of memory"
    )


def test_a_limit_of_memory_can_be_raised(path):
    h = nhsvm.Hierarchy.from_paths([[f"n{k}" for k in range(1500)], ["n0", "other"]])
    model = nhsvm.NHSVM(h).fit([[1.0], [0.0]], ["n1499", "other"])
    nhsvm.save(model, path)
    assert nhsvm.load(path).predict([[1.0]]) == ["n1499"]  # within what any file may take
    with pytest.raises(FileFormatError, match=r"the limit is 10\.0 MB; if you trust the file, raise it with max_bytes"):
        nhsvm.load(path, max_bytes=10**7)
    assert nhsvm.load(path, max_bytes=10**9).predict([[1.0]]) == ["n1499"]
    for wrong in (-1, 1.5, "1 GB"):
        with pytest.raises(OptionError, match="max_bytes"):
            nhsvm.load(path, max_bytes=wrong)


def test_one_long_label_makes_all_wide(path):
    header, arrays = parts(path, "table")
    header["classes"] = {"dtype": "str", "labels": ["a" * 200_000, *map(str, range(1000))]}
    refused(path, header, arrays, "an array of labels as wide as the longest would take 800.8 MB")


def test_arrays_that_take_no_bytes(path):
    header, arrays = parts(path, "table")
    header["state"]["n_features_in"] = 10**8 - 1
    refused(path, header, arrays | {"fitted/values": np.zeros((10**8, 0), np.float32)}, "'fitted/values' would take")


def test_a_header_that_grows_when_it_is_parsed(path):
    header, arrays = parts(path, "table")
    header["note"] = {"deep": [[[]] * 9] * 300_000}
    refused(path, header, arrays, "its JSON document would take|its header would take")


def test_the_limit_grows_with_the_file():
    limits = [checks.Budget(size).limit for size in (0, 10**6, 10**9)]
    assert [limit - limits[0] for limit in limits] == [0, 64 * 10**6, 64 * 10**9]
    assert readable_bytes(limits[0]) == "268.4 MB"
    assert checks.Budget(10**9, 5).limit == 5


# -- weights that are no numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rows", "table", "sets"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers(path, kind, value):
    """Weights are not read when a file is loaded; what they give is looked at."""
    header, arrays = parts(path, kind)
    for name in ("fitted/rows/full", "fitted/rows/value", "fitted/values"):
        if name in arrays:
            arrays[name][:] = value
    write_model(path, header, arrays)
    model = nhsvm.load(path)
    with pytest.raises(DataError, match="scores are not finite"):
        model.predict(samples()[0])


# -- notes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [("label_type", 3), ("label_type", "float"), ("separator", 3), ("features", "abc"), ("features", [1]), ("text", 3)],
)
def test_notes_of_wrong_types(path, tmp_path, key, value):
    nhsvm.save(
        make_pipeline(TfidfVectorizer(), nhsvm.NHSVM(H)).fit(TEXTS, LABELS), path, note={"text": ["t"], key: value}
    )
    data = tmp_path / "new.csv"
    data.write_text("t,labels\nit barks,dog\n")
    for command in ("predict", "evaluate"):
        answer = run(command, path, data)
        assert answer.code == 2
        assert f"the note says '{key}'" in answer.err
    assert load_with_note(path)[1][key] == value  # a note of one's own may have what it likes


# -- the table of the page ---------------------------------------------------------------------------------------------


def table():
    """(patterns of kernels, check) of every row."""
    rows = re.findall(r"^\| (.*?) \| .* \| `([\w.]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [(re.findall(r"`([\w.*]+)`", kernels), check) for kernels, check in rows]


def test_every_kernel_that_answers_is_in_the_table():
    """Those that are called while models of all kinds answer, in a process of their own."""
    code = f"import sys; sys.path.insert(0, {str(FUZZ.parents[1])!r}); from fuzz import models; models.print_kernels()"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    known = [f"nhsvm.{pattern}" for patterns, _ in table() for pattern in patterns]
    assert len(out) > 10
    assert [name for name in out if not any(fnmatch(name, pattern) for pattern in known)] == []


def test_every_check_of_the_table_is_there():
    for _, check in table():
        module, _, name = f"nhsvm.{check}".rpartition(".") if "." in check else (checks.__name__, "", check)
        assert callable(getattr(import_module(module), name)), check


def bad_edges(header, arrays):
    arrays["hierarchy/0/parent"], arrays["hierarchy/0/child"] = (
        arrays["hierarchy/0/child"],
        arrays["hierarchy/0/parent"],
    )


def put(name, make):
    return lambda header, arrays: arrays.update({name: make(arrays[name])})


BREAK = {
    "check_rows": ("rows", put("fitted/rows/index", lambda a: a + np.uint16(999)), "columns of rows of weights"),
    "check_weights": ("packed", put("fitted/scale", lambda a: a * np.float32(np.nan)), "scales of packed weights"),
    "check_fitted": ("table", put("fitted/class_leaves", lambda a: a + 1), "not the leaves"),
    "check_edges": ("table", bad_edges, "not ordered by child and parent|child before its parent|outside"),
    "check_curves": ("curves", put("fitted/curves/directions", lambda a: a[:-1].copy()), "'curves/directions' is"),
    "check_words": ("text", put("text/0/ends", lambda a: a[::-1].copy()), "vocabulary do not"),
    "model.steps.check_step": (
        "text",
        lambda header, arrays: header["steps"][0][1]["fitted"].pop("_tfidf"),
        "it lacks '_tfidf'",
    ),
}
BREAK_TOO = {  # the other rows of checks that have several
    "check_weights": ("table", put("fitted/values", lambda a: a[:-1].copy()), "the array 'values' is"),
}
ELSEWHERE = {  # checks of samples and scores: the file and the test
    "storage.samples.check_indices": ("estimators/test_data.py", "test_sparse_samples_with_damaged_indices"),
    "storage.scoring.score_in_chunks": ("persistence/test_checks.py", "test_scores_that_are_no_numbers"),
}


@pytest.mark.parametrize("check", sorted({check for _, check in table()}))
def test_what_each_check_of_the_table_refuses(path, check):
    if check in ELSEWHERE:
        file, name = ELSEWHERE[check]
        assert f"\ndef {name}(" in (PAGE.parents[1] / "tests" / file).read_text(encoding="utf-8")
        return
    breaks = [found[check] for found in (BREAK, BREAK_TOO) if check in found]
    assert len(breaks) >= sum(other == check for _, other in table())
    for kind, change, match in breaks:
        header, arrays = parts(path, kind)
        write_model(path, header, arrays)
        nhsvm.load(path)  # as it is, it is fine
        change(header, arrays)
        refused(path, header, arrays, match)


# -- what mutated files have shown -------------------------------------------------------------------------------------


def test_entries_that_belong_to_no_row(path):
    """There may be some between rows; they are weights of nothing."""
    header, arrays = parts(path)
    size, index = arrays["fitted/rows/size"], arrays["fitted/rows/index"]
    short = np.flatnonzero(size > 0)
    nhsvm.save(nhsvm.load(path), path)
    h = nhsvm.load(path).hierarchy_
    for kept in (short[:0], short[1:]):  # none at all, and all but the first
        changed = np.where(np.isin(np.arange(len(size)), kept) | (size < 0), size, 0).astype(np.int32)
        write_model(path, header, arrays | {"fitted/rows/size": changed})
        model = nhsvm.load(path)
        for node in h.nodes:
            strongest = dict(model.strongest_features(node, None))
            wanted = model.coef_.toarray()[h.number(node)]
            assert strongest == {f"x{f}": wanted[f] for f in np.flatnonzero(wanted)}
    assert len(index) > 0


@pytest.mark.parametrize("kind", ["table", "packed"])
def test_tables_in_another_order(path, kind):
    header, arrays = parts(path, kind)
    X, _ = samples()
    wanted = nhsvm.load(path).predict(X, beam=2).tolist()
    write_model(path, header, arrays | {"fitted/values": np.asfortranarray(arrays["fitted/values"])})
    model = nhsvm.load(path)
    assert not np.asarray(read_model(path)[1]["fitted/values"]).flags.c_contiguous
    assert model.predict(X, beam=2).tolist() == wanted


def test_full_rows_in_another_order(path):
    header, arrays = parts(path)
    full = np.zeros((5, arrays["fitted/rows/constant"].shape[0]), arrays["fitted/rows/full"].dtype, order="F")
    refused(path, header, arrays | {"fitted/rows/full": full}, "full rows of weights do not lie one after the other")


@pytest.mark.parametrize("value", [1e308, 1e101, np.inf, -np.inf, np.nan])
def test_fitted_numbers_that_samples_do_not_stand(path, value):
    """scikit-learn would complain of infinite features, which a step before has made."""
    header, arrays = parts(path, "text")
    [name] = [name for name, array in arrays.items() if name.startswith("value/") and array.dtype == np.float64]
    arrays[name][2] = value
    refused(path, header, arrays, "idf_ has numbers that are not finite, or too large or too small")


def test_scales_near_zero(path):
    X, y = samples()
    model = make_pipeline(StandardScaler(), nhsvm.NHSVM(H)).fit(X.toarray(), y)
    model[0].scale_[3] = 1e-200
    nhsvm.save(model, path)
    with pytest.raises(FileFormatError, match="scale_ has numbers that are not finite, or too large or too small"):
        nhsvm.load(path)
    model[0].scale_[3], model[0].mean_[4] = 1.0, np.nan  # of a feature that is missing in all samples
    nhsvm.save(model, path)
    assert np.isnan(nhsvm.load(path)[0].mean_[4])


def test_long_messages(path):
    header, arrays = parts(path, "table")
    header["params"]["tol"] = {"array": "fitted/values"}
    refused(path, header, arrays, "tol must be a positive number")
    with pytest.raises(FileFormatError) as caught:
        nhsvm.load(path)
    assert len(str(caught.value)) < 1000


HOSTILE = [k * (2**61 - 1) for k in range(1, 400)]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["hierarchies"][0].update(labels=HOSTILE),
        lambda header: header.update(classes={"dtype": "object", "labels": HOSTILE}),
        lambda header: header["params"].update(class_weight={"dict": [[label, 1.0] for label in HOSTILE]}),
        lambda header: header.update(note={"mine": {"frozenset": HOSTILE}}),
        lambda header: header.update(note={"mine": {"dict": [[{"tuple": [label]}, 1] for label in HOSTILE]}}),
    ],
    ids=["nodes", "classes", "options", "a set", "tuples"],
)
def test_labels_of_one_hash(path, change):
    """Dictionaries of them take the square of their number."""
    header, arrays = parts(path, "table")
    change(header)
    refused(path, header, arrays, "labels have the same hash")
