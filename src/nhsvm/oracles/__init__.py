"""The most violating label of a sample: argmax over labels of score plus loss, one problem class a file."""
