"""Model files on the command line, and data read as a model needs them.

A model file made by ``nhsvm train`` has a note on how its data were read (columns, numbers of features, separators), so
that ``nhsvm predict model.nhsvm new.csv`` needs no further options. What the command line says wins over the note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nhsvm.cli._blocks_steps import refuse_made
from nhsvm.cli._inputs import FileFormat, LabelOptions, LabelType, SampleOptions, format_of, read_data
from nhsvm.cli._options import option
from nhsvm.errors import DataError, FileFormatError, NHSVMError, OptionError
from nhsvm.options import check_threads

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset


class Precision(StrEnum):
    """Of the weights in a model file."""

    float16 = "float16"
    int8 = "int8"


PrecisionOption = Annotated[
    Precision | None, option(help="Weights in two bytes, or in one, for a smaller file.", default="as trained")
]
JobsOption = Annotated[int | None, option("--jobs", "-j", help="Threads; -1 for all cores.", default="as in training")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, as nhsvm train writes it.")]

_NOTE = {
    **dict.fromkeys(("label", "path", "separator", "label_separator", "label_type"), "text"),
    **dict.fromkeys(("text", "features", "level", "feature_names"), "texts"),
    **dict.fromkeys(("ignore_feature", "first_feature", "n_features"), "number"),
    **dict.fromkeys(("any_order", "last_part", "drop_implied"), "flag"),
    "feature_numbers": "numbers",
}
"""What entries of a note have to be."""
_SAMPLE_KEYS = ("text", "features", "ignore_feature", "any_order")
_LABEL_KEYS = ("label", "path", "level", "separator", "label_separator", "last_part", "label_type", "drop_implied")


@dataclass(frozen=True)
class ModelOptions:
    """How far a model file is trusted."""

    trust_patterns: Annotated[
        bool,
        option("--trust-patterns", help="Use a regular expression that the model brings to split texts by."),
    ] = False
    max_bytes: Annotated[
        str | None,
        option(
            metavar="SIZE",
            help="Memory that the model may take beside its file.",
            default="256 MiB and 64 times the file",
        ),
    ] = None


@dataclass(frozen=True)
class LoadedModel:
    """A model with the note on its data.

    Attributes
    ----------
    model : estimator or Pipeline
    note : dict
        Empty for models that were saved from Python.
    """

    model: Any
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def svm(self) -> Any:
        """The estimator, without the transformers before it."""
        return self.model[-1] if hasattr(self.model, "steps") else self.model

    @property
    def reads_text(self) -> bool:
        """Whether samples are texts, not features."""
        return hasattr(self.model, "steps") and hasattr(self.model[0], "build_analyzer")

    @property
    def is_multilabel(self) -> bool:
        """Whether predictions are label sets."""
        return self.svm.model_.sets is not None

    def transformed(self, inputs: Any) -> Any:
        """Samples, as :func:`inputs_of` gives them, as the features that the estimator sees."""
        if not hasattr(self.model, "steps"):
            return inputs
        try:
            return self.model[:-1].transform(inputs)
        except (TypeError, ValueError) as error:
            if isinstance(error, NHSVMError):
                raise
            raise DataError(f"the model cannot use these samples: {error}") from error


def load_model(file: Path, options: ModelOptions, jobs: int | None = None) -> LoadedModel:
    """A model file, with another number of threads if one is given; what is missing or no model is named."""
    from nhsvm.estimators.memory import parsed
    from nhsvm.model import load_with_note
    from nhsvm.model.checks import Malformed, check_note, reading

    if jobs is not None:
        check_threads("n_jobs", jobs)
    max_bytes = None if options.max_bytes is None else parsed(options.max_bytes, "--max-bytes")
    try:
        loaded = LoadedModel(*load_with_note(file, max_bytes=max_bytes, trust_patterns=options.trust_patterns))
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror or error}") from error
    with reading(file):
        check_note(loaded.note, _NOTE)
        if loaded.note.get("label_type", "str") not in list(LabelType):
            raise Malformed(f"the note says 'label_type' is {loaded.note['label_type']!r}")
    if jobs is not None:
        loaded.svm.set_params(n_jobs=jobs)
    return loaded


def note_of(file: str, samples: SampleOptions, labels: LabelOptions, dataset: Dataset) -> dict[str, Any]:
    """What a model should know of the data it was trained on, to read others in the same way."""
    kind = format_of(file, samples)
    if kind is FileFormat.blocks:
        from nhsvm.datasets.blocks import read_note

        return _with_features(read_note(file), kind, dataset)  # how the file that they were made of is read
    note: dict[str, Any] = {key: getattr(samples, key) for key in _SAMPLE_KEYS}
    note |= {key: getattr(labels, key) for key in _LABEL_KEYS}
    if kind is FileFormat.jsonl and not samples.text and not samples.features:
        note["text"] = ["text"]
    if kind.is_table and labels.label is None and labels.path is None and not labels.level:
        note["label"] = "labels"
    note["label_type"] = None if labels.label_type is None else str(labels.label_type)
    if kind in (FileFormat.csv, FileFormat.tsv) and labels.label_type is None:
        note["label_type"] = "str"
    if kind is FileFormat.arff:
        note["separator"] = "/"  # of paths in labels
    return _with_features(note, kind, dataset)


def _with_features(note: dict[str, Any], kind: FileFormat, dataset: Dataset) -> dict[str, Any]:
    """The same with what features are called."""
    import numpy as np

    names: Any = dataset.feature_names
    if isinstance(names, range):
        note["first_feature"], note["n_features"] = names.start, len(names)
    elif names is not None and (kind.is_numbered or np.asarray(names).dtype.kind == "i"):
        note["feature_numbers"] = np.asarray(names)
    elif names is not None:
        note["feature_names"] = [str(name) for name in names]
    return {key: value for key, value in note.items() if value is not None}


def completed(loaded: LoadedModel, file: str, samples: SampleOptions) -> SampleOptions:
    """The options that were given, and for the others those of the training data, as far as the format has them."""
    kind, note = format_of(file, samples), loaded.note
    if kind is FileFormat.blocks:
        refuse_made(file)
    keys: Sequence[str] = ()
    if kind.is_table and not samples.text and not samples.features:
        keys = ("text", "features")
    elif kind is FileFormat.lshtc and samples.ignore_feature is None:
        keys = ("ignore_feature",)
    elif kind is FileFormat.svmlight and samples.any_order is None:
        keys = ("any_order",)
    return replace(samples, **{key: note[key] for key in keys if key in note})


def completed_labels(loaded: LoadedModel, file: str, samples: SampleOptions, labels: LabelOptions) -> LabelOptions:
    """The same for the options of labels."""
    kind, note = format_of(file, samples), loaded.note
    keys = [key for key in _LABEL_KEYS if kind.is_table and getattr(labels, key) is None]
    if labels.label is not None or labels.path is not None or labels.level:
        keys = [key for key in keys if key not in ("label", "path", "level")]
    if kind is FileFormat.svmlight and labels.label_type is None:
        keys = ["label_type"]
    found = {key: note[key] for key in keys if key in note}
    if "label_type" in found:
        found["label_type"] = LabelType(found["label_type"])
    if labels.multilabel is None and not (labels.path or labels.level):
        found["multilabel"] = loaded.is_multilabel
    return replace(labels, **found)


def like_of(loaded: LoadedModel, kind: FileFormat) -> Dataset | None:
    """A stand-in for the training set, so that numbered features become the right columns."""
    from nhsvm.datasets import Dataset

    note = loaded.note
    if kind is FileFormat.blocks and not {"feature_numbers", "first_feature"} & note.keys():
        return None
    if not kind.is_numbered and kind is not FileFormat.blocks:
        return None
    if "feature_numbers" in note:
        return Dataset(None, None, feature_names=note["feature_numbers"])
    first = note.get("first_feature")
    n_features = loaded.model.n_features_in_
    if first is None:  # a model made in Python: columns are features, counted from 1 in svmlight files
        first = 1
    return Dataset(None, None, feature_names=range(first, first + n_features))  # type: ignore[arg-type]


def read_for(
    loaded: LoadedModel,
    file: str,
    samples: SampleOptions,
    labels: LabelOptions | None = None,
    *,
    extra: Sequence[str] | str = (),
) -> Dataset:
    """A data file as a model needs it.

    Parameters
    ----------
    loaded : LoadedModel
    file : str
    samples : SampleOptions
        What is not said is as in training.
    labels : LabelOptions, optional
        None reads samples only. Otherwise labels must be nodes of the model's hierarchy (``LabelOptions.hierarchy``,
        if it is given, takes its place), and have the form (labels or label sets) of the model's.
    extra : names of further columns, or "*"

    Returns
    -------
    Dataset
        Its ``y`` goes with the model's ``predict``, and :func:`inputs_of` gives what to predict from.
    """
    samples = completed(loaded, file, samples)
    kind = format_of(file, samples)
    hierarchy = None
    if labels is not None:
        labels = completed_labels(loaded, file, samples, labels)
        hierarchy = None if labels.hierarchy is not None or kind is FileFormat.arff else loaded.svm.hierarchy
    check_reads(loaded, kind, samples)
    dataset = read_data(file, samples, labels, like=like_of(loaded, kind), hierarchy=hierarchy, extra=extra)
    check_features(loaded, file, dataset)
    return dataset


def check_reads(loaded: LoadedModel, kind: FileFormat, samples: SampleOptions) -> None:
    """An error if a model of texts is given features, or the other way round: before anything is read."""
    has_text = kind.is_table and (bool(samples.text) or (kind is FileFormat.jsonl and not samples.features))
    if loaded.reads_text and not has_text:
        raise OptionError("the model classifies texts, but the data have features; say --text COLUMN")
    if has_text and not loaded.reads_text:
        raise OptionError("the model classifies features, but the data have texts; say --features COLUMN")


def check_features(loaded: LoadedModel, file: str, dataset: Dataset) -> None:
    """An error if the columns of features are not those of the model."""
    if dataset.X is None:
        return
    wanted = loaded.note.get("feature_names")
    found = None if dataset.feature_names is None else [str(name) for name in dataset.feature_names]
    if wanted is not None and found is not None and found != list(wanted) and "feature_names" in loaded.note:
        other = next((f"{b!r} in place of {a!r}" for a, b in zip(wanted, found, strict=False) if a != b), None)
        raise DataError(
            f"{file}: the features are not those of the model: {other or f'{len(found)} in place of {len(wanted)}'}"
        )
    if dataset.X.shape[1] != loaded.model.n_features_in_:
        raise DataError(
            f"{file}: {dataset.X.shape[1]} features, but the model was trained with {loaded.model.n_features_in_}"
        )


def inputs_of(loaded: LoadedModel, dataset: Dataset) -> Any:
    """What the model's ``predict`` and other methods take: texts, or a matrix of features."""
    if loaded.reads_text:
        if dataset.texts is None:
            raise OptionError("the model classifies texts, but the data have features; say --text COLUMN")
        return dataset.texts
    if dataset.X is None:
        raise OptionError("the model classifies features, but the data have texts; say --features COLUMN")
    return dataset.X
