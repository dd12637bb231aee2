"""The most violating label of a sample: argmax over labels of score plus loss, one problem class a file."""

from nhsvm.oracles.brute_force import brute_force
from nhsvm.oracles.single_label import SingleLabel

__all__ = ["SingleLabel", "brute_force"]
