"""What is found on one set of Table 4: how hard it was tried, every model's scores, and paired differences."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nhsvm.model_selection import PAPER_LAMBDAS

MODELS = ("FlatSVM", "HSVM", "NHSVM", "SSVM")


@dataclass(frozen=True)
class Effort:
    """How much work a set gets.

    Attributes
    ----------
    lambdas : tuple of float
        C = 1/(2λ).
    tol : float
        Proved gap at which fits end, in the search and in the end.
    max_iter, search_iter : int
        Passes over the data after which the last fit, and one of the search, ends in any case, with the gap that is
        proved by then.
    patience : int or None
        Scores below the best after which a path of λ ends; None goes through all.
    few : bool
        Of NHSVM, only max-min weights, and of SSVM on sets of single labels, only the zero-one loss.
    """

    lambdas: tuple[float, ...] = (10.0, 1.0, 0.3, 0.1, 0.01)
    tol: float = 1e-2
    max_iter: int = 1000
    search_iter: int = 1000
    patience: int | None = 2
    few: bool = False


USUAL, PAPERS = Effort(), Effort(PAPER_LAMBDAS)


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

    facts: dict[str, Any]
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for :meth:`from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, read: Any) -> SetResult:
        """The opposite; KeyError or TypeError if it is nothing of the kind."""
        effort = Effort(**read["effort"] | {"lambdas": tuple(read["effort"]["lambdas"])})
        outcomes = {model: Outcome(**read["outcomes"][model]) for model in MODELS}
        pairs = tuple(Pair(**pair) for pair in read["pairs"])
        return cls(dict(read["facts"]), effort, int(read["seed"]), outcomes, pairs, str(read["versions"]))
