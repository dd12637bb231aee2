"""The paper's data sets, from the files that they were published as: ILSVRC 2010 and WIPO-alpha."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.entities import name2codepoint
from pathlib import Path
from typing import TypeVar
from xml.etree.ElementTree import Element, ParseError, XMLParser

import numpy as np
import scipy.sparse as sp

from nhsvm.datasets.dataset import AnyPath, Dataset, whole_number
from nhsvm.datasets.files import ReadLog, blaming, checked_path, lines, opened, shown
from nhsvm.datasets.matlab import Variable, read_variable
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import Array, Matrix, PtrArray

# -- ImageNet's challenge of 2010: synsets of its development kit, and images as bags of visual words ------------------

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
    with blaming(file):
        return Hierarchy.from_edges(_edges(items, names, file)), names


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


# -- WIPO-alpha: patent applications in XML, a file each, classified in the International Patent Classification (IPC) --

LEVELS = {"section": 1, "class": 3, "subclass": 4}
PARTS = {"title": "tis", "abstract": "abs", "claims": "cls", "description": "txts"}
_T = TypeVar("_T")
_ENDINGS = (".xml", ".xml.gz")


def read_wipo_alpha(
    folder: AnyPath,
    *,
    parts: Sequence[str] = ("title", "abstract", "claims"),
    level: str = "subclass",
    hierarchy: Hierarchy | None = None,
    on_error: str = "raise",
) -> Dataset:
    """Texts of the XML files below a folder, in the order of their paths, each with its main IPC symbol; gzipped too.

    A file is a ``<record>`` with an element ``<ipcs mc="A01B00100">``, whose ``mc`` is the main symbol, and elements
    ``<tis>``, ``<abs>``, ``<cls>`` and ``<txts>`` for titles, abstracts, claims and descriptions.

    Parameters
    ----------
    folder : path
        Such as ``wipo-alpha/train``.
    parts : sequence of {"title", "abstract", "claims", "description"}
        What the text of a sample is made of. A record may lack some of it.
    level : {"section", "class", "subclass"}
        How far a symbol is read: ``A``, ``A01`` or ``A01B``.
    hierarchy : Hierarchy, optional
        That of the training files, for test files. By default it has the symbols found and what is above them.
    on_error : {"raise", "skip"}
        What to do about a record that cannot be read, has no main symbol, or has one that the hierarchy does not have.

    Returns
    -------
    Dataset
        With ``texts``; a bad record is counted by the position of its file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     for i, symbol in enumerate(["A01B00100", "B60R02116", "A01C00300"]):
    ...         ti = f"<tis><ti>Patent {i}</ti></tis>"
    ...         _ = (Path(name) / f"{i}.xml").write_text(f'<record><ipcs ed="6" mc="{symbol}"/>{ti}</record>')
    ...     data = read_wipo_alpha(name)
    >>> data.y.tolist(), data.texts[1]
    (['A01B', 'B60R', 'A01C'], 'Patent 1')
    >>> print(data.hierarchy.draw())
    A
    └── A01
        ├── A01B
        └── A01C
    B
    └── B60
        └── B60R
    """
    root, log = checked_path(folder), ReadLog(checked_path(folder), on_error, "file")
    wanted = [_known("parts", part, PARTS) for part in parts]
    if isinstance(parts, str) or not wanted:
        raise OptionError(f"parts must be a list of some of {list(PARTS)}, not {parts!r}")
    length = _known("level", level, LEVELS)
    texts, symbols = list[str](), list[str]()
    for number, file in enumerate(_files(root), 1):
        try:
            record = _record(file)
            symbol = _symbol(record, file, length)
            if hierarchy is not None and symbol not in hierarchy:
                raise FileFormatError(file, None, f"its main symbol {symbol!r} is not in the hierarchy")
        except FileFormatError as error:
            if not log.skipping:
                raise
            log.report(number, str(error))
            continue
        texts.append(_text(record, wanted))
        symbols.append(symbol)
    skipped = log.skipped(len(texts))
    if hierarchy is None:
        cuts = [cut for cut in LEVELS.values() if cut <= length]
        hierarchy = Hierarchy.from_paths([[symbol[:cut] for cut in cuts] for symbol in sorted(set(symbols))])
    return Dataset(np.array(symbols), hierarchy, texts=texts, skipped=skipped)


def _known(name: str, value: str, known: dict[str, _T]) -> _T:
    if not isinstance(value, str) or value not in known:
        raise OptionError(f"{name} must be of {list(known)}, not {value!r}")
    return known[value]


def _files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise FileFormatError(folder, None, "expected a folder of XML files")
    return (path for path in sorted(folder.rglob("*")) if path.name.lower().endswith(_ENDINGS) and path.is_file())


def _record(file: Path) -> Element:
    """The outermost element. The DTD that a file names is not read: characters have the names that HTML gives them."""
    parser = XMLParser()
    parser.entity.update({name: chr(code) for name, code in name2codepoint.items()})
    with opened(file) as stream:
        try:
            parser.feed(stream.read())
            return parser.close()
        except ParseError as error:
            raise FileFormatError(file, error.position[0], f"not XML: {error}") from error
        except (LookupError, ValueError) as error:  # an encoding that there is not, or that takes several bytes
            raise FileFormatError(file, 1, f"not XML: {error}") from error


def _symbol(record: Element, file: Path, length: int) -> str:
    main = next((found.get("mc") for found in record.iter("ipcs")), None)
    symbol = (main or "").replace(" ", "")[:length].upper()
    if len(symbol) < length or not (symbol[0].isalpha() and symbol[1:3].isdigit() == (length > 1)):
        raise FileFormatError(
            file, None, f'expected <ipcs mc="A01B…">, the main symbol of the record, not {shown(main)}'
        )
    return symbol


def _text(record: Element, tags: Sequence[str]) -> str:
    pieces = (piece for tag in tags for found in record.iter(tag) for piece in found.itertext())
    return " ".join(" ".join(pieces).split())
