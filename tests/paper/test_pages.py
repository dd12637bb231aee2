"""What pages share, and the pages of Table 1, Theorem 1 and the weights."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from nhsvm import Hierarchy, paper
from nhsvm.errors import OptionError
from nhsvm.paper import EXPERIMENTS, NORMS, reproduce, theory
from nhsvm.paper.tables import check_out, mcnemar, paired, table, versions
from nhsvm.weights import node_weights


def test_paired_is_scipys_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 9))
    assert paired(a, b).p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert paired(a + 9, a).better
    assert not paired(a, a).better
    assert not paired(a, a + 9).better


def test_mcnemar_is_scipys_test():
    rng = np.random.default_rng(0)
    for share in (0.5, 0.7, 0.95):
        right, other = rng.random(60) < share, rng.random(60) < 0.5
        better, worse = int((right & ~other).sum()), int((other & ~right).sum())
        assert mcnemar(right, other) == pytest.approx(stats.binomtest(better, better + worse).pvalue)
    assert mcnemar(right, right) == 1.0


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(OptionError, match="is no folder"):
        check_out(tmp_path)


def test_table_1_agrees_with_its_closed_forms():
    found = list(theory.cases(3))
    assert len(found) == 4
    for case in found:
        for value, expected in zip(case.computed(), case.expected, strict=True):
            assert expected is None or value == pytest.approx(expected, rel=1e-6)
        assert case.computed()[3] == pytest.approx(np.linalg.norm(case.U, "nuc"))


def test_figure_1():
    assert theory.penalties()[0] == ("HSVM", pytest.approx(25), pytest.approx(12.5))
    assert all(two == pytest.approx(25) for _, _, two in theory.penalties()[1:])


def test_copies_change_hsvm_more_than_nhsvm_and_less_as_rho_falls():
    data = theory.make_data(0)
    assert theory.copied(2).minimal().n_nodes == theory.copied(0).n_nodes == 6
    assert theory.changed("power", data, 0) == 0
    high, low = (theory.changed("power", data, 2, rho) for rho in (2.0, 1.1))
    assert low < high < theory.changed("uniform", data, 2)


@pytest.mark.parametrize("name", theory.examples())
def test_weights_are_normalised_but_for_uniform(name):
    h = theory.examples()[name]
    for scheme, made in theory.SCHEMES.items():
        sums = theory.path_sums(h, node_weights(h, made))
        depth = [len(h.closure(leaf)) for leaf in h.leaves]
        assert sums == pytest.approx(depth if scheme.startswith("uniform") else 1.0)
    assert theory.above_leaves(h, node_weights(h, "flat")) == 0


@pytest.mark.parametrize("name", ["norms", "weights"])
def test_pages_are_the_same_bytes_every_time(name, tmp_path):
    first, second = (reproduce(name, tmp_path / k) for k in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    text = (tmp_path / "a" / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert versions() in " ".join(text.split())


def test_experiments_by_name(tmp_path):
    with pytest.raises(OptionError, match=r"experiment must be one of \['synthetic', .* not 'table9'"):
        reproduce("table9", tmp_path)
    with pytest.raises(OptionError, match="experiment='norms' has no option 'sede'; it has seed"):
        reproduce("norms", tmp_path, sede=1)
    with pytest.raises(OptionError, match="experiment='weights' has no option 'seed'; it has none"):
        reproduce("weights", tmp_path, seed=1)
    assert not list(tmp_path.iterdir())


LEAST = [
    (spec.name, option) for spec in EXPERIMENTS.specs.values() for option in spec.takes if option.least is not None
]


@pytest.mark.parametrize(("name", "option"), LEAST, ids=[f"{name}-{option.name}" for name, option in LEAST])
def test_options_that_are_too_small(name, option, tmp_path):
    with pytest.raises(OptionError, match=f"{option.name} must be at least {option.least}, not {option.least - 1}"):
        reproduce(name, tmp_path, **{option.name: option.least - 1})
    assert not list(tmp_path.iterdir())


def test_table():
    assert table(["a", "b"], [["x", "1"]]).splitlines() == ["| a | b |", "|---|--:|", "| x | 1 |"]


# -- registries --------------------------------------------------------------------------------------------------------

PAPER = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
SHOP = Hierarchy.from_edges([("tools", "saw"), ("tools", "axe")], nodes=["book"])


@pytest.mark.parametrize("name", NORMS)
def test_norms_by_name(name):
    spec, U = NORMS.spec(name), np.random.default_rng(0).normal(size=(3, 2))
    assert NORMS[name] is getattr(paper, f"{name.replace(' ', '_').lower()}_norm")
    given = {"hierarchy": SHOP, "tol": 1e-2}
    assert NORMS[name](U, **{option: given[option] for option in spec.options}) > 0
    assert spec.symbol in NORMS[name].__doc__


def test_the_page_of_the_paper_lists_norms_and_experiments():
    rows = [[name, f"`{norm.symbol}`", norm.summary] for name, norm in NORMS.specs.items()]
    assert table(["norm", "", "what it charges"], rows, left=3) in PAPER
    rows = [[f"[{n}](results/{n}.md)", spec.summary.split("\n")[0]] for n, spec in EXPERIMENTS.specs.items()]
    assert table(["experiment", "what it makes"], rows, left=2) in PAPER


def test_public_names():
    assert {name for name in paper.__all__ if getattr(paper, name) is None} == set()
    with pytest.raises(AttributeError, match=r"'nhsvm\.paper' has no attribute 'norm'"):
        paper.norm  # noqa: B018
