"""The hierarchical SVM (HSVM, Eq. 3): all nodes weigh the same."""

from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.options import Preset


class HSVM(HierarchicalSVM):
    """The hierarchical structured SVM of Eq. 2 and Eq. 3, with weight 1 on every node."""

    _preset = Preset(
        "hamming",
        settled={"weights": "uniform", "margin": "loss"},
        texts={"auto_loss_meaning": ", the number of nodes in which two labels differ"},
    )
