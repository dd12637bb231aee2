"""The flat multiclass SVM: every class on its own."""

from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.options import Preset


class FlatSVM(HierarchicalSVM):
    """The multiclass SVM of Crammer and Singer, which knows the hierarchy only through its loss.

    min ½ Σ_l ‖U_l‖² + Σ_i C_i max_l [Δ(l, y_i) + U_l·x_i − U_{y_i}·x_i]: weights on the leaves only (α = 1 there, 0
    elsewhere). From label sets it learns one hinge SVM a label, which compete only where a set must not be empty.
    """

    _preset = Preset("zero_one", settled={"weights": "flat", "margin": "loss"})
