"""Models whose weights do not fit as a table: the same answers, in less memory."""

import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from nhsvm import HSVM, NHSVM, SSVM, FlatSVM, Hierarchy, estimate_memory, load
from nhsvm.engine import storage as solver_memory
from nhsvm.engine.storage import addresses as solver_places
from nhsvm.engine.storage.rows import Rows
from nhsvm.errors import MemoryLimitError, MemoryWarning, NHSVMError, OptionError
from nhsvm.estimators import memory
from nhsvm.plots import plot_weights

H = Hierarchy.from_edges([(f"top{k % 3}", f"leaf{k:02d}") for k in range(12)])


def texts(n=150, n_features=400, seed=0):
    """Samples whose features are mostly those of their leaf."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(12, size=n)
    X = sp.lil_array((n, n_features))
    for i, label in enumerate(labels):
        X[i, rng.integers(10, size=4) + 30 * label] = 1.0
        X[i, rng.integers(n_features, size=3)] = 0.5
    return X.tocsr(), np.array([f"leaf{k:02d}" for k in labels])


X, y = texts()
X_TEST, y_test = texts(seed=1)
SETS = [sorted({a, b}) for a, b in zip(y, np.roll(y, 1), strict=True)]


@pytest.fixture
def no_tables(monkeypatch):
    monkeypatch.setattr(solver_memory, "TABLE", 0)


@pytest.mark.parametrize("kind", [FlatSVM, HSVM, NHSVM, SSVM])
@pytest.mark.parametrize("labels", ["one", "several"])
def test_the_same_as_with_a_table(kind, labels, monkeypatch):
    targets = y if labels == "one" else SETS
    table = kind(H, tol=1e-6).fit(X, targets)
    monkeypatch.setattr(solver_memory, "TABLE", 0)
    rows = kind(H, tol=1e-6).fit(X, targets)
    assert not sp.issparse(table.coef_)
    assert sp.issparse(rows.coef_)
    assert rows.gap_ <= 1e-6
    assert rows.objective_ == pytest.approx(table.objective_, rel=2e-6)
    np.testing.assert_allclose(rows.coef_.toarray(), table.coef_, atol=2e-3)
    np.testing.assert_allclose(rows.intercept_, table.intercept_, atol=2e-3)
    np.testing.assert_allclose(rows.decision_function(X_TEST), table.decision_function(X_TEST), atol=2e-2)


def test_threads_give_the_same_bits(no_tables):
    first, *others = (NHSVM(H, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3))
    for other in others:
        assert (first.coef_ != other.coef_).nnz == 0
        assert first.objective_ == other.objective_


def test_files_answers_and_pictures(no_tables, tmp_path):
    model = NHSVM(H, probability=True).fit(X, y)
    model.save(tmp_path / "m.nhsvm")
    back = load(tmp_path / "m.nhsvm")
    np.testing.assert_array_equal(back.decision_function(X_TEST), model.decision_function(X_TEST))
    np.testing.assert_array_equal(back.predict_proba(X_TEST), model.predict_proba(X_TEST))
    np.testing.assert_allclose(model.decision_function(X_TEST.toarray()), model.decision_function(X_TEST), atol=1e-5)
    assert (back.coef_ != model.coef_).nnz == 0
    name, weight = back.strongest_features("leaf03", 1)[0]
    node = model.hierarchy_.number("leaf03")
    assert weight == pytest.approx(model.coef_[[node]].toarray()[0, int(name[1:])])
    assert abs(weight) == pytest.approx(abs(model.coef_[[node]]).max())
    told = back.explain(X_TEST[:1])[0]
    assert told.score == pytest.approx(model.decision_function(X_TEST[:1]).max(), abs=1e-5)
    plot_weights(back)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("size", np.int32(10**6), "beyond their end"),
        ("size", np.int32(-5), "of a length below -1"),
        ("start", np.int64(-1), "beyond their end"),
        ("index", np.uint16(9_999), "columns of rows of weights has entries outside"),
    ],
)
def test_files_that_lie(no_tables, tmp_path, name, value, why):
    """Numbers that would lead a kernel out of its arrays are found on loading, whatever checksums say."""
    model = NHSVM(H).fit(X, y)
    rows = model.model_.weights
    getattr(rows, name)[np.flatnonzero(rows.size > 0)[0] if name != "index" else 0] = value
    model.save(tmp_path / "m.nhsvm")
    with pytest.raises(NHSVMError, match=why):
        load(tmp_path / "m.nhsvm")


def test_too_little():
    """It is said before the fit, and what would help when there is no more room."""
    tight = NHSVM(H, C=100, memory_limit=13_000)
    early = pytest.warns(
        MemoryWarning, match=r"expected to take about .* kB, and 13.0? kB are allowed: the fit may end"
    )
    late = r"400 features and 1[25] nodes need more than 13.0? kB; raise memory_limit"
    with early, pytest.raises(MemoryLimitError, match=late) as found:
        tight.fit(X, y)
    for advice in ("estimate_memory", "fewer features", "smaller C", "pruning makes a model smaller once it is fitted"):
        assert advice in str(found.value)
    with pytest.raises(MemoryLimitError, match="give sparse samples"):
        NHSVM(H, memory_limit=700).fit(X.toarray(), y)
    need = estimate_memory(X, y, H).table
    for limit, said in (700, r"needs .* kB, but 700 bytes"), (need - 1, f"needs {need:,} bytes, but {need - 1:,} "):
        tight = NHSVM(H, memory_limit=limit, solver="sgd")
        assert not estimate_memory(X, y, H, model=tight).fits
        assert "or sparse samples and solver='dual'" in str(estimate_memory(X, y, H, model=tight))
        with pytest.raises(MemoryLimitError, match=f"{said}.*solver='dual'"):
            tight.fit(X, y)


@pytest.mark.parametrize("refused", [1, 5])
def test_a_system_that_gives_less(refused, no_tables, monkeypatch):
    """Then rows have what there is, and results are the same."""
    asked, allocated = [], Rows._allocated

    def some(self, size, narrow):
        asked.append(size)
        if len(asked) <= refused:
            raise MemoryError
        return allocated(self, size, narrow)

    free = NHSVM(H, memory_limit=10**7).fit(X, y)
    monkeypatch.setattr(Rows, "_allocated", some)
    tight = NHSVM(H, memory_limit=10**7).fit(X, y)
    assert asked == [2 * 10**7 // 2**k for k in range(refused + 1)]
    assert (free.coef_ != tight.coef_).nnz == 0
    refused = 100
    with pytest.raises(MemoryLimitError, match=r"the system does not even give .* kB for the weights of 400 features"):
        NHSVM(H, memory_limit=10**7).fit(X, y)


def test_what_a_try_had_got_is_given_back(monkeypatch):
    """A system that gives two thirds of what is asked for first gives all of half of it."""
    given = []

    def some(shape, dtype):
        made = np.zeros(shape, dtype)
        given[:] = [other for other in given if other() is not None]
        if sum(other().nbytes for other in given) + made.nbytes > 2_000_000:
            raise MemoryError
        given.append(weakref.ref(made))
        return made

    rows = Rows(1_000, 1_000, np.float64, 750_000)
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", some)
        limit, pool = rows._reserved(np.dtype(np.uint16))
    assert (rows.asked, limit) == (750_000, 750_000)
    assert 1_400_000 < sum(part.nbytes for part in pool) <= 2_000_000
    rows.limit = 400_000
    assert "need more than 400.0 kB, all that the system gives of 750.0 kB allowed; free some" in str(rows.exhausted())


@pytest.mark.parametrize(
    ("given", "size"), [(1000, 1000), (2.5e9, 2_500_000_000), ("6 GB", 6 * 10**9), ("500MiB", 500 * 2**20), ("7", 7)]
)
def test_sizes(given, size):
    assert memory.parsed(given) == size


@pytest.mark.parametrize("given", [0, -1, "much", "3 PB", "1.2.3 GB", True, [5], float("nan")])
def test_no_sizes(given):
    with pytest.raises(OptionError, match='memory_limit must be None, a number of bytes, or text such as "6 GB"'):
        NHSVM(H, memory_limit=given).fit(X, y)


def test_estimate(monkeypatch):
    found = estimate_memory(X, y, H)
    assert found.samples == X.data.nbytes + X.indices.nbytes + 8 * len(X.indptr)
    assert found.weights == found.table == NHSVM(H).fit(X, y).model_.weights.nbytes
    assert found.total == found.weights + found.dual
    assert "a table" in str(found)
    monkeypatch.setattr(solver_memory, "TABLE", 0)
    small = NHSVM(H, memory_limit=5_000)
    found = estimate_memory(X, y, H, model=small)
    assert found.limit == 5_000
    assert not found.fits
    assert "rows; a table would take" in str(found)
    sets = estimate_memory(X, SETS, H, model=NHSVM(H, memory_limit=5_000))
    assert sets.weights == found.weights
    assert sets.dual < found.dual <= sets.dual + solver_places.KEPT * solver_places.ADDRESS_BYTES
    assert "does not fit" in str(found)
    dense = estimate_memory(X.toarray(), SETS, H, model=FlatSVM(H))
    assert dense.weights == dense.table == 401 * 12 * 4
    with pytest.raises(NHSVMError, match="inconsistent numbers of samples"):
        estimate_memory(X, y[:-1], H)
    with pytest.raises(OptionError, match=r"model must be an estimator of nhsvm, such as .* not a Pipeline"):
        estimate_memory(X, y, H, model=make_pipeline(NHSVM(H)))


def test_rows_take_about_what_was_estimated(no_tables):
    """Within a factor of three, mostly above, on samples with few words a document."""
    h = Hierarchy.from_edges([(f"top{k % 30}", f"leaf{k:03d}") for k in range(300)])
    rng = np.random.default_rng(0)
    samples = sp.random_array((2_000, 3_000), density=0.01, rng=rng, format="csr")
    labels = [f"leaf{k:03d}" for k in rng.integers(300, size=2_000)]
    model = NHSVM(h, tol=0.1)
    found = estimate_memory(samples, labels, h, model=model)
    assert found.weights / 3 <= model.fit(samples, labels).model_.weights.nbytes <= 1.5 * found.weights


@pytest.mark.parametrize("container", memory.CONTAINERS)
def test_free_memory(container, tmp_path, monkeypatch):
    """A container counts pages of files as in use, but gives them up."""
    assert 2**20 < memory.free_memory() < 2**50
    _, limit, used, files = container
    (tmp_path / limit).write_text("5000\n")
    (tmp_path / used).write_text("2000\n")
    monkeypatch.setattr(memory, "CONTAINERS", ((str(tmp_path), limit, used, files),))
    assert memory.free_memory() == 3000
    (tmp_path / "memory.stat").write_text(f"anon 5\n{files} 1200\n{files}_more 7\n")
    assert memory.free_memory() == 4200
    assert memory.allowed_bytes(None) == memory.SHARE * 4200
    (tmp_path / limit).write_text("max")
    assert memory.free_memory() > 5000


def test_features_that_never_occur():
    """A file of a hundred bytes can name feature 2³¹ − 2, and so claim that there are all those before it."""
    n_features = 2**31 - 2
    X = sp.csr_matrix((np.ones(3), np.array([0, n_features - 1, 5], np.int32), np.array([0, 1, 2, 3])))
    assert X.shape == (3, n_features)
    with pytest.raises(MemoryLimitError, match=r"2,147,483,646 features need 68\.7 GB even if their weights are zero"):
        NHSVM(memory_limit="1 GB").fit(X, ["a", "b", "c"])
