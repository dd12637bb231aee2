"""Real files, where they are: what is read is what is known of them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nhsvm.datasets import read_hmc_arff, read_jsonl, read_lshtc

DATA = Path(os.environ.get("NHSVM_DATA", "no such folder"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs real data: set NHSVM_DATA to its folder")

# samples by split, nodes, leaves, nodes with several parents, labels a sample
TEXTS = {
    "newsgroups20": ({"train": 11_314, "test": 7_532}, 38, 20, 0, 1),
    "clinc150": ({"train": 15_000, "valid": 3_000, "test": 4_500}, 160, 150, 0, 1),
    "reuters21578": ({"train": 7_775, "test": 3_019}, 140, 135, 0, 1.24),
    "hallmarks": (
        {"train": 1_195, "test": 385},
        37,
        22,
        0,
        1.81,
    ),  # its table says 1.7; counted by hand it is 1.97, and 1.81 without those implied
    "mitre_attack": ({"train": 11_927, "test": 3_999}, 705, 593, 28, 1.006),
    "wordnet_gloss": ({"train": 61_389, "test": 20_725}, 17_157, 10_849, 476, 1.03),
}


def several_parents(hierarchy):
    return int((hierarchy.graph.parents.sizes() > 1).sum())


def mean_labels(y):
    return np.mean([len(labels) if isinstance(labels, list) else 1 for labels in y])


@pytest.mark.parametrize("name", TEXTS)
def test_text_sets(name):
    folder, (splits, nodes, leaves, several, labels) = DATA / name, TEXTS[name]
    data = read_jsonl(
        folder / "docs.jsonl.gz",
        hierarchy=folder / "hierarchy.tsv.gz",
        drop_root=True,
        drop_implied=True,
        extra="split",
    )
    assert Counter(data.extra["split"]) == splits
    assert (data.hierarchy.n_nodes, data.hierarchy.n_leaves) == (nodes, leaves)
    assert several_parents(data.hierarchy) == several
    assert mean_labels(data.y) == pytest.approx(labels, abs=0.05 if labels > 1.1 else 0.005)
    assert not data.skipped.count


def test_lshtc():
    folder = DATA / "lshtc_dryrun"
    train = read_lshtc(folder / "train.txt.gz", folder / "cat_hier.txt.gz", ignore=0)
    test = read_lshtc(folder / "test.txt.gz", ignore=0, like=train)
    assert (train.n_samples, test.n_samples) == (1_860, 1_858)
    # ten roots, which the table of the data does not count
    assert (train.hierarchy.n_nodes - len(train.hierarchy.roots), train.hierarchy.n_leaves) == (2_377, 1_139)
    alone = read_lshtc(folder / "test.txt.gz", ignore=0)
    assert len(np.union1d(train.feature_names, alone.feature_names)) == 29_726
    assert set(train.y) <= set(train.hierarchy.leaves)


# samples of train, valid and test; features; nodes, leaves, several parents, labels a sample
YEAST = {
    "cellcycle_FUN": ((1_628, 848, 1_281), 77, 499, 324, 0),
    "cellcycle_GO": ((1_625, 848, 1_278), 77, 4_125, 2_041, 1_477),
    "derisi_FUN": ((1_608, 842, 1_275), 63, 499, 324, 0),
    "derisi_GO": ((1_605, 842, 1_272), 63, 4_119, 2_037, 1_477),
    "eisen_FUN": ((1_058, 529, 837), 79, 461, 296, 0),
    "eisen_GO": ((1_055, 528, 835), 79, 3_573, 1_707, 1_277),
}


@pytest.mark.parametrize("name", YEAST)
def test_yeast(name):
    samples, features, nodes, leaves, several = YEAST[name]
    train = read_hmc_arff(DATA / "hmc" / f"{name}.train.arff.gz")
    others = [read_hmc_arff(DATA / "hmc" / f"{name}.{part}.arff.gz", like=train) for part in ("valid", "test")]
    assert tuple(data.n_samples for data in (train, *others)) == samples
    assert all(data.X.shape[1] == features for data in (train, *others))
    assert (train.hierarchy.n_nodes, train.hierarchy.n_leaves) == (nodes, leaves)
    assert several_parents(train.hierarchy) == several
    assert np.isnan(train.X).any() == (not name.startswith("derisi"))
    assert mean_labels(train.y) == pytest.approx(5 if "GO" in name else 3.3, abs=0.2)


def test_enron_and_imclef():
    train = read_hmc_arff(DATA / "hmc" / "Enron_corr_trainvalid.arff.gz")
    test = read_hmc_arff(DATA / "hmc" / "Enron_corr_test.arff.gz", like=train)
    assert (train.X.shape, test.X.shape) == ((988, 1001), (660, 1001))
    assert (train.hierarchy.n_nodes, train.hierarchy.n_leaves) == (56, 52)
    assert mean_labels([*train.y, *test.y]) == pytest.approx(2.9, abs=0.1)
    train = read_hmc_arff(DATA / "hmc" / "ImCLEF07A_Train.arff.gz")
    test = read_hmc_arff(DATA / "hmc" / "ImCLEF07A_Test.arff.gz", like=train)
    assert (train.X.shape, test.X.shape) == ((10_000, 80), (1_006, 80))
    assert (train.hierarchy.n_nodes, train.hierarchy.n_leaves) == (96, 63)
    assert not train.is_multilabel
