"""Certificates beside exact arithmetic and a conic solver, where costs range over up to 28 orders of magnitude.

Every weight, cost and feature is a double, so the primal of any weights is a rational number: ``exact_primal`` has no
rounding. The primal that is reported must not be below that of the weights of the model. The dual must not be above the
primal of *any* weights; those of a conic solver, made for costs that it can cope with, are among them.
"""

import warnings
from fractions import Fraction
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from estimators.problems import AUTO_LOSS
from nhsvm import HRSVM, HSVM, NHSVM, SSVM, FlatSVM, Hierarchy
from nhsvm.losses import make_loss

TREE = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "0"), ("a", "1"), ("b", "2"), ("b", "3")])
DAG = Hierarchy.from_edges(
    [("r", "a"), ("r", "b"), ("a", "c"), ("b", "c"), ("a", "0"), ("c", "1"), ("b", "1"), ("c", "2"), ("b", "3")]
)
FLAT = Hierarchy.from_edges([], nodes=["0", "1", "2", "3"])
KINDS = [
    (cls, h, sets)
    for cls in (FlatSVM, HSVM, NHSVM, SSVM, HRSVM)
    for h in ((FLAT, DAG) if cls is FlatSVM else (TREE, DAG))
    for sets in (False, True)
]
NAMES = [
    f"{c.__name__}-{'flat' if h is FLAT else 'tree' if h is TREE else 'dag'}-{'sets' if s else 'one'}"
    for c, h, s in KINDS
]
LABELS = ("0", "1", "2", "3")
EXPONENTS = st.one_of(st.just(0.0), st.floats(-12.0, 16.0), st.sampled_from([8.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]))


def label_sets(sizes):
    """Label sets of some sizes, as positions."""
    return [set(some) for size in sizes for some in combinations(range(len(LABELS)), size)]


class Learned:
    """A model with the problem it has solved, by listing labels."""

    def __init__(self, model, X, y, costs, sets):
        h, self.costs, self.hinges = model.hierarchy_, costs, isinstance(model, HRSVM)
        self.alpha, self.X = model.node_weights_, np.hstack([X, np.ones((len(X), 1))])
        dense = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
        self.U = np.hstack([dense, np.asarray(model.intercept_)[:, None]]).astype(np.float64)
        self.free = isinstance(model, SSVM)
        names = [str(name) for name in LABELS]
        position = [h.leaf_position(name) for name in names]
        self.paths = h.graph.leaf_matrix().toarray().astype(int)
        own = [{names.index(label) for label in (one if sets else [one])} for one in y]
        if self.hinges:
            self.signs = np.array([[1 if k in mine else -1 for k in range(4)] for mine in own])
            self.members = self.paths[position]
            return
        every = label_sets(range(0 if sets and model.allow_empty else 1, 5 if sets else 2))
        self.members = np.array(
            [self.paths[[position[k] for k in some]].any(axis=0) if some else 0 * self.alpha for some in every]
        )
        self.members = self.members.astype(int)
        self.true = np.array([every.index(mine) for mine in own])
        if sets:
            self.losses = np.array([[float(len(some ^ mine)) for some in every] for mine in own])
        else:
            loss = make_loss(AUTO_LOSS[type(model)] if model.loss == "auto" else model.loss, h, self.alpha)
            self.losses = loss.to_leaves(np.array(position, np.int32)[self.true])[:, position]

    def brackets(self, U):
        """What the largest of is ξ_i; of hinges, what they are before negative ones are dropped."""
        scores = self.X @ U.T @ self.members.T
        if self.hinges:
            return 1 - self.signs * scores
        return self.losses + scores - scores[np.arange(len(scores)), self.true][:, None]

    def exact_primal(self, U):
        """The objective as a rational number."""
        exactly = np.vectorize(Fraction, otypes=[object])
        one = Learned.__new__(Learned)
        vars(one).update(vars(self), X=exactly(self.X), members=exactly(self.members))
        if not self.hinges:
            one.losses = exactly(self.losses)
        rows, alpha = exactly(U), exactly(self.alpha)
        scale = Fraction(1)
        if self.free:  # weights that add up to a little more than one are to be made smaller
            scale = max(Fraction(1), *(sum(alpha[row > 0], Fraction(0)) for row in self.paths))
        carries = self.alpha > 0
        assert not np.any(U[~carries])
        half = sum(((row @ row) / a for row, a in zip(rows[carries], alpha[carries], strict=True)), Fraction(0)) / 2
        brackets = one.brackets(rows)
        slacks = [sum(max(v, Fraction(0)) for v in row) if self.hinges else max(row) for row in brackets]
        return half * scale + sum(
            (Fraction(c) * s for c, s in zip(self.costs.tolist(), slacks, strict=True)), Fraction(0)
        )

    def conic(self, most):
        """Weights that are best for costs of ``most`` at most, nearly; None if the conic solver gives none."""
        used = np.flatnonzero(self.alpha > 0)
        roots = np.sqrt(self.alpha[used])
        W, slack = cp.Variable((len(used), self.X.shape[1])), cp.Variable(len(self.X), nonneg=True)
        scores = self.X @ (cp.multiply(np.tile(roots[:, None], self.X.shape[1]), W)).T @ self.members[:, used].T
        costs = np.minimum(self.costs, most)
        if self.hinges:
            loss, limits = (
                cp.sum(cp.multiply(np.tile(costs[:, None], 4), cp.pos(1 - cp.multiply(self.signs, scores)))),
                [],
            )
        else:
            true = cp.sum(cp.multiply(scores, np.eye(len(self.members))[self.true]), axis=1)
            ones = np.ones((1, len(self.members)))
            margin = self.losses + scores - cp.reshape(true, (len(self.X), 1), order="C") @ ones
            loss, limits = costs @ slack, [margin <= cp.reshape(slack, (len(self.X), 1), order="C") @ ones]
        problem = cp.Problem(cp.Minimize((0.5 * cp.sum_squares(W) + loss) / max(1.0, costs.max())), limits)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cvxpy's own making, and of inaccuracy: any weights will do
            try:
                problem.solve(solver="CLARABEL")
            except cp.SolverError:
                return None
        if W.value is None or not np.isfinite(W.value).all():
            return None
        U = np.zeros((len(self.alpha), self.X.shape[1]))
        U[used] = roots[:, None] * W.value
        return U

    def check(self, model):
        """The certificate is true of this problem."""
        upper, lower = model.objective_, model.dual_objective_
        mine = self.exact_primal(self.U)
        assert Fraction(upper) >= mine
        assert lower >= 0.0
        assert model.gap_ >= 0.0
        others = [self.conic(most) for most in (1e3, 1e7)]
        tried = [mine, self.exact_primal(0 * self.U)]
        tried += [self.exact_primal(U * more) for U in others if U is not None for more in (1.0, 1.0 + 1e-6)]
        assert Fraction(lower) <= min(tried), (lower, float(min(tried)))


def samples(seed, n=7, d=3):
    """Features, of which some samples have none, and labels so that all occur."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    X[rng.integers(n)] = 0.0
    one = [*LABELS, *rng.choice(LABELS, n - 4).tolist()]
    several = [sorted({label, *rng.choice(LABELS, rng.integers(0, 3)).tolist()}) for label in one]
    return X, one, several


@pytest.mark.parametrize(("cls", "h", "sets"), KINDS, ids=NAMES)
def test_certificates_hold_whatever_the_costs(cls, h, sets):
    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(
        seed=st.integers(0, 10**6), exponents=st.lists(EXPONENTS, min_size=7, max_size=7), sparse=st.booleans(),
        C=st.sampled_from([0.0, 0.0, -6.0, 6.0]), precise=st.booleans(), by_class=st.booleans(),
    )  # fmt: skip
    def hold(seed, exponents, sparse, C, precise, by_class):
        X, one, several = samples(seed)
        y = several if sets else one
        weight = 10.0 ** np.clip(np.array(exponents) - C, -12.0, 16.0)
        options = {"C": 10.0**C, "intercept_scaling": 1.0, "max_iter": 30, "tol": 1e-6 if precise else 1e-2}
        factor = np.ones(7)
        if by_class and not sets:
            options["class_weight"] = {label: float(w) for label, w in zip(LABELS, weight, strict=False)}
            factor = np.array([options["class_weight"][label] for label in one])
            weight = np.ones(7)
        if sets and cls is not FlatSVM:
            options["allow_empty"] = seed % 2 == 1
        if sets and cls is not HRSVM:
            options["leaf_offset"] = 0.0
        model = cls(h, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(sp.csr_array(X) if sparse else X, y, sample_weight=weight)
        Learned(model, X, y, model.C * (weight * factor), sets).check(model)

    hold()


@pytest.mark.parametrize(("cls", "h", "sets"), KINDS, ids=NAMES)
def test_a_fit_that_rounding_stops_says_so(cls, h, sets):
    """One sample that costs 1e16 times as much as the others: no passes help, so there are few."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(30, 5)), rng.integers(0, 4, (30, 2)).astype(str)
    y = [sorted(set(row)) if sets else str(row[0]) for row in labels]
    weight = np.ones(30)
    weight[3] = 1e16
    none = {"leaf_offset": 0.0} if sets and cls is not HRSVM else {}
    with pytest.warns(ConvergenceWarning, match=r"rounding alone .* above tol=0.001.* goes from 1.0e\+00 to 1.0e\+16"):
        model = cls(h, C=1, intercept_scaling=1, **none).fit(X, y, sample_weight=weight)
    assert model.n_iter_ < 200
    assert model.gap_ > 1e-3
    Learned(model, X, y, weight, sets).check(model)


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("cls", [HSVM, NHSVM, HRSVM])
def test_rounding_is_next_to_nothing_where_costs_are_alike(cls, sets):
    """A gap of 1e-7 is proved, with all that it allows for."""
    X, one, several = samples(3, n=12)
    model = cls(TREE, tol=1e-7).fit(X, several if sets else one)
    assert 0.0 <= model.gap_ <= 1e-7
