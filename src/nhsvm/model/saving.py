"""Fitted estimators, alone or behind transformers in a pipeline, and models by themselves, to and from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

import numpy as np

from nhsvm import __version__
from nhsvm._atomic import PathArg
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.model.checks import (
    CURVES,
    MOST_JOBS,
    Malformed,
    check_fitted,
    check_names,
    check_options,
    entry,
    expect,
    reading,
    shorten,
)
from nhsvm.model.file import read_parts, write_model
from nhsvm.model.model import Model
from nhsvm.model.steps import is_pipeline, pipeline_of, steps_of
from nhsvm.model.values import Decoder, Encoder, NotStorable, decode_array, encode_array, group
from nhsvm.oracles import ORACLES
from nhsvm.oracles.choice import AUTO
from nhsvm.pipelines import pipeline_parts
from nhsvm.typing import JSON, Array, Estimator, Options, Record

ESTIMATORS = dict.fromkeys(("FlatSVM", "HRSVM", "HSVM", "NHSVM", "SSVM"), "nhsvm.estimators")
"""What a file may name, and where it lives: nothing else is ever imported because a file says so."""
CHOOSING = {f"{name}CV": "nhsvm.model_selection.cv" for name in ESTIMATORS}
"""Estimators that choose options of these; a file holds what they have chosen."""
_INDEPENDENT = ("HRSVM",)  # whose label sets have a score for each label


def save(
    model: Estimator, path: PathArg, *, note: Mapping[str, object] | None = None, precision: str | None = None
) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a file; the same model gives the same bytes.

    An existing file is replaced when the new one is complete, and not before.

    Parameters
    ----------
    model : estimator of nhsvm, or a scikit-learn Pipeline that ends in one
        Fitted. Of one that chooses options, such as NHSVMCV, the file holds its ``best_estimator_``. The steps of a
        pipeline before the estimator may be CountVectorizer, TfidfVectorizer, HashingVectorizer, TfidfTransformer,
        BM25Transformer, Normalizer, StandardScaler, MaxAbsScaler, MinMaxScaler, SimpleImputer, TruncatedSVD and
        Nystroem, with options that are no functions.
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
    from sklearn.utils.validation import check_is_fitted

    encoder, pipeline = Encoder(), is_pipeline(model)
    estimator = pipeline_parts(model).last if pipeline else model
    name = type(estimator).__name__
    known = name in ESTIMATORS or name in CHOOSING
    if not known or type(estimator) is not _estimator_class(name):
        raise OptionError(
            f"only {', '.join(ESTIMATORS)}, or a pipeline that ends in one, can be saved; no subclasses, not {name}"
        )
    check_is_fitted(estimator, ["model_"])
    if name in CHOOSING:
        estimator = estimator.best_estimator_
        name = type(estimator).__name__
    learned: Model = estimator.model_ if precision is None else estimator.model_.packed(precision)
    encoder.hierarchy(learned.hierarchy)  # number 0
    state, arrays = _parts(learned)
    params = estimator.get_params(deep=False)
    if params.get("n_jobs") is not None:  # more are never used, and a file may not ask for them
        params["n_jobs"] = max(-MOST_JOBS, min(int(params["n_jobs"]), MOST_JOBS))
    names = learned.feature_names
    header: dict[str, JSON] = {
        "nhsvm": __version__,
        "estimator": name,
        "params": _encoded(params, encoder, f"{name} cannot be saved: parameter", OptionError),
        "classes": encode_array(learned.classes),
        "feature_names": None if names is None else encode_array(np.asarray(names)),
        "state": _encoded(state, encoder, f"{name} cannot be saved: fitted value", NHSVMError),
    }
    if pipeline:
        header |= steps_of(model, encoder)
    if note is not None:
        header["note"] = _encoded(dict(note), encoder, "the note of a model cannot be saved:", OptionError)
    fitted = {f"fitted/{key}": array for key, array in arrays.items()}
    write_model(path, header | {"hierarchies": encoder.hierarchies}, encoder.arrays | fitted)


def _parts(model: Model) -> tuple[Record, dict[str, Array]]:
    """The values and the arrays of a model; its hierarchy, its classes and the names of features are apart."""
    sets, weights, training = model.sets, model.weights, model.training
    state: Record = {
        "n_features_in": model.n_features,
        "by_feature": weights.by_feature,
        "bias": model.bias,
        "objective": training.objective,
        "dual_objective": training.dual_objective,
        "gap": training.gap,
        "certified": training.certified,
        "C": training.C,
        "tol": training.tol,
        "history": training.history,
        "n_iter": training.n_iter,
        "temperature": model.temperature,
        "sets": sets and {"form": sets.form, "allow_empty": sets.allow_empty, "leaf_offset": sets.leaf_offset},
    }
    arrays: dict[str, Array] = {"node_weights": model.node_weights, "class_leaves": model.class_leaves}
    arrays |= weights.arrays()
    if "scale" in arrays:
        state["precision"] = weights.precision
    if model.offsets is not None:
        arrays["offsets"] = model.offsets
    if model.curves is not None:
        arrays |= {CURVES + name: array for name, array in model.curves._asdict().items()}
    return state, arrays


def load(
    path: PathArg, *, verify: bool = False, max_bytes: int | None = None, trust_patterns: bool = False
) -> Estimator:
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


def load_model(path: PathArg, *, verify: bool = False, max_bytes: int | None = None) -> Model:
    """Read what was learned, without its estimator: this needs no scikit-learn.

    Of a pipeline it is the model of the last step, so it takes the features that come out of the steps before.

    Parameters
    ----------
    path, verify, max_bytes
        As for :func:`load`.

    Raises
    ------
    FileFormatError
        If the file is damaged, cut short, from a newer version, or no model.
    """
    header, arrays, budget = read_parts(path, verify=verify, max_bytes=max_bytes)
    with reading(path):
        decoder = Decoder(entry(header, "hierarchies", list), arrays, budget)
        name, options = _estimator_of(header, decoder)
        return _model(header, name, options, decoder, arrays)


def load_with_note(
    path: PathArg, *, verify: bool = False, max_bytes: int | None = None, trust_patterns: bool = False
) -> tuple[Estimator, Record]:
    """Read a model and the note that was saved with it, which is empty if there was none; see :func:`load`."""
    header, arrays, budget = read_parts(path, verify=verify, max_bytes=max_bytes)
    with reading(path):
        decoder = Decoder(entry(header, "hierarchies", list), arrays, budget)
        name, options = _estimator_of(header, decoder)
        check_options(options, f"a {name}")
        model = _fitted(name, options, _model(header, name, options, decoder, arrays))
        if "steps" in header:
            model = pipeline_of(header, decoder, model, trust_patterns)
        found = expect(header.get("note", {}), dict, "the note")
        return model, {key: decoder.decode(value) for key, value in found.items()}


def _estimator_of(header: dict[str, JSON], decoder: Decoder) -> tuple[str, Options]:
    """The estimator that a file names, and its options."""
    name = entry(header, "estimator", str)
    if name not in ESTIMATORS:
        raise Malformed(f"it holds a {shorten(name)}; this version of nhsvm knows {', '.join(ESTIMATORS)}")
    return name, {key: decoder.decode(value) for key, value in entry(header, "params", dict).items()}


def _fitted(name: str, options: Options, model: Model) -> Estimator:
    """The estimator with these options, fitted with a model."""
    try:
        estimator = _estimator_class(name)(**options)
    except TypeError as error:  # options that it does not have
        raise Malformed(f"its parts do not make a {name}: {shorten(str(error))}") from None
    try:
        estimator._adopt(model)  # it checks the options
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Malformed(f"its parts do not make a {name}: {type(error).__name__}: {error}") from error
    return estimator


def _model(
    header: dict[str, JSON], name: str, options: Options, decoder: Decoder, arrays: Mapping[str, Array]
) -> Model:
    """The model in a file, all of it checked."""
    if not decoder.hierarchies:
        raise Malformed("it has no hierarchy")
    state = {key: decoder.decode(value) for key, value in entry(header, "state", dict).items()}
    classes = decode_array(entry(header, "classes", dict), decoder.budget)
    oracle = options.get("oracle", AUTO)
    if not isinstance(oracle, str) or oracle not in (AUTO, *ORACLES):
        raise Malformed(f"its oracle is {shorten(oracle)}; this version of nhsvm knows {', '.join((AUTO, *ORACLES))}")
    try:
        model = check_fitted(
            state, group(arrays, "fitted/"), decoder.hierarchies[0], classes,
            independent=name in _INDEPENDENT, oracle=oracle,
        )  # fmt: skip
        if header.get("feature_names") is None:
            return model
        names = decode_array(expect(header["feature_names"], dict, "the feature names"), decoder.budget)
        check_names(names, "the names of features", model.n_features)
        return replace(model, feature_names=names)
    except Malformed as error:
        raise Malformed(f"its parts do not make a {name}: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Malformed(f"its parts do not make a {name}: {type(error).__name__}: {error}") from error


def _estimator_class(name: str) -> Estimator:
    return getattr(import_module((ESTIMATORS | CHOOSING)[name]), name)


def _encoded(values: Record, encoder: Encoder, what: str, error: type[NHSVMError]) -> dict[str, JSON]:
    found = {}
    for key, value in values.items():
        try:
            found[key] = encoder.encode(value)
        except NotStorable as reason:
            raise error(f"{what} {key!r} is {shorten(value)}, but {reason}") from None
    return found
