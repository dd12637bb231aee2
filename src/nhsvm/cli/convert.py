"""``nhsvm convert``: a data file as blocks, which need not fit into memory to be learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nhsvm.cli._blocks_steps import write_steps
from nhsvm.cli._config import ConfigFile
from nhsvm.cli._features import FeatureOptions
from nhsvm.cli._inputs import (
    DataFile,
    FileFormat,
    LabelOptions,
    SampleOptions,
    conditions,
    format_of,
    only_where,
    reader_of,
    takes,
)
from nhsvm.cli._models import note_of
from nhsvm.cli._output import JsonFlag, note, print_json
from nhsvm.cli._progress import Busy
from nhsvm.cli._streamed import fit_numbers, fit_texts, is_asked_for, transformed
from nhsvm.errors import OptionError
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset

_ENDING = ".blocks"
_ROWS = 2_000  # samples at a time


@takes(samples=SampleOptions, labels=LabelOptions, features=FeatureOptions)
def convert(
    data: DataFile,
    samples: SampleOptions,
    labels: LabelOptions,
    features: FeatureOptions,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; its name ends in .blocks.")],
    like: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default=False, help="Blocks whose features to use, as for a test set."),
    ] = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Only samples; labels are not looked at.")] = False,
    float32: Annotated[bool, typer.Option("--float32", help="Numbers in single precision: a third less.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace blocks that are there.")] = False,
    config: ConfigFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
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
        job = _Job(data, samples, None if no_labels else labels, features, output, force, like, float32, busy)
        done = job.run()
    if done.removed:
        note(f"removed what an earlier conversion to {output} had left unfinished")
    if job.skipped.count:
        note(str(job.skipped))
    result = {
        "samples": done.n_samples,
        "features": done.n_features,
        "entries": done.nnz,
        "bytes": done.nbytes,
        "skipped": job.skipped.count,
        "seconds": perf_counter() - start,
        "folder": str(output),
    }
    if json:
        print_json(result)
    else:
        _show(result)


class _Job:
    """One conversion; options that do not go together are found before anything is read."""

    def __init__(
        self,
        data: str,
        samples: SampleOptions,
        labels: LabelOptions | None,
        features: FeatureOptions,
        output: Path,
        force: bool,
        like: Path | None,
        float32: bool,
        busy: Busy,
    ) -> None:
        from nhsvm.datasets import open_blocks
        from nhsvm.datasets.blocks_writer import check_target

        self._data, self._samples, self._features = data, samples, features
        self._output, self._force, self._busy = output, force, busy
        self._kind = _checked_format(data, samples, output)
        self._is_text = self._kind.is_table and bool(
            samples.text or (self._kind is FileFormat.jsonl and not samples.features)
        )
        if (self._is_text or is_asked_for(features)) and like is not None:
            raise OptionError(
                "--like is for features as they are in the file: a model makes those of a test set itself"
            )
        if self._is_text and samples.features:
            raise OptionError("give either --text or --features: a model has one of them")
        if self._is_text and data == "-":
            raise OptionError("texts are read twice, so they cannot come from standard input: give the name of a file")
        check_target(output, force=force)
        known = None if like is None else open_blocks(like, verify=False)
        self._reader, self._settings = reader_of(self._kind, data, samples, labels, like=known)
        if float32 or self._is_text:  # terms have weights in single precision, as in train
            self._settings["dtype"] = "float32"
        self._note = _note_of(data, samples, labels or LabelOptions())
        if not self._is_text:
            fit_numbers((), features)  # errors about options
        self._done, self._passes = 0, 1  # over the samples
        self.skipped: Any = None

    def run(self) -> Any:
        """Write the blocks; what has been written."""
        if self._is_text:
            done = self._texts()
        elif is_asked_for(self._features):
            done = self._transformed()
        else:
            done = self._converted(self._output, self._force, each=self._kept if conditions(self._samples) else None)
        self.skipped = done.skipped if self.skipped is None else self.skipped
        return done

    def _converted(self, to: Path, force: bool, **options: Any) -> Any:
        from nhsvm.datasets import convert_to_blocks

        return convert_to_blocks(
            self._reader, self._data, to, force=force, note=self._note, **options, **self._settings,
            progress=lambda n_rows, share: self._tell(f"{n_rows:,} samples converted", share),
        )  # fmt: skip

    def _tell(self, what: str, share: float | None) -> None:
        """What is being done; of a pass over all samples, a share is over."""
        self._busy(what, None if share is None else (self._done + share) / self._passes)

    def _kept(self, part: Dataset) -> Dataset:
        """What ``--where`` leaves of a part."""
        return only_where(part, self._samples, may_be_empty=True)

    def _texts(self) -> Any:
        from nhsvm.datasets import read_chunks

        chunks = read_chunks(self._reader, self._data, _ROWS, **self._settings)
        self._busy(f"looking for terms in {self._data}")

        def texts() -> Iterator[list[str]]:
            self._passes = 2
            for part in chunks:
                self._tell("looking for terms", chunks.share)
                yield self._kept(part).texts or []
            self._done = 1

        steps = fit_texts(texts(), self._features)

        def features_of(part: Dataset) -> Dataset:
            kept = self._kept(part)
            return replace(kept, X=transformed(steps, kept.texts) if kept.texts else None, texts=kept.texts)

        return self._converted(self._output, self._force, each=features_of, steps=lambda file: write_steps(steps, file))

    def _transformed(self) -> Any:
        """Blocks of the file as it is, in a hidden folder, and of these the ones that are asked for."""
        from nhsvm._atomic import scratch_folder
        from nhsvm.datasets import iter_blocks, open_blocks, write_blocks

        with scratch_folder(self._output) as scratch:
            raw = scratch / f"raw{_ENDING}"
            self._passes = 3
            done = self._converted(raw, False, each=self._kept if conditions(self._samples) else None)
            self.skipped = done.skipped
            whole = open_blocks(raw, verify=False)

            def parts(what: str) -> Iterator[tuple[Any, Any]]:
                self._done += 1
                n_rows = 0
                for X, y in iter_blocks(whole, _ROWS):
                    yield X, y
                    n_rows += X.shape[0]
                    self._tell(what, n_rows / whole.n_samples)

            steps = fit_numbers((X for X, _ in parts("looking at the features")), self._features)
            return write_blocks(
                (replace(whole, X=transformed(steps, X), y=y) for X, y in parts("making features")),
                self._output, force=self._force, note=self._note, steps=lambda file: write_steps(steps, file),
            )  # fmt: skip


def _checked_format(data: str, samples: SampleOptions, output: Path) -> FileFormat:
    kind = format_of(data, samples)
    if kind is FileFormat.blocks:
        raise OptionError(f"{data}: these are blocks already")
    if output.suffix != _ENDING:
        raise OptionError(f"-o {output}: the name must end in {_ENDING}, so that other commands know what it is")
    return kind


def _note_of(data: str, samples: SampleOptions, labels: LabelOptions) -> dict[str, Any]:
    """How the file is read, for models that are trained on the blocks."""
    from nhsvm.datasets import Dataset

    return note_of(data, samples, labels, Dataset(None, None))


def _show(result: dict[str, Any]) -> None:
    entries = "dense" if result["entries"] is None else f"{result['entries']:,} entries"
    typer.echo(f"samples    {result['samples']:,}")
    typer.echo(f"features   {result['features']:,} ({entries})")
    typer.echo(f"folder     {result['folder']}, {readable_bytes(result['bytes'])}, {result['seconds']:.1f} s")
