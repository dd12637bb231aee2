"""ImageNet's challenge of 2010: synsets of its development kit, and images as bags of visual words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._files import AnyPath, checked_path
from nhsvm.datasets._options import whole_number
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy

N_WORDS = 1000
TRUTH = "ILSVRC2010_validation_ground_truth.txt"
_BAG = ".sbow.mat"


def read_ilsvrc2010(folder: AnyPath, part: str = "train", *, per_class: int | None = None) -> Dataset:
    """Images of the ILSVRC 2010 challenge as counts of 1,000 visual words (SIFT), from the files it was published as.

    Wherever they are below the folder: ``meta.mat`` of the development kit, with the synsets; ``n01440764.sbow.mat``
    and so on, a file of training images for each synset; ``val.0001.sbow.mat`` and so on, the validation images in
    their order; ``ILSVRC2010_validation_ground_truth.txt``, a line with the number of the synset for each of them.

    Parameters
    ----------
    folder : path
    part : {"train", "val"}
    per_class : int, optional
        Training images of a synset, the first of its file; by default all. The demonstration of the development kit
        takes 100.

    Returns
    -------
    Dataset
        X is CSR, 1,000 counts an image; labels are WordNet ids, the leaves of a DAG of synsets.
    """
    root = checked_path(folder)
    if part not in ("train", "val"):
        raise OptionError(f"part must be 'train' or 'val', not {part!r}")
    if per_class is not None:
        whole_number(per_class, "per_class", 1)
    hierarchy, names = _synsets(_one(root, "meta.mat"))
    if part == "val":
        X = _stacked([_counts(file) for file in _bags(root, "val.")], root)
        return Dataset(_truth(_one(root, TRUTH), names, X.shape[0]), hierarchy, X)
    files = {file.name.removesuffix(_BAG): file for file in _bags(root, "n")}
    leaves = [name for name in names.values() if hierarchy.is_leaf(name)]
    lacking = [name for name in leaves if name not in files]
    if lacking:
        raise FileFormatError(root, None, f"{len(lacking)} synsets have no file, the first of them {lacking[0]}{_BAG}")
    found = [_counts(files[name])[:per_class] for name in leaves]
    y = np.repeat(leaves, [X.shape[0] for X in found])
    return Dataset(y, hierarchy, _stacked(found, root))


def _one(folder: Path, name: str) -> Path:
    found = sorted(folder.rglob(name), key=lambda path: (len(path.parts), path))
    if not found:
        raise FileFormatError(folder, None, f"there is no {name} in this folder or below")
    return found[0]


def _bags(folder: Path, start: str) -> list[Path]:
    return sorted((path for path in folder.rglob(f"{start}*{_BAG}")), key=lambda path: path.name)


def _matlab(file: Path, name: str) -> list[dict[str, Any]]:
    """An array of structures of a MATLAB file, as dicts."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        found = loadmat(file, simplify_cells=True, variable_names=[name])[name]
    except KeyError:
        raise FileFormatError(file, None, f"has no variable {name!r}") from None
    except (ValueError, TypeError, NotImplementedError, EOFError, MatReadError) as error:
        raise FileFormatError(file, None, f"not a MATLAB file of version 7 or before: {error}") from error
    items = [found] if isinstance(found, dict) else list(np.atleast_1d(found))
    if not items or not all(isinstance(item, dict) for item in items):
        raise FileFormatError(file, None, f"{name!r} is no array of structures")
    return items


def _field(item: dict[str, Any], name: str, file: Path) -> Any:
    if name not in item:
        raise FileFormatError(file, None, f"a structure has no field {name!r}; it has {sorted(item)}")
    return item[name]


def _synsets(file: Path) -> tuple[Hierarchy, dict[int, str]]:
    """The DAG, and WordNet ids by the challenge's numbers."""
    items = _matlab(file, "synsets")
    names = {int(_field(item, "ILSVRC2010_ID", file)): str(_field(item, "WNID", file)) for item in items}
    edges = [(str(item["WNID"]), names[child]) for item in items for child in _children(item, names, file)]
    return Hierarchy.from_edges(edges), names


def _children(item: dict[str, Any], names: dict[int, str], file: Path) -> Iterator[int]:
    count = int(_field(item, "num_children", file))
    for child in np.ravel(_field(item, "children", file))[:count].astype(int).tolist():  # the rest are zeros
        if child not in names:
            raise FileFormatError(file, None, f"synset {item['WNID']} has the child {child}, which there is not")
        yield child


def _counts(file: Path) -> sp.csr_matrix:
    """Visual words of every image of a file, counted."""
    bags = [np.ravel(_field(_field(item, "sbow", file), "word", file)).astype(np.int64)
            for item in _matlab(file, "image_sbow")]  # fmt: skip
    for k, words in enumerate(bags):
        if len(words) and not 0 <= words.min() <= words.max() < N_WORDS:
            raise FileFormatError(file, None, f"image {k + 1} has a word outside 0 … {N_WORDS - 1}")
    indptr = np.concatenate([[0], np.cumsum([len(words) for words in bags])])
    indices = np.concatenate(bags)
    counts = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(bags), N_WORDS))
    counts.sum_duplicates()
    return counts


def _stacked(parts: list[sp.csr_matrix], folder: Path) -> sp.csr_matrix:
    if not parts:
        raise FileFormatError(folder, None, f"there is no val.*{_BAG} in this folder or below")
    return sp.vstack(parts, format="csr")


def _truth(file: Path, names: dict[int, str], n_images: int) -> np.ndarray[Any, Any]:
    found = []
    for number, line in enumerate(file.read_text(encoding="ascii", errors="replace").splitlines(), 1):
        if not line.strip().isdecimal() or int(line) not in names:
            raise FileFormatError(file, number, f"expected the number of a synset, not {line[:60]!r}")
        found.append(names[int(line)])
    if len(found) != n_images:
        raise FileFormatError(file, None, f"{len(found):,} lines for {n_images:,} images")
    return np.array(found)
