"""JSON Lines: a JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._files import AnyPath, Trouble, checked_encoding, checked_path, lines, shown
from nhsvm.datasets._table import Names, Records, Table
from nhsvm.hierarchy import Hierarchy


def read_jsonl(
    file: AnyPath,
    *,
    text: Names = None,
    features: Names = None,
    label: str | None = "labels",
    path: str | None = None,
    levels: Names = None,
    hierarchy: Hierarchy | AnyPath | None = None,
    drop_root: bool = False,
    separator: str = " > ",
    label_separator: str | None = None,
    qualified: bool = True,
    label_type: type | None = None,
    multilabel: bool | None = None,
    drop_implied: bool = False,
    extra: Names = None,
    dtype: npt.DTypeLike = np.float64,
    encoding: str = "utf-8",
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples in a JSON Lines file, an object a line; gzipped too.

    Labels are text or whole numbers, one or a list of them; paths are text, ``"Science > Physics"``, or a list of such.
    A feature is a number, or a list of as many numbers in every line (an embedding); null is a missing value.

    Parameters
    ----------
    file : path
    text, features, path, levels, extra
        Names of fields; see :func:`read_csv`. Without text and features, ``"text"`` is the text.
    label : str or None
        Field of the labels, unless ``path`` or ``levels`` is given. None reads samples without labels.
    hierarchy, drop_root, separator, label_separator, qualified, multilabel, drop_implied, dtype, like, on_error
        See :func:`read_csv`.
    label_type : {int, str}, optional
        By default labels are what they are in the file.
    encoding : str

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '{"text": "woof", "labels": ["dog", "pet"]}\n{"text": "rustle", "labels": ["oak"]}\n'
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "docs.jsonl"
    ...     _ = file.write_text(text)
    ...     data = read_jsonl(file)
    >>> data.texts, data.y
    (['woof', 'rustle'], [['dog', 'pet'], ['oak']])
    """
    table, records = prepared(**locals())
    return table.read(records)


def prepared(file: AnyPath, *, encoding: str, on_error: str, **options: Any) -> tuple[Table, Records]:
    """The options of :func:`read_jsonl`, checked, and its records, yet to be read."""
    source, trouble = checked_path(file), Trouble(checked_path(file), on_error)
    if options["label"] == "labels" and (options["path"] is not None or options["levels"] is not None):
        options["label"] = None
    if options["text"] is None and options["features"] is None:
        options["text"] = "text"
    table = Table(trouble, **options)
    return table, _objects(source, checked_encoding(encoding), table, trouble)


def _objects(file: Path, encoding: str, table: Table, trouble: Trouble) -> Generator[tuple[int, dict[str, Any]]]:
    decoder = json.JSONDecoder(parse_constant=_refused)
    first = True
    with closing(lines(file, encoding, trouble)) as source:
        for number, line in source:
            if not line.strip():
                continue
            try:
                found = decoder.decode(line)
            except json.JSONDecodeError as error:
                trouble.report(number, f"not JSON: {error.msg} at character {error.pos + 1}")
                continue
            except (ValueError, RecursionError) as error:
                why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                trouble.report(number, f"not JSON: {why}")
                continue
            if not isinstance(found, dict):
                trouble.report(number, f"expected a JSON object, not {shown(line.strip())}")
                continue
            if first:
                table.see_columns(list(found))
                if not trouble.skipping:
                    table.check_columns(list(found), number)
            first = False
            yield number, found


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number; a missing value is null")
