"""Fitted transformers of scikit-learn and of nhsvm as JSON and arrays, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count

from nhsvm.errors import OptionError
from nhsvm.persistence._kinds import IGNORED, KINDS, Kind, check_params, check_step, class_of
from nhsvm.persistence._malformed import JSON, Malformed, Untrusted, entry, expect, shorten
from nhsvm.persistence._words import numbered, ordered, pack_words, unpack_words
from nhsvm.persistence.files import TEXT
from nhsvm.persistence.labels import NUMPY, decode_array, encode_array
from nhsvm.persistence.values import Decoder, Encoder, NotStorable, group

_VOCABULARIES = ("vocabulary", "vocabulary_")
_LONGEST_PATTERN = 10_000  # characters of a regular expression
PATTERNS = (
    None,
    r"(?u)\b\w\w+\b",
)  # that need no trust: none, and the one that scikit-learn has unless told otherwise


class StepEncoder:
    """Turns transformers into JSON; arrays go to an :class:`Encoder`, those of vocabularies under names of their own.

    Parameters
    ----------
    values : Encoder
    """

    def __init__(self, values: Encoder) -> None:
        self._values, self._n_words = values, 0

    def encode(self, step: Any, where: str) -> dict[str, JSON]:
        """One transformer; an :class:`OptionError` says what about it a file cannot hold.

        Parameters
        ----------
        step : transformer
        where : str
            How to call it in messages.
        """
        name = type(step).__name__
        if name not in KINDS or type(step) is not class_of(name):
            raise OptionError(
                f"{where} is a {type(step).__module__}.{name}; a model file can hold {', '.join(KINDS)}, and then one "
                "of the estimators of nhsvm"
            )
        kind, params = KINDS[name], step.get_params(deep=False)
        fitted = {key: value for key, value in vars(step).items() if key not in params and key not in IGNORED}
        for key in fitted:
            if key not in kind.shapes and key not in kind.others:
                raise OptionError(f"{where} cannot be saved: a model file has no place for {key!r} of a {name}")
        _check_saved(name, params, where)
        return {
            "kind": name,
            "params": {key: self._value(key, params[key], f"{where} cannot be saved: parameter") for key in params},
            "fitted": {
                key: self._value(key, fitted[key], f"{where} cannot be saved: fitted") for key in sorted(fitted)
            },
        }

    def _value(self, key: str, value: Any, where: str) -> JSON:
        if isinstance(value, type) and value in NUMPY.values():
            return {"type": np.dtype(value).name}
        if isinstance(value, np.dtype) and value.name in NUMPY:
            return {"dtype": value.name}
        if key in _VOCABULARIES and isinstance(value, dict) and (words := ordered(value)) is not None:
            return {"vocabulary": self._words(words)}
        if key in _VOCABULARIES and type(value) is list and all(type(word) is str for word in value):
            return {"words": self._words(value)}
        if type(value).__name__ == "TfidfTransformer":
            return {"step": self.encode(value, f"{where} {key!r}")}
        if isinstance(value, np.ndarray) and value.dtype == object:
            return {"names": encode_array(value)}
        try:
            return {"value": self._values.encode(value)}
        except NotStorable as reason:
            raise OptionError(f"{where} {key!r} is {shorten(value)}, but {reason}") from None

    def _words(self, words: list[str]) -> str:
        prefix = f"{TEXT}{self._n_words}/"
        self._n_words += 1
        self._values.arrays |= {prefix + key: array for key, array in pack_words(words).items()}
        return prefix


def _check_saved(name: str, params: Mapping[str, Any], where: str) -> None:
    problem = _param_problem(params) or _pattern_problem(params.get("token_pattern"))
    if problem is not None:
        raise OptionError(f"{where} cannot be saved: {problem}")
    try:
        check_params(name, params)
    except Malformed as error:
        raise OptionError(f"{where} cannot be saved: {error}") from None


def _param_problem(params: Mapping[str, Any]) -> str | None:
    """What a file must not ask of a transformer: running code, or opening other files."""
    for name, value in params.items():
        if callable(value) and not (name == "dtype" and value in NUMPY.values()):
            return f"{name} is a function, and a model file holds no code; use the options that scikit-learn names"
    if params.get("input", "content") != "content":
        return f"input={params['input']!r} would open files; texts must be given as they are, input='content'"
    if params.get("add_indicator"):
        return "add_indicator=True is not supported"
    return None


def _pattern_problem(pattern: Any) -> str | None:
    if pattern is None:
        return None
    if type(pattern) is not str or len(pattern) > _LONGEST_PATTERN:
        return f"token_pattern must be text of at most {_LONGEST_PATTERN} characters, not {shorten(pattern)}"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"token_pattern is no regular expression: {error}"
    return None


class StepDecoder:
    """Turns the JSON of a :class:`StepEncoder` into transformers again; whatever is wrong is :class:`Malformed`.

    Parameters
    ----------
    values : Decoder
    arrays : mapping of str to array
    trust_patterns : bool
        Accept regular expressions that are not scikit-learn's own; others are not even compiled.
    """

    def __init__(
        self, values: Decoder, arrays: Mapping[str, npt.NDArray[Any]], *, trust_patterns: bool = False
    ) -> None:
        self._values, self._arrays, self._trust = values, arrays, trust_patterns

    def decode(self, part: JSON, nested: bool = False) -> Any:
        """One transformer."""
        content = expect(part, dict, "a step")
        name = entry(content, "kind", str)
        if name not in KINDS or (nested and name != "TfidfTransformer"):
            raise Malformed(f"it has a step of kind {shorten(name)}; this version of nhsvm knows {', '.join(KINDS)}")
        kind = KINDS[name]
        params = {key: self._value(value) for key, value in entry(content, "params", dict).items()}
        fitted = {key: self._value(value) for key, value in entry(content, "fitted", dict).items()}
        problem = _param_problem(params) or self._pattern_problem(name, params.get("token_pattern"))
        if problem is None:
            problem = next((f"{key!r} is no fitted value" for key in fitted if key not in _known(kind)), None)
        if problem is not None:
            raise Malformed(f"a {name}: {problem}")
        try:
            return _made(name, kind, params, fitted)
        except Malformed as error:
            raise Malformed(f"its parts do not make a {name}: {error}") from None
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise Malformed(f"its parts do not make a {name}: {type(error).__name__}: {shorten(str(error))}") from error

    def _pattern_problem(self, name: str, pattern: Any) -> str | None:
        """A regular expression is used only if somebody trusts it: some take forever on some texts, or to compile."""
        if pattern in PATTERNS:
            return None
        if not self._trust and type(pattern) is str:
            raise Untrusted(
                f"its {name} splits texts by the regular expression {shorten(pattern)}, which is not scikit-learn's "
                "own, and an expression can take forever on some texts; if you trust whoever made the file, load it "
                "with trust_patterns=True (--trust-patterns)"
            )
        return _pattern_problem(pattern)

    def _value(self, value: JSON) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            raise Malformed(f"{shorten(value)} is no value of a step")
        [(tag, content)] = value.items()
        if tag in ("type", "dtype"):
            kind = NUMPY.get(expect(content, str, "the type of numbers"))
            if kind is None:
                raise Malformed(f"{shorten(content)} is no type of numbers")
            return kind if tag == "type" else np.dtype(kind)
        if tag in ("vocabulary", "words"):
            words = unpack_words(
                group(self._arrays, expect(content, str, "the name of a vocabulary")), self._values.budget
            )
            return words if tag == "words" else numbered(words)
        if tag == "step":
            return self.decode(content, nested=True)
        if tag == "names":
            return decode_array(expect(content, dict, "a list of names"), self._values.budget)
        if tag == "value":
            return self._values.decode(content)
        raise Malformed(f"{shorten(value)} is no value of a step")


def _known(kind: Kind) -> set[str]:
    return {*kind.shapes, *kind.others}


def _made(name: str, kind: Kind, params: dict[str, Any], fitted: dict[str, Any]) -> Any:
    """A transformer of its parts; Malformed, or an error of scikit-learn's own checks, if they do not fit."""
    check_params(name, params)
    if params.get("n_jobs") is not None:  # scikit-learn begins as many threads as it is told
        params = {**params, "n_jobs": min(params["n_jobs"], cpu_count())}
    step = class_of(name)(**params)
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()
    else:
        step._check_options()  # a transformer of nhsvm
    for key, value in fitted.items():
        setattr(step, key, value)
    if kind.reads_text:
        step._stop_words_id = id(step.stop_words)  # were looked at when it was fitted: no warning again
    check_step(step, kind)
    return step
