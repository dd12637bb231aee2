"""The ARFF dialect of hierarchical multi-label classification (HMC), as Clus reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._arff_header import Header, hierarchy_of, parse_header
from nhsvm.datasets._arff_rows import read_cells
from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._features import checked_dtype, checked_like
from nhsvm.datasets._files import LONGEST, AnyPath, Trouble, blocks, checked_encoding, checked_path
from nhsvm.datasets._hierarchies import without_root
from nhsvm.datasets._sets import LabelLists
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy

_DATA = re.compile(rb"^[ \t]*@data[ \t\r]*\n", re.IGNORECASE | re.MULTILINE)
_ROOT = "root"


def read_hmc_arff(
    file: AnyPath,
    *,
    classes: str = "auto",
    drop_root: bool = True,
    drop_implied: bool = True,
    multilabel: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
    encoding: str = "utf-8",
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    """Samples in the ARFF dialect of hierarchical multi-label data; gzipped too.

    The class attribute, ``hierarchical`` and the last one, lists all nodes: as paths ``a/b/c`` (a tree), or as pairs
    ``parent/child`` that begin at ``root`` (a DAG, as the Gene Ontology is). The labels of a sample are joined by
    ``@``; ``?`` is a missing value.

    Parameters
    ----------
    file : path
    classes : {"auto", "paths", "pairs"}
        How the class attribute lists nodes. "auto": pairs, if every item is one and some begin at ``root``.
    drop_root : bool
        Of pairs, leave out the artificial ``root``.
    drop_implied : bool
        Of labels above each other, keep the lowest: the others are implied. Without it, a class above another one that
        a sample has is learned as a class of its own.
    multilabel : bool, optional
        Give a list of labels for every sample. By default if any has two; only with True may a sample have none
        (``?`` in place of labels).
    dtype : {float64, float32}
    encoding : str
    like : Dataset, optional
        The training set of a test file: features and hierarchy must be the same, the form of labels will be.
    on_error : {"raise", "skip"}

    Returns
    -------
    Dataset
        X is an array, with NaN for missing values; a nominal attribute is a column of 0 and 1 for each category, named
        ``attribute=category``. Labels are paths, ``"a/b/c"``, or names of nodes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '''@RELATION yeast
    ... @ATTRIBUTE size numeric
    ... @ATTRIBUTE strand {w,c}
    ... @ATTRIBUTE class hierarchical 01,01/02,01/03,02,02/02
    ... @DATA
    ... 0.5,w,01/02@02/02
    ... ?,c,01/03@01
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.arff"
    ...     _ = file.write_text(text)
    ...     data = read_hmc_arff(file)
    >>> data.y, data.feature_names.tolist()
    ([['01/02', '02/02'], ['01/03']], ['size', 'strand=w', 'strand=c'])
    >>> data.X
    array([[0.5, 1. , 0. ],
           [nan, 0. , 1. ]])
    """
    path, trouble, kind = checked_path(file), Trouble(checked_path(file), on_error), checked_dtype(dtype)
    encoding = checked_encoding(encoding)
    if classes not in ("auto", "paths", "pairs"):
        raise OptionError(f"classes must be 'auto', 'paths' or 'pairs', not {classes!r}")
    checked_like(like)
    with closing(blocks(path)) as source:
        header, first = _header(path, source, encoding)
        hierarchy, pairs = hierarchy_of(header, path, classes)
        root = _ROOT if drop_root and pairs and hierarchy.roots == (_ROOT,) else None
        hierarchy = hierarchy if root is None else without_root(hierarchy)
        if like is not None:
            hierarchy = _same(like, header, hierarchy, path)
            multilabel = like.is_multilabel if multilabel is None else multilabel
        labels = LabelLists(hierarchy, multilabel, drop_implied, trouble)
        split = _Classes(root, encoding)
        X = read_cells(chain([first], source), header, kind, split, labels, trouble)
    skipped = trouble.skipped(len(X))
    names = np.array([*header.feature_names, None], dtype=object)[:-1]
    return Dataset(labels.result(), hierarchy, X, feature_names=names, skipped=skipped)


class _Classes:
    """The labels in a cell; what a cell holds is found once, however often it comes."""

    def __init__(self, root: str | None, encoding: str) -> None:
        self._root, self._encoding = root, encoding
        self._found: dict[bytes, tuple[str, ...]] = {}

    def __call__(self, cell: bytes) -> tuple[str, ...]:
        found = self._found.get(cell)
        if found is None:
            text = cell.decode(self._encoding).strip("'\"")
            names = [] if text in ("", "?") else [name.strip() for name in text.split("@")]
            found = self._found[cell] = tuple(name for name in names if name != self._root)
        return found


def _header(file: Path, source: Iterator[bytes], encoding: str) -> tuple[Header, bytes]:
    """The header and what follows it in the last block that was read for it."""
    head = b""
    for block in source:
        head += block
        found = _DATA.search(head)
        if found:
            return parse_header(file, _decoded(file, head[: found.start()], encoding)), head[found.end() :]
        if len(head) > LONGEST:
            break
    _decoded(file, head, encoding)
    raise FileFormatError(file, None, "the file is empty" if not head else "no @DATA: this is not an ARFF file")


def _decoded(file: Path, text: bytes, encoding: str) -> str:
    try:
        return text.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise FileFormatError(file, line, f"not {encoding} text: {error.reason}") from None


def _same(like: Dataset, header: Header, hierarchy: Hierarchy, file: Path) -> Hierarchy:
    names = [] if like.feature_names is None else list(like.feature_names)
    if names != header.feature_names:
        pairs = zip(names, header.feature_names, strict=False)
        other = next((f"{b!r} in place of {a!r}" for a, b in pairs if a != b), "more, or fewer, of them")
        raise FileFormatError(file, None, f"the features are not those of like: {other}")
    if like.hierarchy is None or like.hierarchy != hierarchy:
        raise FileFormatError(file, header.line, "the hierarchy is not that of like")
    return like.hierarchy
