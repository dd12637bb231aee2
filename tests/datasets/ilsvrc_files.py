"""Small files in the formats of the ILSVRC 2010 challenge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat

SYNSETS = [(1, "n1", []), (2, "n2", []), (3, "n3", []), (4, "n4", [1, 2]), (5, "n5", [2, 3]), (6, "n6", [4, 5])]


def structures(items: list[dict[str, Any]]) -> Any:
    """An array of structures, as MATLAB has it."""
    made = np.zeros((len(items), 1), dtype=[(name, object) for name in items[0]])
    for k, item in enumerate(items):
        made[k, 0] = tuple(item.values())
    return made


def bags(images: list[list[int]]) -> dict[str, Any]:
    words = [np.array(image, dtype=np.uint16)[:, None] for image in images]
    places = [{"x": 0.5 * w, "y": 0.5 * w, "scale": 16.0 + 0 * w, "norm": 0.1 + 0 * w, "word": w} for w in words]
    return {"image_sbow": structures([{"ftname": f"image_{k}", "sbow": place} for k, place in enumerate(places)])}


def meta(synsets: list[tuple[int, str, list[int]]]) -> dict[str, Any]:
    widest = max(len(children) for _, _, children in synsets)
    return {"synsets": structures([
        {"ILSVRC2010_ID": float(number), "WNID": name, "words": "a, b", "num_children": float(len(children)),
         "children": np.array([*children, *[0] * (widest - len(children))], dtype=float), "num_train_images": 3.0}
        for number, name, children in synsets
    ])}  # fmt: skip


def write_ilsvrc(folder: Path, train: dict[str, list[list[int]]] | None = None, val: Any = None) -> Path:
    """All the files, in folders as they were published."""
    train = train or {"n1": [[5], [7, 0, 999, 0]], "n2": [[1, 1], [2], [3]], "n3": [[4]]}
    numbers, images = val or ([1, 3, 2], [[[5], [5]], [[5, 100]]])
    for name in ("devkit/data", "features/train", "features/val"):
        (folder / name).mkdir(parents=True)
    savemat(folder / "devkit" / "data" / "meta.mat", meta(SYNSETS))
    truth = folder / "devkit" / "data" / "ILSVRC2010_validation_ground_truth.txt"
    truth.write_text("".join(f"{number}\n" for number in numbers))
    for name, words in train.items():
        savemat(folder / "features" / "train" / f"{name}.sbow.mat", bags(words))
    for k, words in enumerate(images, 1):
        savemat(folder / "features" / "val" / f"val.{k:04d}.sbow.mat", bags(words))
    return folder
