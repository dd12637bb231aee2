"""ImageNet's challenge of 2010: synsets of its development kit, and images as bags of visual words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._files import AnyPath, Trouble, checked_path, lines, shown
from nhsvm.datasets._matlab import read_variable
from nhsvm.datasets._options import whole_number
from nhsvm.errors import CycleError, FileFormatError, HierarchyError, OptionError
from nhsvm.hierarchy import Hierarchy

N_WORDS = 1000
TRUTH = "ILSVRC2010_validation_ground_truth.txt"
_BAG = ".sbow.mat"
_NUMBER = re.compile("[0-9]{1,15}")
_LARGEST = 2**53  # beyond it, not every whole number is a double


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


def _structures(file: Path, name: str) -> list[dict[str, Any]]:
    """An array of structures of a MATLAB file, as dicts."""
    found = read_variable(file, name)
    items = found if isinstance(found, list) else []
    while items and isinstance(items[0], list):  # structures in cells
        items = [item for cell in items if isinstance(cell, list) for item in cell]
    if not items or not all(isinstance(item, dict) for item in items):
        raise FileFormatError(file, None, f"{name!r} is no array of structures")
    return items


def _field(item: Any, name: str, file: Path) -> Any:
    """A field of a structure; a structure of its own comes as a list of one."""
    item = item[0] if isinstance(item, list) and len(item) == 1 else item
    if not isinstance(item, dict) or name not in item:
        there = f"; it has {shown(', '.join(sorted(item)))}" if isinstance(item, dict) else ""
        raise FileFormatError(file, None, f"a structure has no field {name!r}{there}")
    return item[name]


def _wholes(item: Any, name: str, file: Path) -> npt.NDArray[np.int64]:
    """A field of whole numbers."""
    found = _field(item, name, file)
    is_array = isinstance(found, np.ndarray)
    if not is_array or not ((np.abs(found) < _LARGEST) & (found == np.trunc(found))).all():
        raise FileFormatError(file, None, f"a field {name!r} has something else than whole numbers")
    return np.asarray(found, dtype=np.int64)


def _whole(item: Any, name: str, file: Path) -> int:
    found = _wholes(item, name, file)
    if len(found) != 1:
        raise FileFormatError(file, None, f"a field {name!r} has {len(found)} numbers, and not one")
    return int(found[0])


def _wordnet_id(item: Any, file: Path) -> str:
    found = _field(item, "WNID", file)
    if not isinstance(found, str):
        raise FileFormatError(file, None, "a field 'WNID' has something else than text")
    return found


def _synsets(file: Path) -> tuple[Hierarchy, dict[int, str]]:
    """The DAG, and WordNet ids by the challenge's numbers."""
    items = _structures(file, "synsets")
    names = {_whole(item, "ILSVRC2010_ID", file): _wordnet_id(item, file) for item in items}
    try:
        return Hierarchy.from_edges(_edges(items, names, file)), names
    except CycleError as error:
        raise CycleError(error.cycle, str(file)) from None
    except HierarchyError as error:
        raise FileFormatError(file, None, error.problem) from None


def _edges(items: list[dict[str, Any]], names: dict[int, str], file: Path) -> Iterator[tuple[str, str]]:
    for item in items:
        above, count = _wordnet_id(item, file), _whole(item, "num_children", file)
        for child in _wholes(item, "children", file)[: max(count, 0)].tolist():  # the rest are zeros
            if child not in names:
                raise FileFormatError(
                    file, None, f"synset {shown(above)[1:-1]} has the child {child}, which there is not"
                )
            yield above, names[child]


def _counts(file: Path) -> sp.csr_matrix:
    """Visual words of every image of a file, counted."""
    bags = [_wholes(_field(item, "sbow", file), "word", file) for item in _structures(file, "image_sbow")]
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
    for number, line in lines(file, "ascii", Trouble(file, "raise")):
        text = line.strip()
        synset = names.get(int(text)) if _NUMBER.fullmatch(text) else None
        if synset is None:
            raise FileFormatError(file, number, f"expected the number of a synset, not {shown(text)}")
        found.append(synset)
    if len(found) != n_images:
        raise FileFormatError(file, None, f"{len(found):,} lines for {n_images:,} images")
    return np.array(found)
