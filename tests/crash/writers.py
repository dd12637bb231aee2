"""Everything that the package writes: for each writer, an older version of its files and a newer one."""

import os
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import nhsvm
from cli.data import write_all
from cli.running import nhsvm as run
from nhsvm.errors import NHSVMError

OLD, NEW = 0, 1
H = nhsvm.Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])


class FailedError(Exception):
    """A command, or a function of the library, that ended with an error as it should."""


def command(*words):
    """Run one; FailedError if it ends with a sentence."""
    done = run(*words)
    if done.code in (1, 2) and done.err.rpartition("nhsvm: ")[2].count("\n") == 1 and "Traceback" not in done.err:
        raise FailedError(done.err)
    assert done.code == 0, (done.code, done.err)


def of_library(function):
    """The same for a function that raises what it should."""

    def called(version):
        try:
            function(version)
        except (OSError, NHSVMError) as error:
            raise FailedError(str(error)) from error

    return called


class Writers:
    """Makes what there is to be written, once.

    Attributes
    ----------
    of : dict
        By name: a function that, given a version, writes its files in the folder that it is called in.
    """

    def __init__(self, inputs):
        self.inputs = inputs
        write_all(inputs)
        rng = np.random.default_rng(0)
        self.X = np.abs(rng.normal(size=(12, 5)))
        self.y = ["dog", "cat", "oak"] * 4
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.models = [nhsvm.NHSVM(H, C=C).fit(self.X, self.y) for C in (1, 10)]
        self.of = self._library() | self._commands()

    def _library(self):
        from nhsvm.datasets import Dataset, write_blocks
        from nhsvm.paper.tables import figure, write_page
        from nhsvm.report import evaluate, write_report

        found = [evaluate(model, self.X, self.y, hierarchy=H) for model in self.models]
        sets = [sorted({label, "dog"}) for label in self.y]
        pictures = [figure(1, 1), figure(1, 2)]

        def blocks(version):
            X = sp.csr_matrix(self.X * (self.X > 0.5))
            data = Dataset(sets if version else self.y, H, X=X * (version + 1), feature_names=np.arange(5))
            write_blocks(data, "x.blocks", force=True)

        def page(version):
            write_page(Path("out"), "name", f"text {version}", pictures[version], f"[{version}]")

        return {
            "save": of_library(lambda version: nhsvm.save(self.models[version], "m.nhsvm", note={"version": version})),
            "write_report": of_library(lambda version: write_report(found[version], "r.html", f"version {version}")),
            "write_blocks": of_library(blocks),
            "write_page": of_library(page),
            "kernel": self._kernel(),
        }

    def _kernel(self):
        """Machine code, which is kept beside nothing else; that it cannot be kept is a warning."""
        import numba

        from nhsvm import _jit

        def plus(x):
            return x + 1

        compiled = numba.njit(plus)
        compiled(1.5)
        [made] = compiled.overloads.values()
        kept = _jit._Kept(plus)

        def keep(version):
            numba.config.CACHE_DIR = os.path.join(os.getcwd(), "cache")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                kept.save_overload(made.signature, made)
            if caught:
                raise FailedError(str(caught[0].message))
            assert kept.load_overload(made.signature, numba.core.registry.cpu_target.target_context) is not None

        return keep

    def _commands(self):
        texts = ["--text", "text", "--label", "label", "-q"]
        csv, svm, hierarchy = self.inputs / "docs.csv", self.inputs / "docs.svm", self.inputs / "numbers.tsv"
        for version in (OLD, NEW):
            command("train", csv, *texts, "--C", 10**version, "-o", self.inputs / f"{version}.nhsvm")
        model = [self.inputs / "0.nhsvm", self.inputs / "1.nhsvm"]
        self._search(csv, texts)
        scores = [[], ["--scores"]]
        blocks = ["-o", "x.blocks", "-q", "--force"]
        return {
            "train": lambda v: command("train", csv, *texts, "--C", 10**v, "-o", "m.nhsvm"),
            "tune": lambda v: command(
                "tune", csv, *texts, "--C", f"{v + 1}", "-o", "m.nhsvm", "--table", "t.csv", "--plot", "p.png"
            ),
            "shrink": lambda v: command("shrink", model[v], "--precision", "int8", "-o", "m.nhsvm"),
            "evaluate": lambda v: command("evaluate", model[v], csv, "--report", "r.html"),
            "predict csv": lambda v: command("predict", model[v], csv, *scores[v], "-q", "-o", "p.csv"),
            "predict jsonl": lambda v: command("predict", model[v], csv, *scores[v], "-q", "-o", "p.jsonl"),
            "predict parquet": lambda v: command("predict", model[v], csv, *scores[v], "-q", "-o", "p.parquet"),
            "convert": lambda v: command("convert", svm, *([], ["--hierarchy", hierarchy])[v], *blocks),
            "convert texts": lambda v: command("convert", csv, *texts[:4], "--min-df", v + 1, *blocks),
            "convert scaled": lambda v: command("convert", svm, "--transform", ("maxabs", "tfidf")[v], *blocks),
        }

    def _search(self, csv, texts):
        """Searches take long: each is run once, and found again."""
        from nhsvm.cli import tune

        search, known = tune.search, {}

        def found(model, dataset, options, *, quiet):
            key = repr(options)
            if key not in known:
                known[key] = search(model, dataset, options, quiet=quiet)
            return known[key]

        tune.search = found
        for version in (OLD, NEW):
            command("tune", csv, *texts, "--C", f"{version + 1}", "-o", self.inputs / "t.nhsvm")
