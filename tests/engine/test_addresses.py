"""Working-set passes, for weights in rows of any length: against the same passes over a table."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import event, given
from hypothesis import strategies as st

from engine.problems import MARGINS, make_case, tune
from engine.test_rows import ENOUGH, close, n_entries, table_of
from nhsvm.engine import storage
from nhsvm.engine.ascent import Dual
from nhsvm.engine.dual.block import Paths, Rounds
from nhsvm.engine.dual.planes import Batch, Pool
from nhsvm.engine.samples import Updates
from nhsvm.engine.single_label import PlanesAscent
from nhsvm.engine.storage import addresses as addresses_module
from nhsvm.engine.storage import rows as rows_module
from nhsvm.engine.storage.addresses import find_addresses
from nhsvm.engine.storage.rows import RowWeights
from nhsvm.engine.storage.table import SparseWeights
from nhsvm.threads import Team

seeds = st.integers(0, 2**32)


@pytest.fixture(autouse=True)
def _some_rows_are_short(monkeypatch):
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(share=0.6))


def ready(seed, dtype=np.float64, passes=2, **options):
    """A problem with planes in use, and weights in rows and as a table, that these make."""
    case = make_case(seed, dag=seed % 2 == 1, margin=MARGINS[seed % 4], dtype=dtype, **options)
    planes = case.solve(tol=1e-12, max_iter=passes).dual
    p = case.problem
    weights = [
        RowWeights(p.X, p.columns.n_columns, p.bias, dtype, ENOUGH),
        SparseWeights.zeros(p.X, p.columns.n_columns, p.bias, dtype),
    ]
    with Team(2) as team:
        for each in weights:
            each.rebuild(planes.coefficients(p.leaves, p.columns), team)
    return case, planes, weights


def in_order(planes, seed):
    """The samples that have planes, as a pass over a table shuffles them."""
    some = np.flatnonzero(planes.count > 0)
    return some[np.random.default_rng(seed).permutation(len(some))]


def batch_of(case, planes, weights, samples):
    p = case.problem
    pool = Pool._make(part.copy() for part in planes.pool)
    paths = Paths.of(p.columns, unscaled=not case.normalized)
    return Batch(samples, p.leaves[samples], p.costs[samples], weights.squared_norms[samples]), pool, paths


def one_pass(case, planes, rows, samples, addresses):
    """The gain, the gaps met, and the dual variables afterwards."""
    batch, pool, paths = batch_of(case, planes, rows, samples)
    met = np.empty(len(samples))
    return rows.working_set_pass(batch, pool, paths, 0.0, met, addresses), met, pool


def one_over_the_table(case, planes, table, seed, met):
    """The gain, and the dual variables afterwards; the sum of the gaps is asserted to be that of ``met``."""
    batch, pool, paths = batch_of(case, planes, table, np.arange(len(planes.count)))
    values = table.values.copy()
    for slack, done in (-1e-3, False), (1e-3, True):
        table.values[:] = values
        mine = Pool._make(part.copy() for part in pool)
        rounds = Rounds(most=1, enough=float(met.sum()) * (1 + slack) + slack, focused=0, left=0.0)
        gain, visits, ended = table.working_set_passes(rounds, np.random.default_rng(seed), batch, mine, paths, 0.0)
        assert (visits, ended) == (len(met), done)
    return gain, mine


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seeds)
def test_a_pass_does_what_one_over_a_table_does(dtype, seed):
    case, planes, (rows, table) = ready(seed, dtype, n_nodes=40, d=12)
    samples = in_order(planes, seed)
    with Team(2) as team:
        for part, addresses in find_addresses(rows, samples, case.problem.leaves, planes, case.problem.columns, team):
            np.testing.assert_array_equal(part, samples)
            np.testing.assert_allclose(table_of(rows), table.values, **close(dtype))  # room was made, nothing changed
            gain, met, pool = one_pass(case, planes, rows, samples, addresses)
            of_table, other = one_over_the_table(case, planes, table, seed, met)
            np.testing.assert_allclose(gain, of_table, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-6)
            np.testing.assert_allclose(table_of(rows), table.values, rtol=1e-3, atol=1e-3)
            if dtype == np.float64:
                if case.problem.columns.nests and not case.normalized:  # steps between pairs end before they are exact
                    np.testing.assert_allclose(table_of(rows), table.values, rtol=1e-8, atol=1e-9)
                for name, a, b in zip(Pool._fields, pool, other, strict=True):
                    if name != "weight":  # paths of a DAG may depend on each other: several duals make the same U
                        np.testing.assert_array_equal(a, b)


@given(seeds)
def test_places_are_those_of_the_weights(seed):
    """Every column on which a sample's labels differ, in every short row of its features, and no other column."""
    case, planes, (rows, _) = ready(seed, n_nodes=60, d=30)
    p, kept = case.problem, rows.rows
    samples = np.flatnonzero(planes.count > 0)
    ptr, idx = p.columns.paths
    paths = [set(idx[ptr[leaf] : ptr[leaf + 1]].tolist()) for leaf in range(p.columns.n_leaves)]
    with Team(2) as team:
        for _, found in find_addresses(rows, samples, p.leaves, planes, p.columns, team):
            for i in range(len(p.leaves)):
                columns = found.column[found.first[i] : found.first[i + 1]]
                part = slice(planes.start[i], planes.start[i] + planes.count[i])
                labels = [paths[leaf] for leaf in (p.leaves[i], *planes.leaf[part])]
                expected = set.union(*labels) - set.intersection(*labels) if planes.count[i] else set()
                assert set(columns.tolist()) == expected
                assert len(columns) == len(expected)
                at = found.begin[i]
                for f in p.X.indices[p.X.indptr[i] : p.X.indptr[i + 1]]:
                    if kept.size[f] >= 0:
                        where = kept.start[f] + found.offset[at : at + len(columns)].astype(np.int64)
                        np.testing.assert_array_equal(kept.index[where], columns)
                        at += len(columns)
                assert at == found.begin[i + 1]


def test_a_weight_that_is_not_stored_gets_a_place():
    """Sums that cancel leave no weight behind, but a pass may need it."""
    case, planes, (rows, table) = ready(3, n_nodes=40)
    empty = planes.coefficients(case.problem.leaves, case.problem.columns)
    empty.values[:] = 0.0
    samples = in_order(planes, 3)
    with Team(1) as team:
        for each in (rows, table):
            each.rebuild(empty, team)
        assert n_entries(rows.rows) == rows.rows.n_full * rows.n_columns
        ((_, addresses),) = find_addresses(rows, samples, case.problem.leaves, planes, case.problem.columns, team)
    gain, met, _ = one_pass(case, planes, rows, samples, addresses)
    assert gain == pytest.approx(one_over_the_table(case, planes, table, 3, met)[0], rel=1e-9)
    assert np.abs(table.values).max() > 0
    np.testing.assert_allclose(table_of(rows), table.values, rtol=1e-8, atol=1e-10)


@given(seeds)
def test_places_stay_while_rows_grow_and_become_full(seed):
    """Other samples put weights into the same rows, after the addresses were found."""
    case, planes, (rows, table) = ready(seed, n_nodes=40, d=12)
    p = case.problem
    rng = np.random.default_rng(seed)
    samples = in_order(planes, seed)
    change = p.columns.n_columns, rng.random() * 0.3
    with Team(2) as team:
        ((_, addresses),) = find_addresses(rows, samples, p.leaves, planes, p.columns, team)
        was_full = rows.rows.size < 0
        rows.rows.least = int(rng.integers(1, 12))
        for _ in range(2):
            who = rng.permutation(len(p.leaves))[:10]
            made = sp.random_array((len(who), change[0]), density=change[1], rng=rng, format="csr")
            updates = Updates(made.indptr.astype(np.int64), made.indices.astype(np.int32), 0.1 * made.data)
            for weights in (rows, table):
                weights.batch(who).apply(updates, team)
    assert (was_full == ~addresses.short).all()
    event("some became full" if (rows.rows.size < 0).sum() > was_full.sum() else "none became full")
    gain, met, _ = one_pass(case, planes, rows, samples, addresses)
    assert gain == pytest.approx(one_over_the_table(case, planes, table, seed, met)[0], rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(table_of(rows), table.values, rtol=1e-7, atol=1e-9)


def test_parts_of_the_samples(monkeypatch):
    """With little room for addresses samples come in parts, each once."""
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(share=2.0))
    case, planes, (rows, _) = ready(1, n=300, n_nodes=60, d=40)
    samples = np.random.default_rng(0).permutation(np.flatnonzero(planes.count > 0))
    monkeypatch.setattr(addresses_module, "ADDRESS_BYTES", 2_000)
    with Team(2) as team:
        parts = list(find_addresses(rows, samples, case.problem.leaves, planes, case.problem.columns, team))
        assert not list(find_addresses(rows, samples[:0], case.problem.leaves, planes, case.problem.columns, team))
    assert len(parts) > 3
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), samples)
    most = max(addresses.offset.nbytes for _, addresses in parts)
    assert most < 4_000


@pytest.mark.parametrize("room", [2_000, 2**28])
def test_fits_by_such_passes(room, monkeypatch):
    """As good as with a table, with fewer looks at all labels; the same to the last bit for any number of threads."""
    case = make_case(1, n=300, n_nodes=60, d=40, C=5.0)
    table = case.solve(tol=1e-6)
    monkeypatch.setattr(addresses_module, "ADDRESS_BYTES", room)
    monkeypatch.setattr(storage, "TABLE", 0)
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(share=0.9))
    found = [case.with_(memory=ENOUGH).solve(tol=1e-6, n_threads=threads) for threads in (1, 3)]
    assert isinstance(found[0].weights, RowWeights)
    assert found[0].converged
    assert found[0].certificate.primal == pytest.approx(table.certificate.primal, rel=2e-6)
    assert found[0].certificate == found[1].certificate
    np.testing.assert_array_equal(table_of(found[0].weights), table_of(found[1].weights))
    monkeypatch.setattr(PlanesAscent, "passes_in_parts", lambda self: None)
    without = case.with_(memory=ENOUGH).solve(tol=1e-6)
    assert len(found[0].history) < len(without.history)


@pytest.fixture(params=[1, 3], ids=["flat", "deep"])
def opening(request, monkeypatch):
    """A run with weights in rows, before its first pass; labels of the second are chosen by less than all weights."""
    monkeypatch.setattr(storage, "TABLE", 0)
    case = make_case(request.param, n=300, n_nodes=60, d=40, C=5.0).with_(memory=ENOUGH)
    assert (case.problem.columns.head > 0) == (request.param == 3)
    with Team(2) as team:
        yield Dual().begin(case.problem, None, team)


@pytest.mark.parametrize("room", [500, 5_000, 2**28])
def test_samples_whose_places_are_kept_and_the_others(opening, room, monkeypatch):
    """Each with planes is in one part, whatever there is room for."""
    monkeypatch.setattr(addresses_module, "ADDRESS_BYTES", room)
    opening.weights.rows.least = 10**6  # no row becomes full
    opening.batch_pass()
    used = np.flatnonzero(opening.dual.count > 0)
    held = [samples for samples, _ in opening.kept]
    assert len(held) == 4
    assert all(addresses.offset.nbytes < room + 1_000 for _, addresses in opening.kept)
    assert (sum(map(len, held)) < len(used)) == (room < 2**28)
    parts = []
    for part in opening.parts():
        parts += [samples for samples, _ in part]
        part.clear()
    assert not opening.kept
    assert np.isin(used, np.concatenate(parts)).all()
    assert len(np.concatenate(parts)) == len(np.unique(np.concatenate(parts)))
    for a, b in zip(held, parts, strict=False):
        np.testing.assert_array_equal(a, b)


def test_a_first_pass_that_meets_little_does_not_go_back(opening, monkeypatch):
    looks = []
    over = PlanesAscent.over
    monkeypatch.setattr(PlanesAscent, "over", lambda self, *args: looks.append(1) or over(self, *args))
    for share, times in ((0.0, 3), (1e9, 1)):
        looks.clear()
        tune(monkeypatch, PlanesAscent, settled=share)
        Dual().begin(opening.problem, None, opening.team).batch_pass()
        assert len(looks) == times


def test_places_are_forgotten_when_rows_are_made_anew(opening):
    opening.batch_pass()
    assert opening.kept
    opening.rebuild()
    assert not opening.kept


def test_what_the_first_pass_gains_on_the_way_is_counted(opening, monkeypatch):
    """And steps are exact where labels were chosen by less than all weights: those of full rows get what was left."""
    monkeypatch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(share=0.2))
    opening.weights.rows.least = 4
    opening.batch_pass()
    assert opening.weights.rows.n_full > 0
    assert opening.fit.certificate.dual == pytest.approx(opening.measured()[0].dual, rel=1e-9)


def test_the_first_pass_goes_back_to_what_it_has_met(monkeypatch):
    """Working-set passes while the first pass goes on leave a smaller gap than the same pass without."""
    monkeypatch.setattr(storage, "TABLE", 0)
    cases = [make_case(seed, n=300, n_nodes=60, d=40, C=1.0).with_(memory=ENOUGH) for seed in range(8)]
    gaps = []
    for turns in (1, 4):
        tune(monkeypatch, PlanesAscent, turns=turns)
        gaps.append([case.solve(tol=1e-6, max_iter=1).certificate.gap for case in cases])
    assert sum(gaps[1]) < sum(gaps[0])
    assert sum(np.less(gaps[1], gaps[0])) >= 6


def test_only_the_first_pass_from_nothing_is_an_opening(opening):
    assert opening.opening
    opening.batch_pass()
    assert not opening.opening
    again = Dual().begin(opening.problem, opening.dual, opening.team)
    assert not again.opening


def test_one_pass_at_a_time(monkeypatch):
    """A run that goes on from dual variables is no first pass: its passes over the working set end no sooner."""
    monkeypatch.setattr(storage, "TABLE", 0)
    case = make_case(1, n=300, n_nodes=60, d=40, C=1.0).with_(memory=ENOUGH)
    one_after_another = None
    for _ in range(6):
        solution = case.solve(one_after_another, tol=1e-6, max_iter=1)
        one_after_another = solution.dual
    together = case.solve(tol=1e-6, max_iter=6)
    assert solution.certificate.gap <= 3 * together.certificate.gap
