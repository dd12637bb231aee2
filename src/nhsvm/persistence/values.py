"""Parameters and fitted values as JSON: what a label can be, and lists, dicts, arrays and the library's own objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import LabelError
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import LOSSES
from nhsvm.persistence._malformed import JSON, MAX_DEPTH, Malformed, expect, shorten
from nhsvm.persistence.checks import Budget, apart
from nhsvm.persistence.files import storable
from nhsvm.persistence.hierarchies import decode_hierarchy, hierarchy_to_parts
from nhsvm.persistence.labels import PLAIN, decode_array, decode_label, encode_array, encode_label, tagged
from nhsvm.weights import SCHEMES

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
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self._met: list[Hierarchy] = []

    def hierarchy(self, hierarchy: Hierarchy) -> int:
        """The number of a hierarchy in ``hierarchies``."""
        for number, met in enumerate(self._met):
            if met is hierarchy:
                return number
        part, arrays = hierarchy_to_parts(hierarchy)
        number = len(self._met)
        self.arrays |= {f"hierarchy/{number}/{name}": array for name, array in arrays.items()}
        self.hierarchies.append(part)
        self._met.append(hierarchy)
        return number

    def encode(self, value: Any, depth: int = 0) -> JSON:
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
                return self._array(value)
            if isinstance(value, Hierarchy):
                return {"hierarchy": self.hierarchy(value)}
            for name, scheme in SCHEMES.items():
                if type(value) is scheme:
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

    def _array(self, array: npt.NDArray[Any]) -> JSON:
        if not storable(array):
            return {"labels": encode_array(array)}
        name = f"value/{len(self.arrays)}"
        self.arrays[name] = array
        return {"array": name}


class Decoder:
    """Turns the JSON of an :class:`Encoder` into values again."""

    def __init__(self, hierarchies: JSON, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget) -> None:
        self._arrays, self.budget = arrays, budget
        self.hierarchies = [
            decode_hierarchy(part, group(arrays, f"hierarchy/{number}/"), budget)
            for number, part in enumerate(expect(hierarchies, list, "the list of hierarchies"))
        ]

    def decode(self, value: JSON, depth: int = 0) -> Any:
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
                return self._arrays[content]
            if tag == "weights":
                name, options = content
                return SCHEMES[name](**self.decode(options, depth + 1))
            if tag == "loss":
                return LOSSES[content]
        except (TypeError, LookupError, ValueError):
            raise Malformed(f"{shorten(value)} is no value of a model") from None
        return decode_array(content, self.budget) if tag == "labels" else decode_label(value, depth)


def group(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
