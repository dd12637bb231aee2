"""Labels of one hash: dictionaries of them take the square of their number, so that many of them are refused."""

import json

import numpy as np
import polars
import pytest

from nhsvm import NHSVM, Hierarchy
from nhsvm.datasets import Dataset, open_blocks, read_csv, read_jsonl, read_parquet, write_blocks
from nhsvm.errors import NHSVMError
from nhsvm.hierarchy import LabelSpace

PRIME = 2**61 - 1
HOSTILE = [k * PRIME for k in range(1, 400)]
SAID = "labels have the same hash"


def refused(call, *args, **options):
    with pytest.raises(NHSVMError, match=SAID):
        call(*args, **options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.json", json.dumps([[0, label] for label in HOSTILE])),
        ("h.json", json.dumps({"nodes": HOSTILE})),
        ("h.json", json.dumps({str(label): "0" for label in HOSTILE})),
        ("h.json", json.dumps({"0": {str(label): {} for label in HOSTILE}})),
        ("h.csv", "".join(f"0,{label}\n" for label in HOSTILE)),
        ("h.txt", "".join(f"0 {label}\n" for label in HOSTILE)),
        ("h.txt", "".join(f"0 1 {label}\n" for label in HOSTILE)),
        ("h.txt", "".join(f"{a} {b} {c}\n" for a in HOSTILE[:9] for b in HOSTILE[9:18] for c in HOSTILE[18:27])),
    ],
    ids=["pairs", "nodes", "parents", "nested", "csv", "lshtc pairs", "lshtc paths", "products"],
)
def test_files_of_hierarchies(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    refused(Hierarchy.read, file, label_type=int)


@pytest.mark.parametrize("label", [HOSTILE, [(label, "x") for label in HOSTILE], [frozenset([k]) for k in HOSTILE]])
def test_labels_from_python(label):
    refused(Hierarchy.from_edges, [("root", one) for one in label])
    refused(Hierarchy.from_parents, dict.fromkeys(label[:50], "a") | {"b": label[50:]})
    refused(Hierarchy, list(label), np.zeros(0, np.int32), np.zeros(0, np.int32))


def test_labels_of_samples():
    X = np.arange(2.0 * len(HOSTILE)).reshape(-1, 2)
    refused(NHSVM().fit, X, HOSTILE)
    refused(NHSVM().fit, X, [{label, "a"} for label in HOSTILE])
    h = Hierarchy.from_edges([("root", "a")])
    refused(LabelSpace.for_labels, h, HOSTILE)


def test_labels_in_tables(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("x,label\n" + "".join(f"1,{label}\n" for label in HOSTILE))
    refused(read_csv, file, features="x", label="label", label_type=int)
    file = tmp_path / "a.jsonl"
    for rows in ([[label] for label in HOSTILE], [HOSTILE], [[a, b] for a in HOSTILE[:30] for b in HOSTILE[30:60]]):
        file.write_text("".join(json.dumps({"x": 1, "labels": row}) + "\n" for row in rows))
        refused(read_jsonl, file, features="x")
        if len(rows) > 1:
            assert read_jsonl(file, features="x", on_error="skip").skipped.count > 0
    polars.DataFrame({"x": [1.0] * len(HOSTILE), "label": list(map(str, HOSTILE))}).write_parquet(
        tmp_path / "a.parquet"
    )
    refused(read_parquet, tmp_path / "a.parquet", features="x", label="label", label_type=int)


def test_labels_in_blocks(tmp_path):
    from datasets.test_blocks_files import with_names

    y = [[k] for k in range(1, 400)]
    blocks = tmp_path / "a.blocks"
    write_blocks(Dataset(y, None, np.eye(len(y))), blocks)
    with_names(blocks, {"labels": HOSTILE})
    refused(open_blocks, blocks)


def test_few_of_them_are_fine():
    """There is nothing wrong with large numbers."""
    labels = HOSTILE[:100]
    h = Hierarchy.from_edges([("root", label) for label in labels])
    assert h.n_leaves == 100
    assert Hierarchy.from_edges([("root", label) for label in range(5000)]).n_leaves == 5000
    assert LabelSpace.for_labels(h, labels * 3).classes == tuple(labels)
