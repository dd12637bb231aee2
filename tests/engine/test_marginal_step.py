"""The block step of node marginals: against other solvers, and its optimality conditions on many more cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.parts import compiled
from nhsvm.engine.dual import marginal_step as steps
from reference import marginals

_guess, _link, _newton, _optimum, _toward_a_vertex, block_gap, marginal_step, workspace = compiled(
    steps._guess, steps._link, steps._newton, steps._optimum, steps._toward_a_vertex,
    steps.block_gap, steps.marginal_step, steps.workspace,
)  # fmt: skip
KINDS = ("plain", "ties", "vertex", "all negative", "all positive", "no gradient", "steep and flat")


class Block:
    """A random block problem; every seventh seed is of the same kind."""

    def __init__(self, seed, *, size=None, parent=None, moderate=False):
        rng = np.random.default_rng(seed)
        kind = KINDS[seed % len(KINDS)]
        if parent is None:
            size = int(rng.integers(1, 41)) if size is None else size
            reach = int(rng.integers(1, 14))
            parent = [-1 if rng.random() < 0.1 else int(rng.integers(max(0, n - reach), n)) for n in range(1, size)]
            parent = [-1, *parent]
        self.parent = np.array(parent)
        size = len(parent)
        self.allow_empty = bool(rng.integers(2))
        self.C = float(10.0 ** (rng.uniform(-1, 1) if moderate else rng.uniform(-3, 6)))
        self.q = float(10.0 ** (rng.uniform(-1, 1) if moderate else rng.uniform(-5, 5)))
        self.alpha = 10.0 ** rng.uniform(-1, 1, size)
        self.r = rng.normal(size=size) * (1.0 if seed % 2 else max(1.0, self.q * self.C)) * 10.0 ** rng.uniform(-1, 1)
        if kind == "ties":
            self.alpha[:], self.q, self.C = 1.0, 1.0, 1.0
            self.r = rng.integers(-1, 2, size).astype(float)
        elif kind == "all negative":
            self.r = -np.abs(self.r)
        elif kind == "all positive":
            self.r = np.abs(self.r)
        elif kind == "no gradient":
            self.r[:] = 0.0
        elif kind == "steep and flat" and not moderate:
            most = 6 if size <= 60 else 3
            self.alpha = 10.0 ** rng.uniform(-most, most, size)
        leaves = np.setdiff1d(np.arange(size), self.parent)
        n_sets = 1 if kind in ("vertex", "ties") else int(rng.integers(1, 5))
        share = rng.dirichlet(np.ones(n_sets))
        self.z0 = np.zeros(size)
        on = np.zeros((n_sets, size))
        for row in on:
            for n in rng.choice(leaves, int(rng.integers(1, min(len(leaves), 5) + 1)), replace=False):
                while n >= 0:
                    row[n], n = 1.0, self.parent[n]
        self.z0 = np.where((on == 1).all(0), self.C, self.C * (share @ on))

    def step(self, z0=None, r=None):
        """(gap before, gain, marginals)."""
        z = np.full(len(self.parent), np.nan)
        z0, r = self.z0 if z0 is None else z0, self.r if r is None else r
        work = workspace(len(self.parent))
        gap = block_gap(self.parent, r, z0, self.C, self.allow_empty, work)
        gain = marginal_step(self.parent, self.alpha, r, z0, self.q, self.C, self.allow_empty, z, work)
        return gap, gain, z

    def work(self):
        work = workspace(len(self.parent))
        _link(self.parent, *work[0])
        return work

    def newton(self):
        """Whether Newton's method settles from z0, and the marginals."""
        z, work = np.full(len(self.parent), np.nan), self.work()
        _guess(self.z0, self.C, self.allow_empty, *work[0], *work[1])
        return _newton(self.parent, self.alpha, self.r, self.z0, self.q, self.C, self.allow_empty, z, work), z

    def path(self):
        z = np.full(len(self.parent), np.nan)
        given = self.parent, self.alpha, self.r, self.z0, self.q, self.C, self.allow_empty, z, self.work()
        assert _optimum(*given, False)
        return z

    def value(self, z):
        return marginals.value(self.alpha, self.r, self.z0, self.q, z)

    @property
    def size(self):
        """Of the numbers in the problem, which rounding errors are relative to."""
        return self.C * (np.abs(self.r).max() + self.q * self.alpha.max() * self.C)

    def check(self, z, within=1e-9):
        """Feasible and optimal: C max_y ∇·y − ∇·z bounds what any other marginals could gain.

        What is nearer to a bound than 1e-14 C is on it, which shows where q α is that large.
        """
        assert marginals.violated(self.parent, z, self.C, self.allow_empty) <= 1e-12 * self.C
        gradient = self.r - self.q * self.alpha * (z - self.z0)
        gap = self.C * marginals.best_set(self.parent, gradient, self.allow_empty) - gradient @ z
        size = max(np.abs(self.r).max(), (self.q * self.alpha * np.maximum(z, self.z0)).max())
        assert gap <= self.C * (within * size + 1e-14 * self.q * self.alpha.max() * self.C)


def by_cvxpy(block, alpha):
    """The largest gain, by an interior-point method on the constraints as they stand."""
    import cvxpy as cp

    z = cp.Variable(len(block.parent))  # in units of C
    bounds = [z >= 0]
    for p, nodes in marginals.children(block.parent).items():
        above = 1.0 if p < 0 else z[p]
        bounds += [z[c] <= above for c in nodes]
        if nodes and not (p < 0 and block.allow_empty):
            bounds.append(sum(z[c] for c in nodes) >= above)
    change = z - block.z0 / block.C
    curvature = block.q * block.C * alpha
    goal = cp.Maximize(block.r @ change - 0.5 * cp.sum(cp.multiply(curvature, cp.square(change))))
    return block.C * cp.Problem(goal, bounds).solve(solver="CLARABEL")


def test_the_step_is_optimal():
    """3,500 trees of up to 40 nodes, C from 1e-3 to 1e6, q α from 1e-11 to 1e11; the conditions prove the optimum."""
    for seed in range(3500):
        block = Block(seed)
        gap, gain, z = block.step()
        block.check(z)
        assert gain >= 0
        assert gain == pytest.approx(block.value(z), rel=1e-9, abs=1e-13 * block.size)
        assert gain <= gap + 1e-13 * block.size


@pytest.mark.parametrize("size", [100, 400])
def test_the_step_is_optimal_on_large_trees(size):
    for seed in range(140):
        block = Block(seed, size=size)
        block.check(block.step()[2])


def test_newtons_method_hardly_ever_cycles():
    """How often the path is needed is part of the claim; which it is for some of these trees."""
    cycles = [seed for seed in range(2100) if not Block(seed, size=30).newton()[0]]
    assert 0 < len(cycles) < 0.005 * 2100
    for seed in cycles:
        block = Block(seed, size=30)
        block.check(block.step()[2])


def test_the_path_ends_at_the_optimum_too():
    for seed in range(1400):
        block = Block(seed)
        z = block.path()
        block.check(z)
        assert block.value(z) == pytest.approx(block.value(block.step()[2]), rel=1e-9, abs=1e-11 * block.size)


def test_the_last_resort_gains_what_a_line_can():
    """Feasible, and the best of a grid of points between z0 and the best vertex."""
    for seed in range(350):
        block = Block(seed)
        z, end = np.full((2, len(block.parent)), np.nan)
        given = block.parent, block.alpha, block.r, block.z0
        _toward_a_vertex(*given, block.q, block.C, block.allow_empty, z, block.work())
        _toward_a_vertex(*given, 0.0, block.C, block.allow_empty, end, block.work())
        assert marginals.violated(block.parent, z, block.C, block.allow_empty) <= 1e-12 * block.C
        grid = [block.value(block.z0 + t * (end - block.z0)) for t in np.linspace(0, 1, 21)]
        assert block.value(z) >= max(grid) - 1e-12 * block.size
        if block.step()[0] > 1e-9 * block.size:
            assert block.value(z) > 0


def test_steps_reach_the_exhaustive_optimum():
    """All label sets as planes, all subsets of them tried."""
    shapes = ([-1], [-1, -1], [-1, 0, 0], [-1, -1, 0], [-1, 0, 1, 1], [-1, 0, 0, 1], [-1, 0, 0, 1, 1], [-1, -1, -1])
    for seed in range(160):
        block = Block(seed, parent=shapes[seed % len(shapes)], moderate=True)
        rng = np.random.default_rng(seed)
        sets = marginals.label_sets(block.parent, block.allow_empty)
        weights = rng.dirichlet(np.full(len(sets), 0.3)) * block.C
        block.z0, block.C = weights @ sets, weights.sum()
        best = marginals.optimum(block.parent, block.alpha, block.r, weights, block.q, block.allow_empty)
        assert block.step()[1] == pytest.approx(best, rel=1e-9, abs=1e-11 * block.size)


def test_steps_agree_with_an_interior_point_method():
    for seed in range(140):
        block = Block(seed, moderate=True)
        assert block.step()[1] == pytest.approx(by_cvxpy(block, block.alpha), rel=1e-6, abs=1e-7 * block.size)


def test_nodes_without_weight_are_contracted():
    """Their children go to their parent, and they take min(z of the parent, sum of the children)."""
    for seed in range(1, 60):
        block = Block(seed, size=9, moderate=True)
        rng = np.random.default_rng(seed)
        inner = np.isin(np.arange(9), block.parent)
        gone = inner & (rng.random(9) < 0.5)
        block.r[gone] = 0.0
        best = by_cvxpy(block, np.where(gone, 0.0, block.alpha))
        whole, kept = block.parent, np.flatnonzero(~gone)
        up = np.arange(-1, 9)  # the nearest node that is kept; the entry before is for -1
        for n in range(9):
            up[n + 1] = up[whole[n] + 1] if gone[n] else n
        number = np.append(np.cumsum(~gone) - 1, -1)
        full = block.z0
        block.parent, block.alpha = number[up[whole[kept] + 1]], block.alpha[kept]
        _, gain, some = block.step(full[kept], block.r[kept])
        assert gain == pytest.approx(best, rel=1e-6, abs=1e-7 * block.size)
        z = np.zeros(9)
        z[kept] = some
        below = np.where(gone, 0.0, z)  # what the kept nodes nearest below add up to
        for n in reversed(range(9)):
            if whole[n] >= 0 and gone[whole[n]]:
                below[whole[n]] += below[n]
        for n in np.flatnonzero(gone):
            z[n] = min(z[whole[n]] if whole[n] >= 0 else block.C, below[n])
        assert marginals.violated(whole, z, block.C, block.allow_empty) <= 1e-12 * block.C


@pytest.mark.parametrize("q", [0.0, 1e-250])
def test_a_sample_of_zeros_gives_all_to_the_best_set(q):
    for seed in range(350):
        block = Block(seed)
        block.q = q
        gap, gain, z = block.step()
        assert gain == pytest.approx(max(gap, 0.0), rel=1e-9, abs=1e-12 * block.size)
        block.check(z, 1e-12)
        if gain > 1e-12 * block.size:
            assert set(z) <= {0.0, block.C}


def test_the_gap_is_that_of_the_best_set():
    for seed in range(700):
        block = Block(seed, size=1 + seed % 9)
        sets = marginals.label_sets(block.parent, block.allow_empty)
        expected = block.C * (sets @ block.r).max() - block.r @ block.z0
        assert block.step()[0] == pytest.approx(expected, rel=1e-9, abs=1e-13 * block.size)


@pytest.mark.parametrize(
    "parent",
    [
        pytest.param([-1], id="one node"),
        pytest.param([-1] * 200, id="flat"),
        pytest.param([-1] + [0] * 200, id="star"),
        pytest.param(list(range(-1, 199)), id="chain"),
        pytest.param([-1, *(2 * (n // 2) - 1 if n > 1 else 0 for n in range(1, 200))], id="caterpillar"),
        pytest.param([-1, *((n - 1) // 2 for n in range(1, 255))], id="binary"),
    ],
)
def test_extreme_shapes(parent):
    for seed in range(140):
        block = Block(seed, parent=parent)
        block.check(block.step()[2])
        if seed < 35:
            block.check(block.path())


@pytest.mark.parametrize("allow_empty", [True, False])
def test_independent_leaves(allow_empty):
    """Isolated nodes and the empty set: every z is a clipped Newton step of its own."""
    rng = np.random.default_rng(0)
    block = Block(1, parent=[-1] * 6)
    block.allow_empty, block.r = allow_empty, block.q * block.C * rng.normal(size=6)
    expected = np.clip(block.z0 + block.r / (block.q * block.alpha), 0, block.C)
    z = block.step()[2]
    if allow_empty or expected.sum() >= block.C:
        np.testing.assert_allclose(z, expected, atol=1e-12 * block.C, rtol=0)
    assert z.sum() >= block.C * (1 - 1e-12) or allow_empty


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_a_second_step_finds_nothing(seed, size):
    """From the new marginals, with the new gradient, there is nothing to gain."""
    block = Block(seed, size=size)
    _, _, z = block.step()
    block.check(z)
    gradient = block.r - block.q * block.alpha * (z - block.z0)
    _, gain, again = block.step(z, gradient)
    assert 0 <= gain <= 1e-10 * block.size
    assert (block.q * block.alpha * np.abs(again - z) <= 1e-8 * block.size / block.C).all()


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(-20, 20), st.integers(-20, 20))
def test_units_do_not_matter(seed, size, one, two):
    """Powers of two change no digit: C and z in other units, or the objective in others."""
    block = Block(seed, size=size)
    _, gain, z = block.step()
    a, b = 2.0**one, 2.0**two
    block.C, block.z0, block.r, block.q = a * block.C, a * block.z0, b * block.r, block.q * b / a
    _, other_gain, other = block.step()
    np.testing.assert_array_equal(other, a * z)
    assert other_gain == a * b * gain


@given(st.integers(0, 2**32), st.integers(2, 30))
def test_a_larger_set_of_nodes_gains_no_less(seed, size):
    """The last node is a leaf; without it, and with nothing on it, the best is a feasible point of the whole."""
    block = Block(seed, size=size, moderate=True)
    siblings = np.sum(block.parent == block.parent[-1])
    if block.z0[-1] == 0 and siblings > 1:
        _, whole, _ = block.step()
        block.parent, block.alpha = block.parent[:-1], block.alpha[:-1]
        _, part, _ = block.step(block.z0[:-1], block.r[:-1])
        assert part <= whole + 1e-12 * block.size
