"""scikit-learn estimators: settings of one machine."""

from nhsvm.estimators.presets import HRSVM, HSVM, NHSVM, SSVM, FlatSVM

__all__ = ["HRSVM", "HSVM", "NHSVM", "SSVM", "FlatSVM"]
