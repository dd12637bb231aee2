"""PECOS XR-Linear, on the given tree and on its own (k-means of label embeddings)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pecos.utils.cluster_util import ClusterChain
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from trees import label_paths, level_matrices
from worker import THREADS, Part, Peer, Task, main

Data = tuple[Any, Any]


class Pecos(Peer):
    """Its defaults, but for C and, where it is given, the constant feature.

    These are a squared hinge, weights below 0.1 dropped, and a beam of 10.
    """

    packages = ("libpecos", "numpy")

    def __init__(self, task: Task, model: str) -> None:
        super().__init__(task, model)
        self.chain = ClusterChain(level_matrices(label_paths(task.facts["edges"], task.facts["classes"])))

    def prepare(self, part: Part) -> Data:
        X = sp.csr_matrix(part.X).astype(np.float32)
        X.sort_indices()
        if part.y is None:
            return X, None
        n = len(part.y)
        Y = sp.csc_matrix((np.ones(n, np.float32), (np.arange(n), part.y)), shape=(n, self.task.n_classes))
        return X, Y

    def fit(self, data: Data, setting: dict[str, Any]) -> Any:
        X, Y = data
        chain = self.chain
        if self.model == "own":
            chain = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), threads=THREADS, seed=0)
        C, bias = setting["C"], setting.get("bias", 1.0)
        return XLinearModel.train(X, Y, C=chain, shallow=True, Cp=C, Cn=C, bias=bias, threads=THREADS)

    def predict(self, model: Any, data: Data) -> Any:
        found = model.predict(data[0], only_topk=1, beam_size=10, threads=THREADS)
        if (np.diff(found.indptr) != 1).any():
            raise ValueError("PECOS gave no label, or several, for a sample")
        return found.indices

    def save(self, model: Any, folder: Path) -> None:
        model.save(str(folder))


if __name__ == "__main__":
    main(Pecos)
