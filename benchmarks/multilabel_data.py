"""Sets of ``multilabel.py``: labels, hierarchy, and features as they are or mapped to those of a kernel.

Dense features are imputed and standardised. ``linear`` divides them by the root of their number. The kernels see them
clipped at three standard deviations and are approximated by 2,000 features (Nyström): ``rbf`` with gamma 0.6/d,
``laplacian`` with 1/d, and ``unit``, an RBF kernel with gamma 2 of rows scaled to length one, which is a kernel of the
cosine between two rows. Texts become tf-idf rows. What is learned here, no label is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from nhsvm import Hierarchy
from nhsvm.datasets import Dataset, read_hmc_arff, read_jsonl

YEAST = tuple(f"{name}_{kind}" for kind in ("FUN", "GO") for name in ("cellcycle", "derisi", "eisen"))
SETS = (*YEAST, "Enron_corr", "reuters21578")
TEXTS = ("reuters21578",)
MAPS = ("linear", "rbf", "laplacian", "unit")
COMPONENTS = 2000


@dataclass(frozen=True)
class Problem:
    """Training, validation and test parts."""

    name: str
    hierarchy: Hierarchy
    labels: tuple[list[list[str]], ...]  # of train, valid, train + valid, test
    features: dict[str, tuple[Any, ...]]  # of the same, by the map

    def part(self, number: int) -> tuple[list[Any], list[list[str]]]:
        """(one X for every map, y)."""
        return [made[number] for made in self.features.values()], self.labels[number]

    @property
    def linear(self) -> list[tuple[Any, list[list[str]]]]:
        """(X, y) of all parts."""
        return list(zip(self.features["linear"], self.labels, strict=True))


def load(name: str, folder: Path, maps: Sequence[str] = ("linear",)) -> Problem:
    """A set with the features of some maps; texts have linear ones only."""
    if name in TEXTS:
        return _texts(name, folder)
    parts = _arff(name, folder / "hmc")
    hierarchy = parts[0].hierarchy
    assert hierarchy is not None
    *learned, test = parts
    both = np.vstack([part.X for part in learned])
    labels = [learned[0].y, learned[-1].y, [y for part in learned for y in part.y], test.y]
    rows = [learned[0].X, learned[-1].X, both, test.X]
    if len(learned) == 1:
        rows[:2], labels[:2] = zip(*_fifth(both, labels[2]), strict=True)
    features = {}
    for kind in maps:
        prepare = make_pipeline(*_steps(kind, both.shape)).fit(both)
        features[kind] = tuple(prepare.transform(X) for X in rows)
    return Problem(name, hierarchy, tuple(labels), features)


def _steps(kind: str, shape: tuple[int, int]) -> list[Any]:
    n, d = shape
    steps: list[Any] = [SimpleImputer(), StandardScaler()]
    if kind == "linear":
        return [*steps, FunctionTransformer(lambda X: X / np.sqrt(d))]
    steps.append(FunctionTransformer(np.clip, kw_args={"a_min": -3.0, "a_max": 3.0}))
    if kind == "unit":
        steps.append(Normalizer())
    gamma = {"rbf": 0.6 / d, "laplacian": 1.0 / d, "unit": 2.0}[kind]
    name = "laplacian" if kind == "laplacian" else "rbf"
    return [*steps, Nystroem(kernel=name, gamma=gamma, n_components=min(n, COMPONENTS), random_state=0)]


def _arff(name: str, folder: Path) -> list[Dataset]:
    suffixes = (".train", ".valid", ".test") if name in YEAST else ("_trainvalid", "_test")
    found = [read_hmc_arff(folder / f"{name}{suffixes[0]}.arff.gz", multilabel=True)]
    for suffix in suffixes[1:]:
        found.append(read_hmc_arff(folder / f"{name}{suffix}.arff.gz", multilabel=True, like=found[0]))
    return found


def _fifth(X: Any, y: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Four fifths and one fifth, at random."""
    order = np.random.default_rng(0).permutation(len(y))
    cut = len(y) // 5
    return [(X[part], [y[i] for i in part]) for part in (np.sort(order[cut:]), np.sort(order[:cut]))]


def _texts(name: str, folder: Path) -> Problem:
    data = read_jsonl(
        folder / name / "docs.jsonl.gz", text="text", multilabel=True, hierarchy=folder / name / "hierarchy.tsv.gz",
        extra=["split"], drop_root=True,
    )  # fmt: skip
    assert data.hierarchy is not None
    assert data.texts is not None
    split = np.array(data.extra["split"])
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X, y = vectors.fit_transform([data.texts[i] for i in train]), [data.y[i] for i in train]
    parts = (*_fifth(X, y), (X, y), (vectors.transform([data.texts[i] for i in test]), [data.y[i] for i in test]))
    rows, labels = zip(*parts, strict=True)
    return Problem(name, data.hierarchy, labels, {"linear": rows})
