"""What is said of the scales of features: where a few columns carry nearly all, and not of text."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

from nhsvm import HRSVM, NHSVM
from nhsvm.estimators.scales import SCALES, about_scales, column_sums

WINE = load_wine()


def said(X, y=WINE.target, names=None, **options):
    return about_scales(NHSVM(C=1, **options).make_problem(X, y).solved, names)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_wide_columns_are_named(make):
    text = said(make(WINE.data))
    assert "column 12 is up to 3" in text
    assert "98 % of all squares" in text
    assert "StandardScaler" in text
    two = np.hstack([WINE.data, WINE.data * 0.9])
    assert "columns 'proline', 'proline again' are" in said(
        make(two), names=np.array([*WINE.feature_names, *(f"{name} again" for name in WINE.feature_names)])
    )


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_column_sums(make, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 7)) * (np.arange(210).reshape(30, 7) % 3 > 0)
    monkeypatch.setattr("nhsvm.estimators.scales.SCALES", type(SCALES)(chunk=20))
    squares, counts = column_sums(make(X))
    np.testing.assert_allclose(squares, (X**2).sum(axis=0))
    np.testing.assert_array_equal(counts, (X != 0).sum(axis=0))


def test_nothing_to_say():
    scaled = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
    assert said(scaled) is None
    assert said(np.zeros((178, 3))) is None
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(2000)])
    share = 1.0 / np.arange(1, 2001)
    texts = [" ".join(rng.choice(words, 40, p=share / share.sum())) for _ in range(178)]
    assert said(TfidfVectorizer().fit_transform(texts)) is None
    rare = sp.csr_array(np.hstack([scaled * 0.01, 100.0 * (np.arange(178) == 3)[:, None]]))
    assert said(rare) is None  # a wide column that hardly any sample has


def test_long_samples():
    scaled = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
    assert "norms of about 3,606" in said(scaled * 1000.0)


@pytest.mark.parametrize("kind", [NHSVM, HRSVM])
def test_the_warning_names_them_and_so_does_verbose(kind, capsys):
    with pytest.warns(ConvergenceWarning, match=r"column 12 is up to .* lower C, or raise max_iter or tol"):
        kind(C=1, tol=1e-3, max_iter=1, verbose=1).fit(WINE.data, WINE.target)
    lines = capsys.readouterr().err.splitlines()
    assert "column 12" in lines[0]
    assert lines[1].startswith("pass    1")
