"""scikit-learn estimators: settings of one machine."""

from nhsvm.estimators.flat import FlatSVM
from nhsvm.estimators.hrsvm import HRSVM
from nhsvm.estimators.hsvm import HSVM
from nhsvm.estimators.nhsvm import NHSVM
from nhsvm.estimators.ssvm import SSVM

__all__ = ["HRSVM", "HSVM", "NHSVM", "SSVM", "FlatSVM"]
