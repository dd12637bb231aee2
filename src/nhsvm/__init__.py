"""Large-margin classification into label hierarchies: trees and DAGs, one label or several."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.estimators import HRSVM, HSVM, NHSVM, SSVM, FlatSVM
    from nhsvm.estimators.memory import estimate_memory
    from nhsvm.estimators.pruning import prune
    from nhsvm.explanation import explain
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.model import Model, load, load_model, save
    from nhsvm.model_selection.cv import HRSVMCV, HSVMCV, NHSVMCV, SSVMCV, FlatSVMCV
    from nhsvm.weights import node_weights

__version__ = "0.1.0.dev0"
__all__ = [
    "HRSVM",
    "HRSVMCV",
    "HSVM",
    "HSVMCV",
    "NHSVM",
    "NHSVMCV",
    "SSVM",
    "SSVMCV",
    "FlatSVM",
    "FlatSVMCV",
    "Hierarchy",
    "Model",
    "__version__",
    "estimate_memory",
    "explain",
    "load",
    "load_model",
    "node_weights",
    "prune",
    "save",
]

_HOME = {
    "FlatSVM": "nhsvm.estimators",
    "FlatSVMCV": "nhsvm.model_selection.cv",
    "HRSVM": "nhsvm.estimators",
    "HRSVMCV": "nhsvm.model_selection.cv",
    "HSVM": "nhsvm.estimators",
    "HSVMCV": "nhsvm.model_selection.cv",
    "Hierarchy": "nhsvm.hierarchy",
    "Model": "nhsvm.model",
    "NHSVM": "nhsvm.estimators",
    "NHSVMCV": "nhsvm.model_selection.cv",
    "SSVM": "nhsvm.estimators",
    "SSVMCV": "nhsvm.model_selection.cv",
    "estimate_memory": "nhsvm.estimators.memory",
    "explain": "nhsvm.explanation",
    "load": "nhsvm.model",
    "load_model": "nhsvm.model",
    "node_weights": "nhsvm.weights",
    "prune": "nhsvm.estimators.pruning",
    "save": "nhsvm.model",
}  # public name -> module, imported on first use


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
