"""Table 3: flat SVM, HSVM, NHSVM and SSVM on the paper's two synthetic sets (Section 8.1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from nhsvm.errors import DataError, OptionError
from nhsvm.reproduce._page import UNREADABLE
from nhsvm.reproduce._synthetic import MODELS, Outcome, Sizes, Task, run_tasks

SETS = {"balanced": Sizes("balanced", 5_500, 2_500, 1_000), "unbalanced": Sizes("unbalanced", 8_000, 2_000, 1_000, 0.4)}
"""The paper's N = 8,000 and N = 10,000 samples, and the split of each under which its numbers come out."""

OTHER_SIZES = (
    *(Sizes("balanced", n, 2_500, 1_000) for n in (4_000, 5_500, 7_000)),
    *(Sizes("unbalanced", n, 2_000, 1_000, share) for n, share in ((4_000, 0.5), (8_000, 0.5), (4_000, 0.4))),
    *(Sizes("unbalanced", 8_000, 2_000, 1_000, share) for share in (0.4, 0.3)),
)
"""What the numbers are compared at, to see how they move."""

_QUICK = {"balanced": Sizes("balanced", 150, 100, 20), "unbalanced": Sizes("unbalanced", 150, 100, 20, 0.4)}
_QUICK_OTHERS = (Sizes("balanced", 100, 100, 20), Sizes("unbalanced", 100, 100, 20, 0.5))
_C = {"balanced": 0.05, "unbalanced": 5.0}  # of the fits at other sizes, where nothing is chosen
_OTHER_REPEATS = 2


@dataclass(frozen=True)
class Results:
    """All accuracies.

    Attributes
    ----------
    seed, repeats : int
    quick : bool
    sets : dict of str to Sizes
    outcomes : dict of (set, model) to list of Outcome
        One a repeat.
    others : list of (Sizes, dict of model to list of accuracies)
        With a fixed C and variant.
    """

    seed: int
    repeats: int
    quick: bool
    sets: dict[str, Sizes]
    outcomes: dict[tuple[str, str], list[Outcome]]
    others: list[tuple[Sizes, dict[str, list[float]]]]

    def to_json(self) -> str:
        """All of it, for :meth:`from_json`."""
        head = {"seed": self.seed, "repeats": self.repeats, "quick": self.quick}
        sets = {
            name: {"sizes": asdict(sizes)} | {m: [asdict(o) for o in self.outcomes[name, m]] for m in MODELS}
            for name, sizes in self.sets.items()
        }
        others = [{"sizes": asdict(sizes), **accuracies} for sizes, accuracies in self.others]
        return json.dumps({**head, "sets": sets, "other_sizes": others}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """The opposite.

        Raises
        ------
        DataError
            If it is no such file.
        """
        try:
            read = json.loads(text)
            sets = {name: Sizes(**found["sizes"]) for name, found in read["sets"].items()}
            outcomes = {(s, m): [Outcome(**o) for o in read["sets"][s][m]] for s in sets for m in MODELS}
            others = [(Sizes(**o["sizes"]), {m: [float(a) for a in o[m]] for m in MODELS}) for o in read["other_sizes"]]
            return cls(int(read["seed"]), int(read["repeats"]), bool(read["quick"]), sets, outcomes, others)
        except UNREADABLE as error:
            raise DataError(f"this is no file of results of reproduce synthetic: {error}") from error

    def accuracies(self, name: str, model: str) -> list[float]:
        """In percent, one a repeat."""
        return [outcome.accuracy for outcome in self.outcomes[name, model]]


def plan(repeats: int = 20, seed: int = 0, *, quick: bool = False, compare_sizes: bool = False) -> list[Task]:
    """All data sets to be made, the table's first."""
    if repeats < 2:
        raise OptionError(f"repeats must be at least 2 for a standard deviation, not {repeats}")
    if seed < 0:
        raise OptionError(f"seed must be at least 0, not {seed}")
    sets, others = (_QUICK, _QUICK_OTHERS) if quick else (SETS, OTHER_SIZES)
    table = [Task(sizes, (seed, repeat)) for repeat in range(repeats) for sizes in sets.values()]
    if not compare_sizes:
        return table
    own = tuple(sets.values())  # as often as in the table, to see what the choice of λ makes of them
    counts = {sizes: repeats if sizes in own else _OTHER_REPEATS for sizes in others}
    return table + [Task(sizes, (seed, k), _C[sizes.kind]) for sizes in others for k in range(counts[sizes])]


def run(
    repeats: int = 20,
    seed: int = 0,
    *,
    jobs: int = 1,
    quick: bool = False,
    compare_sizes: bool = False,
    progress: Callable[[int, int], Any] | None = None,
) -> Results:
    """Table 3.

    Parameters
    ----------
    repeats : int
        Data sets of each kind; at least 2.
    seed : int
        Repeat k has the random numbers of (seed, k).
    jobs : int
        Processes. The results are the same for any number.
    quick : bool
        Small data, to see that it works.
    compare_sizes : bool
        Also fit at :data:`OTHER_SIZES`, with one C and variant.
    progress : callable, optional
        Called with (data sets done, data sets in all).
    """
    if jobs < 1:
        raise OptionError(f"jobs must be at least 1, not {jobs}")
    tasks = plan(repeats, seed, quick=quick, compare_sizes=compare_sizes)
    found = []
    for outcome in run_tasks(tasks, jobs):
        found.append(outcome)
        if progress is not None:
            progress(len(found), len(tasks))
    return collect(tasks, found, repeats, seed, quick=quick)


def collect(tasks: list[Task], found: list[dict[str, Outcome]], repeats: int, seed: int, *, quick: bool) -> Results:
    """Results of tasks, put together."""
    sets = {task.sizes.kind: task.sizes for task in tasks if task.C is None}
    outcomes = {
        (name, model): [
            o[model] for task, o in zip(tasks, found, strict=True) if task.C is None and task.sizes == sizes
        ]
        for name, sizes in sets.items()
        for model in MODELS
    }
    others = [
        (
            sizes,
            {m: [o[m].accuracy for t, o in zip(tasks, found, strict=True) if t.sizes == sizes and t.C] for m in MODELS},
        )
        for sizes in dict.fromkeys(task.sizes for task in tasks if task.C is not None)
    ]
    return Results(seed, repeats, quick, sets, outcomes, others)
