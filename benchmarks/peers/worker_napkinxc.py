"""napkinXC: a probabilistic label tree of its own making, and hierarchical softmax on the given tree."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from napkinxc.models import HSM, PLT
from trees import label_paths, node_list
from worker import THREADS, Part, Peer, main

Data = tuple[Any, Any]


class NapkinXC(Peer):
    """Its defaults, but for C.

    The softmax gets rows as they are (``norm=False``). The tree of its own does not: its k-means ends the process with
    a segmentation fault unless it may scale rows to length 1. Rows of tf-idf have that length anyway.

    The model goes to disk while it is learned and is loaded from there; both are part of its time to fit.
    """

    packages = ("napkinxc",)
    grid = tuple({"C": c} for c in (10.0, 3.0, 30.0, 1.0, 100.0, 0.3))  # its default is 10

    def prepare(self, part: Part) -> Data:
        return sp.csr_matrix(part.X).astype(np.float32), None if part.y is None else part.y.tolist()

    def fit(self, data: Data, setting: dict[str, Any]) -> Any:
        output = self.task.scratch / "napkinxc"
        shutil.rmtree(output, ignore_errors=True)
        options = {"liblinear_c": setting["C"], "norm": self.model == "own", "threads": THREADS, "seed": 1}
        if self.model == "given":
            tree = node_list(label_paths(self.task.facts["edges"], self.task.facts["classes"]))
            model = HSM(str(output), tree_structure=tree, **options)
        else:
            model = PLT(str(output), **options)
        model.fit(*data)
        model.load()
        return model

    def predict(self, model: Any, data: Data) -> Any:
        return [label for (label,) in model.predict(data[0], top_k=1)]

    def save(self, model: Any, folder: Path) -> None:
        shutil.copytree(self.task.scratch / "napkinxc", folder, dirs_exist_ok=True)


if __name__ == "__main__":
    main(NapkinXC)
