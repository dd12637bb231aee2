"""``nhsvm convert``: a data file as blocks, which need not fit into memory to be learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nhsvm.cli.inputs import DataFile, LabelOptions, SampleOptions, Source
from nhsvm.cli.models import note_of
from nhsvm.cli.options import ConfigFile, JsonFlag, QuietFlag, option
from nhsvm.cli.output import note, print_json
from nhsvm.cli.pipeline import FeatureOptions, number_steps, text_steps, write_steps
from nhsvm.cli.terminal import Busy
from nhsvm.errors import DataError, OptionError
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.datasets.blocks_writer import Converted
    from nhsvm.datasets.dataset import Skipped
    from nhsvm.pipelines import Steps
    from nhsvm.typing import DType, Estimator, LabelsLike, Matrix, MatrixLike, PtrArray

_ENDING = ".blocks"
ROWS = 2_000  # samples at a time


@dataclass(frozen=True)
class BlocksOptions:
    """The blocks to write."""

    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; its name ends in .blocks.")]
    like: Path | None = option(metavar="FOLDER", help="Blocks whose features to use, as for a test set.")
    no_labels: bool = option("--no-labels", default=False, help="Only samples; labels are ignored.")
    float32: bool = option("--float32", default=False, help="Numbers in single precision: a third less.")
    force: bool = option("--force", default=False, help="Replace blocks that are there.")


def convert(
    data: DataFile,
    samples: SampleOptions,
    labels: LabelOptions,
    features: FeatureOptions,
    blocks: BlocksOptions,
    *,
    config: ConfigFile = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Make blocks of a data file: a folder that train, tune, predict and evaluate take in its place.

    Blocks are learned from where they are on the disk, so they may be larger than memory. The result is the same.

    Texts are read twice, once for their terms. What makes features of them becomes a part of the model.

    The folder gets its name when it is complete. After Ctrl-C or a crash there is none, and a second run begins anew.

    Example: nhsvm convert train.txt --hierarchy cat_hier.txt --transform tfidf -o train.blocks

    Example: nhsvm train train.blocks -o model.nhsvm
    """
    start = perf_counter()
    with Busy(f"converting {data}", quiet=quiet) as busy:
        source = Source(data, samples, None if blocks.no_labels else labels)
        done, skipped = _Conversion(source, features, blocks, busy).run()
    if done.removed:
        note(f"removed what an earlier conversion to {blocks.output} had left unfinished")
    if skipped.count:
        note(str(skipped))
    seconds = perf_counter() - start
    if json:
        counts = {"samples": done.n_samples, "features": done.n_features, "entries": done.nnz, "bytes": done.nbytes}
        print_json(counts | {"skipped": skipped.count, "seconds": seconds, "folder": str(blocks.output)})
        return
    entries = "dense" if done.nnz is None else f"{done.nnz:,} entries"
    typer.echo(f"samples    {done.n_samples:,}")
    typer.echo(f"features   {done.n_features:,} ({entries})")
    typer.echo(f"folder     {blocks.output}, {readable_bytes(done.nbytes)}, {seconds:.1f} s")


class _Conversion:
    """One conversion; options that do not go together are found before anything is read."""

    def __init__(self, source: Source, features: FeatureOptions, blocks: BlocksOptions, busy: Busy) -> None:
        from nhsvm.datasets import open_blocks
        from nhsvm.datasets.blocks_writer import check_target

        self._features, self._blocks, self._busy = features, blocks, busy
        if source.kind == "blocks":
            raise OptionError(f"{source.file}: these are blocks already")
        if blocks.output.suffix != _ENDING:
            name = f"the name must end in {_ENDING}, so that other commands know what it is"
            raise OptionError(f"-o {blocks.output}: {name}")
        self._transforms = features.transform not in (None, "none")
        if (source.has_texts or self._transforms) and blocks.like is not None:
            raise OptionError(
                "--like is for features as they are in the file: a model makes those of a test set itself"
            )
        if source.has_texts and source.samples.features:
            raise OptionError("give either --text or --features: a model has one of them")
        if source.has_texts and source.file == "-":
            raise OptionError("texts are read twice, so they cannot come from standard input: give the name of a file")
        check_target(blocks.output, force=blocks.force)
        known = None if blocks.like is None else open_blocks(blocks.like, verify=False)
        self._source = replace(source, like=known)
        self._settings = self._source.settings()
        if blocks.float32 or source.has_texts:  # terms have weights in single precision, as in train
            self._settings["dtype"] = "float32"
        self._note = note_of(source, None)
        if not source.has_texts:
            fit_numbers((), features)  # errors about options
        self._done, self._passes = 0, 1  # over the samples

    def run(self) -> tuple[Converted, Skipped]:
        """Write the blocks; what has been written, and what of the file has been left out."""
        if self._source.has_texts:
            done = self._texts()
        elif self._transforms:
            return self._transformed()
        else:
            done = self._as_it_is(self._blocks.output, force=self._blocks.force)
        return done, done.skipped

    def _as_it_is(self, to: Path, *, force: bool) -> Converted:
        from nhsvm.datasets import convert_to_blocks

        return convert_to_blocks(
            self._source.reader, self._source.file, to, force=force, note=self._note, progress=self._tell_rows,
            each=self._kept if self._source.samples.conditions else None, **self._settings,
        )  # fmt: skip

    def _tell_rows(self, n_rows: int, share: float | None) -> None:
        self._tell(f"{n_rows:,} samples converted", share)

    def _tell(self, what: str, share: float | None) -> None:
        """What is being done; of a pass over all samples, a share is over."""
        self._busy(what, None if share is None else (self._done + share) / self._passes)

    def _kept(self, part: Dataset) -> Dataset:
        """What ``--where`` leaves of a part."""
        return self._source.kept(part, may_be_empty=True)

    def _texts(self) -> Converted:
        from nhsvm.datasets import convert_to_blocks, read_chunks

        chunks = read_chunks(self._source.reader, self._source.file, ROWS, **self._settings)
        self._busy(f"looking for terms in {self._source.file}")

        def texts() -> Iterator[list[str]]:
            self._passes = 2
            for part in chunks:
                self._tell("looking for terms", chunks.share)
                yield self._kept(part).texts or []
            self._done = 1

        steps = fit_texts(texts(), self._features)

        def features_of(part: Dataset) -> Dataset:
            kept = self._kept(part)
            return replace(kept, X=transformed(steps, kept.texts) if kept.texts else None)

        return convert_to_blocks(
            self._source.reader, self._source.file, self._blocks.output, force=self._blocks.force, note=self._note,
            each=features_of, steps=lambda file: write_steps(steps, file), progress=self._tell_rows, **self._settings,
        )  # fmt: skip

    def _transformed(self) -> tuple[Converted, Skipped]:
        """Blocks of the file as it is, in a hidden folder, and of these the ones that are asked for."""
        from nhsvm._atomic import scratch_folder
        from nhsvm.datasets import iter_blocks, open_blocks, write_blocks

        with scratch_folder(self._blocks.output) as scratch:
            raw = scratch / f"raw{_ENDING}"
            self._passes = 3
            skipped = self._as_it_is(raw, force=False).skipped
            whole = open_blocks(raw, verify=False)

            def parts(what: str) -> Iterator[tuple[Matrix, LabelsLike]]:
                self._done += 1
                n_rows = 0
                for X, y in iter_blocks(whole, ROWS):
                    yield X, y
                    n_rows += X.shape[0]
                    self._tell(what, n_rows / whole.n_samples)

            steps = fit_numbers((X for X, _ in parts("looking at the features")), self._features)
            done = write_blocks(
                (replace(whole, X=transformed(steps, X), y=y) for X, y in parts("making features")),
                self._blocks.output, force=self._blocks.force, note=self._note,
                steps=lambda file: write_steps(steps, file),
            )  # fmt: skip
        return done, skipped


# -- transformers fitted a part of the data at a time: they learn the same as from all of it at once -------------------


def fit_texts(parts: Iterable[list[str]], options: FeatureOptions) -> Steps:
    """The transformers of texts."""
    import numpy as np

    options.check(texts=True)
    if options.vectorizer == "hashing":
        return text_steps(options, 0)
    analyze = text_steps(options, 0)[0][1].build_analyzer()
    documents, occurrences, n_texts = Counter[str](), Counter[str](), 0
    for texts in parts:
        n_texts += len(texts)
        for text in texts:
            terms = analyze(text)
            occurrences.update(terms)
            documents.update(set(terms))
    if not n_texts:
        raise DataError("no samples are left; see --where")
    (_, vectorizer), *others = steps = text_steps(options, n_texts)
    terms = sorted(documents)
    frequency = np.array([documents[term] for term in terms], dtype=np.int64)
    total = np.array([occurrences[term] for term in terms], dtype=np.int64)
    kept = _kept_terms(vectorizer, frequency, total, n_texts)
    vectorizer.vocabulary_ = {terms[k]: number for number, k in enumerate(kept.tolist())}
    vectorizer.fixed_vocabulary_ = False
    vectorizer._stop_words_id = id(vectorizer.stop_words)  # they were looked at
    if options.vectorizer in (None, "tfidf"):
        from sklearn.feature_extraction.text import TfidfTransformer

        weights = {name: getattr(vectorizer, name) for name in ("norm", "use_idf", "smooth_idf", "sublinear_tf")}
        vectorizer._tfidf = TfidfTransformer(**weights)
        others = [("tfidf", vectorizer._tfidf)]
    _fit_counts(others, frequency[kept], float(total[kept].sum()), n_texts, np.dtype(np.float32))
    return steps


def _kept_terms(vectorizer: Estimator, frequency: PtrArray, total: PtrArray, n_texts: int) -> PtrArray:
    """Numbers of the terms that scikit-learn's vectorisers would keep."""
    import numpy as np

    limits = vectorizer.min_df, vectorizer.max_df
    low, high = (limit if isinstance(limit, int) else limit * n_texts for limit in limits)
    kept = np.flatnonzero((frequency >= low) & (frequency <= high))
    if vectorizer.max_features is not None and len(kept) > vectorizer.max_features:
        kept = np.sort(kept[(-total[kept].astype(np.float32)).argsort()[: vectorizer.max_features]])
    if not len(kept):
        raise DataError("no features can be made: no term is left; lower --min-df, or raise --max-df")
    return kept


def fit_numbers(parts: Iterable[Matrix], options: FeatureOptions) -> Steps:
    """The transformers of features that are numbers, from the rows of a matrix, some at a time."""
    options.check(texts=False)
    if options.missing not in (None, "error") or options.transform == "standard":
        raise OptionError("convert has neither --missing nor --transform standard: give them to train")
    import numpy as np
    import scipy.sparse as sp

    steps = number_steps(options)
    frequency, total, n_rows, dtype = np.zeros(0, np.int64), 0.0, 0, np.dtype(np.float64)
    for X in parts:
        if options.transform == "maxabs":
            steps[0][1].partial_fit(X)
            continue
        rows = sp.csr_array(X)
        if options.transform == "bm25":
            if rows.data.size and rows.data.min() < 0:
                row = n_rows + int(np.searchsorted(rows.indptr, np.argmax(rows.data < 0), side="right"))
                raise DataError(f"no features can be made (bm25): counts must be ≥ 0, unlike those of sample {row}")
            rows.eliminate_zeros()
        found = np.bincount(rows.indices, minlength=rows.shape[1])
        frequency = frequency + found if n_rows else found
        total, n_rows, dtype = total + float(rows.data.sum(dtype=np.float64)), n_rows + rows.shape[0], rows.dtype
    if n_rows:
        _fit_counts(steps, frequency, total, n_rows, dtype)
    return steps


def _fit_counts(steps: Steps, frequency: PtrArray, total: float, n_rows: int, dtype: DType) -> None:
    """Fit transformers by the number of samples that have a feature, and by all counts together."""
    import numpy as np
    import scipy.sparse as sp

    for name, step in steps:
        if name == "tfidf":  # as TfidfTransformer.fit, in the same precision
            smooth = int(step.smooth_idf)
            idf = np.full(len(frequency), n_rows + smooth, dtype=dtype)
            idf /= (frequency + smooth).astype(dtype)
            np.log(idf, out=idf)
            idf += 1.0
            step.idf_, step.n_features_in_ = idf, len(frequency)
        elif name == "bm25":
            step.fit_totals(n_rows, frequency, total)
        else:  # learns nothing but the number of features
            step.fit(sp.csr_array((1, len(frequency)), dtype=dtype))


def transformed(steps: Steps, X: MatrixLike) -> MatrixLike:
    """Samples after all transformers."""
    for name, step in steps:
        try:
            X = step.transform(X)
        except (TypeError, ValueError) as error:
            raise DataError(f"no features can be made ({name}): {error}") from error
    return X
