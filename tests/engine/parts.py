"""Functions that become parts of kernels, compiled by themselves so that tests can call them."""

from nhsvm._jit import kernel


def compiled(*parts):
    """Each as a kernel of its own; called as it is, it would be a plain function."""
    return [kernel(part.py_func) for part in parts]
