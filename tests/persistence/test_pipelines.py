"""Pipelines to files and back."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import nhsvm
from nhsvm.errors import OptionError
from nhsvm.features import BM25Transformer
from nhsvm.model import load, load_with_note, read_model, save
from nhsvm.model.checks import Budget, Malformed
from nhsvm.model.steps import encode_step, encode_steps, numbered, ordered, pack_words, transformers_of, unpack_words
from nhsvm.model.values import Decoder, Encoder
from persistence.samples import GAPS, LABELS, NEW, TEXTS, H, X, Z, same, svm


@pytest.fixture
def counts():
    return Pipeline([("count", CountVectorizer()), ("bm25", BM25Transformer()), ("norm", Normalizer())]).fit(TEXTS)


def as_read(parts, encoder):
    return transformers_of({"steps": parts}, Decoder([], encoder.arrays, Budget(10**6)))


def test_transformers_by_themselves(counts):
    """As they are kept beside blocks; the first version had them by name."""
    encoder = Encoder()
    parts = encode_steps(counts.steps, "step {!r}", encoder)
    for form in (parts, dict(parts)):
        steps = as_read(form, encoder)
        assert [name for name, _ in steps] == ["count", "bm25", "norm"]
        np.testing.assert_array_equal(Pipeline(steps).transform(NEW).toarray(), counts.transform(NEW).toarray())


def test_transformers_that_do_not_fit_together(counts):
    encoder = Encoder()
    parts = encode_steps(counts.steps, "step {!r}", encoder)
    other = BM25Transformer().fit(np.eye(2))
    for wrong, text in (
        (
            [parts[0], ["bm25", encode_step(other, "", encoder)]],
            "features go into a BM25Transformer, which has learned",
        ),
        ([parts[0], parts[0]], "cannot be those of a pipeline"),
        ([parts[0], parts[1][:1]], "a step is damaged"),
        (None, "'steps' of its header should be of type list"),
    ):
        with pytest.raises(Malformed, match=text):
            as_read(wrong, encoder)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


def round_trip(model, path, samples):
    save(model, path)
    raw = path.read_bytes()
    back = load(path, verify=True)
    assert type(back) is Pipeline
    assert [name for name, _ in back.steps] == [name for name, _ in model.steps]
    for old, new in zip(model, back, strict=True):
        assert type(old) is type(new)
        if old is not model[-1]:
            params = new.get_params()
            assert all(v is params[k] or v == params[k] or v != v for k, v in old.get_params().items())
    same(model, back, samples)
    save(back, path)
    assert path.read_bytes() == raw
    return back


@pytest.mark.parametrize(
    "steps",
    [
        [TfidfVectorizer()],
        [TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), dtype=np.float32, strip_accents="unicode")],
        [TfidfVectorizer(use_idf=False, norm=None, analyzer="char_wb", ngram_range=(2, 3), binary=True)],
        [TfidfVectorizer(dtype=np.dtype("float32"), analyzer="char")],
        [TfidfVectorizer(vocabulary={"barks": 1, "purrs": 0, "öde": 2})],
        [CountVectorizer(vocabulary=["barks", "purrs", "öde"])],
        [CountVectorizer(stop_words=["it", "and"], max_df=0.9, min_df=1), TfidfTransformer(smooth_idf=False)],
        [CountVectorizer(stop_words="english", max_features=5), BM25Transformer(k1=2, b=0.5), Normalizer()],
        [CountVectorizer(), TruncatedSVD(2, random_state=0), StandardScaler()],
        [HashingVectorizer(n_features=64, alternate_sign=False), TfidfTransformer()],
    ],
    ids=lambda steps: "-".join(type(step).__name__ for step in steps),
)
def test_texts(steps, path):
    round_trip(make_pipeline(*steps, svm()).fit(TEXTS, LABELS), path, NEW)


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False)],
        [StandardScaler(with_std=False)],
        [MaxAbsScaler(), Normalizer(norm="l1")],
        [MinMaxScaler(feature_range=(0, 2))],
        [SimpleImputer(), StandardScaler()],
        [SimpleImputer(strategy="constant", fill_value=0.5, keep_empty_features=True)],
        [SimpleImputer(strategy="constant", fill_value=0.0)],
        [SimpleImputer(strategy="median")],
        [Nystroem(kernel="rbf", gamma=0.5, n_components=4, random_state=1), MaxAbsScaler()],
        [Nystroem(kernel="polynomial", kernel_params=None, degree=2, n_components=3, random_state=1)],
        [TruncatedSVD(3, random_state=0)],
        [BM25Transformer()],
    ],
    ids=lambda steps: "-".join(type(step).__name__ for step in steps),
)
def test_numbers(steps, path):
    gaps = isinstance(steps[0], SimpleImputer)
    round_trip(make_pipeline(*steps, svm()).fit(GAPS if gaps else X, LABELS), path, Z)


@pytest.mark.filterwarnings("ignore:Skipping features")
def test_a_feature_that_is_always_missing(path):
    gaps = GAPS.copy()
    gaps[:, 2] = np.nan
    round_trip(make_pipeline(SimpleImputer(), svm()).fit(gaps, LABELS), path, Z)


def test_names_of_features(path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde"))
    back = round_trip(make_pipeline(StandardScaler(), svm()).fit(frame, LABELS), path, frame)
    assert back[0].feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"a": "z"}))


def test_label_sets_and_probabilities(path):
    model = make_pipeline(TfidfVectorizer(), nhsvm.HSVM(H, probability=True, cv=2)).fit(TEXTS, LABELS)
    save(model, path)
    np.testing.assert_array_equal(load(path).predict_proba(NEW), model.predict_proba(NEW))
    sets = make_pipeline(TfidfVectorizer(), svm()).fit(TEXTS, [{label, "oak"} for label in LABELS])
    save(sets, path)
    assert load(path).predict(NEW).tolist() == sets.predict(NEW).tolist()


def test_a_loaded_pipeline_can_be_fitted_again(path):
    model = make_pipeline(CountVectorizer(), BM25Transformer(), svm()).fit(TEXTS, LABELS)
    save(model, path)
    same(load(path).fit(TEXTS, LABELS), model, NEW)


def test_a_pipeline_of_an_estimator_alone(path):
    back = round_trip(Pipeline([("only", svm())]).fit(X, LABELS), path, Z)
    assert back.steps[0][0] == "only"


def test_sparse_features(path):
    model = make_pipeline(TfidfTransformer(), svm()).fit(sp.csr_matrix(X), LABELS)
    round_trip(model, path, sp.csr_matrix(Z))


def test_a_note(path):
    model = make_pipeline(TfidfVectorizer(), svm()).fit(TEXTS, LABELS)
    note = {"text": ["title", "body"], "numbers": np.arange(3), "h": H, "none": None}
    save(model, path, note=note)
    back, found = load_with_note(path)
    same(back, model, NEW)
    assert found.keys() == note.keys()
    assert found["h"] == H
    assert found["numbers"].tolist() == [0, 1, 2]
    save(model, path)
    assert load_with_note(path)[1] == {}
    with pytest.raises(OptionError, match="the note of a model cannot be saved: 'f' is"):
        save(model, path, note={"f": print})


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Sub(TfidfVectorizer):
    pass


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: make_pipeline(Own(), svm()), "step 'own' of the pipeline is a .*Own; a model file can hold CountVect"),
        (lambda: make_pipeline(PCA(2), svm()), "step 'pca' of the pipeline is a sklearn"),
        (lambda: Pipeline([("a", "passthrough"), ("svm", svm())]), "step 'a' of the pipeline is a builtins.str"),
        (lambda: make_pipeline(make_pipeline(Normalizer()), svm()), "step 'pipeline' of the pipeline is a sklearn"),
        (lambda: make_pipeline(Normalizer(), PCA(2)), "only FlatSVM, HRSVM, HSVM, NHSVM, SSVM, or a pipeline"),
        (lambda: Pipeline([("n", Normalizer()), ("svm", svm())], memory="x"), "memory is 'x', and must be None"),
        (lambda: make_pipeline(SimpleImputer(add_indicator=True), svm()), "add_indicator=True is not supported"),
        (
            lambda: make_pipeline(Nystroem(n_components=3, kernel=lambda a, b: 1.0), svm()),
            "kernel is a function, and a model file holds no code",
        ),
        (
            lambda: make_pipeline(TruncatedSVD(2, random_state=np.random.RandomState(0)), svm()),
            "parameter 'random_state' is RandomState",
        ),
        (
            lambda: make_pipeline(StandardScaler().set_output(transform="pandas"), svm()),
            "no place for '_sklearn_output",
        ),
    ],
)
def test_what_a_file_cannot_hold(model, said, path):
    made = model()
    with pytest.raises((OptionError, NotFittedError), match=said):
        save(made.fit(X, LABELS) if isinstance(made[-1], nhsvm.NHSVM) else made, path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("vectorizer", "said"),
    [
        (Sub(), "step 'sub' of the pipeline is a .*Sub;"),
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer is a function"),
        (TfidfVectorizer(preprocessor=str.lower), "preprocessor is a function"),
        (CountVectorizer(analyzer=str.split), "analyzer is a function"),
        (CountVectorizer(vocabulary={"barks", "purrs"}), "parameter 'vocabulary' is"),
        (CountVectorizer(token_pattern="x" * 20_000 + r"|\w+"), "token_pattern must be text of at most"),
    ],
)
def test_vectorizers_that_a_file_cannot_hold(vectorizer, said, path):
    model = make_pipeline(vectorizer, svm()).fit(TEXTS, LABELS)
    with pytest.raises(OptionError, match=said):
        save(model, path)
    assert not list(path.parent.iterdir())


def test_texts_in_files_are_refused(path, tmp_path):
    (tmp_path / "a").write_text("it barks")
    (tmp_path / "b").write_text("it purrs")
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    model = make_pipeline(TfidfVectorizer(input="filename"), svm()).fit(names, ["dog", "cat"])
    with pytest.raises(OptionError, match="input='filename' would open files"):
        save(model, path)


def test_unfitted(path):
    for model in (make_pipeline(StandardScaler(), svm()), Pipeline([("svm", svm())])):
        with pytest.raises(NotFittedError):
            save(model, path)
    with pytest.raises(OptionError):
        save(Pipeline([]), path)


def test_old_files_are_read_and_old_versions_refuse_new_ones(path):
    save(svm().fit(X, LABELS), path)
    assert b'"nhsvm_format":"1"' in path.read_bytes()
    save(make_pipeline(Normalizer(), svm()).fit(X, LABELS), path)
    assert b'"nhsvm_format":"2"' in path.read_bytes()


# -- vocabularies ------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(), unique=True))
def test_any_words(words):
    assert unpack_words(pack_words(words), Budget(0)) == words
    assert numbered(words) == {word: k for k, word in enumerate(words)}
    assert ordered(numbered(words)) == words


def test_words_that_are_no_unicode():
    assert unpack_words(pack_words(["\ud800", "a"]), Budget(0)) == ["\ud800", "a"]


def test_words_that_come_twice():
    with pytest.raises(Malformed, match="twice"):
        numbered(["a", "a"])


@pytest.mark.parametrize("vocabulary", [{"a": 1}, {"a": 0, "b": 0}, {3: 0}, {"a": 0.0}, {"a": -1}])
def test_what_is_no_vocabulary(vocabulary):
    assert ordered(vocabulary) is None


def test_large_vocabularies_are_not_in_the_header(path):
    words = [f"word{k:06d}" for k in range(100_000)]
    model = make_pipeline(CountVectorizer(vocabulary=words), nhsvm.FlatSVM()).fit(words[:6], LABELS)
    save(model, path)
    header, arrays = read_model(path)
    assert len(repr(header)) < 5_000
    assert arrays["text/0/utf8"].nbytes == 1_000_000
    same(load(path), model, words[3:9])
