"""Passes over the planes that samples have: no label is looked for, and only weights of these are read and changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.objective import Certificate
from nhsvm.solvers._ascent import Ascent
from nhsvm.solvers._places import KEPT
from nhsvm.solvers._planes import Planes
from nhsvm.solvers._problem import Problem

_FOCUS = 3  # passes over the samples with most of the gap, between two over all
_CACHED = 200  # passes over the planes in use between two full passes, at most
_PLACED = 3  # the same where places had to be found for it; one after the first pass, whose planes are soon not all
_LEFT = 0.2  # of the gap that the first of these met: enough

Part = tuple[np.ndarray, Any]  # samples, and their places if they need any


class InUse(Ascent):
    """An ascent whose dual variables are planes.

    Attributes
    ----------
    kept : list of parts
        Samples whose places have been found in the pass that goes on; valid until rows are made anew.
    """

    state: Planes
    problem: Problem
    kept: list[Part]

    def keep(self, samples: np.ndarray) -> None:
        """Find the places of samples and keep them; of the oldest no more than there is room for."""
        self.kept += self.places(samples)
        while sum(places.nbytes for _, places in self.kept) > KEPT:
            self.kept.pop(0)

    def revisit(self) -> float:
        """A pass over the samples whose places are kept; returns the gain of the dual."""
        return self.over(self.used(self.kept), self.tolerance(*self.certificate))[1]

    def cached_passes(self) -> None:
        """Passes over the planes in use, until these are near their best."""
        primal_value, dual_value = self.certificate
        gap = primal_value - dual_value
        tolerance = 0.1 * max(self.options.tol * primal_value, 0.3 * gap) / float(self.costs.sum())
        enough = max(0.8 * self.options.tol * primal_value, 0.25 * gap)
        gain = self.rounds([(np.arange(len(self.costs)), None)], tolerance, enough, 0.0, _CACHED)
        self.certificate = Certificate(primal_value, dual_value + gain)

    def placed_passes(self) -> None:
        """The same for weights in rows, some samples at a time."""
        primal_value, dual_value = self.certificate
        aim = 0.8 * self.options.tol * primal_value / float(self.costs.sum())
        most = _PLACED if len(self.history) > 1 else 1  # of the first pass
        for parts in self.parts():
            enough = aim * sum(float(self.costs[samples].sum()) for samples, _ in parts)
            dual_value += self.rounds(parts, self.tolerance(primal_value, dual_value), enough, _LEFT, most)
        self.certificate = Certificate(max(primal_value, dual_value), dual_value)

    def tolerance(self, primal_value: float, dual_value: float) -> float:
        """A violation that matters to these, per unit of cost."""
        aim = max(self.options.tol * primal_value, 0.03 * (primal_value - dual_value))
        return 0.1 * aim / float(self.costs.sum())

    def parts(self) -> Iterator[list[Part]]:
        """All samples with planes: those with places that were kept, and then the others, some at a time."""
        others = self.state.count > 0
        for samples, _ in self.kept:
            others[samples] = False
        if self.kept:
            yield self.kept
        self.kept = []
        for part in self.places(self.rng.permutation(np.flatnonzero(others))):
            yield [part]

    def places(self, samples: np.ndarray) -> Iterator[Part]:
        """Those of the samples that have planes, some at a time, and where they find their weights."""
        some = samples[self.state.count[samples] > 0]
        found: Iterator[Part] = self.weights.places(
            some, self.problem.leaves, self.state, self.problem.columns, self.team
        )
        return found

    def rounds(self, parts: list[Part], tolerance: float, enough: float, share: float, most: int) -> float:
        """Passes over the planes in use, ``most`` of them over all samples and some over those with most of the gap.

        They end when the gap that is met is ``enough``, or this share of what was met at first. Returns the gain.
        """
        total = 0.0
        for k in range(most):
            parts = self.used(parts)
            gaps, gain = self.over(parts, tolerance)
            total += gain
            left = sum(float(met.sum()) for met in gaps)
            enough = max(enough, share * left) if k == 0 else enough
            if left <= enough:
                break
            bar = 0.5 * left / sum(map(len, gaps))  # most of the gap is in few samples
            some = [(samples[met > bar], places) for (samples, places), met in zip(parts, gaps, strict=True)]
            for _ in range(_FOCUS):
                gaps, gain = self.over(some, tolerance)
                total += gain
                if sum(float(met.sum()) for met in gaps) <= 0.5 * left:
                    break
        return total

    def used(self, parts: list[Part]) -> list[Part]:
        """The samples of these that have planes."""
        return [(samples[self.state.count[samples] > 0], places) for samples, places in parts]

    def over(self, parts: list[Part], tolerance: float) -> tuple[list[FloatArray], float]:
        """Block steps over the planes in use, part by part in random order; gaps as met, and the gain of the dual."""
        gaps, total = [np.empty(0)] * len(parts), 0.0
        for k in self.rng.permutation(len(parts)):
            samples, places = parts[k]
            gaps[k], gain = self.cached_pass(samples, places, tolerance)
            total += gain
        return gaps, total

    def cached_pass(self, samples: np.ndarray, places: Any, tolerance: float) -> tuple[FloatArray, float]:
        """Block steps over the planes in use of some samples; their gaps as met, and the gain of the dual."""
        problem, planes = self.problem, self.state
        order = self.rng.permutation(len(samples))
        met = np.empty(len(samples))
        unscaled = not problem.oracle.normalized
        gain = self.weights.cached_pass(
            samples[order], problem.leaves, problem.costs, planes.pool, problem.columns, unscaled, tolerance, met,
            places,
        )  # fmt: skip
        gaps = np.empty(len(samples))
        gaps[order] = met
        return gaps, gain
