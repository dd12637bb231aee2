"""Model files of every kind, changed where it hurts and with their checksums made anew, then loaded and asked.

Whatever a file says, loading it ends with a model or with a ``FileFormatError``, and asking the model ends with answers
or with an ``NHSVMError``; loading takes no more memory than is in proportion to the file.
"""

from __future__ import annotations

import copy
import json
import os
import random
import tempfile
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SPARE = 2**26  # bytes of memory that loading may take beside what the file may: buffers of the system, modules
CODES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8"}
CODES |= {"<u8": "U64", "<u4": "U32", "<u2": "U16", "|u1": "U8", "|b1": "BOOL"}


# -- models of every kind ----------------------------------------------------------------------------------------------


def make_models(folder: Path) -> None:
    """Small models: all estimators, labels, hierarchies, storages, precisions, and transformers."""
    import nhsvm

    rng = np.random.default_rng(0)
    edges = [("a", "b"), ("a", "c"), ("d", "e"), ("d", "f"), ("b", "g"), ("b", "h")]
    graphs = {"tree": nhsvm.Hierarchy.from_edges(edges), "dag": nhsvm.Hierarchy.from_edges([*edges, ("c", "g")])}
    X = np.abs(rng.normal(size=(40, 9))) * (rng.random((40, 9)) < 0.5)
    X[:, 0] = 1.0  # in all samples, so that its row is full
    for shape, h in graphs.items():
        leaves = [*h.leaves, "d"]  # an inner node too
        one = [leaves[k] for k in rng.integers(0, len(leaves), 40)]
        sets = [set(rng.choice(leaves, rng.integers(1, 3), replace=False).tolist()) for _ in range(40)]
        for kind in ("FlatSVM", "HSVM", "NHSVM", "SSVM", "HRSVM"):
            for labels, y in (("one", one), ("sets", sets)):
                _save_all(folder, f"{kind}-{labels}-{shape}", _fitted(kind, h, labels), X, y)
    _save_steps(folder, graphs["tree"], rng)


def _fitted(kind, h, labels):
    import nhsvm

    more = {"offsets": "f1_macro"} if labels == "sets" and kind == "NHSVM" else {}
    # without certify=False a fit takes as long as its proof; what is learned does not matter here
    return getattr(nhsvm, kind)(h, max_iter=3, tol=0.1, probability=kind != "SSVM", cv=2, **more)


def _save_all(folder, name, model, X, y):
    import nhsvm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = model.fit(sp.csr_matrix(X), y)
        nhsvm.save(sparse, folder / f"{name}-table.nhsvm", note={"label": "y", "first_feature": 1, "n_features": 9})
        rows = nhsvm.prune(sparse, share=0.4).model
        for precision in (None, "float16", "int8"):
            nhsvm.save(rows, folder / f"{name}-rows-{precision}.nhsvm", precision=precision)
            if precision is not None:
                nhsvm.save(sparse, folder / f"{name}-table-{precision}.nhsvm", precision=precision)
        if "NHSVM" in name:
            nhsvm.save(model.set_params(tol=1e-6).fit(X, y), folder / f"{name}-dense.nhsvm")


def _save_steps(folder, h, rng):
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import (
        CountVectorizer,
        HashingVectorizer,
        TfidfTransformer,
        TfidfVectorizer,
    )
    from sklearn.impute import SimpleImputer
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

    import nhsvm
    from nhsvm.features import BM25Transformer

    words = ["it", "barks", "purrs", "and", "sleeps", "at", "night", "grows", "leaves", "in", "the", "wood"]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(30)]
    X = np.abs(rng.normal(size=(30, 4)))
    y = [h.leaves[k] for k in rng.integers(0, len(h.leaves), 30)]
    of_texts = {
        "tfidf": [TfidfVectorizer()],
        "counts": [CountVectorizer(ngram_range=(1, 2)), TfidfTransformer(), Normalizer()],
        "bm25": [CountVectorizer(), BM25Transformer()],
        "hashing": [HashingVectorizer(n_features=32)],
        "svd": [TfidfVectorizer(analyzer="char", ngram_range=(1, 2)), TruncatedSVD(3, random_state=0)],
        "pattern": [TfidfVectorizer(token_pattern=r"\S+")],
    }
    of_numbers = {
        "standard": [SimpleImputer(), StandardScaler()],
        "maxabs": [MaxAbsScaler()],
        "minmax": [SimpleImputer(strategy="constant", fill_value=0.5), MinMaxScaler()],
        "nystroem": [Nystroem(n_components=3, random_state=0, n_jobs=2)],
    }
    for group, samples in ((of_texts, texts), (of_numbers, X)):
        for name, steps in group.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make_pipeline(*steps, nhsvm.NHSVM(h, max_iter=3, tol=0.1)).fit(samples, y)
            nhsvm.save(model, folder / f"steps-{name}.nhsvm", note={"text": ["title"], "label_type": "str"})


# -- files taken apart and put together, by this page's own reading of the format --------------------------------------


def parts_of(path: Path):
    """(header, arrays) of a model file."""
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    document = json.loads(json.loads(raw[8 : 8 + n])["__metadata__"]["nhsvm"])
    arrays, begin = {}, 8 + n
    types = {code: dtype for dtype, code in CODES.items()}
    for name, code, shape, order, _ in document["arrays"]:
        stored = shape if order == "C" else shape[::-1]
        size = int(np.prod(shape)) * np.dtype(types[code]).itemsize
        array = np.frombuffer(raw, types[code], int(np.prod(shape)), begin).reshape(stored)
        arrays[name] = (array if order == "C" else array.T).copy(order=order)
        begin += size
    return document["header"], arrays


def put_together(header, arrays, lie=None) -> bytes:
    """A file of these parts with checksums that fit; ``lie`` changes the list of arrays."""
    listing, data = [], []
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        raw = (array.T if order == "F" else array).tobytes()
        listing.append([name, CODES[array.dtype.str], list(array.shape), order, zlib.crc32(raw)])
        data.append(raw)
    if lie is not None:
        lie(listing)
    offset, tensors = 0, {}
    sizes = {code: np.dtype(dtype).itemsize for dtype, code in CODES.items()}
    for name, code, shape, order, _ in listing:
        size = sizes.get(code, 1)
        for side in shape:
            size *= side
        tensors[name] = {
            "dtype": code,
            "shape": shape if order == "C" else shape[::-1],
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps({"header": header, "arrays": listing}, ensure_ascii=True)
    precise = isinstance(header.get("state"), dict) and "precision" in header["state"]
    version = 3 if precise else 2 if "steps" in header else 1
    metadata = {"nhsvm_format": str(version), "nhsvm_crc32": f"{zlib.crc32(text.encode()):08x}", "nhsvm": text}
    head = json.dumps({"__metadata__": metadata, **tensors}).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + b"".join(data)


# -- changes -----------------------------------------------------------------------------------------------------------

VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, -0.0, 1e308, 1e-320, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63),
    10**30, 10**400, "", "a", "dog", "x" * 5000, "\ud800", "(?:|){60}x", "(a+)+$", "os.system", [], {}, [[]], [1, 2],
    {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"tuple": []}, {"tuple": [1, 2]}, {"tuple": [1, 10**9]},
    {"bytes": "00"}, {"numpy": ["int64", 3]}, {"virtual_leaf": "a"}, {"frozenset": [1, 2]}, {"hierarchy": 0},
    {"hierarchy": 9}, {"array": "fitted/values"}, {"array": "hierarchy/0/parent"}, {"dict": []}, {"loss": "hamming"},
    {"weights": ["power", {"dict": []}]}, {"value": 1}, {"value": 2**62}, {"value": {"float": "inf"}}, {"value": None},
    {"value": "x"}, {"vocabulary": "text/0/"}, {"words": "text/0/"}, {"names": {"dtype": "object", "labels": ["a"]}},
    {"dtype": "float64"}, {"type": "float32"}, {"type": "str"}, {"dtype": "int8", "labels": [1, 2, 3]},
    {"step": {"kind": "StandardScaler", "params": {}, "fitted": {}}},
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 3, 5, 8, 9, 10, 63, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1]
NUMBERS += [2**62, 2**63 - 1, 2**63 - 4, 2**63 - 8, -(2**31), -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-40, 1e30, 1e38, -1e308, 1e308, np.inf, -np.inf, np.nan, 5e-324]


def changed(rng: random.Random, header, arrays):
    """A few changes of the parts of a file; the file."""
    header, arrays, lie = copy.deepcopy(header), dict(arrays), None
    for _ in range(rng.choice([1, 1, 1, 2, 2, 4])):
        how = rng.choice(
            [change_json, change_json, change_json, change_entries, change_entries, change_shape, change_type]
        )
        if rng.random() < 0.25:
            how = rng.choice([change_names, change_rows, change_rows, change_sizes, change_edges, change_words])
        if arrays or how is change_json:
            how(rng, header, arrays)
    if rng.random() < 0.05:
        lie = rng.choice([_lie_shape, _lie_order, _lie_type, _lie_sequence])(rng)
    raw = put_together(header, arrays, lie)
    if rng.random() < 0.02:
        raw = raw[: rng.randrange(len(raw))] + rng.choice([b"", b"\0" * 9])
    return raw


def _places(value, found, above=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        _places(item, found, (*above, key))
    return found


def change_json(rng, header, arrays):
    """Something in the header becomes something else, is moved, doubled or left out."""
    places = _places(header, [])
    holder, key = rng.choice(places)
    how = rng.randrange(10)
    if how < 5:
        holder[key] = copy.deepcopy(rng.choice(VALUES))
    elif how < 7:
        other, place = rng.choice(places)
        holder[key] = copy.deepcopy(other[place])
    elif how < 8 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif how < 9 and isinstance(holder[key], int) and not isinstance(holder[key], bool):
        holder[key] += rng.choice([-1, 1, 2, 100, 10**6])
    else:
        del holder[key]


def _some(rng, arrays, only=None):
    names = [name for name in arrays if only is None or name.startswith(only)]
    return rng.choice(sorted(names)) if names else None


def _hostile(rng, dtype):
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(rng.choice(FLOATS)).astype(dtype)
    if dtype.kind == "b":
        return np.uint8(rng.choice([0, 1, 2, 255]))
    info = np.iinfo(dtype)
    return np.array(min(max(rng.choice(NUMBERS) + rng.choice([-1, 0, 0, 1]), info.min), info.max)).astype(dtype)


def change_entries(rng, header, arrays):
    """Some entries of an array, or all of them, become what nobody expects."""
    name = _some(rng, arrays)
    array = arrays[name].copy(order="K")
    if not array.size:
        return
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    if array.dtype.kind == "b":
        flat = flat.view(np.uint8)
    if rng.random() < 0.1:
        flat[:] = _hostile(rng, array.dtype)
    for _ in range(rng.choice([1, 1, 2, 5])):
        flat[rng.randrange(len(flat))] = (
            flat[rng.randrange(len(flat))] if rng.random() < 0.3 else _hostile(rng, array.dtype)
        )
    arrays[name] = array


def change_shape(rng, header, arrays):
    """An array of other dimensions, cut, longer, or in another order."""
    name = _some(rng, arrays)
    array = arrays[name]
    forms = [
        lambda a: a.reshape(-1, 1),
        lambda a: a.reshape(1, -1),
        lambda a: a.reshape(-1),
        lambda a: a[:-1].copy() if a.ndim else a,
        lambda a: a[:0].copy() if a.ndim else a,
        lambda a: a[:, :0].copy() if a.ndim == 2 else a,
        lambda a: np.concatenate([a, a]) if a.ndim else a,
        lambda a: a.T.copy(),
        lambda a: np.asfortranarray(a),
        lambda a: np.ascontiguousarray(a),
        lambda a: a.reshape(-1)[:1].reshape(()) if a.size else a,
        lambda a: a[None],
        lambda a: a[::-1].copy() if a.ndim else a,
    ]
    arrays[name] = rng.choice(forms)(array)


def change_type(rng, header, arrays):
    """An array of another type."""
    name = _some(rng, arrays)
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(rng.choice(list(CODES)))


def change_names(rng, header, arrays):
    """An array is missing, or has the place of another."""
    name = _some(rng, arrays)
    array = arrays.pop(name)
    if rng.random() < 0.7:
        other = rng.choice(
            [_some(rng, arrays) or name, "fitted/scale", "fitted/values", "fitted/curves", "fitted/offsets"]
        )
        arrays[other] = array
        if rng.random() < 0.5:
            arrays[name] = array


def change_rows(rng, header, arrays):
    """Rows of weights that begin or end elsewhere."""
    if "fitted/rows/start" not in arrays or arrays["fitted/rows/start"].dtype != np.int64:
        return
    start, size = arrays["fitted/rows/start"].copy(), arrays["fitted/rows/size"].copy()
    if start.ndim != 1 or size.ndim != 1 or not len(start) or len(size) != len(start) or size.dtype != np.int32:
        return
    room = arrays.get("fitted/rows/value", np.zeros(3)).size
    for _ in range(rng.choice([1, 2, len(start)])):
        k = rng.randrange(len(start))
        start[k], size[k] = rng.choice(
            [
                (2**63 - 4, 8), (2**63 - 1, -1), (2**63 - 1, 1), (room, 1), (room - 1, 2), (0, room), (0, room + 1),
                (-1, 1), (0, 2**31 - 1), (room - 8, 8), (start[k], size[k] + 1), (start[k] + 1, size[k]), (0, -2),
                (0, -1), (1, -1), (start[0], size[0]), (-(2**63), 0), (2**62, -1), (room, 0), (5, -(2**31)),
            ]
        )  # fmt: skip
    arrays["fitted/rows/start"], arrays["fitted/rows/size"] = start, size


def change_sizes(rng, header, arrays):
    """Fewer or more features, in all places that say how many there are."""
    state = header.get("state")
    if not isinstance(state, dict) or type(state.get("n_features_in")) is not int:
        return
    before = state["n_features_in"]
    after = rng.choice([0, 1, before - 1, before + 1, before + 1000])
    state["n_features_in"] = after
    for name in ("fitted/rows/start", "fitted/rows/size", "fitted/scale", "fitted/values"):
        if name in arrays and arrays[name].ndim:
            array = arrays[name]
            axis = next((k for k, side in enumerate(array.shape) if side in (before, before + 1)), None)
            if axis is not None:
                kept = np.resize(np.arange(array.shape[axis]), max(0, array.shape[axis] + after - before))
                arrays[name] = np.ascontiguousarray(np.take(array, kept, axis=axis))


def change_edges(rng, header, arrays):
    """Another hierarchy of as many nodes."""
    if "hierarchy/0/parent" not in arrays:
        return
    n = max(2, len(header.get("hierarchies", [{}])[0].get("labels", [])) if header.get("hierarchies") else 2)
    pairs = sorted({(c, rng.randrange(c)) for c in range(1, n) for _ in range(rng.choice([0, 1, 1, 2]))})
    arrays["hierarchy/0/parent"] = np.array([p for _, p in pairs], np.int32)
    arrays["hierarchy/0/child"] = np.array([c for c, _ in pairs], np.int32)


def change_words(rng, header, arrays):
    """Terms of a vocabulary that end elsewhere."""
    name = _some(rng, arrays, "text/")
    if name is None or not name.endswith("ends") or arrays[name].dtype != np.int64 or arrays[name].ndim != 1:
        return
    ends = arrays[name].copy()
    if len(ends) > 1:
        ends[rng.randrange(len(ends) - 1)] = rng.choice([0, -1, 2**63 - 1, -(2**63), int(ends.max()) + 1])
        arrays[name] = ends


def _lie_shape(rng):
    def lie(listing):
        if listing:
            rng.choice(listing)[2][:] = rng.choice(
                [[], [0], [2**31], [2**62], [0, 10**8], [10**8, 0], [10**4, 10**4], [1] * 33, [-1], [3, 3]]
            )

    return lie


def _lie_order(rng):
    def lie(listing):
        if listing:
            entry = rng.choice(listing)
            entry[3] = "F" if entry[3] == "C" else "C"

    return lie


def _lie_type(rng):
    def lie(listing):
        if listing:
            rng.choice(listing)[1] = rng.choice([*CODES.values(), "F8", "x"])

    return lie


def _lie_sequence(rng):
    def lie(listing):
        rng.shuffle(listing)

    return lie


# -- asking ------------------------------------------------------------------------------------------------------------


def ask(path: Path, trust_patterns: bool) -> None:
    """Load a file and ask the model everything."""
    import nhsvm
    from nhsvm.errors import FileFormatError, NHSVMError
    from nhsvm.model import load_with_note

    before = _memory()
    try:
        model, _ = load_with_note(path, trust_patterns=trust_patterns)
    except FileFormatError as error:
        _check_message(str(error), f"{path}: ")
        raise
    finally:
        _check_memory(before, path)
    for question in _questions(model):
        try:
            question()
        except NHSVMError as error:
            _check_message(str(error))
    nhsvm.save(model, path.with_suffix(".again"))
    load_with_note(path.with_suffix(".again"), max_bytes=2**40, trust_patterns=True)


def _check_message(text: str, start: str = "") -> None:
    assert text.startswith(start), text
    assert 0 < len(text) - len(start) < 1000, text
    assert not text.rstrip().endswith(":"), text


def _questions(model):
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline

    svm = model[-1] if isinstance(model, Pipeline) else model
    first = model[0] if isinstance(model, Pipeline) else model
    samples = [["it barks", "", "leaves in the wood \ud800 at night " * 3]]
    if not hasattr(first, "build_analyzer"):
        n = model.n_features_in_
        few = sp.csr_array((np.ones(3), (np.array([0, 0, 2]), np.array([0, n - 1, n // 2]))), shape=(3, n))
        samples = [few.toarray() if n < 10**5 else few]
        if svm is model:
            samples = [few, np.ones((3, n)) if n < 10**5 else few, few.astype(np.float32)]
    if hasattr(model, "feature_names_in_"):
        samples = samples[:1]
    has_sets, is_tree = svm.model_.sets is not None, svm.hierarchy_.graph.is_tree

    def proba(ask, X):
        with suppress(NotFittedError):  # the option says so, but nothing was learned
            ask(X)

    for X in samples:
        yield lambda X=X: model.predict(X)
        yield lambda X=X: model.decision_function(X)
        if svm is not model:
            continue
        yield lambda X=X: model.predict_topk(X, 3)
        yield lambda X=X: model.node_scores(X)
        yield lambda X=X: model.predict(X, exact=False)
        yield lambda X=X: model.explain(X[:1])
        if is_tree and not has_sets:
            yield lambda X=X: model.predict(X, beam=2)
        if model.probability is True:
            yield lambda X=X: proba(model.predict_proba, X)
            yield lambda X=X: proba(model.node_proba, X)
            if not has_sets:
                yield lambda X=X: proba(model.predict_partial, X)
    if svm.hierarchy_.n_nodes * svm.n_features_in_ < 10**6:
        yield lambda: svm.coef_
        yield lambda: svm.intercept_
        yield lambda: svm.strongest_features(svm.hierarchy_.nodes[-1])


def _memory() -> int:
    """Forget the most memory that the process has had until now; what it has."""
    if not Path("/proc/self/clear_refs").exists():
        return 0
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _check_memory(before: int, path: Path) -> None:
    if not before:
        return
    from nhsvm.model.checks import Budget

    taken, limit = _status("VmHWM") - before, Budget(path.stat().st_size).limit
    assert taken <= limit + SPARE, f"{taken:,} bytes of memory for a file of {path.stat().st_size:,}"


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


def print_kernels() -> None:
    """Say which kernels are called from Python while models of all kinds answer; to be called in a new process."""
    import nhsvm._jit as jit

    compile_, called = jit.kernel, set()

    class Recorded:
        def __init__(self, function):
            self.compiled, self.name = compile_(function), f"{function.__module__}.{function.__name__}"

        def __call__(self, *args):
            if answering:
                called.add(self.name)
            return self.compiled(*args)

        def __getattr__(self, name):
            return getattr(self.compiled, name)

    answering, jit.kernel = False, Recorded
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        make_models(Path(folder))
        answering = True
        for path in sorted(Path(folder).glob("*.nhsvm")):
            ask(path, trust_patterns=True)
    print(*sorted(called), sep="\n")


# -- cases, as :mod:`fuzz.harness` runs them; $NHSVM_FUZZ_MODELS is the folder of the models ---------------------------

_BASES: list[Any] = []


def warm_up(folder: Path) -> None:
    """Kernels are compiled, and a file that was taken apart and put together is not refused."""
    for path in sorted(Path(os.environ["NHSVM_FUZZ_MODELS"]).glob("*.nhsvm")):
        parts = parts_of(path)
        _BASES.append((path.name, *parts))
        file = folder / path.name
        file.write_bytes(put_together(*parts))
        ask(file, trust_patterns=True)


def run_case(number: int, folder: Path) -> str:
    """One case: a model and its changes follow from the number."""
    rng = random.Random(number)
    name, header, arrays = rng.choice(_BASES)
    file = folder / "case.nhsvm"
    try:
        file.write_bytes(changed(rng, header, arrays))
    except (ValueError, OverflowError, RecursionError, AttributeError, TypeError, IndexError, KeyError):
        return f"{name}: no file, for changes that do not go together"
    ask(file, trust_patterns=rng.random() < 0.5)
    return f"{name}: loaded and asked"
