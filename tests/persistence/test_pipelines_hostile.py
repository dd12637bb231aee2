"""Files of pipelines that are damaged or lie: a FileFormatError that names the file, or the same model."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nhsvm.errors import FileFormatError
from nhsvm.model import load, read_model, save, write_model
from nhsvm.model.checks import Budget, Malformed
from nhsvm.model.steps import pack_words, unpack_words
from persistence.samples import GAPS, LABELS, NEW, TEXTS, X, same, svm


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


@pytest.fixture
def stored(path):
    """A file of a text model: its header and arrays, to change and write again."""
    model = make_pipeline(CountVectorizer(), TfidfTransformer(), StandardScaler(with_mean=False), svm())
    save(model.fit(TEXTS, LABELS), path)
    header, arrays = read_model(path)
    return header, dict(arrays)


def refused(path, header, arrays, match):
    write_model(path, header, arrays)
    with pytest.raises(FileFormatError, match=match) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


FLAT = {"weights": ["flat", {"dict": []}]}  # a weights scheme, which can be called


def step(header, k):
    return header["steps"][k][1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda h: h["steps"].__setitem__(0, 3), "a step is damaged"),
        (lambda h: h.__setitem__("steps", 3), "'steps'"),
        (lambda h: h.pop("last_step"), "'last_step' is missing"),
        (lambda h: h.__setitem__("last_step", "countvectorizer"), "names of its steps"),
        (lambda h: h["steps"][0].__setitem__(0, "a__b"), "names of its steps"),
        (lambda h: h["steps"][0].__setitem__(0, 3), "the name of a step"),
        (lambda h: h["pipeline"].__setitem__("verbose", 1), "'verbose'"),
        (lambda h: h["steps"].reverse(), "features go into a|reads texts"),
        (lambda h: step(h, 0).__setitem__("kind", "FunctionTransformer"), "step of kind 'FunctionTransformer'"),
        (lambda h: step(h, 0).__setitem__("kind", "os.system"), "step of kind"),
        (lambda h: step(h, 0)["params"].__setitem__("foo", {"value": 1}), "do not make a CountVectorizer: TypeError"),
        (lambda h: step(h, 0)["params"].__setitem__("min_df", {"value": "x"}), "do not make a CountVectorizer"),
        (lambda h: step(h, 0)["params"].__setitem__("analyzer", {"value": {"loss": "hamming"}}), "is a function"),
        (
            lambda h: step(h, 0)["params"].__setitem__("tokenizer", {"value": {"weights": ["flat", {"dict": []}]}}),
            "is a f",
        ),
        (lambda h: step(h, 0)["params"].__setitem__("input", {"value": "filename"}), "would open files"),
        (
            lambda h: step(h, 0)["params"].__setitem__("token_pattern", {"value": "("}),
            "splits texts by the regular expression",
        ),
        (lambda h: step(h, 0)["params"].__setitem__("token_pattern", {"value": 3}), "token_pattern must be text"),
        (lambda h: step(h, 0)["params"].__setitem__("dtype", {"type": "object"}), "is no type of numbers"),
        (lambda h: step(h, 0)["params"].__setitem__("dtype", {"type": 3}), "the type of numbers"),
        (lambda h: step(h, 0)["params"].__setitem__("dtype", 3), "is no value of a step"),
        (lambda h: step(h, 0)["params"].__setitem__("dtype", {"import": "os"}), "is no value of a step"),
        (lambda h: step(h, 0)["fitted"].__setitem__("transform", {"value": 1}), "'transform' is no fitted value"),
        (lambda h: step(h, 0)["fitted"].__setitem__("vocabulary_", {"value": 1}), "the vocabulary is none"),
        (lambda h: step(h, 0)["fitted"].__setitem__("vocabulary_", {"vocabulary": "none/"}), "vocabulary are missing"),
        (lambda h: step(h, 0)["fitted"].pop("vocabulary_"), "it lacks 'vocabulary_'"),
        (lambda h: step(h, 1)["fitted"].pop("idf_"), "do not make a TfidfTransformer"),
        (lambda h: step(h, 1)["fitted"].__setitem__("n_features_in_", {"value": 10**15}), "n_features_in_ should be"),
        (
            lambda h: step(h, 1)["fitted"].__setitem__("n_features_in_", {"value": "3"}),
            "n_features_in_ should be a whole number",
        ),
        (lambda h: step(h, 1)["fitted"].__setitem__("feature_names_in_", {"names": 3}), "a list of names"),
        (lambda h: step(h, 2)["fitted"].__setitem__("scale_", {"value": "abc"}), "scale_ has the type"),
        (lambda h: step(h, 2)["fitted"].__setitem__("scale_", {"value": 1.5}), "scale_ has the type"),
        (lambda h: step(h, 1).__setitem__("params", 3), "'params'"),
        (lambda h: h.__setitem__("note", 3), "the note"),
    ],
)
def test_headers_that_lie(change, match, stored, path):
    header, arrays = stored
    change(header)
    refused(path, header, arrays, match)


def test_a_vectorizer_behind_another_step(stored, path):
    header, arrays = stored
    first = {"kind": "Normalizer", "params": {}, "fitted": {"n_features_in_": {"value": 3}}}
    header["steps"].insert(0, ["first", first])
    refused(path, header, arrays, "a CountVectorizer reads texts, and must be the first step")


def test_steps_that_do_not_follow_each_other(path):
    save(make_pipeline(StandardScaler(), TruncatedSVD(2, random_state=0), svm()).fit(X, LABELS), path)
    header, arrays = read_model(path)
    del header["steps"][1]
    refused(path, header, arrays, "5 features go into a NHSVM, which has learned from 2")


def test_steps_that_do_not_work(path):
    save(make_pipeline(Nystroem(n_components=3, random_state=0), svm()).fit(X, LABELS), path)
    header, arrays = read_model(path)
    del step(header, 0)["fitted"]["normalization_"]
    refused(path, header, arrays, "do not make a Nystroem: it lacks 'normalization_'")


def test_an_empty_vocabulary(stored, path):
    header, arrays = stored
    arrays |= {"text/0/utf8": np.zeros(0, np.uint8), "text/0/ends": np.zeros(0, np.int64)}
    refused(path, header, arrays, "no feature comes out of it")


def test_words_out_of_order():
    arrays = pack_words(["dog", "cat", "oak"])
    with pytest.raises(Malformed, match="do not follow each other"):
        unpack_words(arrays | {"ends": np.array([6, 3, 9])}, Budget(0))
    with pytest.raises(Malformed, match="do not follow each other"):
        unpack_words(arrays | {"ends": np.array([-3, 3, 9])}, Budget(0))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda a: a.pop("text/0/ends"), "vocabulary are missing"),
        (lambda a: a.__setitem__("text/0/ends", a["text/0/ends"].astype(np.int32)), "of another type"),
        (lambda a: a.__setitem__("text/0/ends", a["text/0/ends"][:-1]), "do not fit together"),
        (
            lambda a: a.__setitem__("text/0/ends", a["text/0/ends"][::-1].copy()),
            "do not fit together|follow each other",
        ),
        (lambda a: a.__setitem__("text/0/ends", -a["text/0/ends"]), "do not fit together"),
        (lambda a: a.__setitem__("text/0/utf8", np.full_like(a["text/0/utf8"], 255)), "not UTF-8"),
        (lambda a: a.__setitem__("text/0/utf8", a["text/0/utf8"][None]), "do not fit together"),
    ],
)
def test_vocabularies_that_lie(change, match, stored, path):
    header, arrays = stored
    change(arrays)
    refused(path, header, arrays, match)


def test_a_vectorizer_whose_weights_do_not_fit(path):
    save(make_pipeline(TfidfVectorizer(), svm()).fit(TEXTS, LABELS), path)
    header, arrays = read_model(path)
    inner = step(header, 0)["fitted"]["_tfidf"]["step"]
    inner["fitted"]["n_features_in_"] = {"value": 3}
    refused(path, header, arrays, "do not make|does not fit|idf_")
    inner["fitted"] = {"n_features_in_": {"value": 3}}
    refused(path, header, arrays, "it lacks 'idf_'")
    inner["params"]["use_idf"] = {"value": False}
    refused(path, header, arrays, "weights of terms do not fit")
    inner["kind"] = "StandardScaler"
    refused(path, header, arrays, "step of kind 'StandardScaler'")


def test_an_imputer_with_an_indicator(path):
    save(make_pipeline(SimpleImputer(), svm()).fit(GAPS, LABELS), path)
    header, arrays = read_model(path)
    fitted = step(header, 0)["fitted"]
    before = dict(fitted)
    fitted["indicator_"] = {"value": 3}
    refused(path, header, arrays, "indicator_ is not supported")
    fitted |= before | {"_fit_dtype": {"value": 3}}
    refused(path, header, arrays, "_fit_dtype is no type")
    fitted |= before | {"feature_names_in_": {"value": 3}}
    refused(path, header, arrays, "names of features do not fit")


def outcome(path, content, model):
    """A FileFormatError that names the file, or a model with the same answers; nothing else."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    message = back = None
    try:
        back = load(path, verify=True)
    except FileFormatError as error:
        message = str(error)
    if message is None:
        same(back, model, NEW)
        return True
    assert message.startswith(f"{path}: ")
    return False


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    model = make_pipeline(TfidfVectorizer(), svm()).fit(TEXTS, LABELS)
    save(model, folder / "model.nhsvm")
    return model, (folder / "model.nhsvm").read_bytes(), folder / "damaged.nhsvm"


def test_truncated(small):
    model, raw, path = small
    assert outcome(path, raw, model)
    assert not any(outcome(path, raw[:n], model) for n in range(0, len(raw), 7))


@given(st.data())
def test_flipped_bytes(small, data):
    model, raw, path = small
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    outcome(path, bytes(changed), model)


def test_random_damage(small):
    model, raw, path = small
    rng = random.Random(0)
    for _ in range(200):
        changed = bytearray(raw)
        a, b = rng.randrange(len(raw)), rng.randrange(1, 30)
        if rng.random() < 0.5:
            del changed[a : a + b]
        else:
            changed[a : a + b] = rng.randbytes(b)
        outcome(path, bytes(changed), model)


@pytest.mark.parametrize("key", ["token_pattern", "input", "analyzer", "norm"])
def test_arrays_in_place_of_options(path, key):
    """Comparing them with a text is an error of numpy's."""
    save(make_pipeline(TfidfVectorizer(), svm()).fit(TEXTS, LABELS), path)
    header, arrays = read_model(path)
    header["steps"][0][1]["params"][key] = {"value": {"array": "fitted/values"}}
    write_model(path, header, dict(arrays))
    with pytest.raises(FileFormatError, match="a TfidfVectorizer"):
        load(path)


@pytest.mark.parametrize("value", [2**60, 2, None, 3.0])
def test_a_number_of_outputs_that_is_none(path, value):
    """Names of features are made for so many."""
    save(make_pipeline(Nystroem(n_components=3, random_state=0), svm()).fit(X, LABELS), path)
    header, arrays = read_model(path)
    header["steps"][0][1]["fitted"]["_n_features_out"] = {"value": value}
    write_model(path, header, dict(arrays))
    with pytest.raises(FileFormatError, match="_n_features_out"):
        load(path)
