"""Blocks: the same data as the readers give, the same models, and nothing half-written or damaged taken for whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import polars
import pytest
import scipy.sparse as sp

from datasets.files import NAMES, NUMBERS, put
from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.datasets import (
    Dataset,
    convert_to_blocks,
    iter_blocks,
    make_unbalanced,
    open_blocks,
    read_chunks,
    read_csv,
    read_hmc_arff,
    read_jsonl,
    read_lshtc,
    read_parquet,
    read_svmlight,
    write_blocks,
)
from nhsvm.datasets.blocks import Stored, mapped, read_note
from nhsvm.engine import storage
from nhsvm.errors import DataError, LabelError, OptionError

LSHTC = "4 0:17 1177338:2 97353:1\n3 0:9 97353:4\n# note\n2 5:1 0:3 7:1.5\n5 97353:0.25\n"
SETS = "4 0:17 8:2\n3,5 0:9 2:4\n2 5:1 0:3\n5, 4 3:0.25\n"
SVM = "4 1:0.5 3:2\n5 2:1e-3\n2 7:1\n5 1:1 2:1 3:1\n"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """A file of a few lines comes in several parts."""
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 20)
    monkeypatch.setattr("nhsvm.datasets.chunks.ROWS", 2)
    monkeypatch.setattr("nhsvm.datasets.blocks_writer.PART", 3)


def same(found: Dataset, wanted: Dataset) -> None:
    """Two data sets are equal in every part, types included."""
    assert found.n_samples == wanted.n_samples
    assert type(found.y) is type(wanted.y)
    if isinstance(wanted.y, np.ndarray):
        assert found.y.dtype == wanted.y.dtype
        assert found.y.tolist() == wanted.y.tolist()
    else:
        assert found.y == wanted.y
    assert found.hierarchy == wanted.hierarchy
    assert (found.hierarchy and found.hierarchy.nodes) == (wanted.hierarchy and wanted.hierarchy.nodes)
    assert found.X.dtype == wanted.X.dtype
    assert found.X.shape == wanted.X.shape
    if sp.issparse(wanted.X):
        for name in ("data", "indices", "indptr"):
            one, other = getattr(found.X, name), getattr(wanted.X, name)
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
    else:
        assert found.X.tobytes() == np.ascontiguousarray(wanted.X).tobytes()
    if wanted.feature_names is None or isinstance(wanted.feature_names, range):
        assert found.feature_names == wanted.feature_names
    else:
        assert found.feature_names.dtype == wanted.feature_names.dtype
        assert found.feature_names.tolist() == wanted.feature_names.tolist()


def round_trip(reader, file, **options):
    """What blocks of a file have, which is what its reader gives."""
    to = file.with_name(file.name + ".blocks")
    done = convert_to_blocks(reader, file, to, **options)
    wanted = reader(file, **options)
    found = open_blocks(to)
    same(found, wanted)
    assert (done.n_samples, done.n_features) == found.X.shape
    assert done.nbytes == sum(p.stat().st_size for p in to.iterdir() if p.name != "header.json")
    assert done.skipped == wanted.skipped
    assert [p.name for p in file.parent.iterdir() if p.name.startswith(".")] == []
    return found


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (LSHTC, {}),
        (LSHTC, {"hierarchy": NUMBERS}),
        (LSHTC, {"ignore": 0, "dtype": np.float32}),
        (SETS, {"hierarchy": NUMBERS, "compact": False}),
        (SETS, {"multilabel": True}),
        ("4 0:1 1:1\n", {"multilabel": True}),
        (LSHTC, {"labelled": False}),
        ("0:3 97353:1\n8:1\n2:2\n", {}),
        ("4 1:1\nx 2:1\n3 5:1\n3 2147483646:1\n", {"on_error": "skip"}),
        ("3 1:1\n4\n5\n", {}),
        ("3\n4\n5\n", {}),
        (",\n3,4 1:1\n 2:2\n".replace(",\n", " 1:3\n", 1), {"multilabel": True}),
    ],
)
def test_lshtc(tmp_path, text, options):
    round_trip(read_lshtc, put(tmp_path, "train.txt", text), **options)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (SVM, {}),
        (SVM, {"hierarchy": NUMBERS, "drop_root": True, "dtype": np.float32}),
        (SVM, {"zero_based": True}),
        (SVM, {"zero_based": False, "n_features": 9}),
        ("4 0:1 3:2\n5 1:1\n", {}),
        ("4 3:1 1:2\n5 1:1\n", {"sort": True}),
        ("dog 1:1\ncat 2:1\ndog,oak 1:2\n", {"label_type": str, "hierarchy": NAMES}),
        ("dog 1:1\ncat 2:1\n", {"label_type": str}),
    ],
)
def test_svmlight(tmp_path, text, options):
    round_trip(read_svmlight, put(tmp_path, "train.svm.gz", text), **options)


CSV = "a,b,topic\n1,0.5,Science > Physics\n0,,Science > Biology\n2,1,Law\n1e-3,7,Science > Physics > Optics\n3,3,Law\n"


@pytest.mark.parametrize(
    "options",
    [
        {"path": "topic"},
        {"path": "topic", "qualified": False, "dtype": np.float32},
        {"path": "topic", "drop_root": True},
        {"label": "topic"},
        {},
    ],
)
def test_csv(tmp_path, options):
    round_trip(read_csv, put(tmp_path, "docs.csv", CSV), features=["a", "b"], **options)


RECORDS = [
    {"v": [1.0, 0.5], "labels": ["dog"]},
    {"v": [0.0, 2.0], "labels": ["cat"]},
    {"v": [3.0, 3.0], "labels": ["oak"]},
    {"v": [1.0, 1.0], "labels": ["dog", "oak"]},
    {"v": [1.0, 4.0], "labels": ["cat", "oak", "animal"]},
]


@pytest.mark.parametrize(
    "options", [{}, {"hierarchy": NAMES}, {"hierarchy": NAMES, "drop_implied": True}, {"multilabel": True}]
)
def test_records(tmp_path, options):
    text = "".join(json.dumps(record) + "\n" for record in RECORDS)
    round_trip(read_jsonl, put(tmp_path, "docs.jsonl", text), features="v", label="labels", **options)
    file = tmp_path / "docs.parquet"
    polars.DataFrame(RECORDS).write_parquet(file)
    round_trip(read_parquet, file, features="v", label="labels", **options)


def test_numbers_as_labels_of_tables_stay_objects(tmp_path):
    file = tmp_path / "docs.parquet"
    polars.DataFrame({"x": [1.0, 2.0, 3.0], "label": [3, 4, 3]}).write_parquet(file)
    round_trip(read_parquet, file, features="x", label="label", hierarchy=NUMBERS)


def test_arff_is_read_at_once(tmp_path):
    text = "@RELATION x\n@ATTRIBUTE w numeric\n@ATTRIBUTE class hierarchical a,a/b,a/c\n@DATA\n1,a/b\n?,a/c@a/b\n"
    found = round_trip(read_hmc_arff, put(tmp_path, "x.arff", text))
    assert np.isnan(found.X).tolist() == [[False], [True]]


def test_a_test_set_gets_the_features_of_the_training_set(tmp_path):
    convert_to_blocks(read_lshtc, put(tmp_path, "train.txt", SETS), tmp_path / "train.blocks", hierarchy=NUMBERS)
    train = open_blocks(tmp_path / "train.blocks")
    test = put(tmp_path, "test.txt", "4 99:1 8:1 1:1\n2 3:1\n5 6:2\n")
    convert_to_blocks(read_lshtc, test, tmp_path / "test.blocks", like=train)
    found = open_blocks(tmp_path / "test.blocks", like=train)
    same(found, read_lshtc(test, like=train))
    assert found.y == [[4], [2], [5]]
    convert_to_blocks(read_lshtc, test, tmp_path / "other.blocks")
    with pytest.raises(DataError, match=r"other.blocks: the features are not those of the training data.*--like"):
        open_blocks(tmp_path / "other.blocks", like=train)
    dense = make_unbalanced(4, 3, random_state=0)
    write_blocks(dense, tmp_path / "dense.blocks")
    open_blocks(tmp_path / "dense.blocks", like=dense)
    with pytest.raises(DataError, match="features are not those"):
        open_blocks(tmp_path / "dense.blocks", like=make_unbalanced(4, 2, random_state=0))


def test_parts_can_be_made_smaller(tmp_path):
    file = put(tmp_path, "docs.csv", CSV)

    def no_law(part):
        kept = [k for k in range(part.n_samples) if part.y[k] != "Law"]
        return Dataset(part.y[kept], part.hierarchy, part.X[kept], feature_names=part.feature_names)

    convert_to_blocks(read_csv, file, tmp_path / "a.blocks", each=no_law, features=["a", "b"], label="topic")
    assert open_blocks(tmp_path / "a.blocks").n_samples == 3
    with pytest.raises(DataError, match="no samples are left"):
        convert_to_blocks(
            read_csv, put(tmp_path, "l.csv", "a,topic\n1,Law\n"), tmp_path / "b.blocks",
            each=no_law, features="a", label="topic",
        )  # fmt: skip
    with pytest.raises(DataError, match="blocks hold features, and these samples have none"):
        convert_to_blocks(
            read_csv, file, tmp_path / "b.blocks", each=lambda part: Dataset(part.y, None, texts=["x"] * 2),
            features="a", label="topic",
        )  # fmt: skip
    assert not (tmp_path / "b.blocks").exists()


# --- data sets ---------------------------------------------------------------


def random_sparse(n=60, d=40, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.random((n, d)) * (rng.random((n, d)) < 0.2)).astype(dtype)
    y = rng.choice(["dog", "cat", "oak"], n).astype(object)
    return Dataset(y, NAMES, X)


def test_data_sets_in_parts(tmp_path):
    data = random_sparse()
    whole = write_blocks(data, tmp_path / "a.blocks", note={"made": "here"})
    parts = [Dataset(data.y[a : a + 7], NAMES, data.X[a : a + 7]) for a in range(0, 60, 7)]
    write_blocks(iter(parts), tmp_path / "b.blocks")
    same(open_blocks(tmp_path / "a.blocks"), data)
    same(open_blocks(tmp_path / "b.blocks"), data)
    assert (whole.nnz, whole.removed, read_note(tmp_path / "a.blocks")) == (data.X.nnz, 0, {"made": "here"})


def test_unsorted_rows_and_duplicates_are_put_in_order(tmp_path):
    X = sp.csr_matrix((np.array([1.0, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    write_blocks(Dataset(None, None, X), tmp_path / "a.blocks")
    found = open_blocks(tmp_path / "a.blocks").X
    assert (found.indices.tolist(), found.data.tolist()) == ([0, 2], [2.0, 4.0])
    assert X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "there are none"),
        ([Dataset(["dog"], NAMES, texts=["woof"])], "there are none"),
        ([random_sparse(), random_sparse(d=3)], "same features"),
        ([random_sparse(), make_unbalanced(9, 40, random_state=0)], "same features"),
        ([make_unbalanced(9, 40, random_state=0), random_sparse()], "same features"),
        ([Dataset(None, None, np.eye(2)), Dataset(["dog"], None, np.eye(2)[:1])], "others have none"),
        ([Dataset(["dog"], None, np.eye(2)[:1]), Dataset(None, None, np.eye(2))], "others have none"),
        ([Dataset(["dog"], None, np.eye(2))], "2 samples, but labels of 1"),
    ],
)
def test_parts_that_do_not_fit_together(tmp_path, parts, problem):
    with pytest.raises(DataError, match=problem):
        write_blocks(parts, tmp_path / "a.blocks")
    assert list(tmp_path.iterdir()) == []


def test_labels_that_json_does_not_have(tmp_path):
    with pytest.raises(LabelError, match=r"text or whole numbers, not \(1, 2\), a tuple"):
        write_blocks(Dataset([(1, 2)], None, np.eye(1)), tmp_path / "a.blocks")
    with pytest.raises(LabelError, match="not True, a bool"):
        write_blocks(Dataset([True], None, np.eye(1)), tmp_path / "a.blocks")
    with pytest.raises(LabelError, match=r"not 0\.5, a float"):
        write_blocks(Dataset(None, Hierarchy.from_edges([(0.5, "b")]), np.eye(1)), tmp_path / "a.blocks")
    assert list(tmp_path.iterdir()) == []


def test_other_hierarchies_and_forms_of_labels(tmp_path):
    to = tmp_path / "a.blocks"
    data = random_sparse()
    write_blocks(data, to)
    other = Hierarchy.from_edges([("top", x) for x in ("cat", "dog", "oak")])
    assert open_blocks(to, other).hierarchy == other
    assert open_blocks(to, put(tmp_path, "h.tsv", "top\tcat\ntop\tdog\ntop\toak\n"), drop_root=True).hierarchy.roots
    assert open_blocks(to, multilabel=True).y == [[label] for label in data.y]
    assert open_blocks(to, labelled=False).y is None
    with pytest.raises(LabelError, match=r"a.blocks: not in the hierarchy: '\w+'"):
        open_blocks(to, NUMBERS)
    with pytest.raises(OptionError, match="hierarchy must be"):
        open_blocks(to, 3)
    sets = tmp_path / "sets.blocks"
    write_blocks(Dataset([["dog"], ["cat"]], None, np.eye(2)), sets)
    assert open_blocks(sets, multilabel=False).y.tolist() == ["dog", "cat"]
    write_blocks(Dataset([["dog"], ["cat", "oak"]], None, np.eye(2)), sets, force=True)
    with pytest.raises(LabelError, match="expected one label a sample, but sample 1 has 2"):
        open_blocks(sets, multilabel=False)
    numbers = tmp_path / "numbers.blocks"
    write_blocks(Dataset(np.array([2, 4]), None, np.eye(2)), numbers)
    assert open_blocks(numbers, put(tmp_path, "n.tsv", "1\t2\n1\t4\n")).hierarchy.nodes == (1, 2, 4)


# --- the same models ---------------------------------------------------------


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", ["flat", "nhsvm", "sets", "sgd"])
def test_models_are_the_same_to_the_last_bit(tmp_path, kind, dense, dtype):
    data = random_sparse(dtype=dtype)
    X = data.X.toarray() if dense else data.X
    y = [sorted({a, b}) for a, b in zip(data.y, np.roll(data.y, 1), strict=True)] if kind == "sets" else data.y
    write_blocks(Dataset(y, NAMES, X), tmp_path / "a.blocks")
    disk = open_blocks(tmp_path / "a.blocks")
    make = {
        "flat": lambda: FlatSVM(random_state=0),
        "nhsvm": lambda: NHSVM(NAMES, random_state=0),
        "sets": lambda: HSVM(NAMES, random_state=0, tol=0.01),
        "sgd": lambda: NHSVM(NAMES, solver="sgd", max_iter=5, random_state=0),
    }[kind]
    one, other = fitted(make(), X, y), fitted(make(), disk.X, disk.y)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert (one.objective_, one.dual_objective_) == (other.objective_, other.dual_objective_)
    assert one.decision_function(X).tobytes() == other.decision_function(disk.X).tobytes()


@pytest.mark.parametrize("several", [False, True])
def test_weights_in_rows_are_the_same_too(tmp_path, several, monkeypatch):
    """A table, rows, and rows learned from blocks: the first two to rounding, the last two to the last bit."""
    data = random_sparse()
    y = [sorted({a, b}) for a, b in zip(data.y, np.roll(data.y, 1), strict=True)] if several else data.y
    write_blocks(Dataset(y, NAMES, data.X), tmp_path / "a.blocks")
    disk = open_blocks(tmp_path / "a.blocks")
    table = NHSVM(NAMES, tol=1e-9).fit(data.X, y)
    monkeypatch.setattr(storage, "TABLE", 0)
    memory, blocks = (NHSVM(NAMES, tol=1e-9).fit(*given) for given in ((data.X, y), (disk.X, disk.y)))
    assert sp.issparse(blocks.coef_)
    assert (memory.coef_ != blocks.coef_).nnz == 0
    assert memory.intercept_.tobytes() == blocks.intercept_.tobytes()
    assert memory.objective_ == blocks.objective_ == pytest.approx(table.objective_, rel=2e-9)
    np.testing.assert_allclose(blocks.coef_.toarray(), table.coef_, atol=1e-3)


def test_partial_fit_a_part_at_a_time(tmp_path):
    data = random_sparse()
    write_blocks(data, tmp_path / "a.blocks")
    one, other = (NHSVM(NAMES, solver="sgd", random_state=0) for _ in range(2))
    for start in range(0, 60, 25):
        one.partial_fit(data.X[start : start + 25], data.y[start : start + 25], classes=["cat", "dog", "oak"])
    for X, y in iter_blocks(tmp_path / "a.blocks", 25):
        other.partial_fit(X, y, classes=["cat", "dog", "oak"])
    assert one.coef_.tobytes() == other.coef_.tobytes()


def test_parts_of_blocks(tmp_path):
    data = random_sparse()
    write_blocks(data, tmp_path / "a.blocks")
    parts = list(iter_blocks(open_blocks(tmp_path / "a.blocks"), 25))
    assert [X.shape[0] for X, _ in parts] == [25, 25, 10]
    assert np.array_equal(sp.vstack([X for X, _ in parts]).toarray(), data.X.toarray())
    assert np.concatenate([y for _, y in parts]).tolist() == data.y.tolist()
    chunks = list(read_chunks(open_blocks, tmp_path / "a.blocks", 25, labelled=False))
    assert [(part.n_samples, part.y) for part in chunks] == [(25, None), (25, None), (10, None)]
    write_blocks(Dataset(None, None, np.eye(3)), tmp_path / "b.blocks")
    assert [(X.tolist(), y) for X, y in iter_blocks(tmp_path / "b.blocks", 2)][1] == ([[0.0, 0.0, 1.0]], None)
    with pytest.raises(OptionError, match="rows must be at least 1"):
        next(iter_blocks(tmp_path / "b.blocks", 0))
    with pytest.raises(OptionError, match="no features"):
        next(iter_blocks(Dataset(["dog"], None, texts=["woof"])))


# --- memory ------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
def test_nothing_is_copied_on_the_way_to_the_solver(tmp_path, dense):
    from nhsvm.engine import prepare
    from nhsvm.estimators.problem import checked

    data = random_sparse()
    write_blocks(Dataset(data.y, NAMES, data.X.toarray() if dense else data.X), tmp_path / "a.blocks")
    X = open_blocks(tmp_path / "a.blocks").X
    seen = prepare(checked(NHSVM(), X, reset=True))
    pairs = [(X, seen)] if dense else [(X.data, seen.data), (X.indices, seen.indices)]
    for before, after in pairs:
        assert after.__array_interface__["data"][0] == before.__array_interface__["data"][0]
        assert after.flags.writeable  # kernels are compiled for such arrays


def test_kernels_are_not_compiled_anew(tmp_path):
    from nhsvm.engine import samples
    from nhsvm.engine.storage import table

    data = random_sparse(dtype=np.float32)
    kernels = [found for found in (vars(samples) | vars(table)).values() if hasattr(found, "signatures")]
    fitted(NHSVM(NAMES, random_state=0), data.X, data.y)
    before = [list(kernel.signatures) for kernel in kernels]
    write_blocks(data, tmp_path / "a.blocks")
    disk = open_blocks(tmp_path / "a.blocks")
    fitted(NHSVM(NAMES, random_state=0), disk.X, disk.y)
    assert kernels
    assert [list(kernel.signatures) for kernel in kernels] == before


def test_writing_to_arrays_leaves_the_files_alone(tmp_path):
    write_blocks(random_sparse(), tmp_path / "a.blocks")
    data = open_blocks(tmp_path / "a.blocks")
    data.X.data[:] = 7.0
    assert not np.array_equal(open_blocks(tmp_path / "a.blocks").X.data, data.X.data)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other ways")
def test_a_file_larger_than_memory_can_be_mapped(tmp_path):
    size = 4 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    file = tmp_path / "data.f64"
    with file.open("wb") as stream:
        stream.truncate(size)  # takes no room on the disk
    found = mapped(file, "<f8", Stored(size, 0))
    assert (len(found), found[len(found) // 2]) == (size // 8, 0.0)


_FIT = """
import resource, sys, warnings
import numpy as np
from nhsvm import NHSVM
from nhsvm.datasets import open_blocks
warnings.simplefilter("ignore")

def anonymous():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData"))

data = open_blocks(sys.argv[1])
size = data.X.data.nbytes + data.X.indices.nbytes
model = NHSVM(data.hierarchy, max_iter=2, n_jobs=1)
model.fit(data.X[:20], data.y[:20])
limit = anonymous() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model.fit(data.X, data.y)
assert model.predict(data.X[:50]).shape == (50,)
try:
    data.X.copy()
except MemoryError:
    print(size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_fit_in_less_memory_than_the_data_take(tmp_path):
    rng = np.random.default_rng(0)
    n, d, k = 1500, 8000, 2000
    indices = (np.arange(k) * (d // k) + rng.integers(0, d // k, (n, k))).astype(np.int32)
    X = sp.csr_array((rng.random(n * k), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, d))
    write_blocks(Dataset(rng.choice(["dog", "cat", "oak"], n).astype(object), NAMES, X), tmp_path / "a.blocks")
    limit = 20 << 20
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", _FIT, str(tmp_path / "a.blocks"), str(limit)],
        capture_output=True, text=True, check=False, env=os.environ | one_thread,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 12 * n * k > 1.7 * limit


_CONVERT = """
import sys
from itertools import islice
from pathlib import Path
from nhsvm.datasets import files, convert_to_blocks, read_svmlight
files.BLOCK = 1 << 18

def peak():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

file = Path(sys.argv[1])
start = Path(sys.argv[1] + ".start")
start.write_bytes(b"".join(islice(file.open("rb"), 3000)))
convert_to_blocks(read_svmlight, start, start.with_suffix(".blocks"))
before = peak()
convert_to_blocks(read_svmlight, file, file.with_suffix(".blocks"))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_converting_takes_no_more_memory_for_a_longer_file(tmp_path):
    file = tmp_path / "train.svm"
    row = " ".join(f"{7 * k + 1}:1" for k in range(60))
    with file.open("w") as stream:
        stream.writelines(f"{k % 5} {row}\n" for k in range(90_000))
    done = subprocess.run([sys.executable, "-c", _CONVERT, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    size = sum(part.stat().st_size for part in (tmp_path / "train.blocks").iterdir())
    assert size > 60 << 20
    assert int(done.stdout) < size / 4
