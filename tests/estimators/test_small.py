"""Small models: weights in float16 and int8, and pruned ones."""

from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import nhsvm
from estimators.problems import DAG, HIERARCHIES, TREE, make, make_sets
from nhsvm import HSVM, NHSVM, SSVM, load, prune
from nhsvm.errors import DataError, FileFormatError, OptionError
from nhsvm.model import read_model, write_model
from nhsvm.model.checks import check_rows
from nhsvm.storage import StoredRows, Table, pack

# of the largest weight of a feature: half a unit in the last place
ERROR = {"float16": 2.0**-11, "int8": 0.5 / 127}


def of_rows(n_features=30, n_columns=11, seed=0):
    """Rows of all kinds, some empty, some full."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n_features, n_columns)) * 10.0 ** rng.uniform(-12, 12, (n_features, 1))
    table *= rng.random((n_features, n_columns)) < rng.choice([0.0, 0.1, 0.5, 1.0], (n_features, 1))
    row, column = np.nonzero(table)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_features))])
    constant = rng.normal(size=n_columns)
    return StoredRows.from_lists(indptr, column, table[row, column], constant), np.vstack([table, constant])


def as_table(rows):
    return np.vstack([rows.to_array().toarray().T, rows.constant])


def packed_model(model, precision):
    made = copy(model)
    made.model_ = model.model_.packed(precision)
    return made


def test_rows_from_lists():
    rows, table = of_rows()
    check_rows(rows.arrays(), rows.n_features, rows.n_columns, ["float64"])
    np.testing.assert_array_equal(as_table(rows), table)
    wide = rows.size < 0
    assert wide.any()
    assert (rows.size == 0).any()
    assert (rows.size > 0).any()
    filled = (table[:-1] != 0).sum(axis=1)
    np.testing.assert_array_equal(wide, filled * 10 > 11 * 8)  # 2 + 8 bytes an entry, or 8 a column
    np.testing.assert_array_equal(rows.largest(), np.abs(table).max(axis=1))


@pytest.mark.parametrize("precision", ERROR)
@pytest.mark.parametrize("kind", ["by feature", "by column", "rows"])
def test_packed_weights_are_near(kind, precision):
    rows, table = of_rows()
    by_column = Table(np.ascontiguousarray(table.T), by_feature=False)
    weights = {"by feature": Table(table, by_feature=True), "by column": by_column, "rows": rows}[kind]
    packed = pack(weights, precision)
    assert packed.nbytes < 0.4 * weights.nbytes if kind != "rows" else packed.nbytes < weights.nbytes
    wide = packed.widened()
    wide = as_table(wide) if kind == "rows" else wide.values if kind == "by feature" else wide.values.T
    largest = np.abs(table).max(axis=1, keepdims=True)
    assert (np.abs(wide - table) <= ERROR[precision] * largest * (1 + 1e-5)).all()
    if precision == "float16":  # floats: small weights have their digits too
        seen = np.abs(table) > 1e-8 * largest
        assert (np.abs(wide - table)[seen] <= 2.0**-11 * np.abs(table)[seen] * (1 + 1e-5)).all()
    np.testing.assert_array_equal(packed.constant, wide[-1].astype(np.float32))
    np.testing.assert_array_equal(packed.column(3), wide[:-1, 3])
    some, few = np.array([4, 2, 9]), np.array([1, 5])
    np.testing.assert_array_equal(packed.block(some, few), wide[np.ix_(some, few)])
    assert packed.count_nonzero() == np.count_nonzero(wide)
    assert pack(packed, precision) is packed
    other = pack(packed, "int8")
    assert other.precision == "int8"


@pytest.mark.parametrize("precision", ERROR)
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("pruned", [True, False])
def test_answers_are_those_of_the_widened_weights(precision, name, sparse, pruned, tmp_path):
    h = HIERARCHIES[name]
    X, y = make(h, sparse=sparse, n_samples=60)
    model = HSVM(h).fit(X, y)
    model = prune(model, share=0.3).model if pruned else model
    model.save(tmp_path / "m", precision=precision)
    back = load(tmp_path / "m", verify=True)
    assert back.model_.weights.precision == precision
    U = back.coef_.toarray() if pruned else back.coef_
    scores = (X @ U.T.astype(float)) + back.intercept_
    for given in (X, sp.csr_array(X), X.toarray() if sparse else X):
        np.testing.assert_allclose(back.node_scores(given), scores, rtol=1e-5, atol=1e-5 * np.abs(scores).max())
        assert back.decision_function(given).dtype == np.float32
    exact = model.coef_.toarray() if pruned else model.coef_
    assert np.abs(U - exact).max() <= ERROR[precision] * np.abs(exact).max() * (1 + 1e-5)
    assert (back.predict(X) == model.predict(X)).mean() > 0.95
    np.testing.assert_allclose(
        [part.score for part in back.explain(X[[3]])],
        [back.node_scores(X)[3, sorted(h.graph.ancestors.row(h.number(back.predict(X)[3])))].sum()],
        rtol=1e-4,
    )
    assert back.strongest_features(h.leaves[0], 1)[0][0] == model.strongest_features(h.leaves[0], 1)[0][0]
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("cls", [NHSVM, SSVM])
@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
def test_label_sets(cls, h, tmp_path):
    X, y = make_sets(h, sparse=True)
    model = cls(h, tol=1e-2, **({"probability": True, "cv": 3} if cls is NHSVM else {})).fit(X, y)
    model.save(tmp_path / "m", precision="int8")
    back = load(tmp_path / "m")
    assert np.mean([a == b for a, b in zip(back.predict(X), model.predict(X), strict=True)]) > 0.9
    found = prune(model, share=0.2, X=X, y=y)
    assert found.effect.before == model.score(X, y)
    same = [a == b for a, b in zip(found.model.predict(X), model.predict(X), strict=True)]
    assert found.effect.same == np.mean(same)


def test_a_file_says_what_it_needs(tmp_path):
    X, y = make(sparse=True)
    model = NHSVM(TREE).fit(X, y)
    path = tmp_path / "m"
    model.save(path)
    assert b'"nhsvm_format":"1"' in path.read_bytes()
    model.save(path, precision="int8")
    assert b'"nhsvm_format":"3"' in path.read_bytes()
    assert load_file(path)["fitted/values"].dtype == np.int8
    texts = make_pipeline(TfidfVectorizer(), NHSVM(C=10)).fit(["it barks", "it purrs"], ["dog", "cat"])
    nhsvm.save(texts, path, precision="float16")
    assert b'"nhsvm_format":"3"' in path.read_bytes()
    assert load(path).predict(["who barks?"]).tolist() == ["dog"]


@pytest.mark.parametrize("precision", ["float32", "int4", 8, True])
def test_other_precisions(precision, tmp_path):
    X, y = make()
    with pytest.raises(OptionError, match="precision must be one of"):
        NHSVM(TREE).fit(X, y).save(tmp_path / "m", precision=precision)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("size", [1e-60, 1e60])
@pytest.mark.parametrize("precision", ERROR)
def test_weights_out_of_range(size, precision):
    with pytest.raises(OptionError, match=r"feature 1 is .* scale the features"):
        pack(Table(np.array([[1.0, 2.0], [size, 0.0]]), by_feature=True), precision)
    assert pack(Table(np.zeros((2, 2)), by_feature=True), precision).widened().values.tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
    ]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scale", lambda a: a[:-1]),
        ("scale", lambda a: a.astype(np.float64)),
        ("scale", lambda a: -a),
        ("scale", lambda a: a * np.float32(np.nan)),
        ("values", lambda a: a.astype(np.int16)),
        ("values", lambda a: a.astype(np.float32)),
        ("values", lambda a: a[:, :-1]),
        ("values", lambda a: a[0]),
    ],
)
def test_files_that_do_not_fit(name, change, tmp_path):
    X, y = make(sparse=True)
    NHSVM(TREE).fit(X, y).save(tmp_path / "m", precision="int8")
    header, arrays = read_model(tmp_path / "m")
    arrays = dict(arrays) | {f"fitted/{name}": change(arrays[f"fitted/{name}"])}
    write_model(tmp_path / "m", header, arrays)
    with pytest.raises(FileFormatError, match="its parts do not make a NHSVM"):
        load(tmp_path / "m")


@pytest.mark.parametrize("precision", ERROR)
def test_codes_need_their_scales(precision, tmp_path):
    X, y = make(sparse=True)
    NHSVM(TREE).fit(X, y).save(tmp_path / "m", precision=precision)
    header, arrays = read_model(tmp_path / "m")
    write_model(tmp_path / "m", header, {name: array for name, array in arrays.items() if name != "fitted/scale"})
    with pytest.raises(FileFormatError, match=f"'values' is {precision}"):
        load(tmp_path / "m")


@pytest.mark.parametrize("sparse", [True, False])
def test_pruning_keeps_the_largest(sparse):
    X, y = make(sparse=sparse)
    model = HSVM(TREE, C=1).fit(X, y)
    before = model.coef_.copy()
    found = prune(model, share=0.75, X=X, y=y)
    np.testing.assert_array_equal(model.coef_, before)
    after = found.model.coef_.toarray()
    assert found.n_weights == np.count_nonzero(before)
    assert found.n_kept == np.count_nonzero(after) == found.n_weights - int(0.75 * found.n_weights)
    kept = after != 0
    np.testing.assert_array_equal(after[kept], before[kept])
    assert np.abs(before[~kept]).max() <= np.abs(before[kept]).min()
    np.testing.assert_array_equal(found.model.intercept_, model.intercept_)
    assert found.effect.n_samples == X.shape[0]
    assert found.effect.before == model.score(X, y)
    assert found.effect.after == found.model.score(X, y)
    assert f"{found.effect.after:.4f} after" in str(found)
    threshold = float(np.abs(after[kept]).min()) * 1.0001
    again = prune(found.model, threshold=threshold)
    assert again.n_kept == (np.abs(after) >= threshold).sum() < found.n_kept
    assert "held-out" not in str(again)
    assert prune(model, share=0.0).n_kept == found.n_weights
    packed = prune(packed_model(model, "float16"), share=0.75)
    assert abs(packed.n_kept - found.n_kept) <= 1
    assert found.model.fit(X, y).score(X, y) == model.score(X, y)  # it can learn anew


def test_dense_samples_that_are_too_large():
    X, y = make()
    model = prune(HSVM(TREE).fit(X, y), share=0.5).model
    for kept in (model, packed_model(model, "int8")):
        for beam in (None, 2):
            with pytest.raises(DataError, match="too large to compute with"):
                kept.predict(1e200 * X, beam=beam)


def test_pipelines_are_pruned_too():
    texts, labels = ["it barks", "it purrs", "a leaf falls"], ["dog", "cat", "oak"]
    model = make_pipeline(TfidfVectorizer(), NHSVM(C=10)).fit(texts, labels)
    found = prune(model, share=0.4, X=texts, y=labels)
    assert found.model.predict(texts).tolist() == labels
    assert found.model[:-1].get_feature_names_out().tolist() == model[:-1].get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "either share or threshold"),
        ({"share": 0.5, "threshold": 1.0}, "either share or threshold"),
        ({"share": 1.0}, "share must be from 0 to below 1"),
        ({"share": "half"}, "share must be"),
        ({"threshold": -1}, "threshold must be"),
        ({"share": 0.5, "X": [[0.0] * 6]}, "both X and y"),
    ],
)
def test_bad_pruning(options, text):
    X, y = make()
    with pytest.raises(OptionError, match=text):
        prune(NHSVM(TREE).fit(X, y), **options)
    with pytest.raises(OptionError, match="a model of nhsvm, or a pipeline that ends in one, not a TfidfVectorizer"):
        prune(TfidfVectorizer(), share=0.5)
