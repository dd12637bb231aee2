"""The same hierarchical precision, recall and F1 as hiclass, where that is installed."""

import numpy as np
import pytest

from nhsvm import Hierarchy, metrics

theirs = pytest.importorskip("hiclass.metrics")


@pytest.mark.filterwarnings("ignore:F-score is ill-defined")  # where a sample shares no node
@pytest.mark.parametrize("seed", range(20))
def test_paths(seed):
    rng = np.random.default_rng(seed)
    paths = [(f"a{i}", f"b{i}{j}", f"c{i}{j}{k}") for i in range(3) for j in range(3) for k in range(2)]
    h = Hierarchy.from_paths(paths)
    some, others = (rng.integers(len(paths), size=30) for _ in range(2))
    others = np.where(rng.random(30) < 0.3, some, others)
    y_true, y_pred = (np.array(paths)[pick] for pick in (some, others))
    for name in ("precision", "recall", "f1"):
        for average in ("micro", "macro"):  # what hiclass calls macro is a mean over samples
            expected = getattr(theirs, name)(y_true, y_pred, average=average)
            found = getattr(metrics, f"hierarchical_{name}")(
                y_true[:, -1], y_pred[:, -1], hierarchy=h, average="samples" if average == "macro" else average
            )
            assert found == pytest.approx(expected, rel=1e-12)
