"""Real and made data: readers of the usual files, a text set of docstrings, generators.

>>> from nhsvm.datasets import make_unbalanced
>>> data = make_unbalanced(200, 10, random_state=0)
>>> data.X.shape, data.hierarchy
((200, 10), Hierarchy(tree, 21 nodes, 11 leaves, 1 root, 11 levels))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.datasets.arff import read_hmc_arff
    from nhsvm.datasets.base import Dataset, Skipped
    from nhsvm.datasets.blocks import iter_blocks, open_blocks
    from nhsvm.datasets.blocks_writer import write_blocks
    from nhsvm.datasets.chunks import Chunks, convert_to_blocks, read_chunks
    from nhsvm.datasets.generators import load_docstrings, make_balanced, make_text, make_unbalanced
    from nhsvm.datasets.ilsvrc import read_ilsvrc2010
    from nhsvm.datasets.sparse_rows import read_lshtc, read_svmlight
    from nhsvm.datasets.table_files import read_csv, read_jsonl, read_parquet
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
    "Dataset": "base",
    "Skipped": "base",
    "convert_to_blocks": "chunks",
    "iter_blocks": "blocks",
    "load_docstrings": "generators",
    "make_balanced": "generators",
    "make_text": "generators",
    "make_unbalanced": "generators",
    "open_blocks": "blocks",
    "read_chunks": "chunks",
    "read_csv": "table_files",
    "read_hmc_arff": "arff",
    "read_ilsvrc2010": "ilsvrc",
    "read_jsonl": "table_files",
    "read_lshtc": "sparse_rows",
    "read_parquet": "table_files",
    "read_svmlight": "sparse_rows",
    "read_wipo_alpha": "wipo_alpha",
    "write_blocks": "blocks_writer",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
