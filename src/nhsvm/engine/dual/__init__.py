"""Dual variables of samples, one kind a file, and the block steps that improve them."""
