"""Whether an estimator would refuse its options, without data: what ``fit`` checks, on a hierarchy of four nodes."""

from __future__ import annotations

from typing import Any

from nhsvm.columns import make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators.options import check_options, check_single, why_no_sets
from nhsvm.estimators.problem import loss_weights
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss
from nhsvm.weights import Flat, Maxmin, Power, Uniform, node_weights

_SMALL = Hierarchy.from_edges([("a", "b"), ("a", "c")], nodes=["d"])


def why_refused(estimator: Any, multilabel: bool) -> str | None:
    """The reason, or None if it would not."""
    try:
        check_options(estimator)
        if multilabel:
            reason = why_no_sets(estimator)
            if reason is not None:
                return reason
        else:
            check_single(estimator)
        estimator._solver(silent=True)
        _check_loss(estimator, multilabel)
    except OptionError as error:
        return str(error)
    return None


def _check_loss(estimator: Any, multilabel: bool) -> None:
    scheme = estimator.weights
    own = callable(scheme) and not isinstance(scheme, (type, Flat, Maxmin, Power, Uniform))  # perhaps for one hierarchy
    alpha = node_weights(_SMALL, "maxmin" if own else scheme)
    if isinstance(estimator.loss, Loss):
        return
    loss = estimator._loss("leaf_hamming" if multilabel else estimator._preset.auto_loss, _SMALL, alpha)
    if multilabel:
        loss_weights(loss, _SMALL, make_columns(_SMALL.graph, alpha), bool(estimator.allow_empty))
