"""LibMultiLabel: its tree of linear models."""

from __future__ import annotations

import contextlib
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from libmultilabel.linear import train_tree
from worker import THREADS, Part, Peer, main

Data = tuple[Any, Any]


class LibMultiLabel(Peer):
    """Its defaults (at most 100 children, squared hinge, a beam of 10), but for C, and with an intercept."""

    packages = ("libmultilabel", "liblinear-multicore", "numpy")

    def prepare(self, part: Part) -> Data:
        X = sp.csr_matrix(part.X)
        if part.y is None:
            return X, None
        n = len(part.y)
        return X, sp.csr_matrix((np.ones(n), (np.arange(n), part.y)), shape=(n, self.task.n_classes))

    def warm_up(self, data: Data) -> None:
        self.fit((data[0][:50], data[1][:50]), {"C": 1.0})  # its first fit loads libraries

    def fit(self, data: Data, setting: dict[str, Any]) -> Any:
        X, Y = data
        np.random.seed(0)  # noqa: NPY002 - the only seed it takes
        with contextlib.redirect_stdout(io.StringIO()):
            return train_tree(Y, X, f"-s 1 -B 1 -q -m {THREADS} -c {setting['C']}", verbose=False)

    def predict(self, model: Any, data: Data) -> Any:
        return model.predict_values(data[0], beam_width=10).argmax(axis=1)

    def save(self, model: Any, folder: Path) -> None:
        with (folder / "model.pickle").open("wb") as file:
            pickle.dump(model, file)


if __name__ == "__main__":
    main(LibMultiLabel)
