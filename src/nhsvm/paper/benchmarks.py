"""Table 4: flat SVM, HSVM, NHSVM and SSVM on real sets (Section 8.2).

Every model's settings are chosen on held-out samples; then it learns from all training samples and is tested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import permutations
from pathlib import Path
from time import process_time

import numpy as np

from nhsvm.errors import DataError, OptionError
from nhsvm.estimators import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import example_jaccard, f1, hierarchical_f1
from nhsvm.model_selection import paper_grid, tune
from nhsvm.paper import Note
from nhsvm.paper.benchmark_sets import OURS, SETS, Effort, Labels, TrainTest
from nhsvm.paper.tables import HELD_OUT, MODELS, Stored, mcnemar, paired, same_bits, setting_in_words, versions
from nhsvm.typing import JSON, BoolArray, FloatArray, Label, LabelsLike, Matrix, Options

Svm = FlatSVM | HSVM | NHSVM | SSVM
KINDS: dict[str, type[Svm]] = {kind.__name__: kind for kind in (FlatSVM, HSVM, NHSVM, SSVM)}
Scores = BoolArray | FloatArray  # of every test sample
Facts = dict[str, int | float | str]


def chosen_sets(data: Path, names: Sequence[str] | None = None) -> list[str]:
    """Sets to run: those named, all of which must be there, or all that are there.

    Raises
    ------
    OptionError
        If a name is no set's.
    DataError
        If there is no such folder, nothing in it, or not what was asked for.
    """
    for name in names or ():
        if name not in SETS:
            raise OptionError(f"there is no set {name!r}; there are {', '.join(SETS)}")
    if not data.is_dir():
        raise DataError(f"{data} is no folder")
    lacking = {name: SETS[name].missing(data) for name in names or SETS}
    present = [name for name, files in lacking.items() if not files]
    absent = [name for name in lacking if name not in present]
    if absent and (names or not present):
        looked = "; ".join(f"{name}: {', '.join(lacking[name])}" for name in absent)
        raise DataError(f"{data} lacks {'files of sets' if names else 'all sets'}; looked for {looked}")
    return present


def run(
    data: Path,
    names: Sequence[str] | None = None,
    seed: int = 0,
    *,
    done: Callable[[], Results] | None = None,
    note: Note = lambda _: None,
) -> Iterator[tuple[str, SetResult]]:
    """Table 4, a set at a time.

    Parameters
    ----------
    data : Path
        Folder of the sets.
    names : sequence of str, optional
        Which ones; by default all that are there.
    seed : int
        Of splits, and of the order of samples.
    done : callable, optional
        Gives results that are not made again, if seed and effort are the same; asked before every set, since another
        process may have added some.
    note : callable, optional
        Told of every fit.

    Yields
    ------
    name, result : str, SetResult
    """
    chosen = chosen_sets(data, names)  # an error in them comes before the first is asked for

    def told(name: str, text: str) -> None:
        note(f"{name}: {text}")

    def results() -> Iterator[tuple[str, SetResult]]:
        for name in chosen:
            known, effort = (done or Results)().sets.get(name), SETS[name].effort
            if known is not None and (known.seed, known.effort) == (seed, effort):
                note(f"{name}: done before")
                continue
            samples = SETS[name].load(data, seed)
            yield name, run_set(samples, effort, seed, versions(), partial(told, name))

    return results()


# -- one set -----------------------------------------------------------------------------------------------------------


def run_set(samples: TrainTest, effort: Effort, seed: int, versions: str, note: Note = lambda _: None) -> SetResult:
    """Every model on one set; ``note`` is told of every fit."""
    with same_bits():  # fits that end early are in the table, with their gap
        found = {model: _model(model, samples, effort, seed, note) for model in MODELS}
    outcomes = {model: outcome for model, (outcome, _) in found.items()}
    pairs = []
    for first, second in permutations(MODELS, 2):
        a, b = found[first][1], found[second][1]
        p = paired(a, b).p if samples.multilabel else mcnemar(a, b)
        pairs.append(Pair(first, second, 100 * float(np.mean(a) - np.mean(b)), p))
    return SetResult(facts_of(samples), effort, seed, outcomes, tuple(pairs), versions)


def facts_of(samples: TrainTest) -> Facts:
    """What a table of data sets says."""
    X, y = samples.whole
    h = samples.hierarchy
    return {
        "n_train": int(X.shape[0]),
        "n_test": int(samples.test[0].shape[0]),
        "n_features": int(X.shape[1]),
        "features": samples.features,
        "n_nodes": h.n_nodes,
        "n_leaves": h.n_leaves,
        "is_tree": bool(h.is_tree),
        "multilabel": samples.multilabel,
        "labels": float(np.mean([len(labels) for labels in y])) if samples.multilabel else 1.0,
        "chosen_on": "validation samples" if samples.validation is not None else "held-out training samples",
    }


def variants(model: str, samples: TrainTest, effort: Effort) -> list[Options] | None:
    """The grid of a model, but λ: what the paper tries for NHSVM, both losses that SSVM can have; None if one."""
    if model == "SSVM" and not samples.multilabel and not effort.few:
        return [{"loss": ["zero_one", "hamming"]}]
    if model != "NHSVM":
        return None
    grid = paper_grid(samples.hierarchy, multilabel=samples.multilabel)
    return [part for part in grid if not effort.few or part["weights"] == ["maxmin"]]


def _model(name: str, samples: TrainTest, effort: Effort, seed: int, note: Note) -> tuple[Outcome, Scores]:
    estimator = KINDS[name](samples.hierarchy, tol=effort.tol, max_iter=effort.search_iter, random_state=seed)
    shown = "jaccard" if samples.multilabel else "accuracy"
    scoring = {shown: partial(_jaccard, samples.hierarchy)} if samples.multilabel else shown
    found = tune(
        estimator, *samples.train, grid=variants(name, samples, effort), lam=effort.lambdas, scoring=scoring,
        test_size=HELD_OUT, validation=samples.validation, refit=False, search_tol=effort.tol, patience=effort.patience,
        random_state=seed,
        progress=lambda trial, made, planned: note(f"{name} {made}/{planned} {trial.line(shown)}"),
    )  # fmt: skip
    began = process_time()
    fitted = estimator.set_params(**found.best_params, max_iter=effort.max_iter).fit(*samples.whole)
    seconds = process_time() - began
    note(f"{name} chosen: C={fitted.C:g}, {seconds:.1f} s, gap {fitted.gap_:.1e}")
    X, y = samples.test
    predicted, h = fitted.predict(X, exact=False), samples.hierarchy
    scores = per_sample(y, predicted, samples.multilabel)
    outcome = Outcome(
        setting_in_words(found.best.shown), found.best.lam, 100 * found.best_score, 100 * _accuracy(y, predicted),
        100 * float(example_jaccard(y, predicted, hierarchy=h)),
        100 * float(f1(y, predicted, hierarchy=h, average="macro")),
        100 * float(hierarchical_f1(y, predicted, hierarchy=h)), seconds, int(fitted.n_iter_), float(fitted.gap_),
    )  # fmt: skip
    return outcome, scores


def _jaccard(hierarchy: Hierarchy, estimator: Svm, X: Matrix, y: Labels) -> float:
    """Of sets that are not proved to be the best on a DAG, since that can take seconds a sample."""
    return float(example_jaccard(y, estimator.predict(X, exact=False), hierarchy=hierarchy))


def _accuracy(y: Labels, predicted: Labels) -> float:
    return float(np.mean([_as_set(a) == _as_set(b) for a, b in zip(y, predicted, strict=True)]))


def per_sample(y: Labels, predicted: Labels, multilabel: bool) -> Scores:
    """Whether each label is right; of label sets, the Jaccard index of each."""
    if not multilabel:
        return np.asarray(np.asarray(y) == np.asarray(predicted))
    sets = [(_as_set(a), _as_set(b)) for a, b in zip(y, predicted, strict=True)]
    return np.array([len(a & b) / len(a | b) if a | b else 1.0 for a, b in sets])


def _as_set(labels: LabelsLike) -> frozenset[Label]:
    return frozenset(labels) if isinstance(labels, (list, tuple, set, frozenset)) else frozenset([labels])


# -- results -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """One model on one set.

    Attributes
    ----------
    setting : str
        What was chosen, but λ.
    lam, held_out : float
        λ, and the score on held-out samples it was chosen for.
    accuracy, jaccard, macro_f1, hierarchical_f1 : float
        Of the test samples, in percent. Accuracy is the share of samples with the right label, or exactly the right
        set of labels.
    seconds : float
        Processor time of the last fit.
    passes : int
    gap : float
        Proved for the last fit.
    """

    setting: str
    lam: float
    held_out: float
    accuracy: float
    jaccard: float
    macro_f1: float
    hierarchical_f1: float
    seconds: float
    passes: int
    gap: float


@dataclass(frozen=True)
class Pair:
    """The first model's score minus the second's, in points, and p of a paired test over test samples."""

    first: str
    second: str
    mean: float
    p: float


@dataclass(frozen=True)
class SetResult:
    """All models on one set.

    Attributes
    ----------
    facts : dict
        Numbers of samples, features, nodes, leaves, labels a sample; whether labels are sets, the graph a tree.
    effort : Effort
    seed : int
    outcomes : dict of model to Outcome
    pairs : tuple of Pair
        Of accuracy by McNemar's test; of label sets, of the Jaccard index by a t-test.
    versions : str
    """

    facts: Facts
    effort: Effort
    seed: int
    outcomes: dict[str, Outcome]
    pairs: tuple[Pair, ...]
    versions: str

    @property
    def multilabel(self) -> bool:
        return bool(self.facts["multilabel"])

    def score(self, model: str) -> float:
        """The paper's accuracy, in percent: of label sets, the mean Jaccard index."""
        outcome = self.outcomes[model]
        return outcome.jaccard if self.multilabel else outcome.accuracy

    def pair(self, first: str, second: str) -> Pair:
        return next(pair for pair in self.pairs if (pair.first, pair.second) == (first, second))

    @classmethod
    def from_dict(cls, read: JSON) -> SetResult:
        """From what ``asdict`` makes of it; KeyError or TypeError if it is nothing of the kind."""
        effort = Effort(**read["effort"] | {"lambdas": tuple(read["effort"]["lambdas"])})
        outcomes = {model: Outcome(**read["outcomes"][model]) for model in MODELS}
        pairs = tuple(Pair(**pair) for pair in read["pairs"])
        return cls(dict(read["facts"]), effort, int(read["seed"]), outcomes, pairs, str(read["versions"]))


@dataclass(frozen=True)
class Results(Stored):
    """Sets that are done, by name, in the order of :data:`SETS`."""

    experiment = "benchmarks"

    sets: dict[str, SetResult] = field(default_factory=dict)

    def with_set(self, name: str, result: SetResult) -> Results:
        """These and one more."""
        known = self.sets | {name: result}
        return Results({one: known[one] for one in SETS if one in known})

    @property
    def seeds(self) -> list[int]:
        return sorted({result.seed for result in self.sets.values()})

    @property
    def command(self) -> str:
        """What makes them."""
        chosen = "" if set(self.sets) == set(OURS) else f" --sets {','.join(self.sets)}"
        return f"nhsvm reproduce benchmarks --data DIR{chosen} --seed {self.seeds[0] if self.sets else 0}"

    def plain(self) -> dict[str, JSON]:
        return {"command": self.command, "sets": {name: asdict(result) for name, result in self.sets.items()}}

    @classmethod
    def read(cls, plain: JSON) -> Results:
        found = {name: SetResult.from_dict(result) for name, result in plain["sets"].items()}
        unknown = sorted(set(found) - set(SETS))
        if unknown:
            raise DataError(f"this file has results of {unknown[0]!r}, which is no set of reproduce benchmarks")
        return cls({name: found[name] for name in SETS if name in found})
