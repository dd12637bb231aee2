"""Learning from label sets; a mixin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nhsvm.columns import column_parents, make_columns
from nhsvm.estimators._curve_fit import fit_curves
from nhsvm.estimators._held_out import HeldOutSets
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._offsets import tuned_offsets
from nhsvm.estimators._options import n_threads
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._set_problem import loss_weights, training_oracles, true_columns
from nhsvm.model import SetForm
from nhsvm.model.sets import gains_of_scores, node_margins, on_leaves
from nhsvm.typing import FloatArray
from nhsvm.weights import node_weights


class SetFit:
    """The problem of label sets, what is stored of it, and what held-out folds teach."""

    _independent = False  # whether each label has a score of its own

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
            answers=answers,
            memory=allowed_bytes(self.memory_limit),
        )
        return problem, alpha

    def _set_form(self: Any, form: str) -> SetForm:
        return SetForm(form, bool(self.allow_empty), float(self.leaf_offset), self._independent, self.oracle == "lp")

    def _learn_from_sets(self: Any, problem: LearningProblem, held: HeldOutSets) -> None:
        """Learn ``offsets_``, and the curves of probabilities."""
        sets = problem.labels
        assert isinstance(sets, LabelSets)
        # without proofs: on a DAG they take most of the time, and seldom change a set
        inference = self.model_.inference(exact=False)
        if self.offsets is not None:
            base = self.model_.all_offsets()
            offsets = tuned_offsets(self.offsets, sets, inference, held, base, self.n_jobs)
            self.model_ = replace(self.model_, offsets=offsets)
        if self.probability:
            graph = sets.hierarchy.graph
            gains = gains_of_scores(inference, held.scores, self.model_.all_offsets(), n_threads(self.n_jobs))
            true = (held.true @ graph.leaf_matrix()).toarray() > 0
            curves = fit_curves(node_margins(graph, gains), true, held.weight, held.scores)
            self.model_ = replace(self.model_, curves=curves)
