"""svmlight / LIBSVM files, with one label a sample or several."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._features import as_matrix, check_count, checked_dtype, checked_like, ids_of, numbered
from nhsvm.datasets._files import AnyPath, Trouble, checked_path
from nhsvm.datasets._hierarchies import given_hierarchy
from nhsvm.datasets._labels import Labels, check_label_type
from nhsvm.datasets._sparse import Options, read_rows
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy


def read_svmlight(
    file: AnyPath,
    *,
    hierarchy: Hierarchy | AnyPath | None = None,
    drop_root: bool = False,
    label_type: type = int,
    multilabel: bool | None = None,
    labelled: bool | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    sort: bool = False,
    dtype: npt.DTypeLike = np.float64,
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples in svmlight (LIBSVM) format: ``label[,label…] index:value index:value … # comment``; gzipped too.

    Parameters
    ----------
    file : path
    hierarchy : Hierarchy or path, optional
        Labels must be nodes of it. A file is read by ``Hierarchy.read``.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    label_type : {int, str}
        Labels are whole numbers, or names without blanks and commas.
    multilabel : bool, optional
        Give a list of labels for every sample. By default if any has two; only with True may a sample have none.
    labelled : bool, optional
        Whether rows begin with labels; by default as the first row does. False ignores labels that are there.
    n_features : int, optional
        Features there are, for files that do not have the last ones.
    zero_based : bool or "auto"
        Whether the first feature is 0 or 1. "auto": 0 if there is a feature 0.
    sort : bool
        Accept features in any order.
    dtype : {float64, float32}
        Of X.
    like : Dataset, optional
        Use the features, the hierarchy and the form of labels of this one, as for a test set. Features that it does
        not have are left out.
    on_error : {"raise", "skip"}
        Raise on a bad line, or leave it out and count it in ``Dataset.skipped``.

    Returns
    -------
    Dataset
        X is CSR. ``feature_names`` are the numbers of the features.

    Raises
    ------
    FileFormatError
        With the file, the line, and what was expected there.

    Notes
    -----
    Values must be finite. ``qid:…`` behind the labels is ignored.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.svm"
    ...     _ = file.write_text("4 1:0.5 3:2\n5,4 2:1e-3\n")
    ...     data = read_svmlight(file, hierarchy=Hierarchy.from_edges([(3, 4), (3, 5)]))
    >>> data.y, data.X.toarray().tolist()
    ([[4], [5, 4]], [[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]])
    """
    path, trouble, dtype = checked_path(file), Trouble(checked_path(file), on_error), checked_dtype(dtype)
    check_label_type(label_type)
    check_count(n_features)
    if zero_based not in (True, False, "auto"):
        raise OptionError(f"zero_based must be True, False or 'auto', not {zero_based!r}")
    ids: Any = None
    like = checked_like(like)
    if like is not None:
        ids, n_features, hierarchy = ids_of(like), None, like.hierarchy if hierarchy is None else hierarchy
        multilabel = like.is_multilabel if multilabel is None and like.y is not None else multilabel
    known = given_hierarchy(hierarchy, label_type, drop_root)
    labels = Labels(label_type, known, multilabel, labelled, trouble)
    limit = None if n_features is None else n_features - (zero_based is True)
    rows = read_rows(path, Options(sort, None, limit, dtype), labels, trouble)
    skipped = trouble.skipped(len(rows.indptr) - 1)
    ids = numbered(zero_based, n_features, rows, path) if ids is None else ids
    return Dataset(labels.result(), known, as_matrix(rows, ids), feature_names=ids, skipped=skipped)
