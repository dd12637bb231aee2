"""What ``nhsvm inspect`` says of blocks: samples on disk, as ``nhsvm convert`` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp

from nhsvm.cli._inspect_hierarchy import counts
from nhsvm.sizes import readable_bytes


def describe(folder: Path) -> dict[str, Any]:
    """Counts of samples, features and labels; the rows themselves are not read."""
    from nhsvm.datasets import open_blocks

    data = open_blocks(folder, verify=False)
    several = isinstance(data.y, list)
    labels = [] if data.y is None else [label for row in data.y for label in row] if several else data.y.tolist()
    X: Any = data.X
    known: dict[str, Any] = {} if data.hierarchy is None else counts(data.hierarchy)
    return known | {
        "kind": "blocks",
        "file": str(folder),
        "samples": data.n_samples,
        "features": int(X.shape[1]),
        "entries": int(X.nnz) if sp.issparse(X) else None,
        "precision": str(X.dtype),
        "classes": len(set(labels)),
        "labels_a_sample": len(labels) / data.n_samples if several and data.n_samples else None,
        "bytes": sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
    }


def show(result: dict[str, Any]) -> str:
    """All of it as text."""
    from nhsvm.cli.inspect import lines

    n, entries, many = result["samples"], result["entries"], result["labels_a_sample"]
    width = "dense" if entries is None else f"{entries / max(1, n):.1f} of them a sample"
    several = "" if many is None else f", {many:.1f} a sample"
    return lines(
        {
            "samples": f"{n:,}",
            "features": f"{result['features']:,}, {width}, {result['precision']}",
            "labels": f"{result['classes']:,} classes{several}" if result["classes"] else "none",
            "hierarchy": result.get("hierarchy", "none: labels are flat, unless a file says otherwise"),
            "folder": f"{result['file']}, {readable_bytes(result['bytes'])}",
        }
    )
