"""The command line in this process, as a user meets it."""

import io
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from nhsvm.cli import main


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def message(self):
        """The one line that bad input gives."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.out == ""
        [line] = self.err.splitlines()
        assert line.startswith("nhsvm: ")
        return line.removeprefix("nhsvm: ")


@contextmanager
def replaced(owner, **values):
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def text_stream():
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)


def nhsvm(*args, stdin=b"", merged=False):
    """Run ``nhsvm args``; with ``merged``, what goes to standard error is part of ``out``."""
    out = text_stream()
    err = out if merged else text_stream()
    source = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    argv = ["nhsvm", *map(str, args)]
    code = 0
    with replaced(sys, argv=argv, stdin=source, stdout=out, stderr=err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    return Done(code, *(stream.buffer.getvalue().decode() if stream else "" for stream in (out, err)))
