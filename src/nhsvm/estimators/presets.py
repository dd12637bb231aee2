"""The estimators: presets of :class:`nhsvm.estimators.base.HierarchicalSVM`."""

from __future__ import annotations

from dataclasses import replace

from nhsvm.errors import OptionError
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.estimators.problem import LearningProblem
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss
from nhsvm.options import Preset
from nhsvm.typing import Estimator, FloatArray
from nhsvm.weights import Uniform

_KEPT = 0.99  # of the weights of the fit before, in a warm start; the rest keeps all of them away from zero


class FlatSVM(HierarchicalSVM):
    """The multiclass SVM of Crammer and Singer, which knows the hierarchy only through its loss.

    min ½ Σ_l ‖U_l‖² + Σ_i C_i max_l [Δ(l, y_i) + U_l·x_i − U_{y_i}·x_i]: weights on the leaves only (α = 1 there, 0
    elsewhere). From label sets it learns one hinge SVM a label, which compete only where a set must not be empty.
    """

    _preset = Preset("zero_one", settled={"weights": "flat", "margin": "loss"})


class HSVM(HierarchicalSVM):
    """The hierarchical structured SVM of Eq. 2 and Eq. 3, with weight 1 on every node."""

    _preset = Preset(
        "hamming",
        settled={"weights": "uniform", "margin": "loss"},
        texts={"auto_loss_meaning": ", the number of nodes in which two labels differ"},
    )


class NHSVM(HierarchicalSVM):
    """The normalised hierarchical SVM (Eq. 10, Eq. 11, Eq. 12): weights α that sum to one on every path."""

    _preset = Preset("normalized", texts={"auto_loss_meaning": " (Eq. 9)"})


class SSVM(HierarchicalSVM):
    """The Shared SVM (Eq. 14, Eq. 15): learns which nodes share, as weights α beside the vectors of nodes.

    min_{U, α} ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U), for α ≥ 0 that sum to one at most on every path. It is convex, and
    never above what any fixed weights of that kind reach. Nodes above every leaf get no weight.
    """

    _preset = Preset(
        "zero_one",
        learns_weights=True,
        settled={"weights": "maxmin", "margin": "loss"},  # weights to start from
        defaults={"solver": "alternating"},
        doc={
            "loss": (
                '{"auto", "zero_one", "hamming", "leaf_hamming"}, class or Loss',
                'The structural error Δ; "auto" is "zero_one"; of label sets always "leaf_hamming", and "hamming" is '
                'the other one they can have. "normalized" depends on α, and is refused.',
            ),
            "solver": (
                '"alternating" or instance',
                "Weights change between the passes of the dual method, until a gap of the joint problem is proved. An "
                "instance, such as ``nhsvm.engine.Alternating(tol=1e-5)``, has its own tol, max_iter, certify, "
                "threads, seed and callback.",
            ),
        },
        texts={
            "node_weights": "α as learned, aligned with ``hierarchy_.nodes``.",
            "history": "; and fixed_primal and\n    fixed_dual, the objectives for the weights of that pass",
        },
    )

    def start_from(self, model: Estimator) -> SSVM:
        """Let the next fit go on from the dual variables of another model, such as an :class:`NHSVM`.

        Parameters
        ----------
        model : fitted estimator
            With ``warm_start=True``, of the same hierarchy, and of the samples and labels that this one will learn
            from. It is not changed.

        Returns
        -------
        self

        Raises
        ------
        OptionError
            If this estimator has not ``warm_start=True``, or the other has kept no dual variables.
        """
        if not self.warm_start:
            raise OptionError("start_from needs warm_start=True, which says that a fit goes on from what was before")
        kept = model._dual if isinstance(model, HierarchicalSVM) else None
        if kept is None:
            raise OptionError(
                f"this {type(model).__name__} has no dual variables to go on from: fit it with warm_start=True; a file "
                "does not hold them"
            )
        self._dual = kept.copied()
        return self

    def _loss(self, auto: str, hierarchy: Hierarchy, alpha: FloatArray) -> Loss:
        loss = super()._loss(auto, hierarchy, alpha)
        if loss.needs_weights:
            raise OptionError(f"loss {loss.name!r} depends on α, which SSVM learns; use another, such as 'zero_one'")
        return loss

    def _continued(self, problem: LearningProblem) -> LearningProblem:
        """With the weights of the fit before, in a warm start."""
        if not self.warm_start or not self._is_fitted or self.node_weights_.shape != problem.alpha.shape:
            return problem
        learned, columns = self.node_weights_, problem.solved.columns
        start = _KEPT * learned[columns.nodes] + (1.0 - _KEPT) * columns.alpha
        return replace(problem, solved=replace(problem.solved, columns=replace(columns, alpha=start)))


class HRSVM(HierarchicalSVM):
    """One-vs-rest SVMs of all leaves, with recursive regularisation: HR-SVM of Gopal and Yang (2013).

    min ½ Σ_n ‖w_n − w_parent(n)‖² + Σ_i C_i Σ_l max(0, 1 − y_il w_l·x_i), where y_il is 1 for the labels of sample i
    and −1 for all other leaves l, and the parent of a root is 0. In the terms of this library w_l is the sum of U_n
    over Ā(l), the leaf and everything above it, with U_n = w_n − w_parent(n) and α = 1 on all nodes; on a DAG the sum
    is over all ancestors.

    One label a sample: the leaf of the highest score is predicted. Label sets: all leaves with a positive score, and
    the leaf of the highest score if there is none.
    """

    _preset = Preset(
        "auto",
        independent=True,
        settled={
            "weights": Uniform(include_common=True),
            "margin": "loss",
            "loss": "auto",
            "oracle": "auto",
            "leaf_offset": 0.0,
        },
        doc={
            "solver": (
                '"dual" or instance',
                "Exact, and proves it. An instance of ``nhsvm.engine.Dual`` has its own tol, max_iter, certify, "
                "threads, seed and callback.",
            ),
            "allow_empty": (
                "bool",
                "Accept samples without a label, and predict empty sets where no leaf has a positive score. For label "
                "sets.",
            ),
        },
        texts={
            "hierarchy": "None is the flat hierarchy over the labels seen: separate hinge SVMs.",
            "node_weights": (
                "α, aligned with ``hierarchy_.nodes``: 1 everywhere, also above all leaves, where nothing cancels here."
            ),
        },
    )
