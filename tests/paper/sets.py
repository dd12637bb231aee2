"""Small files of the sets of ``reproduce benchmarks``, in their own formats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from datasets.ilsvrc_files import write_ilsvrc

PATENT = '<record><ipcs ed="7" mc="{symbol}"/><tis><ti>{text}</ti></tis><abs><ab/></abs></record>'


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def words(rng: np.random.Generator, topic: int) -> str:
    """Eight words, some of them on topic."""
    return " ".join(
        [*(f"topic{topic}x{k}" for k in rng.integers(0, 4, 4)), *(f"any{k}" for k in rng.integers(0, 9, 4))]
    )


def rows(rng: np.random.Generator, labels: list[str], first: int) -> str:
    """Rows ``label feature:count``; the label's number plus ``first`` is the feature that tells it."""
    lines = []
    for label in labels:
        told = [first + int(one) for one in label.split(",")]
        others = sorted({int(k) for k in rng.integers(0, 30, 5)} | set(told))
        lines.append(f"{label} " + " ".join(f"{k + 1}:{3 if k in told else 1}" for k in others))
    return "\n".join(lines) + "\n"


def text_set(folder: Path, *, sets: bool, seed: int = 0) -> None:
    """``docs.jsonl.gz`` and ``hierarchy.tsv.gz``."""
    rng = np.random.default_rng(seed)
    leaves = [f"leaf{k}" for k in range(4)]
    edges = [("ROOT", "left"), ("ROOT", "right"), *((("left", "right")[k // 2], leaf) for k, leaf in enumerate(leaves))]
    put(folder / "hierarchy.tsv.gz", "".join(f"{p}\t{c}\n" for p, c in edges))
    docs = []
    for i in range(72):
        topic = i % 4
        more = sets and i % 3 == 0
        labels = [leaves[topic]] + [leaves[(topic + 1) % 4]] * more
        text = words(rng, topic) + (" " + words(rng, (topic + 1) % 4)) * more
        docs.append({"text": text, "labels": labels, "split": "test" if i >= 48 else "train"})
    put(folder / "docs.jsonl.gz", "".join(json.dumps(doc) + "\n" for doc in docs))


def dry_run(folder: Path) -> None:
    """The challenge's files: a path a line, rows with an internal number as feature 0."""
    rng = np.random.default_rng(1)
    put(folder / "cat_hier.txt.gz", "1 2 4\n1 2 5\n1 3 6\n1 3 7\n")
    for part, n in (("train", 40), ("test", 20)):
        text = rows(rng, [str(4 + i % 4) for i in range(n)], 20)
        put(
            folder / f"{part}.txt.gz",
            "".join(line.replace(" ", f" 0:{i} ", 1) + "\n" for i, line in enumerate(text.splitlines())),
        )


DAG = "root/a,root/b,a/c,a/d,b/d,b/e", ("c", "d", "e@c")
TREE = "a,a/c,a/d,b,b/e", ("a/c", "a/d", "b/e@a/c")


def arff(
    folder: Path, name: str, parts: tuple[str, ...], kind: tuple[str, tuple[str, str, str]] = DAG, n: int = 30
) -> None:
    """Label sets on a DAG given by pairs, or on a tree given by paths."""
    rng = np.random.default_rng(2)
    classes, labels = kind
    for part in parts:
        lines = []
        for i in range(n):
            x = rng.normal(size=3) + 3 * np.eye(3)[i % 3]
            cells = ",".join("?" if rng.random() < 0.05 else f"{v:.3f}" for v in x)
            lines.append(f"{cells},{labels[i % 3]}")
        head = "@RELATION r\n" + "".join(f"@ATTRIBUTE x{k} numeric\n" for k in range(3))
        put(
            folder / f"{name}{part}.arff.gz",
            f"{head}@ATTRIBUTE class hierarchical {classes}\n@DATA\n" + "\n".join(lines) + "\n",
        )


def patents(folder: Path) -> None:
    """WIPO-alpha; a test record has a symbol that training does not."""
    rng = np.random.default_rng(3)
    symbols = ["A01B00100", "A01C00300", "B60R02116"]
    for part, n in (("train", 30), ("test", 12)):
        for i in range(n):
            put(
                folder / part / symbols[i % 3][:3] / f"{i}.xml",
                PATENT.format(symbol=symbols[i % 3], text=words(rng, i % 3)),
            )
    put(folder / "test" / "new.xml", PATENT.format(symbol="H01L00100", text="new"))


def challenge(folder: Path, *, validation: bool, labels: bool) -> None:
    """DMOZ 2010: below a folder of the task; test rows have labels, or 0 in their place."""
    rng = np.random.default_rng(4)
    put(folder / "cat_hier.txt", "1 2 4\n1 2 5\n1 3 6\n1 3 7\n")
    parts = ("train", "validation", "test") if validation else ("train", "test")
    for part in parts:
        text = rows(rng, [str(4 + i % 4) for i in range(40 if part == "train" else 16)], 20)
        if part == "test" and not labels:
            text = "".join("0 " + line.split(" ", 1)[1] + "\n" for line in text.splitlines())
        put(folder / "Task1" / f"{part}.txt", text)


def wiki(folder: Path) -> None:
    """WIKI 2011: pairs, label lists, one label deeper than five."""
    rng = np.random.default_rng(5)
    chain = "".join(
        f"{a} {b}\n" for a, b in ((1, 2), (1, 3), (2, 4), (3, 4), (3, 5), (5, 6), (6, 7), (7, 8), (8, 9), (8, 10))
    )
    put(folder / "hierarchy.txt", chain)  # 9 and 10 are six edges below the root, or five: 1 3 5 6 7 8 9
    put(folder / "train.txt", rows(rng, [("4", "4,9", "9", "7")[i % 4] for i in range(40)], 20))


def images(folder: Path) -> None:
    rng = np.random.default_rng(6)

    def some(k: int, n: int) -> list[list[int]]:
        return [[k, k, 10 + k, *rng.integers(20, 60, 4).tolist()] for _ in range(n)]

    train = {f"n{k}": some(k, 12) for k in (1, 2, 3)}
    numbers = [1, 2, 3] * 4
    write_ilsvrc(folder, train, (numbers, [[some(k, 1)[0] for k in numbers[:6]], [some(k, 1)[0] for k in numbers[6:]]]))
