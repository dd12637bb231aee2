"""Fitted estimators to and from model files."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nhsvm import __version__
from nhsvm.errors import FileFormatError, NHSVMError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.persistence._malformed import JSON, Malformed, entry, expect, reading, shorten
from nhsvm.persistence.files import read_model, write_model
from nhsvm.persistence.labels import decode_array, encode_array
from nhsvm.persistence.values import Decoder, Encoder, NotStorable, group

ESTIMATORS = {
    "FlatSVM": "nhsvm.estimators",
    "HSVM": "nhsvm.estimators",
    "NHSVM": "nhsvm.estimators",
    "SSVM": "nhsvm.estimators",
}
"""What a file may name, and where it lives: nothing else is ever imported because a file says so."""


class Storable(Protocol):
    """What an estimator has to offer to be saved."""

    hierarchy_: Hierarchy
    classes_: npt.NDArray[Any]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As in scikit-learn."""

    def _fitted_state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What was learned besides ``hierarchy_``, ``classes_`` and ``feature_names_in_``: values and large arrays."""

    def _restore(self, state: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take it back; ``hierarchy_``, ``classes_`` and ``feature_names_in_`` are there already. Arrays are read-only.

        A ``ValueError``, ``TypeError``, ``LookupError`` or ``AttributeError`` means that the file does not fit.
        """


def save(estimator: Storable, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a file; the same model gives the same bytes.

    An existing file is replaced when the new one is complete, and not before.

    Parameters
    ----------
    estimator : FlatSVM, HSVM, NHSVM or SSVM
        Fitted.
    path : path

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    OptionError
        For a parameter that a file cannot hold, such as a function.
    LabelError
        For a label that a file cannot hold.
    """
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not _estimator_class(name):
        raise OptionError(f"only {', '.join(ESTIMATORS)} can be saved, no subclasses or others, not {name}")
    check_is_fitted(estimator, ["classes_", "hierarchy_"])
    encoder = Encoder()
    encoder.hierarchy(estimator.hierarchy_)  # number 0
    params = estimator.get_params(deep=False)
    state, arrays = estimator._fitted_state()
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "nhsvm": __version__,
        "estimator": name,
        "params": _encoded(params, encoder, f"{name} cannot be saved: parameter", OptionError),
        "classes": encode_array(estimator.classes_),
        "feature_names": None if names is None else encode_array(np.asarray(names)),
        "state": _encoded(state, encoder, f"{name} cannot be saved: fitted value", NHSVMError),
        "hierarchies": encoder.hierarchies,
    }
    write_model(path, header, encoder.arrays | {f"fitted/{key}": array for key, array in arrays.items()})


def load(path: str | PathLike[str], *, verify: bool = False) -> Any:
    """Read a fitted estimator from a file; nothing in it is ever run.

    Parameters
    ----------
    path : path
    verify : bool
        Compare the large arrays with their checksums too, which reads the whole file. By default they are mapped into
        memory and read when they are used.

    Raises
    ------
    FileFormatError
        If the file is damaged, cut short, from a newer version, or no model.
    """
    header, arrays = read_model(path, verify=verify)
    with reading(path):
        name = entry(header, "estimator", str)
        if name not in ESTIMATORS:
            raise Malformed(f"it holds a {shorten(name)}; this version of nhsvm knows {', '.join(ESTIMATORS)}")
        decoder = Decoder(entry(header, "hierarchies", list), arrays)
        if not decoder.hierarchies:
            raise Malformed("it has no hierarchy")
        params = {key: decoder.decode(value) for key, value in entry(header, "params", dict).items()}
        state = {key: decoder.decode(value) for key, value in entry(header, "state", dict).items()}
        classes = decode_array(entry(header, "classes", dict))
        feature_names = header.get("feature_names")
        try:
            estimator = _estimator_class(name)(**params)
            estimator.hierarchy_, estimator.classes_ = decoder.hierarchies[0], classes
            if feature_names is not None:
                estimator.feature_names_in_ = decode_array(expect(feature_names, dict, "the feature names"))
            estimator._restore(state, group(arrays, "fitted/"))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            problem = error.problem if isinstance(error, FileFormatError) else f"{type(error).__name__}: {error}"
            raise Malformed(f"its parts do not make a {name}: {problem}") from error
    return estimator


def _estimator_class(name: str) -> Any:
    return getattr(import_module(ESTIMATORS[name]), name)


def _encoded(values: dict[str, Any], encoder: Encoder, what: str, error: type[NHSVMError]) -> dict[str, JSON]:
    found = {}
    for key, value in values.items():
        try:
            found[key] = encoder.encode(value)
        except NotStorable as reason:
            raise error(f"{what} {key!r} is {shorten(value)}, but {reason}") from None
    return found
