"""Predictions of some samples as columns to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nhsvm.cli._models import LoadedModel
from nhsvm.cli._output import as_json
from nhsvm.errors import OptionError

if TYPE_CHECKING:
    from nhsvm.hierarchy import Hierarchy

_NUMBERS = 2**24  # scores of classes at work at a time
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Questions:
    """What to say of every sample.

    Attributes
    ----------
    top_k : int or None
        The best labels instead of the best one.
    scores, probabilities, paths : bool
        Also say these of every label.
    partial : float or None
        Also the deepest node that is at least so probable.
    beam : int or None
        Look for the label with so many nodes a level, instead of exactly.
    """

    top_k: int | None = None
    scores: bool = False
    probabilities: bool = False
    paths: bool = False
    partial: float | None = None
    beam: int | None = None

    def check(self, loaded: LoadedModel) -> None:
        """An error for what the model cannot answer."""
        learned = loaded.svm.probability and loaded.svm.model_.has_probabilities
        if (self.probabilities or self.partial is not None) and not learned:
            raise OptionError("the model has no probabilities; train it with --probability")
        if self.partial is not None and loaded.is_multilabel:
            raise OptionError("--partial is for models with one label a sample")
        if self.partial is not None and not 0 < self.partial <= 1:
            raise OptionError(f"--partial must be above 0 and at most 1, not {self.partial:g}")
        if self.beam is not None and self.top_k is not None:
            raise OptionError("--beam finds one label, and --top-k asks for several: leave one of them out")
        if self.beam is not None:
            loaded.svm.model_.check_beam(self.beam)


class Answers:
    """Answers of a model, as columns: lists of a value, or of a list of values, for every sample.

    Parameters
    ----------
    loaded : LoadedModel
    questions : Questions
    """

    def __init__(self, loaded: LoadedModel, questions: Questions) -> None:
        questions.check(loaded)
        self._loaded, self._ask = loaded, questions

    @property
    def has_lists(self) -> bool:
        """Whether there are several labels a sample."""
        return self._ask.top_k is not None or self._loaded.is_multilabel

    def columns(self, inputs: Any) -> Columns:
        """All answers for some samples."""
        n = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
        step = max(1, _NUMBERS // len(self._loaded.svm.classes_))
        found: Columns = {}
        for start in range(0, n, step):
            for name, column in self._part(inputs[start : start + step]).items():
                found.setdefault(name, []).extend(column)
        return found

    def _part(self, inputs: Any) -> Columns:
        X = self._loaded.transformed(inputs)
        chosen = self._chosen(X)
        many = self.has_lists
        classes = self._loaded.svm.classes_.tolist()
        shown = [as_json(label) for label in classes]

        def column(values: Any) -> list[Any]:
            """For every sample a list of values, or the one value."""
            return values if many else [row[0] for row in values]

        end = "s" if many else ""
        found = {f"label{end}": column([[shown[k] for k in row] for row in chosen])}
        if self._ask.paths:
            found[f"path{end}"] = column([[self._paths(classes[k]) for k in row] for row in chosen])
        if self._ask.scores:
            scores = self._scores(X)
            found[f"score{end}"] = column([scores[i, row].tolist() for i, row in enumerate(chosen)])
        if self._ask.probabilities:
            proba = self._loaded.svm.predict_proba(X)
            name = "probabilities" if many else "probability"
            found[name] = column([proba[i, row].tolist() for i, row in enumerate(chosen)])
        if self._ask.partial is not None:
            nodes = self._loaded.svm.predict_partial(X, self._ask.partial).tolist()
            found["partial"] = [as_json(node) for node in nodes]
            if self._ask.paths:
                found["partial_path"] = [None if node is None else self._paths(node) for node in nodes]
        return found

    def _chosen(self, X: Any) -> list[list[int]]:
        """Positions of the labels to give in ``classes_``."""
        svm = self._loaded.svm
        if self._ask.top_k is not None:
            labels = svm.predict_topk(X, self._ask.top_k)
            return [[self._position(label) for label in row] for row in labels.tolist()]
        found = svm.predict(X, beam=self._ask.beam)
        if not self._loaded.is_multilabel:
            return [[self._position(label)] for label in found.tolist()]
        if hasattr(found, "tocsr"):
            return [row.indices.tolist() for row in found.tocsr()]
        if getattr(found, "ndim", 1) == 2:
            return [row.nonzero()[0].tolist() for row in found]
        return [sorted(map(self._position, labels)) for labels in found]

    @cached_property
    def _position(self) -> Callable[[Any], int]:
        return {label: k for k, label in enumerate(self._loaded.svm.classes_.tolist())}.__getitem__

    def _scores(self, X: Any) -> Any:
        """Of all classes, also where there are two."""
        from nhsvm.estimators.options import n_threads

        svm = self._loaded.svm
        if self._loaded.is_multilabel:
            return svm.decision_function(X)
        return svm.model_.class_scores(X, n_threads=n_threads(svm.n_jobs))

    @cached_property
    def _paths(self) -> Callable[[Any], str]:
        known: dict[Any, str] = {}
        hierarchy, separator = self._loaded.svm.hierarchy_, self._loaded.note.get("separator", " > ")

        def path(label: Any) -> str:
            if label not in known:
                known[label] = path_of(hierarchy, label, separator)
            return known[label]

        return path


def path_of(hierarchy: Hierarchy, label: Any, separator: str) -> str:
    """The way from the root to a label, as text; in a DAG, of several parents the first.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> path_of(Hierarchy.from_paths([("Science", "Physics")]), "Physics", " > ")
    'Science > Physics'
    >>> path_of(Hierarchy.from_paths([("Science", "Science > Physics")]), "Science > Physics", " > ")
    'Science > Physics'
    """
    graph, nodes = hierarchy.graph, hierarchy.nodes
    number = hierarchy.number(label)
    parts = [str(label)]
    while len(above := graph.parents.row(number)):
        number = int(min(above))
        if not parts[0].startswith(f"{nodes[number]}{separator}"):  # labels that are paths already
            parts.insert(0, str(nodes[number]))
    return separator.join(parts)
