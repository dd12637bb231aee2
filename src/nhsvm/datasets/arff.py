"""The ARFF dialect of hierarchical multi-label classification (HMC), as Clus reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nhsvm.datasets import parsing
from nhsvm.datasets.dataset import AnyPath, Dataset, Growing, objects, without_root
from nhsvm.datasets.files import LONGEST, RowReader, Source, blaming, blocks, checked_encoding, finite, shown
from nhsvm.datasets.labels import BadRows, LabelLists
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import Array, ByteArray, FloatArray, Options, PtrArray

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
    return ArffFile(file, locals()).read()


class ArffFile(Source):
    """A file for :func:`read_hmc_arff`, yet to be read."""

    def __init__(self, file: AnyPath, options: Options) -> None:
        super().__init__(file, options)
        self._encoding, self._classes = checked_encoding(options["encoding"]), options["classes"]
        self._drop_root, self._drop_implied = options["drop_root"], options["drop_implied"]
        if self._classes not in ("auto", "paths", "pairs"):
            raise OptionError(f"classes must be 'auto', 'paths' or 'pairs', not {self._classes!r}")

    def read(self) -> Dataset:
        with closing(blocks(self.file)) as source:
            header, first = self._header(source)
            hierarchy, pairs = hierarchy_of(header, self.file, self._classes)
            root = _ROOT if self._drop_root and pairs and hierarchy.roots == (_ROOT,) else None
            hierarchy = hierarchy if root is None else without_root(hierarchy)
            if self.like is not None:
                hierarchy = self._same(self.like, header, hierarchy)
            labels = LabelLists(hierarchy, self.multilabel, self._drop_implied, self.log)
            reader, line = _Reader(self, header, labels, root, self._encoding), header.n_lines + 1
            for block in chain([first], source):
                line = reader.read(block, line)
        X = _expanded(reader.cells.array().reshape(reader.n_rows, len(header.attributes)), header)
        skipped = self.log.skipped(len(X))
        return Dataset(labels.result(), hierarchy, X, feature_names=objects(header.feature_names), skipped=skipped)

    def parts(self, size: int) -> Iterator[Dataset]:
        """The whole file at once."""
        data = self.read()
        self.log.tell(1.0)
        yield data

    def why_no_parts(self) -> str:
        return "read_chunks cannot use read_hmc_arff: an ARFF file is read as a whole"

    def expected_rows(self) -> None:
        return None

    def _header(self, source: Iterator[bytes]) -> tuple[Header, bytes]:
        """The header and what follows it in the last block that was read for it."""
        head = b""
        for block in source:
            head += block
            found = _DATA.search(head)
            if found:
                return parse_header(self.file, self._decoded(head[: found.start()])), head[found.end() :]
            if len(head) > LONGEST:
                break
        self._decoded(head)
        raise FileFormatError(self.file, None, "no @DATA: this is not an ARFF file" if head else "the file is empty")

    def _decoded(self, text: bytes) -> str:
        try:
            return text.decode(self._encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise FileFormatError(self.file, line, f"not {self._encoding} text: {error.reason}") from None

    def _same(self, like: Dataset, header: Header, hierarchy: Hierarchy) -> Hierarchy:
        names = [] if like.feature_names is None else list(like.feature_names)
        if names != header.feature_names:
            pairs = zip(names, header.feature_names, strict=False)
            other = next((f"{b!r} in place of {a!r}" for a, b in pairs if a != b), "more, or fewer, of them")
            raise FileFormatError(self.file, None, f"the features are not those of like: {other}")
        if like.hierarchy is None or like.hierarchy != hierarchy:
            raise FileFormatError(self.file, header.line, "the hierarchy is not that of like")
        return like.hierarchy


# -- the header: attributes, and the hierarchy that the class attribute lists ------------------------------------------

_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.*)", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(r"\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,]*?)\s*()(?:,|$)")
_NUMBERS = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """A feature; ``categories`` is None for a number."""

    name: str
    categories: tuple[str, ...] | None


@dataclass(frozen=True)
class Header:
    """What stands before @DATA."""

    attributes: tuple[Attribute, ...]  # the features, in the order of the columns
    entries: tuple[str, ...]  # of the class attribute
    line: int  # of the class attribute
    n_lines: int  # the one with @DATA included

    @cached_property
    def kinds(self) -> PtrArray:
        """NUMERIC, or the number of the nominal attribute."""
        nominal = np.array([a.categories is not None for a in self.attributes], dtype=bool)
        return np.where(nominal, np.cumsum(nominal) - 1, parsing.NUMERIC).astype(np.int64)

    @cached_property
    def categories(self) -> tuple[PtrArray, PtrArray, ByteArray]:
        """The arrays ``ptr``, ``starts`` and ``categories`` of the kernel."""
        of_each = [a.categories for a in self.attributes if a.categories is not None]
        raw = [name.encode() for names in of_each for name in names]
        ptr, starts = (np.concatenate([[0], np.cumsum([len(x) for x in xs])]) for xs in (of_each, raw))
        return ptr.astype(np.int64), starts.astype(np.int64), np.frombuffer(b"".join(raw) + b"\n", dtype=np.uint8)

    @cached_property
    def feature_names(self) -> list[str]:
        """``name``, or ``name=category`` for each category of a nominal attribute."""
        return [
            name
            for a in self.attributes
            for name in ([a.name] if a.categories is None else [f"{a.name}={c}" for c in a.categories])
        ]


def parse_header(file: Path, text: str) -> Header:
    """A header; ``text`` ends before @DATA."""
    attributes: list[Attribute] = []
    entries: tuple[str, ...] | None = None
    class_line = 0
    rows = text.split("\n")
    for number, raw in enumerate(rows, 1):
        line = raw.strip()
        if not line or line.startswith("%") or line.lower().startswith("@relation"):
            continue
        found = _ATTRIBUTE.fullmatch(line)
        if found is None:
            raise FileFormatError(file, number, f"expected @RELATION, @ATTRIBUTE name type or @DATA, not {shown(line)}")
        if entries is not None:
            raise FileFormatError(file, number, "the hierarchical class attribute must be the last one")
        name, kind = unquoted(found[1]), found[2].strip()
        if kind.lower().startswith("hierarchical"):
            entries, class_line = _entries(file, number, kind[len("hierarchical") :]), number
        else:
            attributes.append(Attribute(name, _categories(file, number, name, kind)))
    if entries is None:
        raise FileFormatError(file, None, "no class attribute: expected @ATTRIBUTE class hierarchical a,a/b,...")
    return Header(tuple(attributes), entries, class_line, len(rows))


def unquoted(cell: str) -> str:
    """A name or value without the quotes around it."""
    if len(cell) >= 2 and cell[0] == cell[-1] and cell[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", cell[1:-1])
    return cell


def _categories(file: Path, line: int, name: str, kind: str) -> tuple[str, ...] | None:
    if kind.lower() in _NUMBERS:
        return None
    if not (kind.startswith("{") and kind.endswith("}")):
        wanted = "numeric, real, integer, {a,b,...} or hierarchical"
        raise FileFormatError(file, line, f"attribute {name!r}: expected {wanted}, not {shown(kind)}")
    cells = tuple(map(unquoted, _cells(kind[1:-1])))
    if not all(cells) or len(set(cells)) < len(cells):
        raise FileFormatError(file, line, f"attribute {name!r}: expected different categories, not {shown(kind)}")
    return cells


def _cells(text: str) -> list[str]:
    """What stands between commas that are not quoted."""
    found, i = [], -1
    while i < len(text):
        cell = _CELL.match(text, i + 1)
        assert cell is not None  # it matches anything up to a comma
        found.append(cell[1])
        i = cell.end(2)
    return found


def _entries(file: Path, line: int, text: str) -> tuple[str, ...]:
    entries = tuple(entry.strip() for entry in text.split(","))
    for entry in entries:
        if not entry or not all(entry.split("/")):
            raise FileFormatError(file, line, f"expected classes such as a/b between commas, not {shown(entry)}")
    return entries


def hierarchy_of(header: Header, file: Path, classes: str) -> tuple[Hierarchy, bool]:
    """The hierarchy, and whether it was listed as parent/child pairs."""
    # pairs: two names each, from an artificial root on; paths list what is above a class as well, alone
    like_pairs = all(e.count("/") == 1 for e in header.entries) and any(e.startswith("root/") for e in header.entries)
    pairs = classes == "pairs" or (classes == "auto" and like_pairs)
    steps: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    for entry in header.entries:
        parts = entry.split("/")
        if pairs and len(parts) != 2:
            raise FileFormatError(file, header.line, f"expected parent/child pairs, not {shown(entry)}")
        path = parts if pairs else ["/".join(parts[: k + 1]) for k in range(len(parts))]
        steps[path[0]] = None
        edges.update(dict.fromkeys(pairwise(path)))
    with blaming(file, header.line):
        return Hierarchy.from_edges(edges, nodes=steps), pairs


# -- the data part, a block at a time ----------------------------------------------------------------------------------

_PROBLEMS = {
    parsing.FEW: "expected {n} cells between commas, but the line ends too early",
    parsing.MANY: "expected {n} cells between commas, but there are more",
    parsing.QUOTE: "a quote is not closed",
    parsing.SPARSE: "expected cells between commas: sparse rows in braces are not read",
}


class _Reader(RowReader):
    """Features of all rows; their labels go into ``labels``."""

    def __init__(self, source: Source, header: Header, labels: LabelLists, root: str | None, encoding: str) -> None:
        super().__init__(source.log, source.dtype)
        self._header, self._labels, self._root, self._encoding = header, labels, root, encoding
        self.cells, self.n_rows, self._values = Growing(self.dtype), 0, np.empty(0)
        self._known: dict[bytes, list[str]] = {}  # labels in a cell: found once, however often it comes

    def parse(self, raw: bytes, text: ByteArray, i: int, line: int) -> tuple[int, int, str]:
        width, n = len(self._header.attributes), len(text)
        if len(self._values) < n + width:  # a cell is at least one comma
            self._values = np.empty(n + width)
            self._hard, self._places = np.empty(3 * (n + width), dtype=np.int64), np.empty(n + 4, dtype=np.int64)
            self._lines = np.empty(n // 2 + 2, dtype=np.int64)
        n_rows, n_hard, i, n_lines, status, _ = parsing.dense_rows_kernel(
            text, i, self._header.kinds, *self._header.categories, parsing.powers_of_five(),
            self._values, self._values.view(np.uint64), self._places, self._hard, self._lines,
        )  # fmt: skip
        rows = self._values[: n_rows * width].reshape(n_rows, width)
        bad = self._resolve(raw, rows, self._hard[: 3 * n_hard].reshape(-1, 3))
        keep = np.ones(n_rows, dtype=bool)
        for row, (begin, end) in enumerate(self._places[: 2 * n_rows].reshape(-1, 2).tolist()):
            problem = bad.get(row) or self._take_labels(raw[begin:end])
            if problem:
                self.log.report(line + int(self._lines[row]), problem)
                keep[row] = False
        self.cells.append((rows if keep.all() else rows[keep]).ravel())
        self.n_rows += int(keep.sum())
        return i, line + n_lines, "" if status == parsing.DONE else _PROBLEMS[status].format(n=width + 1)

    def _resolve(self, raw: bytes, rows: FloatArray, hard: PtrArray) -> BadRows:
        """Cells that the kernel has left to Python: what is wrong with each row, if anything is."""
        bad: BadRows = {}
        for k, begin, end in hard.tolist():
            row, column = divmod(k, rows.shape[1])
            attribute = self._header.attributes[column]
            token = raw[begin:end]
            cell = unquoted(token.decode("utf-8", "backslashreplace"))
            if attribute.categories is None:
                value, wanted = finite(cell), "a finite number or ?"
            else:
                value = float(attribute.categories.index(cell)) if cell in attribute.categories else None
                wanted = "one of " + shown(", ".join(attribute.categories)) + " or ?"
            if value is None:
                bad.setdefault(row, f"attribute {attribute.name!r}: expected {wanted}, not {shown(token)}")
            rows[row, column] = 0.0 if value is None else value
        for k in self.too_large(rows):
            row, column = divmod(k, rows.shape[1])
            what = f"{rows[row, column]} is too large for {self.dtype.name}"
            bad.setdefault(row, f"attribute {self._header.attributes[column].name!r}: {what}")
        return bad

    def _take_labels(self, cell: bytes) -> str:
        """Take in what a cell holds, or say why not."""
        if cell not in self._known:
            try:
                text = cell.decode(self._encoding).strip("'\"")
            except UnicodeDecodeError as error:
                return f"not {error.encoding} text: {error.reason}"
            names = [] if text in ("", "?") else [name.strip() for name in text.split("@")]
            self._known[cell] = [name for name in names if name != self._root]
        return self._labels.add(self._known[cell])


def _expanded(cells: Array, header: Header) -> Array:
    """Nominal attributes as a column of 0 and 1 for every category, missing if they are."""
    if all(a.categories is None for a in header.attributes):
        return cells
    X, j = np.empty((len(cells), len(header.feature_names)), dtype=cells.dtype), 0
    for column, attribute in zip(cells.T, header.attributes, strict=True):
        if attribute.categories is None:
            X[:, j], j = column, j + 1
            continue
        for c in range(len(attribute.categories)):
            X[:, j], j = np.where(np.isnan(column), np.nan, column == c), j + 1
    return X
