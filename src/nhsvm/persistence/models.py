"""Fitted estimators, alone or behind transformers in a pipeline, to and from model files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nhsvm import __version__
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.persistence._malformed import JSON, Malformed, entry, expect, reading, shorten
from nhsvm.persistence.checks import MOST_JOBS, check_names, check_options
from nhsvm.persistence.files import read_parts, write_model
from nhsvm.persistence.labels import decode_array, encode_array
from nhsvm.persistence.pipelines import is_pipeline, pipeline_of, steps_of
from nhsvm.persistence.steps import StepDecoder
from nhsvm.persistence.values import Decoder, Encoder, NotStorable, group

ESTIMATORS = {
    "FlatSVM": "nhsvm.estimators",
    "HRSVM": "nhsvm.estimators",
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

    def _packed(self, precision: str) -> Storable:
        """The same with weights of lower precision."""

    def _restore(self, state: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take it back; ``hierarchy_`` and ``classes_`` are there already. Arrays are read-only.

        Everything goes through :func:`~nhsvm.persistence.checks.check_fitted`, and options through the estimator's own
        checks. ``Malformed``, or a ``ValueError``, ``TypeError``, ``LookupError`` or ``AttributeError``, means that the
        file does not fit.
        """


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    note: Mapping[str, Any] | None = None,
    precision: str | None = None,
) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a file; the same model gives the same bytes.

    An existing file is replaced when the new one is complete, and not before.

    Parameters
    ----------
    model : FlatSVM, HSVM, NHSVM or SSVM, or a scikit-learn Pipeline
        Fitted. The steps of a pipeline before the estimator may be CountVectorizer, TfidfVectorizer, HashingVectorizer,
        TfidfTransformer, BM25Transformer, Normalizer, StandardScaler, MaxAbsScaler, MinMaxScaler, SimpleImputer,
        TruncatedSVD and Nystroem, with options that are no functions.
    path : path
    note : mapping of str, optional
        Values of your own to keep with the model, such as where its data came from; see :func:`load_with_note`.
    precision : {"float16", "int8"}, optional
        Store weights in two bytes or in one, with a scale a feature; the model that is loaded has them so in memory
        too. By default they are as in the model.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    OptionError
        For a step or a parameter that a file cannot hold, such as a function; or another precision.
    LabelError
        For a label that a file cannot hold.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> import nhsvm
    >>> model = make_pipeline(TfidfVectorizer(), nhsvm.NHSVM(C=10)).fit(["it barks", "it purrs"], ["dog", "cat"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.nhsvm")
    ...     nhsvm.save(model, path)
    ...     nhsvm.load(path).predict(["who barks?"]).tolist()
    ['dog']
    """
    encoder = Encoder()
    estimator = model[-1] if is_pipeline(model) and len(model) else model
    header = _header(estimator, encoder, precision)
    arrays = header.pop("arrays")
    if is_pipeline(model):
        header |= steps_of(model, encoder)
    if note is not None:
        header["note"] = _encoded(dict(note), encoder, "the note of a model cannot be saved:", OptionError)
    write_model(path, header | {"hierarchies": encoder.hierarchies}, encoder.arrays | arrays)


def _header(estimator: Storable, encoder: Encoder, precision: str | None) -> dict[str, Any]:
    """What a file says of an estimator; under "arrays" what was learned."""
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not _estimator_class(name):
        raise OptionError(
            f"only {', '.join(ESTIMATORS)}, or a pipeline that ends in one, can be saved; no subclasses, not {name}"
        )
    check_is_fitted(estimator, ["classes_", "hierarchy_"])
    encoder.hierarchy(estimator.hierarchy_)  # number 0
    params = estimator.get_params(deep=False)
    if params.get("n_jobs") is not None:  # more are never used, and a file may not ask for them
        params["n_jobs"] = max(-MOST_JOBS, min(int(params["n_jobs"]), MOST_JOBS))
    state, arrays = (estimator if precision is None else estimator._packed(precision))._fitted_state()
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "nhsvm": __version__,
        "estimator": name,
        "params": _encoded(params, encoder, f"{name} cannot be saved: parameter", OptionError),
        "classes": encode_array(estimator.classes_),
        "feature_names": None if names is None else encode_array(np.asarray(names)),
        "state": _encoded(state, encoder, f"{name} cannot be saved: fitted value", NHSVMError),
        "arrays": {f"fitted/{key}": array for key, array in arrays.items()},
    }


def load(
    path: str | PathLike[str], *, verify: bool = False, max_bytes: int | None = None, trust_patterns: bool = False
) -> Any:
    """Read a fitted estimator, or a pipeline, from a file; nothing in it is ever run.

    Parameters
    ----------
    path : path
    verify : bool
        Compare the large arrays with their checksums too, which reads the whole file. By default they are mapped into
        memory and read when they are used.
    max_bytes : int, optional
        Memory that what is made of the file may take, beside the mapped file itself. By default 256 MiB and 64 times
        the size of the file, which is far more than a model that was saved here needs.
    trust_patterns : bool
        Accept a text model that splits texts by a regular expression (``token_pattern``) other than scikit-learn's own.
        Such an expression can take forever on some texts, so say it only if you trust whoever made the file.

    Raises
    ------
    FileFormatError
        If the file is damaged, cut short, from a newer version, or no model.
    UntrustedPatternError
        If it has a regular expression of its own, and ``trust_patterns`` is not set.
    """
    return load_with_note(path, verify=verify, max_bytes=max_bytes, trust_patterns=trust_patterns)[0]


def load_with_note(
    path: str | PathLike[str], *, verify: bool = False, max_bytes: int | None = None, trust_patterns: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Read a model and the note that was saved with it, which is empty if there was none; see :func:`load`."""
    header, arrays, budget = read_parts(path, verify=verify, max_bytes=max_bytes)
    with reading(path):
        decoder = Decoder(entry(header, "hierarchies", list), arrays, budget)
        estimator = _estimator(header, decoder, arrays)
        steps = StepDecoder(decoder, arrays, trust_patterns=trust_patterns)
        model = pipeline_of(header, steps, estimator) if "steps" in header else estimator
        found = expect(header.get("note", {}), dict, "the note")
        return model, {key: decoder.decode(value) for key, value in found.items()}


def _estimator(header: dict[str, JSON], decoder: Decoder, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    name = entry(header, "estimator", str)
    if name not in ESTIMATORS:
        raise Malformed(f"it holds a {shorten(name)}; this version of nhsvm knows {', '.join(ESTIMATORS)}")
    if not decoder.hierarchies:
        raise Malformed("it has no hierarchy")
    params = {key: decoder.decode(value) for key, value in entry(header, "params", dict).items()}
    state = {key: decoder.decode(value) for key, value in entry(header, "state", dict).items()}
    classes = decode_array(entry(header, "classes", dict), decoder.budget)
    feature_names = header.get("feature_names")
    check_options(params, f"a {name}")
    try:
        estimator = _estimator_class(name)(**params)
    except TypeError as error:  # options that it does not have
        raise Malformed(f"its parts do not make a {name}: {shorten(str(error))}") from None
    estimator.hierarchy_, estimator.classes_ = decoder.hierarchies[0], classes
    try:
        estimator._restore(state, group(arrays, "fitted/"))
    except Malformed as error:
        raise Malformed(f"its parts do not make a {name}: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Malformed(f"its parts do not make a {name}: {type(error).__name__}: {error}") from error
    if feature_names is not None:
        names = decode_array(expect(feature_names, dict, "the feature names"), decoder.budget)
        check_names(names, "the names of features", estimator.n_features_in_)
        estimator.feature_names_in_ = names
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
