"""The normalised hierarchical SVM (Eq. 10 to 13)."""

from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.options import Preset


class NHSVM(HierarchicalSVM):
    """The normalised hierarchical SVM (Eq. 10, Eq. 11, Eq. 12): weights α that sum to one on every path."""

    _preset = Preset("normalized", texts={"auto_loss_meaning": " (Eq. 9)"})
