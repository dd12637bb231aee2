"""A stand-in for a model."""

import numpy as np


class Says:
    """A classifier whose samples are its answers."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict(self, X):
        return np.asarray(X)
