"""Our own estimators, with their defaults, but for C and the tolerance; or as they come, if the name says plain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from worker import THREADS, Part, Peer, Task, main

import nhsvm


class Ours(Peer):
    """A tiny fit comes first: kernels are compiled, or loaded, once a machine or process."""

    packages = ("nhsvm", "numba", "numpy")

    def __init__(self, task: Task, model: str) -> None:
        super().__init__(task, model)
        self.name, _, tol = model.partition("/")
        self.options = {} if tol == "plain" else {"tol": float(tol)}
        if tol == "plain":
            self.grid = ({},)
        edges = [tuple(edge) for edge in task.facts["edges"]]
        self.hierarchy = nhsvm.Hierarchy.from_edges(edges, nodes=task.facts["nodes"])
        self.number = {name: i for i, name in enumerate(task.facts["classes"])}

    def prepare(self, part: Part) -> Part:
        return part if part.y is None else Part(part.name, part.X, self.task.classes[part.y], None)

    def warm_up(self, data: Part) -> None:
        few = np.concatenate([np.flatnonzero(data.y == name)[:3] for name in np.unique(data.y)[:8]])
        tiny = Part("tiny", data.X[few], data.y[few], None)
        self.predict(self.fit(tiny, {"C": 1.0, "tol": 0.1}), tiny)

    def fit(self, data: Part, setting: dict[str, Any]) -> Any:
        estimator = getattr(nhsvm, self.name)(self.hierarchy, n_jobs=THREADS, **self.options | setting)
        return estimator.fit(data.X, data.y)

    def predict(self, model: Any, data: Part) -> Any:
        return [self.number[name] for name in model.predict(data.X)]

    def save(self, model: Any, folder: Path) -> None:
        nhsvm.save(model, folder / "model.nhsvm")


if __name__ == "__main__":
    main(Ours)
