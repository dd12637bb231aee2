"""Which labels are taken for which, and the errors that the model was surest of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.metrics.distances import path_lengths
from nhsvm.report._nodes import Compared
from nhsvm.report._record import Confusion, Counts, Example, Nodes
from nhsvm.typing import FloatArray

_SNIPPET = 280  # characters of a text
_PATHS = 12  # labels of a sample that are shown


def confused_pairs(compared: Compared, nodes: Nodes, most: int) -> tuple[list[Confusion], int]:
    """The most frequent pairs of a missed label and a wrong one of the same sample; and how many pairs there are."""
    pairs = sp.csr_array(compared.missed.T.astype(np.int64) @ compared.extra.astype(np.int64)).tocoo()
    order = np.lexsort((pairs.col, pairs.row, -pairs.data))[:most]
    true, pred, count = pairs.row[order], pairs.col[order], pairs.data[order]
    distance = _distances(compared, true, pred)
    at = _positions(compared)
    own = np.bincount(compared.true.indices, minlength=compared.hierarchy.n_nodes)
    found = [
        Confusion(nodes.name[at[t]], nodes.name[at[p]], int(c), float(c / own[t]), float(d))
        for t, p, c, d in zip(true.tolist(), pred.tolist(), count.tolist(), distance.tolist(), strict=True)
    ]
    return found, int(pairs.nnz)


def error_distances(compared: Compared) -> FloatArray:
    """Edges between true and predicted label of every sample that is wrong; for one label a sample."""
    wrong = compared.wrong
    return _distances(compared, compared.true.indices[wrong], compared.pred.indices[wrong])


def surest_errors(
    compared: Compared,
    nodes: Nodes,
    margins: FloatArray,
    distances: FloatArray | None,
    *,
    texts: Sequence[Any] | None,
    ids: Sequence[Any] | None,
    most: int,
) -> list[Example]:
    """Errors with the largest margin first, and of single labels at most one for every pair."""
    wrong = compared.wrong
    order = np.lexsort((wrong, -np.nan_to_num(margins, nan=-np.inf)))
    if distances is not None:
        n = compared.hierarchy.n_nodes
        key = compared.true.indices[wrong].astype(np.int64) * n + compared.pred.indices[wrong]
        order = order[np.sort(np.unique(key[order], return_index=True)[1])]
    at = _positions(compared)
    found = []
    for k in order[:most].tolist():
        i = int(wrong[k])
        found.append(
            Example(
                id=str(i if ids is None else ids[i]),
                true=_paths(compared.true, i, nodes, at),
                predicted=_paths(compared.pred, i, nodes, at),
                distance=float("nan") if distances is None else float(distances[k]),
                margin=float(margins[k]),
                text="" if texts is None else snippet(texts[i]),
            )
        )
    return found


def snippet(text: Any) -> str:
    """The beginning of a text on one line."""
    line = " ".join(str(text)[: 4 * _SNIPPET].split())
    return line if len(line) <= _SNIPPET else line[: _SNIPPET - 1].rstrip() + "…"


def _paths(labels: sp.csr_array, sample: int, nodes: Nodes, at: Counts) -> list[list[str]]:
    own = labels.indices[labels.indptr[sample] : labels.indptr[sample + 1]].tolist()
    shown = [nodes.path(int(at[node])) for node in own[:_PATHS]]
    return shown if len(own) <= _PATHS else [*shown, [f"and {len(own) - _PATHS} more"]]


def _distances(compared: Compared, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> FloatArray:
    if not len(a):
        return np.zeros(0)
    return path_lengths(compared.hierarchy.graph, a.astype(np.int32), b.astype(np.int32))


def _positions(compared: Compared) -> Counts:
    """Where every node of the hierarchy is among those in use."""
    at = np.full(compared.hierarchy.n_nodes, -1)
    at[compared.used] = np.arange(len(compared.used))
    return at
