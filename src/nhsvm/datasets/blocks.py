"""Data on disk that estimators learn from without reading it into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nhsvm._atomic import was_begun
from nhsvm.datasets._blocks_format import STEPS, Header, read_header
from nhsvm.datasets._blocks_labels import labels_of
from nhsvm.datasets._blocks_reader import Reader, check_sum, csr
from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._features import checked_like
from nhsvm.datasets._files import AnyPath, checked_path
from nhsvm.datasets._hierarchies import given_hierarchy, unknown
from nhsvm.datasets._options import whole_number
from nhsvm.errors import DataError, FileFormatError, LabelError, OptionError
from nhsvm.hierarchy import Hierarchy


def open_blocks(
    path: AnyPath,
    hierarchy: Hierarchy | AnyPath | None = None,
    *,
    drop_root: bool = False,
    multilabel: bool | None = None,
    labelled: bool | None = None,
    like: Dataset | None = None,
    verify: bool = True,
) -> Dataset:
    """Blocks as a data set whose features stay on disk.

    ``X`` is a CSR array, or an array, over memory-mapped files. Estimators use it as it is: what they read is in memory
    only as long as there is room. It may be written to, but the files stay as they are.

    Parameters
    ----------
    path : path
        A folder that :func:`convert_to_blocks`, :func:`write_blocks` or ``nhsvm convert`` has written.
    hierarchy : Hierarchy or path, optional
        In place of the one in the folder; labels must be its nodes.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    multilabel : bool, optional
        Give lists of labels, or one label a sample; by default as they were written.
    labelled : bool, optional
        False leaves labels where they are.
    like : Dataset, optional
        An error unless the features are those of this one.
    verify : bool
        Read all files once and compare them with their checksums. Without it, opening takes milliseconds, and only the
        names and sizes are checked.

    Returns
    -------
    Dataset

    Raises
    ------
    FileFormatError
        With the file that is missing, damaged, cut short, or of a newer version.
    """
    folder, like = checked_path(path), checked_like(like)
    reader = Reader(folder, _header_of(folder), verify=verify)
    names, h = reader.feature_names(), reader.header
    if like is not None:
        _check_features(folder, names, h.n_features, like)
    y: Any = None
    label_names: list[Any] = []
    if h.labels != "none" and labelled is not False:
        label_names, codes, indptr = reader.labels()
        try:
            y = labels_of(h.labels, h.label_dtype, label_names, codes, indptr)
        except LabelError as error:
            raise FileFormatError(folder, None, f"damaged: {error}; convert the data again") from None
        y = _in_form(y, multilabel, folder)
    known = reader.hierarchy() if hierarchy is None else _replacement(hierarchy, label_names)
    known = given_hierarchy(known, None, drop_root)
    if known is not None and y is not None and (hierarchy is not None or drop_root):
        stray = next((name for name in label_names if name not in known), None)
        if stray is not None:
            raise LabelError(f"{folder}: {unknown(stray, known, brief=False)}")
    return Dataset(y, known, reader.X(), feature_names=names)


def _header_of(folder: Path) -> Header:
    if not folder.exists():
        begun = "; it was begun and not finished: convert the data again" if was_begun(folder) else ""
        raise FileFormatError(folder, None, f"cannot be read: No such file or directory{begun}")
    return read_header(folder)


def _replacement(hierarchy: Any, names: list[Any]) -> Hierarchy | None:
    return given_hierarchy(hierarchy, int if names and all(isinstance(name, int) for name in names) else str, False)


def _check_features(folder: Path, names: Any, n_features: int, like: Dataset) -> None:
    wanted: Any = like.feature_names
    if wanted is None and like.X is not None:
        same = like.X.shape[1] == n_features
    else:
        same = wanted is None or (names is not None and np.array_equal(np.asarray(names), np.asarray(wanted)))
    if not same:
        raise DataError(
            f"{folder}: the features are not those of the training data; convert the file again, with --like and the "
            "blocks that were trained on (in Python: like=)"
        )


def _in_form(y: Any, multilabel: bool | None, folder: Path) -> Any:
    """Labels or label lists, as asked for."""
    is_sets = isinstance(y, list)
    if multilabel is None or multilabel == is_sets:
        return y
    if multilabel:
        return [[label] for label in y.tolist()]
    several = next((k for k, labels in enumerate(y) if len(labels) != 1), None)
    if several is not None:
        raise LabelError(f"{folder}: expected one label a sample, but sample {several} has {len(y[several])}")
    found = np.empty(len(y), dtype=object)
    found[:] = [labels[0] for labels in y]
    return found


def iter_blocks(data: Dataset | AnyPath, rows: int = 10_000) -> Iterator[tuple[Any, Any]]:
    """Samples and labels some at a time, for ``partial_fit``.

    Parameters
    ----------
    data : Dataset or path
        What :func:`open_blocks` gives, or takes. For several passes open it once.
    rows : int
        Samples of a part.

    Yields
    ------
    X : csr_array or array
        Of at most so many rows, over the same files.
    y : array, list of lists, or None

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nhsvm import NHSVM
    >>> from nhsvm.datasets import make_unbalanced, write_blocks
    >>> made = make_unbalanced(500, 10, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_blocks(made, Path(folder) / "made.blocks")
    ...     data = open_blocks(Path(folder) / "made.blocks")
    ...     model = NHSVM(data.hierarchy, solver="sgd", random_state=0)
    ...     for _ in range(3):
    ...         for X, y in iter_blocks(data, 100):
    ...             _ = model.partial_fit(X, y, classes=np.unique(data.y))
    ...     bool(model.score(data.X, data.y) > 0.9)
    True
    """
    rows = whole_number(rows, "rows")
    opened = data if isinstance(data, Dataset) else open_blocks(data)
    if opened.X is None:
        raise OptionError("these samples have no features")
    for start in range(0, opened.n_samples, rows):
        stop = min(start + rows, opened.n_samples)
        yield _rows_of(opened.X, start, stop), None if opened.y is None else opened.y[start:stop]


def _rows_of(X: Any, start: int, stop: int) -> Any:
    if isinstance(X, np.ndarray):
        return X[start:stop]
    begin, end = int(X.indptr[start]), int(X.indptr[stop])
    indptr = X.indptr[start : stop + 1] - X.indptr[start]
    return csr(X.data[begin:end], X.indices[begin:end], indptr, (stop - start, X.shape[1]))


def block_parts(path: AnyPath, size: int, tell: Callable[[float], None], **options: Any) -> Iterator[Dataset]:
    """The same as data sets, for :func:`nhsvm.datasets.read_chunks`; ``tell`` is given the share up to their end."""
    whole = open_blocks(path, **options)
    n_rows = 0
    for X, y in iter_blocks(whole, size):
        n_rows += X.shape[0]
        tell(n_rows / whole.n_samples)
        yield replace(whole, X=X, y=y)


def read_note(path: AnyPath) -> dict[str, Any]:
    """The note that was kept with some blocks."""
    return _header_of(checked_path(path)).note


def stored_steps(path: AnyPath) -> Path | None:
    """The file, found whole, that says how the features of some blocks were made; None if there is none."""
    folder = checked_path(path)
    stored = _header_of(folder).files.get(STEPS)
    if stored is not None:
        check_sum(folder / STEPS, stored)
    return None if stored is None else folder / STEPS
