"""The most violating label of a sample: argmax over labels of score plus loss.

:class:`SingleLabel` is over Y_s, all others are over Y_m and keep to :class:`Oracle`.

>>> from nhsvm import Hierarchy
>>> from nhsvm.oracles import most_violating
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> most_violating(h, [0.0, 0.0, 1.0, 0.5, -2.0]).leaves
('dog', 'cat')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nhsvm.registry import Family, Spec, on_first_use

if TYPE_CHECKING:
    from collections.abc import Callable

    from nhsvm.oracles.brute_force import BruteForce
    from nhsvm.oracles.dag.oracle import DagMultilabel
    from nhsvm.oracles.inference import MostViolating, most_violating
    from nhsvm.oracles.leaves import SingleLabel
    from nhsvm.oracles.lp import LinearProgram
    from nhsvm.oracles.protocol import Oracle
    from nhsvm.oracles.tree import TreeMultilabel

__all__ = [
    "ORACLES",
    "BruteForce",
    "DagMultilabel",
    "LinearProgram",
    "MostViolating",
    "Oracle",
    "SingleLabel",
    "TreeMultilabel",
    "most_violating",
]


@dataclass(frozen=True)
class OracleSpec(Spec):
    """One oracle.

    Attributes
    ----------
    single : bool
        Over labels of one leaf (Y_s), not over label sets (Y_m).
    trains : bool
        Estimators offer it as ``oracle=``. If it is over label sets, it is then made from a graph and ``allow_empty``.
    answers : bool
        It proves label sets to be the best: predictions take it too, if it is named. Where it does not, they take the
        dynamic programme on trees, and elsewhere the search with bounds.
    trees_only : bool
        It refuses a graph that is no tree.
    relaxes : bool
        It is over points of a relaxation, which are label sets on trees; ``integral=True`` makes one over label sets,
        which answers.
    """

    single: bool = False
    trains: bool = True
    answers: bool = False
    trees_only: bool = False
    relaxes: bool = False


ORACLES: Family[OracleSpec, Callable[..., Oracle]] = Family(
    "oracle",
    __name__,
    [
        OracleSpec("single_label", "leaves.SingleLabel", "all leaves", single=True),
        OracleSpec("tree_multilabel", "tree.TreeMultilabel", "dynamic programme on a tree", trees_only=True),
        OracleSpec("dag_multilabel", "dag.oracle.DagMultilabel", "search with bounds on any hierarchy"),
        OracleSpec("lp", "lp.LinearProgram", "the paper's linear program, in HiGHS", answers=True, relaxes=True),
        OracleSpec(
            "brute_force", "brute_force.BruteForce", "all label sets of a few leaves", trains=False, answers=True
        ),
    ],
)
"""Every oracle by its name as an option. All but ``single_label``, over Y_s, are over Y_m."""

_HOMES = {"MostViolating": "inference", "most_violating": "inference", "Oracle": "protocol"}
__getattr__ = on_first_use(__name__, lambda: _HOMES | ORACLES.homes)


def __dir__() -> list[str]:
    return sorted({*__all__, *ORACLES.homes})
