"""Learning from label sets; a mixin."""

from __future__ import annotations

from typing import Any

from nhsvm.columns import column_parents, make_columns
from nhsvm.estimators._curve_fit import fit_curves
from nhsvm.estimators._curves import node_margins
from nhsvm.estimators._held_out import HeldOutSets
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._offsets import tuned_offsets
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._set_problem import loss_weights, training_oracles, true_columns
from nhsvm.estimators._sets import SetModel, held_gains, on_leaves
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights import node_weights


class SetFit:
    """The problem of label sets, what is stored of it, and what held-out folds teach."""

    def _set_problem(self: Any, X: Any, sets: LabelSets, weight: FloatArray) -> tuple[Any, FloatArray]:
        """The learning problem, with C_i = C · sample weight; and α."""
        from nhsvm.engine import prepare
        from nhsvm.engine.problem import LabelSetProblem

        h, allow_empty = sets.hierarchy, bool(self.allow_empty)
        alpha = node_weights(h, self.weights)
        columns = make_columns(h.graph, alpha)
        weights = loss_weights(self._loss("leaf_hamming", h, alpha), h, columns, allow_empty)
        bias, dtype = self._precision(X)
        oracle, answers = training_oracles(self.oracle, h, allow_empty)
        problem = LabelSetProblem(
            X=prepare(X),
            truth=true_columns(sets, columns),
            costs=self.C * weight,
            columns=columns,
            above=column_parents(h.graph, columns),
            oracle=oracle,
            loss_weights=weights,
            n_nodes=h.n_nodes,
            bias=bias,
            dtype=dtype,
            offset=on_leaves(h.graph, float(self.leaf_offset))[columns.nodes],
            quicker=oracle.quicker() if hasattr(oracle, "quicker") else (),
            answers=answers,
            memory=allowed_bytes(self.memory_limit),
        )
        return problem, alpha

    def _set_model(self: Any, sets: LabelSets) -> SetModel:
        return SetModel(sets.form, bool(self.allow_empty), float(self.leaf_offset))

    def _learn_from_sets(self: Any, problem: LearningProblem, held: HeldOutSets) -> None:
        """Learn ``offsets_``, and the curves of probabilities."""
        sets = problem.labels
        assert isinstance(sets, LabelSets)
        # without proofs: on a DAG they take most of the time, and seldom change a set
        inference = self._inference(exact=False)
        if self.offsets is not None:
            self.offsets_ = tuned_offsets(self.offsets, sets, inference, held, self._all_offsets(), self.n_jobs)
        if self.probability:
            graph = sets.hierarchy.graph
            margins = node_margins(graph, held_gains(inference, held.scores, self._all_offsets(), self.n_jobs))
            true = (held.true @ graph.leaf_matrix()).toarray() > 0
            self._curves = fit_curves(margins, true, held.weight, held.scores)
