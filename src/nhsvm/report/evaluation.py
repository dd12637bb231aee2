"""``evaluate``: everything there is to say about a model on labelled samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from sklearn.utils.validation import _num_samples

from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import lshtc_measures
from nhsvm.report.answers import Answers, answer, read_truth, take_apart
from nhsvm.report.counts import Compared, confused_pairs, count_depths, count_nodes, surest_errors
from nhsvm.report.measures import Given, measured
from nhsvm.report.record import Evaluation, Nodes, plain
from nhsvm.typing import Estimator, LabelsLike, MatrixLike


def evaluate(
    model: Estimator,
    X: MatrixLike,
    y: LabelsLike,
    *,
    hierarchy: Hierarchy | None = None,
    texts: Sequence[object] | None = None,
    ids: Sequence[object] | None = None,
    for_measure: str | None = None,
    confusions: int = 50,
    examples: int = 40,
    bins: int = 10,
) -> Evaluation:
    """Compare what a fitted model predicts with what is true: measures, tables, confusions, examples.

    Parameters
    ----------
    model : fitted classifier, Pipeline that ends in one, or search
        Of one label a sample, or of label sets.
    X : samples, as ``model.predict`` takes them
    y : labels, label sets or indicator, as ``model.fit`` takes them
        Labels may be on inner nodes. Labels that training has not seen are counted and named in ``notes``; they must be
        in the hierarchy, unless the model has none.
    hierarchy : Hierarchy, optional
        By default that of the model. Another one may hold more nodes, or give a flat model a hierarchy to be judged by.
    texts : sequence of str, optional
        Shown with examples; by default X, if it is text.
    ids : sequence, optional
        What to call the samples; by default their numbers from 0.
    for_measure : str, optional
        Judge what ``model.predict(X, for_measure=...)`` answers; for models of this library with probabilities.
    confusions, examples : int
        How many pairs of labels, and how many errors, to keep at the most.
    bins : int
        Of the reliability curve.

    Returns
    -------
    Evaluation

    Raises
    ------
    UnknownLabelError
        For a label that the hierarchy does not hold.
    LabelError, DataError, OptionError
        If labels, samples or options do not fit.

    Examples
    --------
    >>> from nhsvm import Hierarchy, NHSVM
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X, y = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], ["dog", "cat", "oak"]
    >>> model = NHSVM(h, C=10).fit(X, y)
    >>> found = evaluate(model, [*X, [0.9, 0.1, 0.0]], [*y, "cat"])
    >>> found.metrics["accuracy"], found.metrics["error_distance"]
    (0.75, 2.0)
    >>> [(c.true, c.predicted, c.count) for c in found.confusions]
    [('cat', 'dog', 1)]
    """
    for name, value, least in (("confusions", confusions, 0), ("examples", examples, 0), ("bins", bins, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")
    parts = take_apart(model)
    if for_measure is not None:
        if parts.ours is None:
            raise OptionError(f"for_measure is for models of this library, and not for {type(parts.last).__name__}")
        parts.ours.model_.check_measure(for_measure)
    truth = read_truth(y, parts, hierarchy)
    n_samples = truth.true.shape[0]
    texts = _texts(X) if texts is None else texts
    texts, ids = (None if given is None else _items(given) for given in (texts, ids))
    for name, given in (("X", X), ("texts", texts), ("ids", ids)):
        if given is not None and _num_samples(given) != n_samples:
            raise DataError(f"y has {n_samples} samples, but {name} {_num_samples(given)}")
    answers = answer(parts, X, truth, bins, for_measure)
    compared = Compared(truth, answers.pred)
    wrong = compared.wrong
    nodes = count_nodes(compared, parts)
    distances = None
    if not parts.has_sets:
        distances = compared.distances(compared.true.indices[wrong], compared.pred.indices[wrong])
    found, n_confusions = confused_pairs(compared, nodes, confusions)
    margins, given = answers.margins(wrong), Given.of(compared)
    return Evaluation(
        kind="sets" if parts.has_sets else "single",
        n_samples=n_samples,
        n_wrong=len(wrong),
        metrics=measured(given, compared, answers, distances),
        lshtc=lshtc_measures(**given._asdict()),
        depths=count_depths(compared),
        nodes=nodes,
        confusions=found,
        n_confusions=n_confusions,
        reliability=answers.reliability,
        examples=surest_errors(compared, nodes, margins, distances, texts=texts, ids=ids, most=examples),
        history=plain(parts.history),
        facts=plain(parts.facts()),
        notes=_notes(compared, answers, nodes),
    )


def _texts(X: MatrixLike) -> Sequence[object] | None:
    """X if it is a list, an array or a column of text."""
    if len(getattr(X, "shape", (1,))) != 1 or not isinstance(X, Collection) or not len(X):
        return None
    items = _items(X)
    return items if isinstance(items[0], str) else None


def _items(given: Iterable[object]) -> Sequence[object]:
    """A sequence that counts from 0, whatever index a column has."""
    return given if isinstance(given, (list, tuple)) else list(given)


def _notes(compared: Compared, answers: Answers, nodes: Nodes) -> list[str]:
    notes = []
    unseen = compared.truth.unseen
    if unseen.any():
        labels = int(unseen.sum())
        hit = np.flatnonzero(np.diff(compared.true[:, np.flatnonzero(unseen)].indptr))
        rest = compared.true.shape[0] - len(hit)
        right = rest - len(np.setdiff1d(compared.wrong, hit))
        named = [name for name, old in zip(nodes.name, ~unseen[compared.used], strict=True) if not old]
        notes.append(
            f"{len(hit):,} of {compared.true.shape[0]:,} samples have a label that training has not seen "
            f"({labels:,} such label{'s' * (labels != 1)}: {', '.join(named[:5])}{', …' * (labels > 5)}), so they "
            "cannot be exactly right." + (f" Of the others, {right / rest:.1%} are." if rest else "")
        )
    if answers.node_scores is None and len(answers.score_nodes):
        notes.append("AU(PRC) was left out: it needs the scores of all nodes for all samples at once, over 1 GiB here.")
    several = int((nodes.n_parents > 1).sum())
    if several:
        notes.append(
            f"{several:,} nodes have several parents. The picture and the paths show them below the first one; all "
            "counts are for all parents."
        )
    return notes
