"""What a model file brings, checked before a kernel, a dictionary or an estimator sees it.

Kernels trust what they are given: an index is not compared with the end of its array. So every array of a file that is
used as an index, a length or an offset is checked here, and every number that a file sets has its range here. No check
can overflow. ``docs/model_files.md`` has the table of kernels, of what each trusts and of the check that guarantees it.

Checks and decoders, which do not know the file, raise :class:`Malformed`; the reader, which does, turns it into a
FileFormatError that names the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TypeVar

import numpy as np

from nhsvm.errors import FileFormatError, UntrustedPatternError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.hashes import first_crowded
from nhsvm.model.model import Model, Training
from nhsvm.model.sets import FORMS, Curves, SetForm
from nhsvm.sizes import readable_bytes
from nhsvm.storage import PRECISIONS, Packed, StoredRows, Table, Weights
from nhsvm.storage.weights import ROWS
from nhsvm.typing import JSON, Array, IntArray, Label, Record

T = TypeVar("T")
Arrays = Mapping[str, Array]

MAX_DEPTH = 64  # of containers in a label or value; far below the recursion limit, however it is encoded

MOST_FEATURES = 2**31 - 1  # of any step: column numbers are int32
MOST_JOBS = 4096  # threads that an option of a file may ask for; whoever uses it takes no more than there are cores
MOST_N_GRAM = 64  # words or letters in one term: a text has as many terms of every length as it has words
CURVES = "curves/"  # before the names of arrays of curves of probabilities

_FULL = ("float32", "float64")
_SPARE = 2**28  # bytes that any file may take
_TIMES = 64  # of its own size: what a file may take beyond
_NODE, _PAIR = 400, 48  # bytes that a node or edge takes, with its label; and a pair of a node and one above it
_TERM = 240  # a term of a vocabulary: the text, and its place in a dictionary


# -- what is wrong -----------------------------------------------------------------------------------------------------


class Malformed(Exception):  # noqa: N818 - a message to the reader, which raises FileFormatError
    """What is wrong with a part of a file."""


class Untrusted(Malformed):
    """A regular expression that the user has not said to trust."""


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Name the file in whatever is found wrong with it."""
    try:
        yield
    except Untrusted as error:
        raise UntrustedPatternError(fspath(path), None, str(error)) from None
    except Malformed as error:
        raise FileFormatError(fspath(path), None, str(error)) from error.__cause__


def expect(value: JSON, kind: type[T], what: str) -> T:
    """``value`` itself, if it is exactly of that type (a bool is no int here)."""
    if type(value) is not kind:
        raise Malformed(f"{what} should be of type {kind.__name__}, but is {shorten(value)}")
    return value


def entry(mapping: dict[str, JSON], key: str, kind: type[T]) -> T:
    """An entry that has to be there, of that type."""
    if key not in mapping:
        raise Malformed(f"the entry {key!r} is missing from its header")
    return expect(mapping[key], kind, f"the entry {key!r} of its header")


def shorten(value: object) -> str:
    """A ``repr`` that fits into a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- memory ------------------------------------------------------------------------------------------------------------


class Budget:
    """Bytes that everything made of one file may take, in proportion to the file.

    Parameters
    ----------
    file_bytes : int
    max_bytes : int, optional
        What the user allows instead.
    """

    def __init__(self, file_bytes: int, max_bytes: int | None = None) -> None:
        self.limit = _SPARE + _TIMES * file_bytes if max_bytes is None else max_bytes
        self._file_bytes, self._taken = file_bytes, 0

    def take(self, n_bytes: int, what: str) -> None:
        """Count what is about to be made; more than the limit in all is refused."""
        self._taken += n_bytes
        if self._taken > self.limit:
            raise Malformed(
                f"{what} would take {readable_bytes(n_bytes)} of memory, which makes {readable_bytes(self._taken)} for "
                f"a file of {readable_bytes(self._file_bytes)}; the limit is {readable_bytes(self.limit)}; if you "
                "trust the file, raise it with max_bytes"
            )

    def take_json(self, text: str, what: str) -> None:
        """The same for a JSON document that is about to be parsed: at most what its parts can become."""
        containers, values = 240 * text.count("{") + 96 * text.count("["), 56 * (text.count(",") + text.count(":"))
        self.take(containers + values + 32 * text.count('"') + 4 * len(text), what)


# -- single values -----------------------------------------------------------------------------------------------------


def whole(value: object, what: str, low: int, high: int) -> int:
    """A whole number in a range, both ends included; a bool is none."""
    if type(value) is not int or not low <= value <= high:
        raise Malformed(f"{what} should be a whole number from {low} to {high}, but is {shorten(value)}")
    return value


def number(value: object, what: str, low: float = -math.inf, *, finite: bool = True) -> float:
    """A number as a float; an int that no float can hold is none."""
    if type(value) is int and abs(value) < 2**1000:
        value = float(value)
    if type(value) is not float or (finite and not math.isfinite(value)) or value < low:
        limits = "" if math.isinf(low) else f" from {low:g} to inf"
        raise Malformed(f"{what} should be a {'finite ' * finite}number{limits}, but is {shorten(value)}")
    return value


def check_options(options: Mapping[str, object], what: str) -> None:
    """Options of an estimator or transformer: no number that only Python can hold, no number of threads beyond all."""
    for name, value in options.items():
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise Malformed(f"{what}: {name} is {shorten(value)}, a number of more than 64 bits")
        if name == "n_jobs" and value is not None:
            whole(value, f"{what}: n_jobs", -MOST_JOBS, MOST_JOBS)
            if value == 0:
                raise Malformed(f"{what}: n_jobs is 0; it should be a number of threads, or -1 for all")


# -- arrays ------------------------------------------------------------------------------------------------------------


def array(arrays: Arrays, name: str, dtypes: Sequence[str], shape: tuple[int | None, ...]) -> Array:
    """The array of that name, if it has one of the types and exactly that shape; None is any length."""
    found = arrays.get(name)
    if found is None:
        raise Malformed(f"the array {name!r} is missing")
    fits = len(shape) == found.ndim and all(
        want is None or want == has for want, has in zip(shape, found.shape, strict=False)
    )
    if not fits or found.dtype not in dtypes:
        sides = ", ".join("any" if side is None else str(side) for side in shape)
        raise Malformed(
            f"the array {name!r} is {found.dtype} of shape {found.shape}; it should be {' or '.join(dtypes)} of shape "
            f"({sides})"
        )
    return found


def check_indices(found: Array, what: str, below: int) -> None:
    """Every entry is from 0 to below a number."""
    if found.size and (int(found.min()) < 0 or int(found.max()) >= below):
        raise Malformed(f"{what} has entries outside of 0 .. {below - 1}")


def check_finite(found: Array, what: str, low: float = -math.inf) -> None:
    """Every entry is a finite number, and at least ``low``."""
    if not (np.isfinite(found) & (found >= low)).all():
        limit = "" if low == -math.inf else f" from {low:g}"
        raise Malformed(f"{what} has entries that are no finite numbers{limit}")


def check_apart(start: Array, length: Array, room: int, what: str) -> None:
    """Spans ``start .. start + length`` lie inside ``0 .. room``, and no two of them overlap.

    Nothing is added that could overflow: ``length`` is from 0 to ``room``, so ``room - length`` is a number, and
    ``start`` is only compared with it.
    """
    length = length.astype(np.int64)
    if len(start) and ((length < 0) | (length > room)).any():
        raise Malformed(f"{what} reach beyond their end")
    if len(start) and ((start < 0) | (start > room - length)).any():
        raise Malformed(f"{what} reach beyond their end")
    some = np.flatnonzero(length > 0)
    first, size = start[some], length[some]
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")
        first, size = first[order], size[order]
    if (first[1:] - first[:-1] < size[:-1]).any():
        raise Malformed(f"{what} overlap")


# -- hierarchies -------------------------------------------------------------------------------------------------------


def check_edges(n_nodes: int, arrays: Arrays, budget: Budget) -> tuple[IntArray, IntArray]:
    """Edges (parents, children) of a hierarchy in the order of this library, parents before children: so no cycle.

    What the sets of ancestors will take is counted before anything is made of the edges.
    """
    if not {"parent", "child"} <= arrays.keys():
        raise Malformed("its hierarchy has no edges")
    parent, child = arrays["parent"], arrays["child"]
    if any(found.ndim != 1 or found.dtype != np.int32 for found in (parent, child)) or len(parent) != len(child):
        raise Malformed("the edges of its hierarchy are not two arrays of int32 of the same length")
    if any(found.size and (found.min() < 0 or found.max() >= n_nodes) for found in (parent, child)):
        raise Malformed(f"an edge of its hierarchy joins a node outside of 0 .. {n_nodes - 1}")
    if (np.diff(child.astype(np.int64) * n_nodes + parent) <= 0).any():
        raise Malformed("its hierarchy has the same edge twice, or edges that are not ordered by child and parent")
    if (parent >= child).any():
        raise Malformed(
            "its hierarchy has a child before its parent: a cycle, or nodes in another order than that of this library"
        )
    budget.take(_NODE * (n_nodes + len(parent)), "its hierarchy")
    budget.take(_PAIR * _ancestors_at_most(n_nodes, parent, child), "the sets of ancestors of its hierarchy")
    return parent, child


def _ancestors_at_most(n_nodes: int, parent: IntArray, child: IntArray) -> int:
    """How many pairs of a node and one at or above it there are: exactly on a tree; on a DAG, no less."""
    above = [1] * n_nodes
    for p, c in zip(parent.tolist(), child.tolist(), strict=True):
        above[c] = min(c + 1, above[c] + above[p])  # whatever is above a node has a smaller number
    return sum(above)


# -- what an estimator has learned -------------------------------------------------------------------------------------


def check_fitted(
    state: Record, arrays: Arrays, hierarchy: Hierarchy, classes: Array, *, independent: bool, oracle: str
) -> Model:
    """The model that values and arrays of a fitted estimator make.

    Parameters
    ----------
    state, arrays : as the estimator gave them
    hierarchy : Hierarchy
        It has been checked.
    classes : array of labels
    independent : bool
    oracle : str
        How label sets are found: see :class:`~nhsvm.model.sets.SetForm`.
    """
    n_nodes, n_leaves = hierarchy.n_nodes, hierarchy.n_leaves
    n_features = whole(_of(state, "n_features_in"), "n_features_in", 1, MOST_FEATURES)
    by_feature = _of(state, "by_feature")
    if type(by_feature) is not bool:
        raise Malformed(f"by_feature should be true or false, but is {shorten(by_feature)}")
    node_weights = array(arrays, "node_weights", ["float64"], (n_nodes,))
    check_finite(node_weights, "the weights of nodes", low=0.0)
    n_columns = int(np.count_nonzero(node_weights))
    class_leaves = array(arrays, "class_leaves", ["int32"], (n_leaves,))
    if not np.array_equal(np.sort(class_leaves), np.arange(n_leaves)):
        raise Malformed("the classes are not the leaves of the hierarchy")
    sets = check_sets(state.get("sets"), independent, oracle)
    temperature = state.get("temperature")
    offsets = None
    if "offsets" in arrays:
        if sets is None:
            raise Malformed("offsets of nodes, but no label sets")
        offsets = array(arrays, "offsets", ["float64"], (n_nodes,))
        check_finite(offsets, "the offsets of nodes")
    bias = number(_of(state, "bias"), "bias", 0.0)
    objective, dual, gap = (
        number(_of(state, key), key, finite=False) for key in ("objective", "dual_objective", "gap")
    )
    n_iter = whole(_of(state, "n_iter"), "n_iter", 0, 2**53)
    certified = state.get("certified", math.isfinite(gap))  # files of before have only gaps that are proved
    if type(certified) is not bool:
        raise Malformed(f"certified should be true or false, but is {shorten(certified)}")
    cost, tol = (None if state.get(key) is None else number(state[key], key, 0.0) for key in ("C", "tol"))
    history = _history(_of(state, "history"))
    training = Training(objective, dual, gap, n_iter, history, certified, cost, tol)
    return Model.make(
        hierarchy, classes, class_leaves, node_weights,
        bias=bias,
        training=training,
        temperature=None if temperature is None else number(temperature, "temperature", 1e-300),
        sets=sets,
        weights=check_weights(arrays, n_features, n_columns, by_feature),
        offsets=offsets,
        curves=check_curves(arrays, n_nodes, n_columns, sets is not None),
    )  # fmt: skip


def _of(state: Record, key: str) -> object:
    if key not in state:
        raise Malformed(f"the fitted value {key!r} is missing")
    return state[key]


def _history(found: object) -> list[Record]:
    """Records of passes: names and plain values."""
    history: list[Record] = expect(found, list, "history")
    for record in history:
        if type(record) is not dict or any(type(key) is not str for key in record):
            raise Malformed(f"history has {shorten(record)}, which is no record of a pass")
        for key, value in record.items():
            if type(value) is int:
                whole(value, f"{key!r} in history", -(2**63), 2**63 - 1)
            elif type(value) not in (bool, float, str, type(None)):
                raise Malformed(f"history has {shorten(value)} as {key!r}, which is no plain value")
    return history


def check_sets(found: JSON, independent: bool, oracle: str) -> SetForm | None:
    """What is known of label sets beside the weights: their form, whether they may be empty, the offset of leaves."""
    if found is None:
        return None
    sets = expect(found, dict, "the fitted value 'sets'")
    known = sets.keys() == {"form", "allow_empty", "leaf_offset"} and type(sets["form"]) is str
    if not known or sets["form"] not in FORMS or type(sets["allow_empty"]) is not bool:
        raise Malformed(f"label sets with {shorten(sets)}")
    offset = number(sets["leaf_offset"], "leaf_offset")
    return SetForm(sets["form"], sets["allow_empty"], offset, independent, oracle)


def check_weights(arrays: Arrays, n_features: int, n_columns: int, by_feature: bool) -> Weights:
    """U as a table or in rows, of full precision or packed, for so many features and columns."""
    if n_columns == 0:
        raise Malformed("no node of its hierarchy has a weight")
    kinds = PRECISIONS if "scale" in arrays else _FULL
    weights: Table | StoredRows
    if "values" in arrays:
        shape = (n_features + 1, n_columns)
        weights = Table(array(arrays, "values", kinds, shape if by_feature else shape[::-1]), by_feature)
    elif not by_feature:
        raise Malformed("rows of weights that are not rows of features")
    else:
        weights = check_rows(arrays, n_features, n_columns, kinds)
    if "scale" not in arrays:
        return weights
    scale = array(arrays, "scale", ["float32"], (n_features + 1,))
    check_finite(scale, "the scales of packed weights", low=0.0)
    return Packed(weights, scale)


def check_rows(arrays: Arrays, n_features: int, n_columns: int, kinds: Sequence[str]) -> StoredRows:
    """Weights in rows: each lies where there is something, by itself, and has columns that exist."""
    start = array(arrays, ROWS + "start", ["int64"], (n_features,))
    size = array(arrays, ROWS + "size", ["int32"], (n_features,))
    value = array(arrays, ROWS + "value", kinds, (None,))
    index = array(arrays, ROWS + "index", ["uint16", "uint32"], value.shape)
    one_type = [str(value.dtype)]
    full = array(arrays, ROWS + "full", one_type, (None, n_columns))
    if not full.flags.c_contiguous:
        raise Malformed("full rows of weights do not lie one after the other")
    constant = array(arrays, ROWS + "constant", one_type, (n_columns,))
    if n_features and int(size.min()) < -1:
        raise Malformed("rows of weights of a length below -1")
    wide = size < 0
    check_apart(start[wide], np.ones(int(wide.sum()), np.int64), len(full), "full rows of weights")
    check_apart(start[~wide], size[~wide], len(value), "rows of weights")
    check_indices(index, "the columns of rows of weights", n_columns)
    return StoredRows(start, size, index, value, full, constant)


def check_curves(arrays: Arrays, n_nodes: int, n_columns: int, has_sets: bool) -> Curves | None:
    """Curves of probabilities; files of before there were directions have slopes and intercepts in one array."""
    kind = ["float64"]
    if "curves" in arrays:
        slope, intercept = array(arrays, "curves", kind, (2, n_nodes))
        found = Curves(slope, intercept, directions=np.zeros((n_columns, 0)), shares=np.zeros((0, n_nodes)))
    elif any(name.startswith(CURVES) for name in arrays):
        slope, intercept = (array(arrays, CURVES + name, kind, (n_nodes,)) for name in ("slope", "intercept"))
        shares = array(arrays, CURVES + "shares", kind, (None, n_nodes))
        found = Curves(slope, intercept, array(arrays, CURVES + "directions", kind, (n_columns, len(shares))), shares)
    else:
        return None
    if not has_sets:
        raise Malformed("curves of probabilities, but no label sets")
    for name, part in found._asdict().items():
        check_finite(part, f"the {name} of curves of probabilities")
    return found


# -- vocabularies ------------------------------------------------------------------------------------------------------


def check_words(arrays: Arrays, budget: Budget) -> tuple[Array, Array]:
    """(letters in UTF-8, where every term ends) of a vocabulary."""
    utf8, ends = arrays.get("utf8"), arrays.get("ends")
    if utf8 is None or ends is None or utf8.dtype != np.uint8 or ends.dtype != np.int64:
        raise Malformed("the arrays of a vocabulary are missing or of another type")
    if utf8.ndim != 1 or ends.ndim != 1 or (int(ends[-1]) if len(ends) else 0) != len(utf8):
        raise Malformed("the arrays of a vocabulary do not fit together")
    # compared, and not subtracted, which could overflow
    if len(ends) and (int(ends[0]) < 0 or (ends[1:] < ends[:-1]).any()):
        raise Malformed("the terms of a vocabulary do not follow each other")
    budget.take(4 * len(utf8) + _TERM * len(ends), "a vocabulary")
    return utf8, ends


# -- labels, names and notes -------------------------------------------------------------------------------------------


def apart(labels: list[Label]) -> list[Label]:
    """Labels that a dictionary or a set can hold: not many of them have the same hash."""
    crowded = first_crowded(labels)
    if crowded:
        raise Malformed(crowded)
    return labels


def check_names(found: object, what: str, size: int) -> None:
    """An array of texts, one a feature."""
    if not (
        isinstance(found, np.ndarray) and found.shape == (size,) and all(type(name) is str for name in found.tolist())
    ):
        raise Malformed(f"{what} are not {size} texts: the names of features do not fit")


def check_note(note: Mapping[str, object], kinds: Mapping[str, str]) -> None:
    """Entries of a note that somebody relies on; those of other names are the user's own.

    Parameters
    ----------
    note : mapping
    kinds : mapping of str to str
        What an entry has to be: "text", "texts", "number", "numbers" or "flag", or several of these with " or ".
    """
    for key, value in note.items():
        kind = kinds.get(key)
        if kind is not None and not any(_IS[one](value) for one in kind.split(" or ")):
            raise Malformed(f"the note says {key!r} is {shorten(value)}, which should be {kind}")


_IS: dict[str, Callable[[object], bool]] = {
    "text": lambda value: type(value) is str,
    "texts": lambda value: isinstance(value, (list, tuple)) and all(type(item) is str for item in value),
    "flag": lambda value: type(value) is bool,
    "number": lambda value: type(value) is int and 0 <= value <= MOST_FEATURES,
    "numbers": lambda value: (
        isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu" and value.size <= MOST_FEATURES
    ),
}
