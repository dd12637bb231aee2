"""U as it is kept once it is learned, and its scores by chunks on all threads; loading a model does not load numba."""

from nhsvm.storage.scoring import score_in_chunks
from nhsvm.storage.weights import PRECISIONS, Lists, Packed, StoredRows, Table, Weights, pack

__all__ = ["PRECISIONS", "Lists", "Packed", "StoredRows", "Table", "Weights", "pack", "score_in_chunks"]
