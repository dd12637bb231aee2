"""scikit-learn: LinearSVC, one-vs-rest and Crammer–Singer, and SGDClassifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC
from worker import C_GRID, THREADS, Part, Peer, Task, main

ALPHA_GRID = tuple({"alpha": a} for a in (1e-4, 3e-5, 3e-4, 1e-5, 1e-3, 3e-6))


class ScikitLearn(Peer):
    """LIBLINEAR has one thread here; SGDClassifier has two."""

    packages = ("scikit-learn", "numpy")

    def __init__(self, task: Task, model: str) -> None:
        super().__init__(task, model)
        self.grid = ALPHA_GRID if model == "sgd" else C_GRID

    def fit(self, data: Part, setting: dict[str, Any]) -> Any:
        if self.model == "sgd":
            model = SGDClassifier(n_jobs=THREADS, random_state=0, **setting)
        else:
            model = LinearSVC(multi_class=self.model, random_state=0, **setting)
        return model.fit(data.X, data.y)

    def predict(self, model: Any, data: Part) -> Any:
        return model.predict(data.X)

    def save(self, model: Any, folder: Path) -> None:
        joblib.dump(model, folder / "model.joblib")


if __name__ == "__main__":
    main(ScikitLearn)
