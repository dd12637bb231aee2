"""Real and made data: readers of the usual files, a text set of docstrings, generators.

>>> from nhsvm.datasets import make_unbalanced
>>> data = make_unbalanced(200, 10, random_state=0)
>>> data.X.shape, data.hierarchy
((200, 10), Hierarchy(tree, 21 nodes, 11 leaves, 1 root, 11 levels))
"""

from typing import TYPE_CHECKING

from nhsvm.registry import on_first_use

if TYPE_CHECKING:
    from nhsvm.datasets.arff import read_hmc_arff
    from nhsvm.datasets.blocks import iter_blocks, open_blocks
    from nhsvm.datasets.blocks_writer import write_blocks
    from nhsvm.datasets.chunks import Chunks, convert_to_blocks, read_chunks
    from nhsvm.datasets.dataset import Dataset, Skipped
    from nhsvm.datasets.generators import load_docstrings, make_balanced, make_text, make_unbalanced
    from nhsvm.datasets.published import read_ilsvrc2010, read_wipo_alpha
    from nhsvm.datasets.sparse_rows import read_lshtc, read_svmlight
    from nhsvm.datasets.table_files import read_csv, read_jsonl, read_parquet

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

# file -> public names, imported on first use; no file has the name of a function, since it would hide it
_NAMES = {
    "arff": ["read_hmc_arff"],
    "blocks": ["iter_blocks", "open_blocks"],
    "blocks_writer": ["write_blocks"],
    "chunks": ["Chunks", "convert_to_blocks", "read_chunks"],
    "dataset": ["Dataset", "Skipped"],
    "generators": ["load_docstrings", "make_balanced", "make_text", "make_unbalanced"],
    "published": ["read_ilsvrc2010", "read_wipo_alpha"],
    "sparse_rows": ["read_lshtc", "read_svmlight"],
    "table_files": ["read_csv", "read_jsonl", "read_parquet"],
}
__getattr__ = on_first_use(__name__, lambda: {name: file for file, names in _NAMES.items() for name in names})


def __dir__() -> list[str]:
    return __all__
