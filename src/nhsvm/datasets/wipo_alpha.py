"""WIPO-alpha: patent applications in XML, a file each, classified in the International Patent Classification (IPC)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html.entities import name2codepoint
from pathlib import Path
from typing import TypeVar
from xml.etree.ElementTree import Element, ParseError, XMLParser

import numpy as np

from nhsvm.datasets.dataset import AnyPath, Dataset
from nhsvm.datasets.files import ReadLog, checked_path, opened, shown
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy

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
