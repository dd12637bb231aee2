"""What every oracle of label sets keeps to: one way to query it, and a declaration of all that is optional."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.typing import Array, ByteArray, FloatArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.oracles.dag.candidates import LeafCandidates

NEARLY_EQUAL = 4e-12
"""Of Σ|r|: values so near to each other are equal to a search, whose steps allow for 1e-12 each."""
LARGEST = 1e280  # of Σ|r|; some multiples of it have to be finite


class Memory(NamedTuple):
    """What is kept of samples that are queried again, with rewards that change little in between.

    Any shares make a bound, and any set has a value, so that old ones are never wrong, only less good.
    """

    shares: npt.NDArray[np.float32]  # (n_samples, edges of the core)
    sets: ByteArray  # (n_samples, nodes of the hierarchy, eight a byte)
    known: ByteArray  # (n_samples,): 0 for nothing, 1 for a set, 2 for shares too

    def recalled(self, rows: PtrArray, n_nodes: int) -> ByteArray:
        """The sets of some samples, 1 for a node in the set; nothing if there is none."""
        return np.unpackbits(self.sets[rows], axis=1, count=n_nodes)

    def keep(self, rows: PtrArray, chosen: ByteArray) -> None:
        """Remember label sets."""
        self.sets[rows] = np.packbits(chosen, axis=1)
        self.known[rows] = np.maximum(self.known[rows], 1)


def make_memory(n_samples: int, n_nodes: int, n_edges: int) -> Memory:
    """Room for samples of a hierarchy with a core of so many edges."""
    shares = np.zeros((n_samples, n_edges), np.float32)
    return Memory(shares, np.zeros((n_samples, -(-n_nodes // 8)), np.uint8), np.zeros(n_samples, np.uint8))


class Oracle(ABC):
    """argmax Σ_{n∈y} r_n over label sets y, for rewards r of all nodes (Eq. 19); or over points of a relaxation.

    A subclass implements :meth:`_solve`, and overrides what it can do beyond that. Threads may share an oracle.

    Attributes
    ----------
    graph : Graph
    allow_empty : bool
        Whether the empty set, of value 0, is admitted as well.
    dtype : type
        Of ``chosen``: uint8 for label sets, float64 for points of a relaxation.
    exact : bool
        Whether every answer is proved to be the best label set.
    tolerance : float
        By how much of Σ|r| a bound may be too low, beyond the rounding of the rewards: where a search takes two label
        sets for equal. Certificates allow for it.
    leaf_candidates : LeafCandidates, optional
        Finds the leaves that a label set could gain by, where most others need not be looked at.
    """

    dtype: type = np.uint8
    exact: bool = False
    tolerance: float = 0.0
    leaf_candidates: LeafCandidates | None = None

    def __init__(self, graph: Graph, allow_empty: bool) -> None:
        self.graph, self.allow_empty = graph, allow_empty

    @property
    def stages(self) -> tuple[Oracle, ...]:
        """Oracles for the same question, from quick to thorough; the last is this one.

        Training finds label sets with the first ones, and asks the last ones for proofs.
        """
        return (self,)

    def remembers(self, n_samples: int) -> bool:
        """Whether it has a memory of so many samples."""
        return False

    def memory(self, n_samples: int) -> Memory | None:
        """Room for what :meth:`solve` may keep of samples that are queried again; None if it keeps nothing."""
        return None

    def renewal(self, sweeps: int) -> Oracle:
        """An oracle that only renews what a memory has, by so many sweeps; needs a memory."""
        return self

    def relaxation(self) -> Oracle | None:
        """A relaxation whose bounds training can reach by moving the weights; None if there is none."""
        return None

    def solve(
        self,
        rewards: FloatArray,
        chosen: Array,
        value: FloatArray,
        bound: FloatArray,
        memory: Memory | None = None,
        rows: PtrArray | None = None,
    ) -> None:
        """The best label set found for every sample, and a bound on what any could be worth.

        Parameters
        ----------
        rewards : float64 array of (batch, n_nodes)
            r, finite. Not changed.
        chosen : array of (batch, n_nodes), of :attr:`dtype`
            Filled: 1 for the nodes of y.
        value, bound : float64 arrays of batch
            Filled: the reward of y; no label set has more than ``bound``. They are equal where y is proved to be best.
        memory : Memory, optional
            Begin with what it has of ``rows``, and keep there what is found. The answer then depends on what was asked
            about the same row before; it is never worse than the last set.
        rows : int64 array of batch, optional
            Which samples these are, each at most once; needed with ``memory``.

        Raises
        ------
        OptionError
            If an array has another shape or type, or the oracle keeps no memory and is given one.
        DataError
            If a reward is not finite; the message names the first.
        """
        n, shape = len(rewards), (len(rewards), self.graph.n_nodes)
        check_array("rewards", rewards, shape, np.float64)
        check_array("chosen", chosen, shape, self.dtype)
        check_array("value", value, (n,), np.float64)
        check_array("bound", bound, (n,), np.float64)
        if (memory is None) != (rows is None):
            raise OptionError("memory and rows go together: give both or none")
        if memory is None or rows is None:
            self._solve(rewards, chosen, value, bound)
        else:
            self._solve_again(rewards, chosen, value, bound, memory, rows)

    @abstractmethod
    def _solve(self, rewards: FloatArray, chosen: Array, value: FloatArray, bound: FloatArray) -> None:
        """The same, of arrays that have been checked."""

    def _solve_again(
        self, rewards: FloatArray, chosen: Array, value: FloatArray, bound: FloatArray, memory: Memory, rows: PtrArray
    ) -> None:
        """The same with a memory."""
        raise OptionError(f"{type(self).__name__} keeps no memory of samples, but was given one")


def check_array(name: str, array: Array, shape: tuple[int, ...], kind: type) -> None:
    """Raise unless an array has this shape and type; a kernel would read or write beyond it."""
    if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous:
        raise OptionError(
            f"{name} must be a C-ordered {np.dtype(kind)} array of shape {shape}, "
            f"not {array.dtype} of shape {array.shape}"
        )


def check_finite(rewards: FloatArray, scales: FloatArray) -> None:
    """Raise unless all rewards are finite and not too large; ``scales`` has Σ|r| of every sample."""
    for t in np.flatnonzero(~np.isfinite(scales))[:1].tolist():
        node = int(np.argmin(np.isfinite(rewards[t])))
        raise DataError(f"rewards must be finite, but sample {t} has {rewards[t, node]} at node number {node}")
    for t in np.flatnonzero(scales > LARGEST)[:1].tolist():
        raise DataError(f"the rewards of sample {t} are too large: their sizes add up to {scales[t]:.0e}")
