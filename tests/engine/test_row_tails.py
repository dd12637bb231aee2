"""Labels chosen by the heads of full rows: their values are those of all weights."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.test_addresses import ready
from nhsvm.engine.storage import rows as rows_module
from nhsvm.oracles.leaves import Proposals, leaf_scores

seeds = st.integers(0, 2**32)


@pytest.mark.parametrize("share", [0.05, 0.4])
@given(seed=seeds)
def test_values_with_tails_are_those_of_all_weights(share, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "TUNING", rows_module.TUNING._replace(share=share))
        case, planes, (rows, table) = ready(seed, n_nodes=40, d=12)
    p, columns = case.problem, case.problem.columns
    samples = np.random.default_rng(seed).permutation(p.n_samples)
    leaves, costs = p.leaves[samples], p.costs[samples]
    assume(columns.head > 0)

    heads, scores = np.empty((2, len(samples), columns.n_columns))
    rows.head_scores(samples, columns.head, heads)
    table.scores(samples, scores)
    np.testing.assert_allclose(heads[:, : columns.head], scores[:, : columns.head], rtol=1e-9, atol=1e-10)

    start, count, leaf, weight = planes.of(samples)
    found = Proposals.empty(len(samples), int(count.max()) + 5)
    p.oracle.propose(heads, leaves, costs, (start, count, leaf, weight), 5, -1.0, found)
    rows.add_tails(samples, leaves, columns, found)
    exact = np.empty((len(samples), columns.n_leaves))
    leaf_scores(columns, scores, exact)
    for t in range(len(samples)):
        own = exact[t, leaves[t]]
        part = slice(0, found.size[t])
        expected = found.loss[t, part] + found.scale[t, part] * (exact[t, found.leaf[t, part]] - own)
        np.testing.assert_allclose(found.value[t, part], expected, rtol=1e-8, atol=1e-9)
        assert found.slack[t] == max(0.0, found.value[t, part].max(initial=0.0))
