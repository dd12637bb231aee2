"""Files of the LSHTC challenges (large-scale hierarchical text classification)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._features import as_matrix, checked_dtype, checked_like, ids_of, numbered, seen
from nhsvm.datasets._files import AnyPath, Trouble, checked_path
from nhsvm.datasets._hierarchies import given_hierarchy
from nhsvm.datasets._labels import Labels
from nhsvm.datasets._sparse import Options, read_rows
from nhsvm.hierarchy import Hierarchy


def read_lshtc(
    file: AnyPath,
    hierarchy: Hierarchy | AnyPath | None = None,
    *,
    drop_root: bool = False,
    ignore: int | None = None,
    compact: bool = True,
    multilabel: bool | None = None,
    labelled: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples of an LSHTC challenge: ``label[, label…] feature:count feature:count …`` in any order; gzipped too.

    Parameters
    ----------
    file : path
    hierarchy : Hierarchy or path, optional
        ``cat_hier.txt``: a root-to-leaf path a line, or a ``parent child`` pair a line. Labels must be nodes of it.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    ignore : int, optional
        A feature to leave out. In the sets of 2010, feature 0 is an internal number of no meaning: ``ignore=0``.
    compact : bool
        Only features that occur become columns; otherwise all numbers up to the largest do.
    multilabel, labelled : bool, optional
        As in :func:`read_svmlight`. Test files without labels give ``y=None``; where they have a number without a
        meaning in their place, say ``labelled=False``.
    dtype : {float64, float32}
    like : Dataset, optional
        Use the features, the hierarchy and the form of labels of this one, as for a test set. Features that it does
        not have are left out.
    on_error : {"raise", "skip"}

    Returns
    -------
    Dataset
        X is CSR with sorted columns. ``feature_names`` are the numbers of the features, ``y`` whole numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     _ = (folder / "cat_hier.txt").write_text("1 2 4\n1 2 5\n1 3\n")
    ...     _ = (folder / "train.txt").write_text("4 0:17 1177338:2 97353:1\n3 0:9 97353:4\n")
    ...     _ = (folder / "test.txt").write_text("0:3 97353:1 8:1\n")
    ...     train = read_lshtc(folder / "train.txt", folder / "cat_hier.txt", ignore=0)
    ...     test = read_lshtc(folder / "test.txt", ignore=0, like=train)
    >>> train.y, train.feature_names, train.X.toarray().tolist()
    (array([4, 3]), array([  97353, 1177338]), [[1.0, 2.0], [4.0, 0.0]])
    >>> test.X.toarray()
    array([[1., 0.]])
    """
    path, trouble, dtype = checked_path(file), Trouble(checked_path(file), on_error), checked_dtype(dtype)
    ids: Any = None
    like = checked_like(like)
    if like is not None:
        ids, hierarchy = ids_of(like), like.hierarchy if hierarchy is None else hierarchy
        multilabel = like.is_multilabel if multilabel is None and like.y is not None else multilabel
    known = given_hierarchy(hierarchy, int, drop_root)
    labels = Labels(int, known, multilabel, labelled, trouble)
    rows = read_rows(path, Options(True, ignore, None, dtype), labels, trouble)
    skipped = trouble.skipped(len(rows.indptr) - 1)
    if ids is None:
        ids = seen(rows.indices) if compact else numbered(True, None, rows, path)
    return Dataset(labels.result(), known, as_matrix(rows, ids), feature_names=ids, skipped=skipped)
