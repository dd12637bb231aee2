"""U as it is kept once it is learned: a table, rows as long as they need to be, or either in less precision."""

from nhsvm.storage.packed import PRECISIONS, Packed, pack
from nhsvm.storage.rows import StoredRows
from nhsvm.storage.scoring import score_in_chunks
from nhsvm.storage.table import Table
from nhsvm.storage.weights import Lists, Weights

__all__ = ["PRECISIONS", "Lists", "Packed", "StoredRows", "Table", "Weights", "pack", "score_in_chunks"]
