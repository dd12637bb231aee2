"""A team of threads that shares ranges of work; kernels release the interpreter lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from types import TracebackType
from typing import TypeVar

Made = TypeVar("Made")


class Team:
    """``size`` threads, this one included. A context manager; nothing global is touched, so teams can run side by side.

    Parameters
    ----------
    size : int
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size - 1, thread_name_prefix="nhsvm") if size > 1 else None

    def split(self, n: int, work: Callable[[int, int], None]) -> None:
        """``work(lo, hi)`` over disjoint ranges that make up ``range(n)``; back when all are done.

        What is computed for one item must not depend on the range it is in, so that results do not depend on ``size``.
        """
        if self._pool is None or n < 2:
            work(0, n)
            return
        size = min(self.size, n)
        cuts = [n * k // size for k in range(size + 1)]
        waiting: list[Future[None]] = []
        try:
            for lo, hi in pairwise(cuts[1:]):
                waiting.append(self._pool.submit(work, lo, hi))
            work(cuts[0], cuts[1])
        finally:
            _wait(waiting)
        for future in waiting:
            future.result()

    def chunks(self, n: int, size: int, work: Callable[[slice], None]) -> None:
        """``work(part)`` over slices of ``size`` items, the last one shorter, that make up ``range(n)``."""
        size = max(1, size)
        self.each(-(-n // size), lambda k: work(slice(k * size, min(n, (k + 1) * size))))

    def each(self, n: int, work: Callable[[int], None]) -> None:
        """``work(k)`` for every k below n, each by the next thread that is free: for items that take unlike times."""
        with self.meanwhile(n, work):
            pass

    @contextmanager
    def meanwhile(self, n: int, work: Callable[[int], None]) -> Iterator[None]:
        """The same by the other threads, while this one does what is in the ``with`` block and then joins them."""
        left = iter(range(n))  # its next is one step of the interpreter, so that no two threads get the same

        def take() -> None:
            try:
                for k in left:
                    work(k)
            finally:  # after an error or an interrupt there is nothing left for the others
                deque(left, maxlen=0)

        waiting: list[Future[None]] = []
        try:
            for _ in range(min(n, self.size - 1)):
                assert self._pool is not None
                waiting.append(self._pool.submit(take))
            yield
            take()
        finally:
            deque(left, maxlen=0)
            _wait(waiting)
        for future in waiting:
            future.result()

    def ahead(self, work: Callable[[], Made]) -> Callable[[], Made]:
        """Begin ``work`` on another thread, if there is one; the call that is returned waits and gives its result."""
        if self._pool is None:
            return work
        future = self._pool.submit(work)

        def result() -> Made:
            _wait([future])
            return future.result()

        return result

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def _wait(waiting: list[Future[Made]]) -> None:
    """All must have stopped before anybody touches their arrays, even if the user is impatient."""
    interrupt: KeyboardInterrupt | None = None
    for future in waiting:
        while not future.done():
            try:
                future.exception()
            except KeyboardInterrupt as pressed:
                interrupt = pressed
    if interrupt is not None:
        raise interrupt
