"""ImageNet's challenge of 2010: synsets of its development kit, and images as bags of visual words."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from nhsvm.datasets.dataset import AnyPath, Dataset, whole_number
from nhsvm.datasets.files import ReadLog, checked_path, lines, opened, shown
from nhsvm.errors import CycleError, FileFormatError, HierarchyError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import Array, Matrix, PtrArray

Variable: TypeAlias = "Array | str | list[Variable] | dict[str, Variable]"
"""Numbers, text, the items of a cell array, or a structure."""
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
        bags = _bags(root, "val.")
        if not bags:
            raise FileFormatError(root, None, f"there is no val.*{_BAG} in this folder or below")
        X = sp.vstack(list(map(_counts, bags)), format="csr")
        return Dataset(_truth(_one(root, TRUTH), names, X.shape[0]), hierarchy, X)
    files = {file.name.removesuffix(_BAG): file for file in _bags(root, "n")}
    leaves = [name for name in names.values() if hierarchy.is_leaf(name)]
    lacking = [name for name in leaves if name not in files]
    if lacking:
        raise FileFormatError(root, None, f"{len(lacking)} synsets have no file, the first of them {lacking[0]}{_BAG}")
    found = [_counts(files[name])[:per_class] for name in leaves]
    y = np.repeat(leaves, [X.shape[0] for X in found])
    return Dataset(y, hierarchy, sp.vstack(found, format="csr"))


def _one(folder: Path, name: str) -> Path:
    found = sorted(folder.rglob(name), key=lambda path: (len(path.parts), path))
    if not found:
        raise FileFormatError(folder, None, f"there is no {name} in this folder or below")
    return found[0]


def _bags(folder: Path, start: str) -> list[Path]:
    return sorted((path for path in folder.rglob(f"{start}*{_BAG}")), key=lambda path: path.name)


def _structures(file: Path, name: str) -> list[dict[str, Variable]]:
    """An array of structures of a MATLAB file, as dicts."""
    found = read_variable(file, name)
    items = found if isinstance(found, list) else []
    while items and isinstance(items[0], list):  # structures in cells
        items = [item for cell in items if isinstance(cell, list) for item in cell]
    structures = [item for item in items if isinstance(item, dict)]
    if not items or len(structures) < len(items):
        raise FileFormatError(file, None, f"{name!r} is no array of structures")
    return structures


def _field(item: Variable, name: str, file: Path) -> Variable:
    """A field of a structure; a structure of its own comes as a list of one."""
    item = item[0] if isinstance(item, list) and len(item) == 1 else item
    if not isinstance(item, dict) or name not in item:
        there = f"; it has {shown(', '.join(sorted(item)))}" if isinstance(item, dict) else ""
        raise FileFormatError(file, None, f"a structure has no field {name!r}{there}")
    return item[name]


def _wholes(item: Variable, name: str, file: Path) -> PtrArray:
    """A field of whole numbers."""
    found = _field(item, name, file)
    if not isinstance(found, np.ndarray) or not ((np.abs(found) < _LARGEST) & (found == np.trunc(found))).all():
        raise FileFormatError(file, None, f"a field {name!r} has something else than whole numbers")
    return np.asarray(found, dtype=np.int64)


def _whole(item: Variable, name: str, file: Path) -> int:
    found = _wholes(item, name, file)
    if len(found) != 1:
        raise FileFormatError(file, None, f"a field {name!r} has {len(found)} numbers, and not one")
    return int(found[0])


def _wordnet_id(item: Variable, file: Path) -> str:
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


def _edges(items: list[dict[str, Variable]], names: dict[int, str], file: Path) -> Iterator[tuple[str, str]]:
    for item in items:
        above, count = _wordnet_id(item, file), _whole(item, "num_children", file)
        for child in _wholes(item, "children", file)[: max(count, 0)].tolist():  # the rest are zeros
            if child not in names:
                raise FileFormatError(
                    file, None, f"synset {shown(above)[1:-1]} has the child {child}, which there is not"
                )
            yield above, names[child]


def _counts(file: Path) -> Matrix:
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


def _truth(file: Path, names: dict[int, str], n_images: int) -> Array:
    found = []
    for number, line in lines(file, "ascii", ReadLog(file, "raise")):
        text = line.strip()
        synset = names.get(int(text)) if _NUMBER.fullmatch(text) else None
        if synset is None:
            raise FileFormatError(file, number, f"expected the number of a synset, not {shown(text)}")
        found.append(synset)
    if len(found) != n_images:
        raise FileFormatError(file, None, f"{len(found):,} lines for {n_images:,} images")
    return np.array(found)


# -- MATLAB files ------------------------------------------------------------------------------------------------------
#
# scipy.io.loadmat takes lengths as they come: a damaged file can end the process, or ask for any amount of memory.
# This reads what data sets are made of, arrays of numbers, text, cells and structures, with every length checked.

_SWAPPED = {b"IM": "<", b"MI": ">"}  # the mark at the end of the header, and the order of bytes that it stands for
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELLS, _STRUCTURES, _CHARACTERS = 1, 2, 4
_OF_NUMBERS = range(6, 16)  # classes of arrays
_DEEPEST = 20  # structures in structures
_GROWTH, _SPARE = 50, 1 << 20  # times its size that a compressed variable may have, and bytes beyond that


class _BadFile(Exception):  # noqa: N818 - never leaves this module
    """What is wrong with a file."""


def read_variable(file: Path, name: str) -> Variable:
    """A variable of a MATLAB file.

    Returns
    -------
    array, str or list
        Numbers in one dimension, in the order of the file; the letters of a text; the items of a cell array; or a dict
        for each structure.

    Raises
    ------
    FileFormatError
        If the file is damaged, or has no such variable.
    """
    with opened(file) as stream:
        raw = stream.read()
    try:
        return _variable(raw, name)
    except KeyError:
        raise FileFormatError(file, None, f"has no variable {name!r}") from None
    except (_BadFile, zlib.error) as error:
        raise FileFormatError(file, None, f"not a MATLAB file of version 7 or before: {error}") from None


def _variable(raw: bytes, name: str) -> Variable:
    order = _SWAPPED.get(raw[126:128])
    if order is None or raw[125 if order == "<" else 124] != 1:
        raise _BadFile("it does not begin like one")
    for kind, data in _elements(memoryview(raw)[128:], order):
        if kind == _COMPRESSED:
            kind, data = next(_elements(_unpacked(data), order), (0, data))
        if kind == _MATRIX:
            reader = _Matrix(data, order)
            if reader.name == name:
                return reader.value(0)
    raise KeyError(name)


def _unpacked(data: memoryview) -> memoryview:
    limit = _GROWTH * len(data) + _SPARE
    found = zlib.decompressobj().decompress(data, limit)
    if len(found) == limit:
        raise _BadFile(f"a variable takes more than {_GROWTH} times as much as its compressed form")
    return memoryview(found)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Types and contents of what stands one after the other."""
    whole = "little" if order == "<" else "big"
    i = 0
    while i < len(data):
        if i + 8 > len(data):
            raise _BadFile("it is cut short")
        kind, size = (int.from_bytes(data[k : k + 4], whole) for k in (i, i + 4))  # type: ignore[arg-type]
        begin = i + 8
        if kind >> 16:  # a short one: its size is beside its type, and its content where the size is otherwise
            kind, size, begin = kind & 0xFFFF, kind >> 16, i + 4
        if begin + size > len(data) or (begin == i + 4 and size > 4):
            raise _BadFile("it is cut short")
        yield kind, data[begin : begin + size]
        i = begin + size if kind == _COMPRESSED else i + 8 if begin == i + 4 else begin + size + -size % 8


class _Matrix:
    """An array of MATLAB, which is a cell array, an array of structures and a text as well."""

    def __init__(self, data: memoryview, order: str) -> None:
        self._order, self._parts = order, _elements(data, order)
        self._is_empty = not len(data)  # a field that is not set
        self._kind, self.name, self._n = 0, "", 0
        if not self._is_empty:
            flags = self._numbers()
            sides = [int(side) for side in self._numbers()]
            if len(flags) < 1 or flags.dtype.kind not in "iu" or min(sides, default=0) < 0:
                raise _BadFile("an array without a type or a shape")
            self._kind, self._n = int(flags[0]) & 0xFF, math.prod(sides)
            self.name = self._next()[1].tobytes().decode("latin-1")

    def _next(self) -> tuple[int, memoryview]:
        found = next(self._parts, None)
        if found is None:
            raise _BadFile("an array is cut short")
        return found

    def _numbers(self) -> Array:
        kind, data = self._next()
        dtype = _NUMBERS.get(kind)
        if dtype is None or len(data) % int(dtype[1]):
            raise _BadFile("something else in place of numbers")
        return np.frombuffer(data, self._order + dtype)

    def value(self, depth: int) -> Variable:
        """What is in the array; see :func:`read_variable`."""
        if depth > _DEEPEST:
            raise _BadFile("structures are nested too deeply")
        if self._is_empty:
            return np.zeros(0)
        if self._kind == _STRUCTURES:
            return self._structures(depth)
        if self._kind == _CELLS:
            return [self._item(depth) for _ in range(self._n)]
        if self._kind == _CHARACTERS:
            return self._text()
        if self._kind not in _OF_NUMBERS:
            raise _BadFile(f"an array of class {self._kind}, which is not read")
        found = self._numbers()
        if len(found) != self._n:
            raise _BadFile("an array is not as long as its shape says")
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def _item(self, depth: int) -> Variable:
        kind, data = self._next()
        if kind != _MATRIX:
            raise _BadFile("something else in place of an array")
        return _Matrix(data, self._order).value(depth + 1)

    def _structures(self, depth: int) -> list[Variable]:
        length = self._numbers()
        raw = self._next()[1].tobytes()
        width = int(length[0]) if len(length) == 1 and length.dtype.kind in "iu" else 0
        if width < 1 or len(raw) % width:
            raise _BadFile("structures without names of fields")
        names = [raw[k : k + width].split(b"\0")[0].decode("latin-1") for k in range(0, len(raw), width)]
        if not names:  # nothing stands for each of them, so there may be as many as the file likes to say
            raise _BadFile("structures without fields")
        return [{name: self._item(depth) for name in names} for _ in range(self._n)]

    def _text(self) -> str:
        kind, data = self._next()
        if kind not in _TEXTS:
            raise _BadFile("something else in place of text")
        encoding = _TEXTS[kind]
        if encoding in ("utf-16", "utf-32"):
            encoding += "-le" if self._order == "<" else "-be"
        return data.tobytes().decode(encoding, "replace")
