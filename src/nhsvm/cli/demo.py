"""``nhsvm demo``: four models on real texts, side by side; then one sentence, its place, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nhsvm.cli.inspect import drawing_with_columns
from nhsvm.cli.output import broken, check_writable, note, writing
from nhsvm.cli.terminal import FitProgress
from nhsvm.compilation import COMPILATIONS, COMPILING
from nhsvm.errors import OptionError
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.typing import Estimator, Options

SENTENCE = "Eigenvalues of a large sparse symmetric matrix, by Lanczos iterations"
C, TOL = 3.0, 0.01  # C as held-out texts choose it (docs/results/accuracy.md); more precision changes little
_MODELS = {
    "FlatSVM": "ignores the hierarchy",
    "HSVM": "hierarchical, weights of 1",
    "SSVM": "hierarchical, weights learned",
    "NHSVM": "hierarchical, normalised weights",
}
_SHOP = [("books", "fiction", "crime"), ("books", "fiction", "poetry"), ("books", "cooking"), ("music", "vinyl")]


def demo(
    text: Annotated[str | None, typer.Option(help="A sentence to classify; asked for on a terminal.")] = None,
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("nhsvm-demo.html"),
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
) -> None:
    """Train and compare four models on real texts, classify a sentence, explain the answer, write a report.

    The texts are the docstrings of the installed numpy, scipy and scikit-learn; their labels are the modules they are
    from. Nothing is downloaded.

    Example: nhsvm demo --text "fit a straight line to points"
    """
    if text is not None and not text.strip():
        raise OptionError("--text is empty: give a sentence to classify")
    if not no_report:
        check_writable(report, what="--report")
    typer.echo(broken(_figure()))
    comparison = Comparison()
    typer.echo(broken(comparison.describe_data()))
    for line in comparison.run():
        typer.echo(broken(line))
    for sentence in _sentences(text):
        typer.echo(broken(comparison.classify(sentence)))
    if not no_report:
        comparison.write_report(report)


def _sentences(text: str | None) -> Iterator[str]:
    """The one that was given, or the default one; on a terminal, all that the user types."""
    if text is not None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield SENTENCE if text is None else text
        return
    typed = _asked("\nA sentence about numerical Python, to see which module it belongs to", SENTENCE)
    while typed:
        yield typed
        typed = _asked("\nAnother one (Enter to end)", "")


def _asked(question: str, default: str) -> str:
    """What the user types; nothing after Ctrl-C or the end of input, so that the report is still written."""
    try:
        typed: str = typer.prompt(question, default=default, show_default=bool(default))
    except typer.Abort:
        typer.echo()
        return ""
    return typed.strip()


def _figure() -> str:
    """What the models differ in, on a small hierarchy."""
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.weights import node_weights

    h = Hierarchy.from_paths(_SHOP)
    columns = {
        "FlatSVM": node_weights(h, "flat"),
        "HSVM": node_weights(h, "uniform"),
        "NHSVM": node_weights(h, "maxmin"),
    }
    return (
        "Labels form a hierarchy. A model gives every node a weight: how much the labels\n"
        "below it share there. NHSVM's add up to 1 on the way to every label, however\ndeep it is:\n\n"
        f"{drawing_with_columns(h, columns)}\n\n(SSVM learns them.) Now on real texts:\n"
    )


class Comparison:
    """Docstrings, four models of them, and questions to the last."""

    def __init__(self) -> None:
        start = perf_counter()
        note("reading docstrings ...")
        import numpy as np
        from sklearn.feature_extraction.text import TfidfVectorizer

        from nhsvm import datasets
        from nhsvm.model_selection import hold_out_split

        data = datasets.load_docstrings()
        assert data.hierarchy is not None
        assert data.texts is not None
        self.hierarchy = data.hierarchy
        train, test = hold_out_split(data.y, test_size=0.2)
        texts = np.array(data.texts, dtype=object)
        self.vectoriser = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
        self.X, self.y = self.vectoriser.fit_transform(texts[train]), data.y[train]
        self.texts, self.true = texts[test].tolist(), data.y[test]
        self.X_test = self.vectoriser.transform(self.texts)
        self._seconds = perf_counter() - start
        self.model: Estimator = None

    def describe_data(self) -> str:
        """What there is to learn from."""
        n_train, n_test, n_modules = len(self.y), len(self.true), len(set(self.y))
        return (
            f"{n_train:,} docstrings of numpy, scipy and scikit-learn to learn from, {n_test:,} to test\n"
            f"with; their labels are {n_modules:,} modules, such as {self.y[n_train // 2]!r}; "
            f"{self.X.shape[1]:,} words ({self._seconds:.0f} s)\n"
        )

    def run(self) -> Iterator[str]:
        """Fit all models; lines of a table, as they are done."""
        from sklearn.pipeline import make_pipeline

        from nhsvm.metrics import tree_distance

        self._compile()
        yield f"{'model':<7}  {'':<32}  {'accuracy':>8}  {'distance':>8}  {'gap':>5}  {'time':>6}"
        accuracy = 0.0
        for name, what in _MODELS.items():
            svm, seconds = self._fitted(name)
            found = svm.predict(self.X_test)
            accuracy = float((found == self.true).mean())
            distance = tree_distance(self.true.tolist(), found.tolist(), hierarchy=self.hierarchy)
            yield (f"{name:<7}  {what:<32}  {accuracy:>8.1%}  {distance:>8.3f}  {svm.gap_:>5.2%}  {seconds:>4.1f} s")
            self.model = make_pipeline(self.vectoriser, svm)
        chance = (accuracy * (1 - accuracy) / len(self.true)) ** 0.5  # one standard error, of the last model
        yield (
            f"\naccuracy: modules found, of {len(self.true):,}, so ± {chance:.1%} is chance\n"
            "distance: steps in the hierarchy from the answer to the truth, on average\n"
            "gap: how far the objective can be above the optimum, which is proved"
        )

    def _compile(self) -> None:
        """Fit on a few samples, so that the times shown are not those of the compiler."""
        import numpy as np

        start = perf_counter()
        typer.echo(f"{COMPILING} ...", err=True, nl=False)  # it may take a minute
        few = np.unique(self.y, return_index=True)[1][:3]
        with COMPILATIONS.told(lambda kernels, busy: None):  # it has been said
            for name in _MODELS:
                self._estimator(name).fit(self.X[few], self.y[few]).predict(self.X[few])
        note(f" {perf_counter() - start:.0f} s")

    def _fitted(self, name: str) -> tuple[Estimator, float]:
        from nhsvm.model_selection import hold_out_split

        options: Options = {}
        if name == "NHSVM":  # whose answers have probabilities
            options = {"probability": True, "cv": [hold_out_split(self.y, test_size=0.2)]}
        progress = FitProgress(TOL, 1000, quiet=not sys.stderr.isatty())
        with progress:
            svm = self._estimator(name, callback=progress, **options).fit(self.X, self.y)
        svm.set_params(callback=None)
        return svm, svm.history_[-1]["seconds"]

    def _estimator(self, name: str, **options: object) -> Estimator:
        import nhsvm

        return getattr(nhsvm, name)(self.hierarchy, C=C, tol=TOL, **options)

    def classify(self, sentence: str) -> str:
        """Where the last model puts a sentence, and why."""
        from nhsvm.explanation import explain

        x = self.vectoriser.transform([sentence])
        if not x.nnz:
            return f"\n{sentence!r}\n  none of these words is in the docstrings, so there is nothing to go by"
        svm = self.model[-1]
        first, second, third = svm.predict_topk(x, 3)[0].tolist()
        probability = dict(zip(svm.classes_.tolist(), svm.predict_proba(x)[0].tolist(), strict=True))
        path = sorted(self.hierarchy.closure(first), key=self.hierarchy.depth)
        why = explain(self.model, sentence, first, top=6)
        rather = explain(self.model, sentence, first, against=second, top=4)
        sure = ""
        if probability[first] < 0.5 and (node := svm.predict_partial(x, 0.5)[0]) != first:  # the deepest that is likely
            sure = f"  It is not sure: at least 50% probable is {'no node' if node is None else f'only {node}'}.\n"
        others = ", ".join(f"{label} ({probability[label]:.0%})" for label in (second, third))
        return (
            f"\n{sentence!r}\n  belongs to {' > '.join(map(str, path))} (probability {probability[first]:.0%}); "
            f"next are {others}\n{sure}\n"
            f"Why? What every word adds at every node on the way:\n\n{why}\n\nAnd why not the next?\n\n{rather}"
        )

    def write_report(self, path: Path) -> None:
        """A page about the last model on the test texts."""
        from importlib.util import find_spec

        if find_spec("jinja2") is None:
            note("\nNo report: it needs jinja2, pip install 'nhsvm[report]'")
            return
        from nhsvm.report import evaluate, write_report

        with writing(path):
            found = evaluate(self.model, self.texts, self.true.tolist())
            write_report(found, path, title="NHSVM on the docstrings of numpy, scipy and scikit-learn")
        typer.echo(f"\nReport on NHSVM: {path} ({readable_bytes(path.stat().st_size)}), to be opened in a browser")
