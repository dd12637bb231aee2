"""Real data for the benchmarks, as a user of scikit-learn would bring it: CSR tf-idf rows, or a dense array.

    python benchmarks/data.py --data DIR              # what there is: sizes, labels, hierarchy
    python benchmarks/data.py --data DIR --save OUT   # also one pickle of plain arrays for each set

``DIR`` (or the environment variable ``NHSVM_DATA``) holds one folder for each set. Without it only ``docstrings`` can
be built: it comes from the installed numpy, scipy and scikit-learn.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from rich.console import Console
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from nhsvm import Hierarchy
from nhsvm.datasets import read_hmc_arff, read_jsonl, read_lshtc
from nhsvm.model_selection import hold_out_split

Matrix = sp.csr_matrix | npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


class DataAbsentError(Exception):
    """A set cannot be built here; the message says why, and a benchmark shows it and goes on."""


@dataclass(frozen=True)
class Problem:
    """A single-label problem, split into what is learned from and what is judged by."""

    name: str
    hierarchy: Hierarchy
    X_train: Matrix
    y_train: Labels
    X_test: Matrix
    y_test: Labels
    note: str = ""

    @property
    def n_classes(self) -> int:
        """Classes with training samples; the only ones LIBLINEAR knows of."""
        return len(np.unique(self.y_train))

    def __str__(self) -> str:
        n, d = self.X_train.shape
        a_row = f"{self.X_train.nnz / n:.1f} non-zeros a row" if sp.issparse(self.X_train) else "dense"
        return (
            f"{self.name}: {n:,} + {len(self.y_test):,} samples, {d:,} features, {a_row}, "
            f"{self.n_classes} classes seen; {self.hierarchy}{'; ' + self.note if self.note else ''}"
        )

    def save(self, path: Path) -> None:
        """Plain fields only, so that another process can load it whatever has become of our classes."""
        fields = {
            "name": self.name,
            "note": self.note,
            "edges": list(self.hierarchy.edges()),
            "nodes": list(self.hierarchy.nodes),
            "X_train": self.X_train,
            "y_train": self.y_train,
            "X_test": self.X_test,
            "y_test": self.y_test,
        }
        with path.open("wb") as file:
            pickle.dump(fields, file, protocol=5)

    @classmethod
    def load(cls, path: Path) -> Problem:
        """Read what :meth:`save` wrote; a pickle, so only from files of one's own."""
        with path.open("rb") as file:
            fields = pickle.load(file)
        hierarchy = Hierarchy.from_edges(fields.pop("edges"), nodes=fields.pop("nodes"))
        return cls(hierarchy=hierarchy, **fields)


def stratified_split(y: Labels, share: float, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Positions to keep and to hold out."""
    return hold_out_split(y, test_size=share, random_state=seed)


def _present(path: Path) -> Path:
    if not path.exists():
        raise DataAbsentError(f"no file {path.name} in {path.parent}")
    return path


def _text_set(folder: Path) -> tuple[Hierarchy, list[str], list[list[str]], Labels]:
    tree, documents = (_present(folder / name) for name in ("hierarchy.tsv.gz", "docs.jsonl.gz"))
    found = read_jsonl(documents, hierarchy=tree, drop_root=True, extra="split", multilabel=True)
    return found.hierarchy, found.texts, found.y, np.array(found.extra["split"])


def _tfidf(train: Sequence[str], test: Sequence[str]) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    return vectorizer.fit_transform(train), vectorizer.transform(test)


def _text_problem(
    name: str, hierarchy: Hierarchy, texts: list[str], y: Labels, train: npt.ArrayLike, test: npt.ArrayLike, note: str
) -> Problem:
    X_train, X_test = _tfidf([texts[i] for i in train], [texts[i] for i in test])
    return Problem(name, hierarchy, X_train, y[train], X_test, y[test], note)


def newsgroups20(data: Path) -> Problem:
    """20 newsgroups by date, with headers, as they come."""
    hierarchy, texts, labels, split = _text_set(data / "newsgroups20")
    y = np.array([one for (one,) in labels])
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    return _text_problem("newsgroups20", hierarchy, texts, y, train, test, "by date")


def clinc150(data: Path) -> Problem:
    """CLINC150 without its out-of-scope part.

    Its validation part is left out, as in published results: C is chosen on held-out training data on every set alike.
    """
    hierarchy, texts, labels, split = _text_set(data / "clinc150")
    y = np.array([one for (one,) in labels])
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    return _text_problem("clinc150", hierarchy, texts, y, train, test, "validation part left out")


def mitre_attack(data: Path) -> Problem:
    """MITRE ATT&CK procedures with exactly one technique; no split is given, so ours: a stratified quarter to test."""
    hierarchy, texts, labels, _ = _text_set(data / "mitre_attack")
    single = [i for i, found in enumerate(labels) if len(found) == 1]
    texts, y = [texts[i] for i in single], np.array([labels[i][0] for i in single])
    train, test = stratified_split(y, 0.25, seed=0)
    return _text_problem("mitre_attack", hierarchy, texts, y, train, test, "single-label part, our split")


def lshtc_dryrun(data: Path, *, sublinear: bool = True) -> Problem:
    """LSHTC 2010 dry run: term counts as log-tf·idf.

    On a held-out fifth of the training data (two splits) LinearSVC gets 0.50 and 0.54 with it, 0.46 and 0.44 with
    plain tf-idf.
    """
    tree, train, test = (_present(data / "lshtc_dryrun" / f"{n}.txt.gz") for n in ("cat_hier", "train", "test"))
    found = read_lshtc(train, ignore=0)  # feature 0 is an internal id
    other = read_lshtc(test, ignore=0, like=found)
    # Not the hierarchy that read_lshtc would give: the tables in docs/results were made without the ten topmost
    # categories, and with labels as text in the order of their first paths, on which equal scores depend.
    with gzip.open(tree, "rt", encoding="utf-8") as file:
        hierarchy = Hierarchy.from_paths([line.split()[1:] for line in file], allow_duplicates=True)
    y_train, y_test = (np.array([str(label) for label in y]) for y in (found.y, other.y))
    weighting = TfidfTransformer(sublinear_tf=sublinear)
    X_train, X_test = weighting.fit_transform(found.X), weighting.transform(other.X)
    note = "log-tf·idf" if sublinear else "tf-idf"
    return Problem("lshtc_dryrun", hierarchy, X_train.tocsr(), y_train, X_test.tocsr(), y_test, note)


def imclef07a(data: Path) -> Problem:
    """ImCLEF07A: 80 dense descriptors of X-ray images, standardised on the training part."""
    train, test = (_present(data / "hmc" / f"ImCLEF07A_{part}.arff.gz") for part in ("Train", "Test"))
    found = read_hmc_arff(train)
    other = read_hmc_arff(test, like=found)
    scaler = StandardScaler().fit(found.X)
    X_train, X_test = scaler.transform(found.X), scaler.transform(other.X)
    return Problem("imclef07a", found.hierarchy, X_train, found.y.astype(str), X_test, other.y.astype(str), "dense")


# Not load_docstrings, which finds more of them (those of private modules, and inherited ones): the tables in
# docs/results were made with this set.
def _is_public(name: str) -> bool:
    return not any(part.startswith("_") or part in ("tests", "conftest") for part in name.split("."))


def _public_modules(package: str) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(root.__path__, package + ".", onerror=lambda _: None):
        if not _is_public(found.name):
            continue
        try:
            yield importlib.import_module(found.name)
        except Exception:  # noqa: BLE001 - an optional dependency that is not installed, of any kind
            continue


def _own_docstrings(holder: Any) -> Iterator[str]:
    """Docstrings of what a module or class offers, each class followed by its own methods."""
    names = getattr(holder, "__all__", None) or sorted(vars(holder))
    for name in names:
        thing = inspect.getattr_static(holder, name, None)
        if not isinstance(name, str) or name.startswith("_") or thing is None or inspect.ismodule(thing):
            continue
        text = getattr(thing, "__doc__", None)
        if callable(thing) or isinstance(thing, property | classmethod | staticmethod):
            if isinstance(text, str):
                yield text
            if inspect.isclass(thing) and not inspect.isclass(holder):
                yield from _own_docstrings(thing)


def docstrings(data: Path | None = None) -> Problem:
    """Docstrings of numpy, scipy and scikit-learn, labelled by public module path; a random stratified quarter to test.

    The same text in several modules counts once, in the module with the shortest path: that is where a user finds it.
    Digits all become 0, since scipy puts fresh random numbers into the docstrings of its distributions.
    """
    module_of: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in ("numpy", "scipy", "sklearn"):
            modules = {module.__name__: module for module in _public_modules(package)}
            for name, module in sorted(modules.items(), key=lambda found: (found[0].count("."), found[0])):
                for text in _own_docstrings(module):
                    if len(text.split()) >= 5:
                        module_of.setdefault(re.sub(r"\d+", "0", text.strip()), name)
    texts = sorted(module_of)  # some modules list their names in an order that changes from process to process
    y = np.array([module_of[text] for text in texts])
    hierarchy = Hierarchy.from_paths(
        [[".".join(path[: i + 1]) for i in range(len(path))] for path in (name.split(".") for name in np.unique(y))]
    )
    train, test = stratified_split(y, 0.25, seed=0)
    return _text_problem("docstrings", hierarchy, texts, y, train, test, "labels on inner nodes too")


LOADERS: dict[str, Callable[[Path], Problem]] = {
    "newsgroups20": newsgroups20,
    "clinc150": clinc150,
    "lshtc_dryrun": lshtc_dryrun,
    "mitre_attack": mitre_attack,
    "imclef07a": imclef07a,
    "docstrings": docstrings,
}


def load(name: str, data: Path | None) -> Problem:
    """One set by name.

    Raises
    ------
    DataAbsentError
        When the directory, or the set in it, is not there.
    """
    if name == "docstrings":
        return docstrings()
    if data is None:
        raise DataAbsentError("no data directory: give --data DIR or set NHSVM_DATA")
    if not data.is_dir():
        raise DataAbsentError(f"{data} is not a directory")
    return LOADERS[name](data)


def load_all(names: Sequence[str], data: Path | None, console: Console) -> Iterator[Problem]:
    """Each set that is there; what is not is said and skipped."""
    for name in names:
        try:
            yield load(name, data)
        except DataAbsentError as reason:
            console.print(f"{name}: skipped, {reason}")


def add_options(parser: argparse.ArgumentParser, extra: Sequence[str] = ()) -> None:
    """Options that all benchmarks on real data share; ``extra`` names sets that a benchmark makes itself."""
    names = [*extra, *LOADERS]
    given = os.environ.get("NHSVM_DATA")
    parser.add_argument(
        "--data", type=Path, default=Path(given) if given else None, help="folder of real data; default NHSVM_DATA"
    )
    parser.add_argument("--sets", nargs="+", choices=names, default=names, help="which sets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--save", type=Path, help="folder for one pickle a set")
    options = parser.parse_args()
    console = Console(width=120, highlight=False)
    for problem in load_all(options.sets, options.data, console):
        console.print(str(problem))
        if options.save:
            options.save.mkdir(parents=True, exist_ok=True)
            problem.save(options.save / f"{problem.name}.pkl")


if __name__ == "__main__":
    main()
