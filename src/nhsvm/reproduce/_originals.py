"""The paper's own sets, for those who have their files: IPC, DMOZ 2010, WIKI 2011 and ImageNet (Tables 2 and 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from nhsvm.datasets import Dataset, read_ilsvrc2010, read_lshtc, read_wipo_alpha
from nhsvm.datasets._files import opened
from nhsvm.errors import DataError
from nhsvm.hierarchy import Hierarchy
from nhsvm.model_selection import hold_out_split
from nhsvm.reproduce._benchmarks import HELD_OUT
from nhsvm.reproduce._outcomes import PAPERS
from nhsvm.reproduce._problem import BM25, Problem, count_features, text_features
from nhsvm.reproduce._sets import BenchmarkSet

DEPTH = 5  # of labels of WIKI, counted in edges on the longest way from the root
N_TERMS = 1000  # of WIKI d5: the paper's Table 2 has d = 1000, not how they were chosen; we take the most frequent
PER_CLASS = 100  # images: the paper's N = 100K for 1,000 synsets
_HIERARCHIES = ("cat_hier.txt", "hierarchy.txt")

Found = dict[str, Path]  # what a file is -> where it is


@dataclass(frozen=True)
class Original(BenchmarkSet):
    """A set of the paper, known by the names of its folder and files.

    Attributes
    ----------
    folders : tuple of str
        Names that its folder may have, in any case, with - or _.
    find : function of the folder to the files, None if some are missing
    """

    folders: tuple[str, ...] = ()
    find: Callable[[Path], Found | None] = lambda folder: None

    def missing(self, data: Path) -> list[str]:
        """What is looked for, if it is not there."""
        found = any(self.find(folder) for folder in self._places(data))
        return [] if found else [f"a folder {' or '.join(self.folders)} with {' and '.join(self.files)}"]

    def located(self, data: Path) -> Found:
        """Where its files are."""
        for folder in self._places(data):
            found = self.find(folder)
            if found is not None:
                return found
        raise DataError(f"{data} lacks {self.missing(data)[0]}")

    def _places(self, data: Path) -> list[Path]:
        inside = sorted(data.iterdir()) if data.is_dir() else []
        return [path for path in inside if path.is_dir() and path.name.lower().replace("_", "-") in self.folders]


def below(folder: Path, *names: str) -> Path | None:
    """The file of one of these names, gzipped or not, that is the least deep in a folder."""
    wanted = {ending for name in names for ending in (name, f"{name}.gz")}
    found = (path for path in folder.rglob("*") if path.name.lower() in wanted and path.is_file())
    return min(found, key=lambda path: (len(path.parts), path), default=None)


def _rows(folder: Path) -> Found | None:
    """Files of a challenge: a hierarchy and training rows; validation and test rows if they have labels."""
    hierarchy, train = below(folder, *_HIERARCHIES), below(folder, "train.txt")
    if hierarchy is None or train is None:
        return None
    others = {part: below(folder, f"{part}.txt") for part in ("validation", "test")}
    labelled = {part: path for part, path in others.items() if path is not None and _labelled(path)}
    return {"hierarchy": hierarchy, "train": train} | labelled


def _labelled(path: Path) -> bool:
    """Whether rows have labels: test rows of the challenges have none, or 0 in their place."""
    with opened(path) as stream:
        first = stream.readline().split(maxsplit=1)
    return bool(first) and b":" not in first[0] and first[0].rstrip(b",") != b"0"


def _patents(folder: Path) -> Found | None:
    """XML files in folders train and test, or the rows of a challenge."""
    parts = {part: folder / part for part in ("train", "test")}
    is_xml = all(path.is_dir() and any(path.rglob("*.xml*")) for path in parts.values())
    return parts if is_xml else _rows(folder)


def _images(folder: Path) -> Found | None:
    files = {name: below(folder, name.lower()) for name in ("meta.mat", "ILSVRC2010_validation_ground_truth.txt")}
    bags = all(any(folder.rglob(f"{start}*.sbow.mat")) for start in ("n", "val."))
    return {"folder": folder} if bags and None not in files.values() else None


def _ipc(data: Path, seed: int) -> Problem:
    found = ORIGINALS["ipc"].located(data)
    if "hierarchy" in found:
        return _challenge(found, seed, None)
    train = read_wipo_alpha(found["train"])
    test = read_wipo_alpha(found["test"], hierarchy=train.hierarchy, on_error="skip")
    assert train.hierarchy is not None
    assert train.texts is not None
    assert test.texts is not None
    X, X_test = text_features(train.texts, test.texts)
    return Problem(train.hierarchy, (X, train.y), (X_test, test.y), f"words of title, abstract, claims: {BM25}")


def _dmoz(data: Path, seed: int) -> Problem:
    return _challenge(ORIGINALS["dmoz"].located(data), seed, 0)


def _challenge(found: Found, seed: int, ignore: int | None) -> Problem:
    """Single-label rows. Without a labelled test part, the validation part is for testing, or a fifth of all."""
    train = read_lshtc(found["train"], found["hierarchy"], ignore=ignore)
    others = [read_lshtc(found[part], ignore=ignore, like=train) for part in ("validation", "test") if part in found]
    X, *more = count_features(train.X, *(part.X for part in others))
    assert train.hierarchy is not None
    features = f"term counts: {BM25}"
    if not others:
        return _split(train.hierarchy, X, train.y, seed, features)
    labelled: list[tuple[Any, Any]] = [(X_part, part.y) for X_part, part in zip(more, others, strict=True)]
    validation = labelled[0] if len(labelled) == 2 else None
    return Problem(train.hierarchy, (X, train.y), labelled[-1], features, validation)


def _wiki(data: Path, seed: int) -> Problem:
    found = ORIGINALS["wiki_d5"].located(data)
    rows = read_lshtc(found["train"], found["hierarchy"], multilabel=True)
    hierarchy, kept, y = cut_to_depth(rows, DEPTH)
    counts: Any = rows.X
    counts = counts[kept]
    often = np.sort(np.argsort(-np.bincount(counts.indices, minlength=counts.shape[1]), kind="stable")[:N_TERMS])
    (X,) = count_features(counts[:, often])
    return _split(hierarchy, X, y, seed, f"the {len(often):,} most frequent terms: {BM25}")


def cut_to_depth(rows: Dataset, depth: int) -> tuple[Hierarchy, list[int], list[list[Any]]]:
    """The hierarchy of labels up to a depth, the samples that have one, and these labels."""
    h = rows.hierarchy
    assert h is not None
    shallow = {node for node, level in zip(h.nodes, h.graph.level.tolist(), strict=True) if level <= depth}
    labels = [[label for label in sample if label in shallow] for sample in rows.y]
    kept = [i for i, sample in enumerate(labels) if sample]
    if not kept:
        raise DataError(f"no sample has a label at depth {depth} or less")
    return h.subset({label for sample in labels for label in sample}), kept, [labels[i] for i in kept]


def _split(hierarchy: Hierarchy, X: Any, y: Any, seed: int, features: str) -> Problem:
    """A fifth to test, stratified."""
    train, test = hold_out_split(y, test_size=HELD_OUT, random_state=seed, hierarchy=hierarchy)
    parts = [(X[rows], [y[i] for i in rows] if isinstance(y, list) else y[rows]) for rows in (train, test)]
    return Problem(hierarchy, parts[0], parts[1], f"{features}; a fifth of the labelled samples to test")


def _imagenet(data: Path, seed: int) -> Problem:
    folder = ORIGINALS["imagenet"].located(data)["folder"]
    train, test = read_ilsvrc2010(folder, per_class=PER_CLASS), read_ilsvrc2010(folder, "val")
    assert train.hierarchy is not None
    parts = [(normalize(part.X), part.y) for part in (train, test)]
    return Problem(train.hierarchy, parts[0], parts[1], "counts of 1,000 visual words, length one")


ORIGINALS: dict[str, Original] = {
    "ipc": Original(
        _ipc, ("XML files in train and test (WIPO-alpha), or train.txt, test.txt", "cat_hier.txt"), PAPERS,
        {"FlatSVM": "51.6 ± .08", "HSVM": "50.4 ± .09", "NHSVM": "52.2 ± .05 †", "SSVM": "52.6 ± .069 ‡"},
        ("ipc", "wipo-alpha", "wipoalpha"), _patents,
    ),
    "dmoz": Original(
        _dmoz, ("train.txt", "cat_hier.txt"), PAPERS,
        {"FlatSVM": "44.2", "HSVM": "45.0", "NHSVM": "45.5", "SSVM": "45.5"},
        ("dmoz", "dmoz10", "dmoz2010", "dmoz-2010", "large-lshtc-dataset"), _rows,
    ),
    "wiki_d5": Original(
        _wiki, ("train.txt", "cat_hier.txt or hierarchy.txt"), PAPERS,
        {"FlatSVM": "57 ± 1.3", "HSVM": "58 ± 1.1", "NHSVM": "60 ± .87 †", "SSVM": "*"},
        ("wiki", "wiki2011", "wiki-2011", "wikipedia"), _rows,
    ),
    "imagenet": Original(
        _imagenet, ("meta.mat", "ILSVRC2010_validation_ground_truth.txt", "n….sbow.mat", "val.….sbow.mat"), PAPERS,
        {"FlatSVM": "7.6 ± .08", "HSVM": "7.3 ± .16", "NHSVM": "8.0 ± .1 †", "SSVM": "*"},
        ("imagenet", "ilsvrc2010", "ilsvrc-2010"), _images,
    ),
}  # fmt: skip
"""Sets by the names of the paper's columns."""
