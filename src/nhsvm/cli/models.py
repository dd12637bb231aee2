"""Model files on the command line, and data read as a model needs them.

A model file made by ``nhsvm train`` has a note on how its data were read (columns, numbers of features, separators), so
that ``nhsvm predict model.nhsvm new.csv`` needs no further options. What the command line says wins over the note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeAlias

import typer

from nhsvm.cli.inputs import LabelOptions, SampleOptions, Source
from nhsvm.cli.options import option
from nhsvm.cli.pipeline import refuse_made
from nhsvm.errors import DataError, FileFormatError, NHSVMError, OptionError
from nhsvm.pipelines import pipeline_parts

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.typing import Estimator, LabelsLike, MatrixLike, Record

# -- options -----------------------------------------------------------------------------------------------------------


Precision: TypeAlias = Literal["float16", "int8"]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(show_default="as trained", help="Weights in two bytes, or in one, for a smaller file."),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", show_default="as in training", help="Threads; -1 for all cores.")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, as nhsvm train writes it.")]


@dataclass(frozen=True)
class TrustOptions:
    """How far a model file is trusted."""

    trust_patterns: bool = option(
        "--trust-patterns", default=False, help="Use a regular expression that the model brings to split texts by."
    )
    max_bytes: str | None = option(
        metavar="SIZE",
        help="Memory that the model may take beside its file.",
        shown="256 MiB and 64 times the file",
    )


# -- models and their notes --------------------------------------------------------------------------------------------

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
class LoadedModel:
    """An estimator or a pipeline with the note on its data, which is empty for models that were saved from Python."""

    model: Estimator
    note: Record = field(default_factory=dict)

    @property
    def steps(self) -> list[Estimator]:
        """The transformers before the estimator."""
        return [step for _, step in pipeline_parts(self.model).steps]

    @property
    def svm(self) -> Estimator:
        """The estimator, without the transformers before it."""
        return pipeline_parts(self.model).last

    @property
    def reads_text(self) -> bool:
        """Whether samples are texts, not features."""
        return any(hasattr(step, "build_analyzer") for step in self.steps[:1])

    @property
    def is_multilabel(self) -> bool:
        """Whether predictions are label sets."""
        return self.svm.model_.sets is not None

    def inputs_of(self, dataset: Dataset) -> MatrixLike:
        """What the model's ``predict`` and other methods take: texts, or a matrix of features."""
        found = dataset.texts if self.reads_text else dataset.X
        if found is None:
            self._refuse_data()
        return found

    def transformed(self, inputs: MatrixLike) -> MatrixLike:
        """Such inputs as the features that the estimator sees."""
        before = pipeline_parts(self.model).before
        if before is None:
            return inputs
        try:
            return before.transform(inputs)
        except (TypeError, ValueError) as error:
            if isinstance(error, NHSVMError):
                raise
            raise DataError(f"the model cannot use these samples: {error}") from error

    def check_reads(self, source: Source) -> None:
        """An error if a model of texts is given features, or the other way round: before anything is read."""
        if self.reads_text != source.has_texts:
            self._refuse_data()

    def _refuse_data(self) -> NoReturn:
        own, other, flag = ("texts", "features", "text") if self.reads_text else ("features", "texts", "features")
        raise OptionError(f"the model classifies {own}, but the data have {other}; say --{flag} COLUMN")

    def check_features(self, file: str, dataset: Dataset) -> None:
        """An error if the columns of features are not those of the model."""
        if dataset.X is None:
            return
        wanted = self.note.get("feature_names")
        found = None if dataset.feature_names is None else [str(name) for name in dataset.feature_names]
        if wanted is not None and found is not None and found != list(wanted):
            other = next((f"{b!r} in place of {a!r}" for a, b in zip(wanted, found, strict=False) if a != b), None)
            raise DataError(
                f"{file}: the features are not those of the model: {other or f'{len(found)} in place of {len(wanted)}'}"
            )
        n_features = self.model.n_features_in_
        if dataset.X.shape[1] != n_features:
            raise DataError(f"{file}: {dataset.X.shape[1]} features, but the model was trained with {n_features}")


def load_model(file: Path, options: TrustOptions, jobs: int | None = None) -> LoadedModel:
    """A model file, with another number of threads if one is given; what is missing or no model is named."""
    from nhsvm.estimators.memory import parsed
    from nhsvm.model import load_with_note
    from nhsvm.model.checks import Malformed, check_note, reading
    from nhsvm.options import check_threads

    if jobs is not None:
        check_threads("n_jobs", jobs)
    max_bytes = None if options.max_bytes is None else parsed(options.max_bytes, "--max-bytes")
    try:
        loaded = LoadedModel(*load_with_note(file, max_bytes=max_bytes, trust_patterns=options.trust_patterns))
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror or error}") from error
    with reading(file):
        check_note(loaded.note, _NOTE)
        if loaded.note.get("label_type", "str") not in ("str", "int"):
            raise Malformed(f"the note says 'label_type' is {loaded.note['label_type']!r}")
    if jobs is not None:
        loaded.svm.set_params(n_jobs=jobs)
    return loaded


def note_of(source: Source, dataset: Dataset | None) -> Record:
    """What a model should know of the data it was trained on, to read others in the same way.

    Without the data set, what features are called is left out.
    """
    kind, samples, labels = source.kind, source.samples, source.labels or LabelOptions()
    if kind == "blocks":
        from nhsvm.datasets.blocks import read_note

        note = read_note(source.file)  # how the file that they were made of is read
    else:
        note = {key: getattr(samples, key) for key in _SAMPLE_KEYS} | {key: getattr(labels, key) for key in _LABEL_KEYS}
        if kind == "jsonl" and not samples.text and not samples.features:
            note["text"] = ["text"]
        if source.is_table and not labels.is_placed:
            note["label"] = "labels"
        if kind in ("csv", "tsv") and labels.label_type is None:
            note["label_type"] = "str"
        if kind == "arff":
            note["separator"] = "/"  # of paths in labels
    if dataset is not None:
        note |= _features_of(dataset, numbered=source.is_numbered)
    return {key: value for key, value in note.items() if value is not None}


def _features_of(dataset: Dataset, *, numbered: bool) -> Record:
    """What features are called."""
    import numpy as np

    names: Any = dataset.feature_names  # of svmlight files a range
    if names is None:
        return {}
    if isinstance(names, range):
        return {"first_feature": names.start, "n_features": len(names)}
    if numbered or np.asarray(names).dtype.kind == "i":
        return {"feature_numbers": np.asarray(names)}
    return {"feature_names": [str(name) for name in names]}


# -- data as a model needs them ----------------------------------------------------------------------------------------


def source_for(
    loaded: LoadedModel,
    file: str,
    samples: SampleOptions,
    labels: LabelOptions | None = None,
    *,
    extra: Sequence[str] | str = (),
) -> Source:
    """A data file as a model needs it: what the options do not say is as in training.

    Labels must be nodes of the model's hierarchy (``labels.hierarchy``, if it is given, takes its place), and have the
    form (labels or label sets) of the model's.
    """
    source, note = Source(file, samples, labels, extra=extra), loaded.note
    kind = source.kind
    if kind == "blocks":
        refuse_made(file)
    keys: Sequence[str] = ()
    if source.is_table and not samples.text and not samples.features:
        keys = ("text", "features")
    elif kind == "lshtc" and samples.ignore_feature is None:
        keys = ("ignore_feature",)
    elif kind == "svmlight" and samples.any_order is None:
        keys = ("any_order",)
    source = replace(source, samples=replace(samples, **{key: note[key] for key in keys if key in note}))
    if labels is not None:
        labels = _completed(labels, source, loaded)
        hierarchy = None if labels.hierarchy is not None or kind == "arff" else loaded.svm.hierarchy
        source = replace(source, labels=labels, hierarchy=hierarchy)
    loaded.check_reads(source)
    return replace(source, like=_like(loaded, source))


def _completed(labels: LabelOptions, source: Source, loaded: LoadedModel) -> LabelOptions:
    keys = [key for key in _LABEL_KEYS if source.is_table and getattr(labels, key) is None]
    if labels.is_placed:
        keys = [key for key in keys if key not in ("label", "path", "level")]
    if source.kind == "svmlight" and labels.label_type is None:
        keys = ["label_type"]
    found = {key: loaded.note[key] for key in keys if key in loaded.note}
    if labels.multilabel is None and not (labels.path or labels.level):
        found["multilabel"] = loaded.is_multilabel
    return replace(labels, **found)


def _like(loaded: LoadedModel, source: Source) -> Dataset | None:
    """A stand-in for the training set, so that numbered features become the right columns."""
    from nhsvm.datasets import Dataset

    note = loaded.note
    is_numbered = source.kind == "blocks" and ("feature_numbers" in note or "first_feature" in note)
    if not source.is_numbered and not is_numbered:
        return None
    if "feature_numbers" in note:
        return Dataset(None, None, feature_names=note["feature_numbers"])
    first = note.get("first_feature", 1)  # of a model made in Python, columns are features, counted from 1
    return Dataset(None, None, feature_names=range(first, first + loaded.model.n_features_in_))


def read_labelled(
    loaded: LoadedModel, file: str, samples: SampleOptions, labels: LabelOptions, *, extra: Sequence[str] = ()
) -> tuple[Dataset, MatrixLike, LabelsLike]:
    """A labelled data file as a model needs it: the data set, what to predict from, and the labels."""
    dataset = source_for(loaded, file, samples, labels, extra=extra).read()
    loaded.check_features(file, dataset)
    if dataset.y is None:
        raise DataError(f"{file}: no labels to compare with; say where they are, as with --label COLUMN")
    return dataset, loaded.inputs_of(dataset), dataset.y
