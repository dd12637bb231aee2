"""Rows of numbers in files, read with split and float."""

from __future__ import annotations

import math


def sparse_rows(text: str, sort: bool) -> tuple[list[list[str]], list[dict[int, float]]]:
    """Labels and features of every row ``label[,label…] index:value … # comment``; a ValueError for a bad one."""
    labels, rows = [], []
    for line in text.split("\n"):
        tokens = line.partition("#")[0].replace(", ", ",").split()
        if not tokens:
            continue
        features = tokens if is_feature(tokens[0]) else tokens[1:]
        labels.append([] if features is tokens else tokens[0].split(","))
        pairs = [token.split(":") for token in features if not token.startswith("qid:")]
        numbers = [int(index) for index, _ in pairs]
        if len(set(numbers)) < len(numbers) or (not sort and numbers != sorted(numbers)):
            raise ValueError(line)
        rows.append({index: finite(value) for index, (_, value) in sorted(zip(numbers, pairs, strict=True))})
    return labels, rows


def is_feature(token: str) -> bool:
    return token.partition(":")[0].isdigit() and ":" in token


def finite(text: str) -> float:
    value = float(text)
    if "_" in text or not math.isfinite(value):
        raise ValueError(text)
    return value


def dense_rows(text: str, categories: list[list[str] | None]) -> tuple[list[list[float]], list[str]]:
    """Cells of every row, of nominal columns the number of the category, and its class; NaN for ``?``."""
    cells, classes = [], []
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        *values, last = [cell.strip() for cell in line.split(",")]
        row = []
        for value, names in zip(values, categories, strict=True):
            known = finite if names is None else names.index
            row.append(math.nan if value == "?" else float(known(value)))
        cells.append(row)
        classes.append(last)
    return cells, classes
