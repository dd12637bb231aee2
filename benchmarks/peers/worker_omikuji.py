"""omikuji: three Parabel-like trees of its own making."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omikuji
import scipy.sparse as sp
from worker import THREADS, Part, Peer, main


class Omikuji(Peer):
    """Its defaults, but for C. It reads training samples from a text file, so its time to fit has that in it."""

    packages = ("omikuji",)

    def prepare(self, part: Part) -> Any:
        X = sp.csr_matrix(part.X)
        X.sort_indices()
        rows = [
            list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
            for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        ]
        if part.name in ("valid", "test"):
            return rows
        path = self.task.scratch / f"{part.name}.txt"
        with path.open("w") as file:
            file.write(f"{X.shape[0]} {X.shape[1]} {self.task.n_classes}\n")
            for label, row in zip(part.y, rows, strict=True):
                file.write(f"{label} {' '.join(f'{j}:{v:.6g}' for j, v in row)}\n")
        return str(path)

    def fit(self, data: str, setting: dict[str, Any]) -> Any:
        options = omikuji.Model.default_hyper_param()
        options.linear_c = setting["C"]
        model = omikuji.Model.train_on_data(data, options, THREADS)
        model.init_prediction_thread_pool(THREADS)
        return model

    def predict(self, model: Any, data: Any) -> Any:
        return [model.predict(row, top_k=1)[0][0] for row in data]

    def save(self, model: Any, folder: Path) -> None:
        model.save(str(folder))


if __name__ == "__main__":
    main(Omikuji)
