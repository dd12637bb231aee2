"""Labels, hierarchies, options and fitted values as JSON and arrays.

In memory a label is any hashable; a file can hold some. A ``str``, ``int``, ``bool``, ``None`` or finite ``float`` is
itself. All else is an object with one key, which says what it is; no label is a dict, so nothing is confused. Types are
exact: a subclass of ``str``, say an enum, would come back as another type and is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from nhsvm._atomic import PathArg
from nhsvm.errors import HierarchyError, LabelError
from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.losses import LOSSES
from nhsvm.model.checks import MAX_DEPTH, Arrays, Budget, Malformed, apart, check_edges, entry, expect, reading, shorten
from nhsvm.model.file import DTYPES, storable
from nhsvm.typing import JSON, Array, Label
from nhsvm.weights import SCHEMES

PLAIN = (str, int, bool, type(None), float)
NUMPY: dict[str, type[np.generic]] = {dtype.name: dtype.type for dtype in DTYPES.values()} | {"str": np.str_}
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_MAX_BITS = 10_000  # of an int; Python refuses to read numbers of more than 4300 digits
_MAX_CHARACTERS = 2**28  # in an array of strings, where each takes as much room as the longest: 1 GiB
_WHAT = (
    "a model file can hold None, bool, int, float, str, bytes, numpy scalars and arrays, lists, tuples, dicts, a "
    "Hierarchy, the weights schemes and the loss classes of nhsvm"
)


class NotStorable(Exception):  # noqa: N818 - a message to the caller, which knows the name of the value
    """What a file can hold instead of the value given."""


class Encoder:
    """Turns values into JSON, and collects the arrays and hierarchies that these refer to.

    Attributes
    ----------
    hierarchies : list of JSON
        Each hierarchy is stored once, however often it is met.
    arrays : dict
    """

    def __init__(self) -> None:
        self.hierarchies: list[JSON] = []
        self.arrays: dict[str, Array] = {}
        self._met: list[Hierarchy] = []

    def hierarchy(self, hierarchy: Hierarchy) -> int:
        """The number of a hierarchy in ``hierarchies``."""
        number = next((number for number, met in enumerate(self._met) if met is hierarchy), len(self._met))
        if number < len(self._met):
            return number
        part, arrays = hierarchy_to_parts(hierarchy)
        self.arrays |= {f"hierarchy/{number}/{name}": array for name, array in arrays.items()}
        self.hierarchies.append(part)
        self._met.append(hierarchy)
        return number

    def encode(self, value: object, depth: int = 0) -> JSON:
        """One value as JSON; raises :class:`NotStorable`."""
        if depth > MAX_DEPTH:
            raise NotStorable(f"it is nested more than {MAX_DEPTH} deep")
        if type(value) is list:
            return [self.encode(item, depth + 1) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.encode(item, depth + 1) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.encode(key, depth + 1), self.encode(value[key], depth + 1)] for key in value]}
        try:
            if isinstance(value, np.ndarray):
                if not storable(value):
                    return {"labels": encode_array(value)}
                array = f"value/{len(self.arrays)}"
                self.arrays[array] = value
                return {"array": array}
            if isinstance(value, Hierarchy):
                return {"hierarchy": self.hierarchy(value)}
            for name, scheme in SCHEMES.items():
                if type(value) is scheme and is_dataclass(value):
                    options = {field.name: getattr(value, field.name) for field in fields(value)}
                    return {"weights": [name, self.encode(options, depth + 1)]}
            for name, loss in LOSSES.items():
                if value is loss:
                    return {"loss": name}
            return encode_label(value)
        except LabelError as error:
            kind = type(value)
            problem = str(error) if isinstance(value, Hierarchy) else _WHAT
            raise NotStorable(f"it is a {kind.__module__}.{kind.__qualname__}; {problem}") from None


class Decoder:
    """Turns the JSON of an :class:`Encoder` into values again."""

    def __init__(self, hierarchies: JSON, arrays: Arrays, budget: Budget) -> None:
        self.arrays, self.budget = arrays, budget
        self.hierarchies = [
            decode_hierarchy(part, group(arrays, f"hierarchy/{number}/"), budget)
            for number, part in enumerate(expect(hierarchies, list, "the list of hierarchies"))
        ]

    def decode(self, value: JSON, depth: int = 0) -> JSON:
        """One value."""
        if depth > MAX_DEPTH:
            raise Malformed(f"a value is nested more than {MAX_DEPTH} deep")
        if type(value) in PLAIN:
            return value
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        tag, content = tagged(value)
        if tag == "tuple":
            return tuple(self.decode(item, depth + 1) for item in expect(content, list, "a tuple"))
        try:
            if tag == "dict":
                pairs = [(self.decode(key, depth + 1), self.decode(item, depth + 1)) for key, item in content]
                apart([key for key, _ in pairs])
                return dict(pairs)
            if tag == "hierarchy":
                return dict(enumerate(self.hierarchies))[expect(content, int, "the number of a hierarchy")]
            if tag == "array":
                return self.arrays[content]
            if tag == "weights":
                name, options = content
                return SCHEMES[name](**self.decode(options, depth + 1))
            if tag == "loss":
                return LOSSES[content]
        except (TypeError, LookupError, ValueError):
            raise Malformed(f"{shorten(value)} is no value of a model") from None
        return decode_array(content, self.budget) if tag == "labels" else decode_label(value, depth)


def group(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


# -- hierarchies ------------------------------------------------------------------------------------------------------


def hierarchy_to_parts(hierarchy: Hierarchy) -> tuple[dict[str, JSON], dict[str, Array]]:
    """The labels as JSON, and the arrays ``parent`` and ``child`` of node numbers, ordered by child.

    Raises
    ------
    LabelError
        For a label that a file cannot hold.

    Examples
    --------
    >>> hierarchy_to_parts(Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")]))[0]
    {'labels': ['animal', 'dog', 'cat']}
    """
    parent, child = hierarchy.graph.edges()
    return {"labels": encode_labels(hierarchy.nodes)}, {"parent": parent, "child": child}


def hierarchy_from_parts(part: Mapping[str, JSON], arrays: Arrays, path: PathArg = "a model file") -> Hierarchy:
    """The hierarchy, with the same numbers for the same nodes.

    Parameters
    ----------
    part, arrays : as :func:`hierarchy_to_parts` gave them
    path : path
        Where they were read, for messages.

    Raises
    ------
    FileFormatError
        If they do not make a hierarchy.
    """
    with reading(path):
        return decode_hierarchy(dict(part), arrays, Budget(sum(array.nbytes for array in arrays.values())))


def decode_hierarchy(part: JSON, arrays: Arrays, budget: Budget) -> Hierarchy:
    """As :func:`hierarchy_from_parts`, for callers that know the file."""
    labels = decode_labels(expect(part, dict, "a hierarchy").get("labels"))
    parent, child = check_edges(len(labels), arrays, budget)
    if len(set(labels)) < len(labels):
        raise Malformed("its hierarchy has the same label twice")
    try:
        hierarchy = Hierarchy(labels, np.array(parent), np.array(child))
    except HierarchyError as error:
        raise Malformed(f"its hierarchy is wrong: {error}") from None
    # compared one by one, and not by value, for True == 1
    if any(a is not b for a, b in zip(hierarchy.nodes, labels, strict=True)):
        raise Malformed("the nodes of its hierarchy are in another order than that of this library")
    graph = hierarchy.graph
    for number in np.flatnonzero(
        hierarchy.is_virtual
    ):  # each is a leaf, right below the node it stands for and no other
        leaf, above = labels[number], graph.parents.row(number)
        assert isinstance(leaf, VirtualLeaf)
        if len(above) != 1 or labels[above[0]] != leaf.of or not graph.is_leaf[number]:
            raise Malformed(f"a virtual leaf of its hierarchy is not where it belongs, below {leaf.of!r}")
    return hierarchy


# -- labels -----------------------------------------------------------------------------------------------------------


def encode_label(label: Label, depth: int = 0) -> JSON:
    """One label as JSON.

    Raises
    ------
    LabelError
        If a file cannot hold it.

    Examples
    --------
    >>> encode_label("dog"), encode_label((1, 2.5)), encode_label(VirtualLeaf("animal"))
    ('dog', {'tuple': [1, 2.5]}, {'virtual_leaf': 'animal'})
    """
    kind = type(label)
    if depth > MAX_DEPTH:
        raise LabelError(f"a label is nested more than {MAX_DEPTH} deep: {shorten(label)}")
    if kind is int and abs(label).bit_length() > _MAX_BITS:  # type: ignore[arg-type]
        raise LabelError(f"an int of more than {_MAX_BITS} bits cannot be stored in a model file")
    if kind is float and not math.isfinite(label):  # type: ignore[arg-type]
        return {"float": repr(label)}
    if kind in PLAIN:
        return label
    if isinstance(label, bytes) and kind is bytes:
        return {"bytes": label.hex()}
    if isinstance(label, tuple) and kind is tuple:
        return {"tuple": [encode_label(item, depth + 1) for item in label]}
    if isinstance(label, frozenset) and kind is frozenset:  # sorted, for its own order differs from run to run
        return {"frozenset": sorted((encode_label(item, depth + 1) for item in label), key=json.dumps)}
    if isinstance(label, VirtualLeaf):
        return {"virtual_leaf": encode_label(label.of, depth + 1)}
    name = _numpy_name(kind)
    if name and isinstance(label, np.generic):
        return {"numpy": [name, encode_label(_item(label), depth + 1)]}
    raise LabelError(
        f"{shorten(label)} is a {kind.__module__}.{kind.__qualname__}, which cannot be stored in a model file; labels "
        "there are str, int, float, bool, None, bytes, numpy scalars of these, and tuples and frozensets of these"
    )


def decode_label(value: JSON, depth: int = 0) -> Label:
    """The label that :func:`encode_label` was given."""
    if depth > MAX_DEPTH:
        raise Malformed(f"a label is nested more than {MAX_DEPTH} deep")
    if type(value) in PLAIN:
        plain: Label = value
        return plain
    tag, content = tagged(value)
    if tag == "float" and isinstance(content, str) and content in _NOT_FINITE:
        return _NOT_FINITE[content]
    if tag == "virtual_leaf":
        return VirtualLeaf(decode_label(content, depth + 1))
    try:
        if tag == "bytes":
            return bytes.fromhex(content)
        if tag == "numpy":
            name, item = expect(content, list, "a numpy label")
            return _scalar(NUMPY[name], decode_label(item, depth + 1))
    except (TypeError, ValueError, KeyError):
        raise Malformed(f"{shorten(value)} is no label") from None
    if tag in ("tuple", "frozenset"):
        items = [decode_label(item, depth + 1) for item in expect(content, list, f"a {tag}")]
        return tuple(items) if tag == "tuple" else frozenset(apart(items))
    raise Malformed(f"{shorten(value)} is no label")


def encode_labels(labels: Sequence[Label]) -> JSON:
    """Many labels; numpy scalars that are all of one type share its name."""
    kinds = {type(label) for label in labels}
    name = _numpy_name(kinds.pop()) if len(kinds) == 1 else None
    if name:
        return {"numpy": name, "labels": [encode_label(label)["numpy"][1] for label in labels]}
    # strings, by far the most common, without the call
    return [label if type(label) is str else encode_label(label) for label in labels]


def decode_labels(value: JSON) -> list[Label]:
    """The labels that :func:`encode_labels` was given."""
    if isinstance(value, list):
        return apart([item if type(item) is str else decode_label(item) for item in value])
    name = entry(expect(value, dict, "a list of labels"), "numpy", str)
    if name not in NUMPY:
        raise Malformed(f"labels of an unknown type {shorten(name)}")
    return [_scalar(NUMPY[name], decode_label(item)) for item in entry(value, "labels", list)]


def encode_array(array: Array) -> JSON:
    """A 1-D array of labels, such as ``classes_``: of strings, numbers, bools or objects.

    Strings come back as wide as the longest of them, numbers in the byte order of the machine.
    """
    if not isinstance(array, np.ndarray) or array.ndim != 1:
        raise LabelError(f"expected a 1-D array of labels, not {shorten(array)}")
    if array.dtype.kind == "O":
        return {"dtype": "object", "labels": encode_labels(array.tolist())}
    name = _numpy_name(array.dtype.type)
    if not name:
        raise LabelError(f"labels in an array of type {array.dtype} cannot be stored in a model file; use objects")
    labels = array.tolist()
    if name == "str" and len(labels) * max(map(len, labels), default=0) > _MAX_CHARACTERS:
        raise LabelError(f"an array of {len(labels)} strings, some of them very long, is too large; use objects")
    return {"dtype": name, "labels": [encode_label(label) for label in labels]}


def decode_array(value: JSON, budget: Budget) -> Array:
    """The array that :func:`encode_array` was given."""
    name = entry(expect(value, dict, "an array of labels"), "dtype", str)
    if name == "object":
        if "labels" not in value:
            raise Malformed("an array of labels without labels")
        labels = decode_labels(value["labels"])
        array = np.empty(len(labels), dtype=object)
        for i, label in enumerate(labels):  # one by one: a tuple is one label, and numpy would take it apart
            array[i] = label
        return array
    if name not in NUMPY:
        raise Malformed(f"an array of labels of an unknown type {shorten(name)}")
    labels = [decode_label(item) for item in entry(value, "labels", list)]
    scalars = [_scalar(NUMPY[name], label) for label in labels]
    if name == "str":  # each takes as much room as the longest
        longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
        budget.take(4 * len(scalars) * longest, "an array of labels as wide as the longest")
    return np.array(scalars, dtype=NUMPY[name])


def tagged(value: JSON) -> tuple[str, JSON]:
    """The key and the content of an object with one key."""
    if not isinstance(value, dict) or len(value) != 1:
        raise Malformed(f"{shorten(value)} is no label or value")
    return next(iter(value.items()))


def _numpy_name(kind: type) -> str | None:
    if not issubclass(kind, np.generic):
        return None
    name = np.dtype(kind).name
    return name if name in NUMPY else None


def _item(label: np.generic) -> Label:
    """The Python value of a numpy scalar; its own ``item`` and ``str`` drop NULs at the end of a string."""
    return str.__str__(label) if isinstance(label, str) else label.item()


def _scalar(kind: type[np.generic], value: JSON) -> np.generic:
    """A numpy scalar of exactly that value."""
    try:
        with np.errstate(over="raise"):
            made = kind(value)
    except (TypeError, ValueError, ArithmeticError):
        made = None
    back = None if made is None else _item(made)
    if made is None or type(back) is not type(value) or not (back == value or value != value):
        raise Malformed(f"{shorten(value)} is no {kind.__name__}")
    return made
