"""fastText: averaged word vectors, learned with the labels; it is given the words, not the features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fasttext
from worker import THREADS, Part, Peer, main

PREFIX = "__label__"


class FastText(Peer):
    """Two threads write to the same weights, so no two runs are alike."""

    packages = ("fasttext-wheel", "numpy")
    grid = (
        {"epoch": 10, "lr": 0.5, "wordNgrams": 1},
        {"epoch": 30, "lr": 0.5, "wordNgrams": 1},
        {"epoch": 30, "lr": 1.0, "wordNgrams": 1},
        {"epoch": 30, "lr": 0.5, "wordNgrams": 2},
        {"epoch": 100, "lr": 0.5, "wordNgrams": 1},
        {"epoch": 100, "lr": 1.0, "wordNgrams": 1},
    )

    def prepare(self, part: Part) -> Any:
        if part.lines is None:
            raise ValueError("fastText reads words, and this set has none")
        if part.name in ("valid", "test"):
            return part.lines
        path = self.task.scratch / f"{part.name}.txt"
        lines = (f"{PREFIX}{label} {line}\n" for label, line in zip(part.y, part.lines, strict=True))
        path.write_text("".join(lines), encoding="utf-8")
        return str(path)

    def fit(self, data: str, setting: dict[str, Any]) -> Any:
        return fasttext.train_supervised(data, thread=THREADS, verbose=0, bucket=200_000, **setting)

    def predict(self, model: Any, data: Any) -> Any:
        found, _ = model.predict(data)
        return [int(labels[0].removeprefix(PREFIX)) if labels else -1 for labels in found]

    def save(self, model: Any, folder: Path) -> None:
        model.save_model(str(folder / "model.bin"))


if __name__ == "__main__":
    main(FastText)
