"""Real and made data: readers of the usual files, a text set of docstrings, generators.

>>> from nhsvm.datasets import make_unbalanced
>>> data = make_unbalanced(200, 10, random_state=0)
>>> data.X.shape, data.hierarchy
((200, 10), Hierarchy(tree, 21 nodes, 11 leaves, 1 root, 11 levels))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.datasets._blocks_make import convert_to_blocks, write_blocks
    from nhsvm.datasets._dataset import Dataset, Skipped
    from nhsvm.datasets.blocks import iter_blocks, open_blocks
    from nhsvm.datasets.chunks import Chunks, read_chunks
    from nhsvm.datasets.delimited import read_csv
    from nhsvm.datasets.docstrings import load_docstrings
    from nhsvm.datasets.hmc_arff import read_hmc_arff
    from nhsvm.datasets.ilsvrc import read_ilsvrc2010
    from nhsvm.datasets.jsonl import read_jsonl
    from nhsvm.datasets.lshtc import read_lshtc
    from nhsvm.datasets.parquet import read_parquet
    from nhsvm.datasets.svmlight import read_svmlight
    from nhsvm.datasets.synthetic import make_balanced, make_unbalanced
    from nhsvm.datasets.text import make_text
    from nhsvm.datasets.wipo_alpha import read_wipo_alpha

__all__ = [
    "Chunks",
    "Dataset",
    "Skipped",
    "convert_to_blocks",
    "iter_blocks",
    "load_docstrings",
    "make_balanced",
    "make_text",
    "make_unbalanced",
    "open_blocks",
    "read_chunks",
    "read_csv",
    "read_hmc_arff",
    "read_ilsvrc2010",
    "read_jsonl",
    "read_lshtc",
    "read_parquet",
    "read_svmlight",
    "read_wipo_alpha",
    "write_blocks",
]

# public name -> file, imported on first use; no file has the name of a function, since it would hide it
_HOME = {
    "Chunks": "chunks",
    "Dataset": "_dataset",
    "Skipped": "_dataset",
    "convert_to_blocks": "_blocks_make",
    "iter_blocks": "blocks",
    "load_docstrings": "docstrings",
    "make_balanced": "synthetic",
    "make_text": "text",
    "make_unbalanced": "synthetic",
    "open_blocks": "blocks",
    "read_chunks": "chunks",
    "read_csv": "delimited",
    "read_hmc_arff": "hmc_arff",
    "read_ilsvrc2010": "ilsvrc",
    "read_jsonl": "jsonl",
    "read_lshtc": "lshtc",
    "read_parquet": "parquet",
    "read_svmlight": "svmlight",
    "read_wipo_alpha": "wipo_alpha",
    "write_blocks": "_blocks_make",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
