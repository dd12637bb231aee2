"""Transformers that have made the features of blocks, kept beside them for the models that are trained on these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nhsvm.errors import OptionError

Steps = list[tuple[str, Any]]


def write_steps(steps: Steps, file: Path) -> None:
    """Fitted transformers to a file."""
    from nhsvm.model.file import write_model
    from nhsvm.model.steps import encode_step
    from nhsvm.model.values import Encoder

    values = Encoder()
    parts = {name: encode_step(step, f"step {name!r}", values) for name, step in steps}
    write_model(file, {"steps": parts}, values.arrays)


def has_steps(blocks: str) -> bool:
    """Whether the features of some blocks were made by transformers."""
    return _stored(blocks) is not None


def read_steps(blocks: str) -> Steps:
    """The transformers that have made the features of some blocks; none, if they are as in the file.

    Raises
    ------
    FileFormatError
        If their file is damaged.
    """
    from nhsvm.model.checks import entry, reading
    from nhsvm.model.file import read_parts
    from nhsvm.model.steps import decode_step
    from nhsvm.model.values import Decoder

    file = _stored(blocks)
    if file is None:
        return []
    with reading(file):
        header, arrays, budget = read_parts(file, verify=True)
        values = Decoder([], arrays, budget)
        return [(name, decode_step(step, values)) for name, step in entry(header, "steps", dict).items()]


def refuse_made(blocks: str) -> None:
    """An error for blocks whose features are made already, where a model makes them itself."""
    if has_steps(blocks):
        raise OptionError(
            f"{blocks}: its features are made already, and the model makes them itself; give the data that it was made "
            "of, or blocks without --text and --transform"
        )


def _stored(blocks: str) -> Path | None:
    from nhsvm.datasets.blocks import stored_steps

    return stored_steps(blocks)
