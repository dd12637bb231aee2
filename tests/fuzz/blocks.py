"""Folders of blocks, changed where it hurts and with their checksums made anew, then opened, learned from and asked.

Whatever the files say, opening them ends with samples or with an ``NHSVMError``, and so does fitting and predicting.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
import zlib
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuzz.harness import memory_for
from fuzz.mutate import Mutator

_FREE = 300 << 20  # bytes of memory: kernels may have to be compiled for types that have not come yet
_TYPES = {"f32": "<f4", "f64": "<f8", "i32": "<i4", "i64": "<i8"}


class Base(NamedTuple):
    """The files of a folder, and a model of what is in it."""

    name: str
    files: dict[str, bytes]
    model: Any


# -- blocks of every kind ----------------------------------------------------------------------------------------------


def _bases(folder: Path) -> list[Base]:
    import nhsvm
    from nhsvm.datasets import Dataset, write_blocks

    rng = np.random.default_rng(0)
    h = nhsvm.Hierarchy.from_edges([("a", "b"), ("a", "c"), ("d", "e"), ("d", "f"), ("b", "g"), ("b", "h")])
    numbers = nhsvm.Hierarchy.from_edges([(1, 2), (1, 3), (3, 4), (3, 5)])
    dense = rng.normal(size=(25, 6)) * (rng.random((25, 6)) < 0.5)
    sparse = sp.csr_matrix(dense)
    one = np.array([h.leaves[k] for k in rng.integers(0, len(h.leaves), 25)], dtype=object)
    sets = [[h.leaves[k], *h.leaves[k + 1 : k + 2]] for k in rng.integers(0, len(h.leaves), 25)]
    whole = np.array([numbers.leaves[k] for k in rng.integers(0, 3, 25)], dtype=np.int64)
    names = np.array(["one", "two", "three", "four", "five", "six"], dtype=object)
    made = {
        "sparse, one": Dataset(one, h, sparse, feature_names=range(1, 7)),
        "sparse, sets": Dataset(sets, h, sparse, feature_names=np.array([1, 3, 5, 8, 90, 2**30])),
        "sparse, numbers, no hierarchy": Dataset(whole, None, sparse),
        "sparse, numbers": Dataset(whole, numbers, sparse),
        "dense, one": Dataset(one, h, dense, feature_names=names),
        "dense, no labels": Dataset(None, h, dense.astype(np.float32), feature_names=names),
    }
    found = []
    for k, (name, data) in enumerate(made.items()):
        place = folder / f"{k}.blocks"
        write_blocks(data, place, note={"text": ["title"], "n_features": 6})
        model = None if data.y is None else _estimator(data.hierarchy).fit(data.X, data.y)
        found.append(Base(name, {path.name: path.read_bytes() for path in place.iterdir()}, model))
    return found


def _estimator(hierarchy: Any) -> Any:
    import nhsvm

    return nhsvm.NHSVM(hierarchy, max_iter=2, certify=False, random_state=0)


# -- changes -----------------------------------------------------------------------------------------------------------


def changed(rng: Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Some files, or what the header says of them, are others; checksums fit again, as a rule."""
    mutator, files = Mutator(rng), dict(files)
    outer = json.loads(files.pop("header.json"))
    content = outer["content"]
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        _change_file(rng, mutator, files)
    if rng.random() < 0.03:
        del files[rng.choice(sorted(files))]
    if rng.random() < 0.97:
        for name, raw in files.items():
            content["files"][name] = {"bytes": len(raw), "crc32": zlib.crc32(raw)}
    if rng.random() < 0.1:
        content |= {rng.choice(("n_features", "n_rows", "n_labels", "first_feature", "nnz")): rng.choice(_COUNTS)}
    if rng.random() < 0.1:
        content |= rng.choice(_KINDS)
    if rng.random() < 0.9:
        _fit_counts(content, files)
    if rng.random() < 0.1:
        content = mutator.json(content)
    outer["content"] = content
    if rng.random() < 0.05:
        outer = mutator.json(outer)
    return files | {"header.json": _header(outer)}


_COUNTS = [0, 1, 2, 5, 7, 25, 26, 1000, 10**6, 10**8, 2**31 - 2, 2**31 - 1, 2**31, 2**61, 2**62 - 1, -1, 2**63, 10**400]
_KINDS = [
    {"labels": "none"}, {"labels": "one"}, {"labels": "sets"}, {"features": "none"}, {"features": "range"},
    {"features": "numbers"}, {"features": "names"}, {"hierarchy": True}, {"hierarchy": False}, {"nnz": None},
    {"dtype": "float32"}, {"dtype": "float64"}, {"label_dtype": "int64"}, {"label_dtype": "object"},
]  # fmt: skip


def _change_file(rng: Random, mutator: Mutator, files: dict[str, bytes]) -> None:
    name = rng.choice(sorted(files))
    kind = _TYPES.get(name.rpartition(".")[2])
    if rng.random() < 0.1:
        files[name] = mutator.binary(files[name])
    elif kind is None:
        files[name] = _json(_changed_names(rng, mutator, files[name]))
    elif len(files[name]) % np.dtype(kind).itemsize == 0:
        with np.errstate(all="ignore"):
            files[name] = mutator.array(np.frombuffer(files[name], kind)).tobytes()


def _changed_names(rng: Random, mutator: Mutator, raw: bytes) -> Any:
    try:
        names = json.loads(raw)
    except ValueError:  # damaged already
        return None
    if rng.random() < 0.7 and isinstance(names, dict) and names:  # names of the right kind
        some = names[rng.choice(sorted(names))]
        if isinstance(some, list) and some:
            others = [*some, 2**61 - 1, 2**63, 0, -1, "x", "", "\ud800", "a" * 3000]
            some[rng.randrange(len(some))] = rng.choice(others)
            return names
    return mutator.json(names)


def _fit_counts(content: dict[str, Any], files: dict[str, bytes]) -> None:
    """Counts of the header that are those of the files, so that what the files say is reached."""
    n = {name.partition(".")[0]: len(raw) * 8 // int(name[-2:]) for name, raw in files.items() if name[-2:].isdigit()}
    if "indptr" in n:
        content |= {"n_rows": n["indptr"] - 1, "nnz": n.get("data", 0)}
    elif content["n_features"] and "values" in n:
        content["n_rows"] = n["values"] // content["n_features"]
    if "label_codes" in n:
        content["n_labels"] = n["label_codes"]


def _header(outer: Any) -> bytes:
    if isinstance(outer, dict) and "crc32" in outer and "content" in outer:
        try:
            text = json.dumps(outer["content"], sort_keys=True, separators=(",", ":"))
        except (ValueError, RecursionError, TypeError):
            return b"{}"
        outer["crc32"] = zlib.crc32(text.encode())
    return _json(outer)


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):  # numbers of more digits than Python writes
        return b"{" * 100_000


# -- cases, as :mod:`fuzz.harness` runs them ---------------------------------------------------------------------------

_BASES: list[Base] = []


def warm_up(folder: Path) -> None:
    """Kernels are compiled, and blocks that nobody has changed are learned from."""
    from nhsvm.errors import LabelError

    _BASES.extend(_bases(folder))
    for k, base in enumerate(_BASES):
        for seed in range(6):
            place = folder / f"{k}-{seed}"
            _write(place, base.files)
            try:
                _ask(Random(seed), place, base)
            except LabelError as error:  # where one label a sample was asked for, and there are several
                assert "expected one label a sample" in str(error)  # noqa: PT017


def run_case(number: int, folder: Path) -> str:
    """One case: blocks and their changes follow from the number."""
    rng = Random(number)
    base = rng.choice(_BASES)
    files = changed(rng, base.files)
    _write(folder / "a.blocks", files)
    with memory_for(sum(map(len, files.values())), free=_FREE):
        _ask(rng, folder / "a.blocks", base)
    return f"{base.name}: opened, learned from and asked"


def _ask(rng: Random, folder: Path, base: Base) -> None:
    from nhsvm.cli import app
    from nhsvm.datasets import iter_blocks, open_blocks
    from nhsvm.datasets.blocks import read_note, stored_steps
    from nhsvm.errors import NHSVMError

    if rng.random() < 0.1:
        with contextlib.redirect_stdout(io.StringIO()):
            app(["inspect", str(folder)], prog_name="nhsvm", standalone_mode=False)
        read_note(folder)
        stored_steps(folder)
    data = open_blocks(folder, verify=rng.random() < 0.8, multilabel=rng.choice((None, None, True, False)))
    repr(data)
    sum(X.shape[0] for X, _ in iter_blocks(data, 10))
    refused = None
    if base.model is not None:
        try:
            assert len(base.model.predict(data.X)) == data.n_samples
        except NHSVMError as error:
            refused = error
    is_tree = data.hierarchy is None or data.hierarchy.is_tree  # kernels for DAGs would take a minute to compile
    if data.y is not None and is_tree and rng.random() < 0.5:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = _estimator(data.hierarchy).fit(data.X, data.y)
        assert len(fitted.predict(data.X)) == data.n_samples
    if refused is not None:
        raise refused


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        if "/" not in name and name not in ("", ".", ".."):
            (folder / name).write_bytes(raw)
