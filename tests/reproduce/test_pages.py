"""What pages share, and the pages of Table 1, Theorem 1 and the weights."""

import numpy as np
import pytest
from scipy import stats

from nhsvm.errors import OptionError
from nhsvm.reproduce import invariance, norms, weights
from nhsvm.reproduce._compare import paired
from nhsvm.reproduce._page import check_out, table, versions
from nhsvm.weights import node_weights


def test_paired_is_scipys_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 9))
    assert paired(a, b).p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert paired(a + 9, a).better
    assert not paired(a, a).better
    assert not paired(a, a + 9).better


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(OptionError, match="is no folder"):
        check_out(tmp_path)


def test_table_1_agrees_with_its_closed_forms():
    found = list(norms.cases(3))
    assert len(found) == 4
    for case in found:
        for value, expected in zip(case.computed(), case.expected, strict=True):
            assert expected is None or value == pytest.approx(expected, rel=1e-6)
        assert case.computed()[3] == pytest.approx(np.linalg.norm(case.U, "nuc"))


def test_figure_1():
    assert invariance.penalties()[0] == ("HSVM", pytest.approx(25), pytest.approx(12.5))
    assert all(two == pytest.approx(25) for _, _, two in invariance.penalties()[1:])


def test_copies_change_hsvm_more_than_nhsvm_and_less_as_rho_falls():
    data = invariance.make_data(0)
    assert invariance.copied(2).minimal().n_nodes == invariance.copied(0).n_nodes == 6
    assert invariance.changed("power", data, 0) == 0
    high, low = (invariance.changed("power", data, 2, rho) for rho in (2.0, 1.1))
    assert low < high < invariance.changed("uniform", data, 2)


@pytest.mark.parametrize("name", weights.examples())
def test_weights_are_normalised_but_for_uniform(name):
    h = weights.examples()[name]
    for scheme, made in weights.SCHEMES.items():
        sums = weights.path_sums(h, node_weights(h, made))
        depth = [len(h.closure(leaf)) for leaf in h.leaves]
        assert sums == pytest.approx(depth if scheme.startswith("uniform") else 1.0)
    assert weights.above_leaves(h, node_weights(h, "flat")) == 0


@pytest.mark.parametrize("module", [norms, weights])
def test_pages_are_the_same_bytes_every_time(module, tmp_path):
    first, second = (module.write(tmp_path / k) for k in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    text = (tmp_path / "a" / "results" / f"{module.__name__.rsplit('.', 1)[-1]}.md").read_text(encoding="utf-8")
    assert versions() in text


def test_table():
    assert table(["a", "b"], [["x", "1"]]).splitlines() == ["| a | b |", "|---|--:|", "| x | 1 |"]
