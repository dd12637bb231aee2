"""Table 4: flat SVM, HSVM, NHSVM and SSVM on real sets (Section 8.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nhsvm.errors import DataError, OptionError
from nhsvm.reproduce._benchmarks import run_set
from nhsvm.reproduce._originals import ORIGINALS
from nhsvm.reproduce._outcomes import SetResult
from nhsvm.reproduce._page import UNREADABLE, versions
from nhsvm.reproduce._sets import OURS, BenchmarkSet

SETS: dict[str, BenchmarkSet] = {**ORIGINALS, **OURS}
"""All sets by name, the paper's own first."""


@dataclass(frozen=True)
class Results:
    """Sets that are done, by name, in the order of :data:`SETS`."""

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

    def to_json(self) -> str:
        """All of it, for :meth:`from_json`."""
        sets = {name: result.to_dict() for name, result in self.sets.items()}
        return json.dumps({"command": self.command, "sets": sets}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """The opposite.

        Raises
        ------
        DataError
            If it is no such file.
        """
        try:
            read = json.loads(text)["sets"]
            found = {name: SetResult.from_dict(result) for name, result in read.items()}
        except UNREADABLE as error:
            raise DataError(f"this is no file of results of reproduce benchmarks: {error}") from error
        unknown = sorted(set(found) - set(SETS))
        if unknown:
            raise DataError(f"this file has results of {unknown[0]!r}, which is no set of reproduce benchmarks")
        return cls({name: found[name] for name in SETS if name in found})


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
    done: Callable[[], Results] = Results,
    note: Callable[[str], Any] = lambda _: None,
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
    if seed < 0:
        raise OptionError(f"seed must be at least 0, not {seed}")
    return _run(data, chosen_sets(data, names), seed, done, note)


def _run(
    data: Path, names: Sequence[str], seed: int, done: Callable[[], Results], note: Callable[[str], Any]
) -> Iterator[tuple[str, SetResult]]:
    for name in names:
        known = done().sets.get(name)
        if known is not None and (known.seed, known.effort) == (seed, SETS[name].effort):
            note(f"{name}: done before")
            continue
        yield name, _one(name, data, seed, note)


def _one(name: str, data: Path, seed: int, note: Callable[[str], Any]) -> SetResult:
    def tell(text: str) -> None:
        note(f"{name}: {text}")

    problem = SETS[name].load(data, seed)
    return run_set(problem, SETS[name].effort, seed, versions(), tell)
