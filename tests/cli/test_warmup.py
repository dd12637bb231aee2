"""``nhsvm warmup``, on kernels that nobody has to wait for. (The guide's page runs it as it is.)"""

import json
import os
from pathlib import Path

import pytest

from cli.running import nhsvm
from nhsvm.estimators import warmup
from nhsvm.estimators.warmup import ROUTES, Compiled, Route, follow_all

PLACE = Path("/cache")


@pytest.fixture
def kernels(monkeypatch):
    """Every route needs a kernel of its own and one that all need, where some are on disk."""
    there = set()

    def follow(route):
        needed = {PLACE / "shared", PLACE / route.name}
        made = needed - there
        there.update(needed)
        return Compiled(len(made), dict.fromkeys(needed, 1_000_000))

    monkeypatch.setattr(warmup, "follow", follow)
    return there


def test_what_it_says(kernels):
    first, second = nhsvm("warmup", "--jobs", 1), nhsvm("warmup", "--jobs", 1)
    assert (first.code, second.code) == (0, 0)
    n = len(ROUTES) + 1
    assert first.lines[0].startswith(f"compiled   {n} loops, ")
    assert first.lines[1] == second.lines[1] == f"kept       {n}.0 MB below {PLACE}"
    assert second.lines[0] == f"compiled   nothing: all {n} loops were there"


def test_what_programs_get(kernels):
    found = json.loads(nhsvm("warmup", "--jobs", 1, "--json").out)
    n = len(ROUTES) + 1
    assert found.pop("seconds") >= 0
    assert found == {"compiled": n, "kept": n, "bytes": n * 10**6, "folders": [str(PLACE)]}


def test_where_nothing_can_be_kept(monkeypatch):
    monkeypatch.setattr(warmup, "follow", lambda route: Compiled(2, {}))
    assert len(nhsvm("warmup", "--jobs", 1).lines) == 1


def test_no_processes_at_all():
    assert "--jobs" in nhsvm("warmup", "--jobs", 0).err


def in_a_process(route):
    return Compiled(1, {Path(route.name): os.getpid()})


def test_processes_share_the_routes(monkeypatch):
    """All of them are followed, somewhere else."""
    monkeypatch.setattr(warmup, "follow", in_a_process)
    routes = [Route(str(k)) for k in range(3)]
    found = dict(follow_all(routes, 2))
    assert found.keys() == set(routes)
    assert os.getpid() not in {size for compiled in found.values() for size in compiled.files.values()}


def test_routes_have_names_of_their_own():
    assert len({route.name for route in ROUTES}) == len({route[1:] for route in ROUTES}) == len(ROUTES)
