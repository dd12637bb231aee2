"""Features that scikit-learn lacks."""

from typing import TYPE_CHECKING

from nhsvm.registry import on_first_use

if TYPE_CHECKING:
    from nhsvm.features.bm25 import BM25Transformer

__all__ = ["BM25Transformer"]

__getattr__ = on_first_use(__name__, lambda: {"BM25Transformer": "bm25"})


def __dir__() -> list[str]:
    return __all__
