"""Labels as JSON. In memory a label is any hashable; these are the ones that a file can hold.

A ``str``, ``int``, ``bool``, ``None`` or finite ``float`` is itself. All else is an object with one key, which says
what it is; no label is a dict, so nothing is confused. Types are exact: a subclass of ``str``, say an enum, would come
back as another type and is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import LabelError
from nhsvm.hierarchy import VirtualLeaf
from nhsvm.persistence._malformed import JSON, MAX_DEPTH, Malformed, entry, expect, shorten
from nhsvm.persistence.checks import Budget, apart

Label = Hashable

PLAIN = (str, int, bool, type(None), float)
_SCALARS: tuple[type[np.generic], ...] = (np.bool_, np.str_, np.float16, np.float32, np.float64)
_SCALARS += (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
NUMPY = {np.dtype(kind).name: kind for kind in _SCALARS}
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_MAX_BITS = 10_000  # of an int; Python refuses to read numbers of more than 4300 digits
_MAX_CHARACTERS = 2**28  # in an array of strings, where each takes as much room as the longest: 1 GiB


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
    if name:
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
        return {"numpy": name, "labels": [encode_label(_item(label)) for label in labels]}
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


def encode_array(array: npt.NDArray[Any]) -> JSON:
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
    if name == "str" and not _fits(labels):
        raise LabelError(f"an array of {len(labels)} strings, some of them very long, is too large; use objects")
    return {"dtype": name, "labels": [encode_label(label) for label in labels]}


def decode_array(value: JSON, budget: Budget) -> npt.NDArray[Any]:
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
    scalars: list[Any] = [_scalar(NUMPY[name], label) for label in labels]
    if name == "str":  # each takes as much room as the longest
        budget.take(4 * len(scalars) * max(map(len, scalars), default=0), "an array of labels as wide as the longest")
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


def _item(label: Any) -> Any:
    """The Python value of a numpy scalar; its own ``item`` and ``str`` drop NULs at the end of a string."""
    return str.__str__(label) if isinstance(label, str) else label.item()


def _scalar(kind: type[np.generic], value: Any) -> np.generic:
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


def _fits(labels: Sequence[Any]) -> bool:
    return len(labels) * max(map(len, labels), default=0) <= _MAX_CHARACTERS
