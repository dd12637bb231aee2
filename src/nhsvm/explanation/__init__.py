"""Why a model gives a label its score: nodes × features, exactly.

A score is a sum over the nodes of a label and over features, so it can be taken apart without any approximation:
``model.explain(x)`` of every estimator gives :class:`Explanations`, and :func:`explain` does it for a pipeline, with
the words of a text as features.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.explanation.parts import Explanation, Explanations, NodePart
    from nhsvm.explanation.pipelines import explain, features_of

__all__ = ["Explanation", "Explanations", "NodePart", "explain", "features_of"]

_HOME = {
    "Explanation": "parts",
    "Explanations": "parts",
    "NodePart": "parts",
    "explain": "pipelines",
    "features_of": "pipelines",
}  # public name -> file, imported on first use


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
