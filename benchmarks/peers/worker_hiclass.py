"""hiclass: a LinearSVC at every inner node, asked from the root down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
from hiclass import LocalClassifierPerParentNode
from sklearn.svm import LinearSVC
from trees import label_paths, padded
from worker import THREADS, Part, Peer, Task, main


class HiClass(Peer):
    """Labels are paths, filled up with empty strings. Nodes are fitted on threads, which LIBLINEAR lets run."""

    packages = ("hiclass", "scikit-learn", "numpy")

    def __init__(self, task: Task, model: str) -> None:
        super().__init__(task, model)
        self.paths = np.array(padded(label_paths(task.facts["edges"], task.facts["classes"]), ""))
        self.number = {tuple(path): i for i, path in enumerate(self.paths)}

    def fit(self, data: Part, setting: dict[str, Any]) -> Any:
        model = LocalClassifierPerParentNode(LinearSVC(random_state=0, **setting), n_jobs=THREADS)
        with joblib.parallel_config("threading"):
            return model.fit(data.X, self.paths[data.y])

    def predict(self, model: Any, data: Part) -> Any:
        return [self.number[tuple(path)] for path in model.predict(data.X)]

    def save(self, model: Any, folder: Path) -> None:
        joblib.dump(model, folder / "model.joblib")


if __name__ == "__main__":
    main(HiClass)
