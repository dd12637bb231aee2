"""scikit-learn estimators: presets of one estimator."""

from nhsvm.estimators.presets import HRSVM, HSVM, NHSVM, SSVM, FlatSVM

__all__ = ["HRSVM", "HSVM", "NHSVM", "SSVM", "FlatSVM"]
