"""Features that scikit-learn lacks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.features.bm25 import BM25Transformer

__all__ = ["BM25Transformer"]

_HOME = {"BM25Transformer": "bm25"}  # public name -> file, imported on first use


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
