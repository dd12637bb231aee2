"""PECOS XR-Linear for label sets, in PECOS's own environment: started by ``wordnet.py``, which says how it is judged.

The folder ``--task`` has the rows to learn from (``X.npz``, their labels as the 0/1 matrix ``Y.npz``), the rows to ask
about (``X_asked.npz``) and the hierarchy (``facts.json``). Without ``--threshold`` one is chosen and written to
``chosen.json``. With it, ``found.npz`` is the answer, a 0/1 matrix, and ``out.json`` says what it took: in another
process, since memory that the choice gave back would hide what the fit takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pecos.utils.cluster_util import ClusterChain
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))
from trees import label_paths, level_matrices
from worker import timed

MOST = 10  # labels a set


def fit(X: Any, Y: Any, facts: dict[str, Any], options: argparse.Namespace) -> Any:
    """Its defaults, but for C: squared hinge, weights below 0.1 dropped. Without a tree it is one-vs-rest."""
    chain = None
    if options.tree == "own":
        embedding = LabelEmbeddingFactory.create(Y, X, method="pifa")
        chain = Indexer.gen(embedding, threads=options.threads, seed=0)
    elif options.tree == "given":
        chain = ClusterChain(level_matrices(label_paths(facts["edges"], facts["classes"])))
    return XLinearModel.train(X, Y, C=chain, shallow=True, Cp=options.C, Cn=options.C, threads=options.threads)


def ranked(model: Any, X: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    """Labels of every row, best first, and their scores; a label that the beam did not reach is -1, its score too."""
    found = model.predict(X, only_topk=MOST, beam_size=options.beam, threads=options.threads).tocsr()
    labels, scores = np.full((X.shape[0], MOST), -1), np.full((X.shape[0], MOST), -1.0)
    row = np.repeat(np.arange(X.shape[0]), np.diff(found.indptr))
    place = np.arange(found.nnz) - found.indptr[row]
    labels[row, place], scores[row, place] = found.indices, found.data
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)


def chosen(labels: Any, scores: Any, Y: Any) -> tuple[float, float]:
    """The threshold of labels after the first with the best Jaccard, and that Jaccard."""
    Y = Y.tocsr()
    right = np.array([np.isin(row, Y.indices[a:b]) for row, a, b in zip(labels, Y.indptr, Y.indptr[1:], strict=False)])
    true = np.diff(Y.indptr)
    best = (1.0, -1.0)
    for threshold in np.geomspace(1.0, 1e-4, 200):  # scores are 1 at the most: the first is the first label only
        taken = (labels >= 0) & (scores > threshold)
        taken[:, 0] = True
        both = (taken & right).sum(axis=1)
        jaccard = float((both / (taken.sum(axis=1) + true - both)).mean())
        best = max(best, (float(threshold), jaccard), key=lambda pair: pair[1])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--tree", choices=("own", "given", "none"), required=True)
    parser.add_argument("--C", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--beam", type=int, default=10)
    parser.add_argument("--threshold", type=float, help="of labels after the first; without it, one is chosen")
    options = parser.parse_args()
    facts = json.loads((options.task / "facts.json").read_text())
    X, X_asked = (sp.load_npz(options.task / f"{name}.npz").astype(np.float32) for name in ("X", "X_asked"))
    X.sort_indices()
    X_asked.sort_indices()
    Y = sp.load_npz(options.task / "Y.npz").astype(np.float32)
    record: dict[str, Any] = {}
    if options.threshold is None:
        mixed = np.random.default_rng(0).permutation(X.shape[0])
        held, rest = np.sort(mixed[::10]), np.setdiff1d(mixed, mixed[::10])
        with timed(record, "choice"):
            model = fit(X[rest], Y[rest].tocsc(), facts, options)
            threshold, record["held_out_jaccard"] = chosen(*ranked(model, X[held], options), Y[held])
        (options.task / "chosen.json").write_text(json.dumps(record | {"threshold": threshold}))
        return
    Y = Y.tocsc()
    with timed(record, "fit"):
        model = fit(X, Y, facts, options)
    model.save(str(options.task / "model"))
    model = XLinearModel.load(str(options.task / "model"), is_predict_only=True)  # in which form it answers quickest
    with timed(record, "predict"):
        labels, scores = ranked(model, X_asked, options)
        taken = (labels >= 0) & (scores > options.threshold)
        taken[:, 0] = labels[:, 0] >= 0
    rows = np.nonzero(taken)[0]
    shape = (X_asked.shape[0], Y.shape[1])
    sp.save_npz(options.task / "found.npz", sp.csr_matrix((np.ones(len(rows)), (rows, labels[taken])), shape=shape))
    (options.task / "out.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main()
